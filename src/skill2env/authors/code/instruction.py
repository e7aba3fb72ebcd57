"""Write instruction.md in the sampled voice: symptoms, what must hold, nothing about where the fault sits."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skill2env.authors.code import phrases
from skill2env.authors.code.report import Shown
from skill2env.axes import Expertise, Tone
from skill2env.records import Axes, Metric

MAX_INLINE = 150
"""Characters of a value or a call that is quoted in running text."""


@dataclass(frozen=True, slots=True)
class Words:
    """The phrases of one family of tasks. Every list has alternatives of equal meaning; the seed picks.

    Tables go by the asker's expertise; the key "" stands for all that are not named.
    """

    problems: Mapping[str, Sequence[str]]
    """What is wrong or wanted."""
    evidence: Sequence[str]
    """Where the material lies."""
    musts: Mapping[str, Mapping[str, Sequence[str]]]
    """Name of each metric -> the sentence that it checks."""
    rules: Sequence[str]
    """What may be used, and what is to be left alone."""
    story: Sequence[str] = ("At first I thought it was the data, so I put some runs side by side.",)
    """What somebody who tells it all adds."""


@dataclass(frozen=True, slots=True)
class Voice:
    """The sentences of one instruction, chosen and filled in."""

    who: str
    place: str
    problem: str
    evidence: str
    examples: str
    musts: tuple[str, ...]
    rules: str
    story: str


def write_instruction(
    words: Words, fields: Mapping[str, str], examples: Sequence[str], axes: Axes, seed: int, details: str = ""
) -> tuple[str, tuple[Metric, ...]]:
    """Text of instruction.md and the metrics that quote it.

    Args:
        words: the family's phrases.
        fields: what stands for the names in braces; ``tool`` (the project's name as people say it) and ``dir`` (its
            absolute path in the container) are always needed.
        examples: sentences that show what is meant.
        axes: persona, tone and expertise decide the words.
        seed: picks among alternatives.
        details: a block that stands whole whatever the tone, for rules that must be complete.
    """
    rng = random.Random(seed)

    def pick(options: Sequence[str]) -> str:
        chosen = rng.choice(options).format(**fields)
        return chosen[0].upper() + chosen[1:]

    musts = {name: pick(phrases.of(table, axes.expertise, ())) for name, table in words.musts.items()}
    voice = Voice(
        who=pick(phrases.of(phrases.PERSONAS, axes.persona, phrases.OTHER_PERSONA)),
        place=pick(phrases.PLACES),
        problem=pick(
            phrases.of(words.problems, axes.expertise, words.problems.get(Expertise.PRACTITIONER, ()))
        ),
        evidence=pick(words.evidence),
        examples="\n\n".join(part for part in (details, _examples(examples)) if part),
        musts=tuple(musts.values()),
        rules=pick(words.rules),
        story=pick(words.story),
    )
    text = {str(tone): layout for tone, layout in LAYOUTS.items()}.get(axes.tone, _plain)(voice)
    return text.strip() + "\n", tuple(Metric(name=name, sentence=text) for name, text in musts.items())


def _examples(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    if len(sentences) == 1:
        return "For example: " + sentences[0]
    return "\n".join(f"- {s[0].upper() + s[1:] if s[0].isalpha() else s}" for s in sentences)


def symptom(item: Shown) -> str:
    """One reported case in a sentence."""
    subject = f"`{item.call}`" if len(item.call) <= MAX_INLINE else f"`{item.place}/{item.folder}/run.py`"
    if item.has_input and len(item.call) <= MAX_INLINE:
        subject += f" (on the files in `{item.place}/{item.folder}/input`)"
    now, right = item.difference()
    whole = "\n" not in item.now.strip() and "\n" not in item.expected.strip()
    if not _fits(now) or not _fits(right):
        return f"{subject} prints something other than its `expected.txt`."
    if whole:
        return f"{subject} gives {_quote(now)} where {_quote(right)} is right."
    if not now:
        return f"the output of {subject} lacks the line {_quote(right)}."
    if not right:
        return f"the output of {subject} has the line {_quote(now)} too much."
    return f"the output of {subject} says {_quote(now)} where it should say {_quote(right)}."


def _fits(text: str) -> bool:
    return len(text) <= MAX_INLINE and "`" not in text


def _quote(text: str) -> str:
    return f"`{text}`"


def _plain(voice: Voice) -> str:
    return (
        f"{voice.who} {voice.place} {voice.problem}\n\n{voice.evidence}\n\n{voice.examples}\n\n"
        f"{' '.join(voice.musts)}\n\n{voice.rules}"
    )


def _terse(voice: Voice) -> str:
    return (
        f"{voice.place} {voice.problem}\n\n{voice.evidence}\n\n{voice.examples}\n\n"
        f"{' '.join(voice.musts)} {voice.rules}"
    )


def _friendly(voice: Voice) -> str:
    return f"Hello! {_plain(voice)} {phrases.REASONS[Tone.FRIENDLY]}"


def _formal(voice: Voice) -> str:
    numbered = "\n".join(f"{n}. {s}" for n, s in enumerate((*voice.musts, voice.rules), 1))
    return (
        f"{voice.who} {voice.place} {voice.problem}\n\n{voice.evidence}\n\n{voice.examples}\n\n"
        f"The following is required.\n\n{numbered}"
    )


def _urgent(voice: Voice) -> str:
    return (
        f"{voice.problem} {phrases.REASONS[Tone.URGENT]} {voice.place}\n\n{voice.examples}\n\n{voice.evidence} "
        f"{' '.join(voice.musts)}\n\n{voice.who} {voice.rules}"
    )


def _rambling(voice: Voice) -> str:
    first, *others, last = voice.musts
    return (
        f"{voice.who} {voice.problem} {voice.story}\n\n{voice.examples}\n\n"
        f"{last} I mention it because we have been through that before. {voice.place} {voice.evidence}\n\n"
        f"{first} One more thing. {' '.join(others)}\n\n{voice.rules}"
    )


def _sceptical(voice: Voice) -> str:
    first, second, *others = voice.musts
    return (
        f"{voice.who} {voice.place} {voice.problem} {phrases.REASONS[Tone.SCEPTICAL]}\n\n{voice.examples}\n\n{voice.evidence}\n\n"
        f"{second} {first} {' '.join(others)}\n\n{voice.rules}"
    )


def _bulleted(voice: Voice) -> str:
    must = "\n".join(f"- {s}" for s in (*voice.musts, voice.rules))
    return (
        f"**Context.** {voice.who} {voice.place}\n\n**Problem.** {voice.problem} {voice.evidence}\n\n{voice.examples}\n\n"
        f"**Must hold**\n\n{must}"
    )


LAYOUTS = {
    Tone.TERSE: _terse,
    Tone.FRIENDLY: _friendly,
    Tone.FORMAL: _formal,
    Tone.URGENT: _urgent,
    Tone.RAMBLING: _rambling,
    Tone.SCEPTICAL: _sceptical,
    Tone.BULLETED: _bulleted,
}
