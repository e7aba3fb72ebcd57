"""Write instruction.md in the sampled voice: symptoms, what must hold, nothing about where the fault sits."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from skill2env.authors.code import phrases
from skill2env.authors.code.design import Level
from skill2env.authors.code.report import Shown
from skill2env.axes import Expertise, Tone
from skill2env.records import Axes, Metric

MAX_INLINE = 150
"""Characters of a value or a call that is quoted in running text."""


@dataclass(frozen=True, slots=True)
class Voice:
    """The sentences of one instruction, chosen and filled in."""

    who: str
    place: str
    problem: str
    reports: str
    symptoms: tuple[str, ...]
    reported: str
    hidden: str
    kept: str
    rules: str


def write_instruction(
    tool: str, folder: str, shown: Sequence[Shown], axes: Axes, level: Level, seed: int
) -> tuple[str, tuple[Metric, ...]]:
    """Text of instruction.md and the metrics that quote it.

    Args:
        tool: the project's name as people say it.
        folder: its absolute path in the container.
        shown: the reported cases.
        axes: persona, tone and expertise decide the words.
        level: distant evidence is described less closely.
        seed: picks among alternatives.
    """
    voice = _voice(tool, folder, shown, axes, level, random.Random(seed))
    text = {str(tone): layout for tone, layout in LAYOUTS.items()}.get(axes.tone, _plain)(voice)
    metrics = (
        Metric(name="reported_cases", sentence=voice.reported),
        Metric(name="unreported_cases", sentence=voice.hidden),
        Metric(name="kept_behaviour", sentence=voice.kept),
    )
    return text.strip() + "\n", metrics


def _voice(
    tool: str, folder: str, shown: Sequence[Shown], axes: Axes, level: Level, rng: random.Random
) -> Voice:
    count = phrases.COUNT_WORDS[len(shown)] if len(shown) < len(phrases.COUNT_WORDS) else str(len(shown))
    fields = {"tool": tool, "dir": folder, "cases": f"{count} reported case{'s' if len(shown) > 1 else ''}"}
    expertise = axes.expertise

    def pick(options: Sequence[str]) -> str:
        chosen = rng.choice(options).format(**fields)
        return chosen[0].upper() + chosen[1:]

    quoted = 1 if level.distant else 3
    return Voice(
        who=pick(phrases.of(phrases.PERSONAS, axes.persona, phrases.OTHER_PERSONA)),
        place=pick(phrases.PLACES),
        problem=pick(phrases.of(phrases.PROBLEMS, expertise, phrases.PROBLEMS[Expertise.PRACTITIONER])),
        reports=pick(phrases.REPORTS),
        symptoms=tuple(symptom(item) for item in shown[:quoted]),
        reported=pick(phrases.of(phrases.REPORTED, expertise, phrases.REPORTED[""])),
        hidden=pick(phrases.of(phrases.HIDDEN, expertise, phrases.HIDDEN[""])),
        kept=pick(phrases.of(phrases.KEPT, expertise, phrases.KEPT[""])),
        rules=pick(phrases.RULES),
    )


def symptom(item: Shown) -> str:
    """One reported case in a sentence."""
    subject = f"`{item.call}`" if len(item.call) <= MAX_INLINE else f"`reports/{item.folder}/run.py`"
    if item.has_input and len(item.call) <= MAX_INLINE:
        subject += f" (on the files in `reports/{item.folder}/input`)"
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


def _example(voice: Voice) -> str:
    sentences = [s[0].upper() + s[1:] if s[0].isalpha() else s for s in voice.symptoms]
    return (
        "For example: " + voice.symptoms[0] if len(sentences) == 1 else "\n".join(f"- {s}" for s in sentences)
    )


def _plain(voice: Voice) -> str:
    return (
        f"{voice.who} {voice.place} {voice.problem}\n\n{voice.reports}\n\n{_example(voice)}\n\n"
        f"{voice.reported} {voice.hidden} {voice.kept}\n\n{voice.rules}"
    )


def _terse(voice: Voice) -> str:
    return (
        f"{voice.place} {voice.problem}\n\n{voice.reports}\n\n{_example(voice)}\n\n"
        f"{voice.reported} {voice.hidden} {voice.kept} {voice.rules}"
    )


def _friendly(voice: Voice) -> str:
    return f"Hello! {_plain(voice)} {phrases.REASONS[Tone.FRIENDLY]}"


def _formal(voice: Voice) -> str:
    numbered = "\n".join(
        f"{n}. {s}" for n, s in enumerate((voice.reported, voice.hidden, voice.kept, voice.rules), 1)
    )
    return (
        f"{voice.who} {voice.place} {voice.problem}\n\n{voice.reports}\n\n{_example(voice)}\n\n"
        f"The following is required.\n\n{numbered}"
    )


def _urgent(voice: Voice) -> str:
    return (
        f"{voice.problem} {phrases.REASONS[Tone.URGENT]} {voice.place}\n\n{_example(voice)}\n\n{voice.reports} "
        f"{voice.reported} {voice.hidden} {voice.kept}\n\n{voice.who} {voice.rules}"
    )


def _rambling(voice: Voice) -> str:
    return (
        f"{voice.who} {voice.problem} At first I thought it was the data, so I put some runs side by side. {_example(voice)}\n\n"
        f"{voice.kept} I mention it because we have been through that before. {voice.place} {voice.reports}\n\n"
        f"{voice.reported} One more thing. {voice.hidden}\n\n{voice.rules}"
    )


def _sceptical(voice: Voice) -> str:
    return (
        f"{voice.who} {voice.place} {voice.problem} {phrases.REASONS[Tone.SCEPTICAL]}\n\n{_example(voice)}\n\n{voice.reports}\n\n"
        f"{voice.hidden} {voice.reported} {voice.kept}\n\n{voice.rules}"
    )


def _bulleted(voice: Voice) -> str:
    must = "\n".join(f"- {s}" for s in (voice.reported, voice.hidden, voice.kept, voice.rules))
    return (
        f"**Context.** {voice.who} {voice.place}\n\n**Problem.** {voice.problem} {voice.reports}\n\n{_example(voice)}\n\n"
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
