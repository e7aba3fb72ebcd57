"""Sentences of the skill that concern certain code: the grounding of workflows, and the rubric that quotes them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from skill2env.authors.code.readme import readme
from skill2env.authors.code.understand import FunctionInfo
from skill2env.records import Skill

MIN_CHARS, MAX_CHARS = 25, 240
_IMPERATIVE = re.compile(
    r"\b(must|never|always|do not|don't|only|ensure|require[sd]?|should|avoid|cannot|no )\b", re.I
)
_AVOID = re.compile(r"\b(never|do not|don't|avoid|must not|cannot|without)\b", re.I)
_WORD = re.compile(r"[a-z][a-z0-9]{2,}")
_COMMON = frozenset(
    "the and for with from that this not are was has have when then than its into per each one two use used using "
    "value values result results return returns list dict str int float bool none true false name names file files "
    "data skill path args get set self main input output".split()
)


def sentences(skill: Skill) -> list[str]:
    """Paragraphs and list items of the skill's documentation, word for word, line breaks read as blanks.

    What is too long is cut after its last full sentence that fits.
    """
    found: dict[str, None] = {}
    for block in _blocks(readme(skill)):
        text = " ".join(block.split())
        if len(text) > MAX_CHARS:
            end = max(text.rfind(mark, 0, MAX_CHARS) for mark in (". ", "! ", "? ", ": "))
            text = text[: end + 1] if end > 0 else ""
        if (
            len(text) >= MIN_CHARS
            and len(text.split()) >= 5
            and text[0] not in "`\"'(\u201c"
            and text[-1] != ":"
        ):
            found.setdefault(text)
    return list(found)


_MARKER = re.compile(r"\s*(?:[-*+]|\d+[.)]|>)\s+(?=\S)")


def _blocks(text: str) -> Iterator[str]:
    """Prose of a Markdown text, an item at a time; headings, tables and fenced code are left out."""
    block: list[str] = []
    fenced = False
    for line in [*text.splitlines(), ""]:
        fence = line.lstrip().startswith(("```", "~~~"))
        marker = None if fenced or fence else _MARKER.match(line)
        stops = fence or fenced or not line.strip() or line.startswith("#") or line.lstrip().startswith("|")
        if (stops or marker) and block:
            yield " ".join(block)
            block = []
        fenced ^= fence
        if not stops:
            block.append(line[marker.end() :] if marker else line.strip())


def words(text: str) -> set[str]:
    """Significant words, with names in snake and camel case taken apart."""
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text).replace("_", " ").lower()
    return {word for word in _WORD.findall(apart) if word not in _COMMON}


def about(skill: Skill, functions: Iterable[FunctionInfo]) -> list[str]:
    """The skill's sentences by how much they share with names, parameters and docstrings; best first, none without.

    A shared word counts the more the rarer it is in the skill's own text.
    """
    names: set[str] = set()
    wanted: set[str] = set()
    for info in functions:
        names |= words(info.name)
        wanted |= words(" ".join([*info.parameters, info.doc]))
    lines = sentences(skill)
    frequency = Counter(word for line in lines for word in words(line))
    ranked: list[tuple[float, int, str]] = []
    for index, line in enumerate(lines):
        has = words(line)
        shared = sum((2 if word in names else 1) / frequency[word] ** 0.5 for word in has & (names | wanted))
        if shared:
            ranked.append((-(shared + (0.5 if _IMPERATIVE.search(line) else 0)), index, line))
    return [line for *_, line in sorted(ranked)]


def grounding(skill: Skill, functions: Sequence[FunctionInfo], count: int = 3) -> tuple[str, ...]:
    """Up to `count` sentences that a workflow on `functions` rests on; the skill's first sentence when none matches."""
    found = about(skill, functions)[:count]
    return tuple(found or sentences(skill)[:1])


@dataclass(frozen=True, slots=True)
class Craft:
    """What good work of one family looks like, whatever the skill."""

    must: tuple[str, ...]
    """One or two points."""
    avoid: tuple[str, ...]
    best: tuple[str, ...]


REPAIR = Craft(
    must=(
        "Finds the cause: the final change mends each fault at the place that computes the wrong value, and the agent can say "
        "why the reported cases came out wrong.",
        "Runs reported cases before and after the change, and tries inputs of its own near the ones reported.",
    ),
    avoid=(
        "Special-cases the reported inputs, edits expected.txt or the sample data, or catches an error to hide a wrong value.",
        "Rewrites, reformats or renames code that has nothing to do with a fault.",
    ),
    best=(
        "Reads README.md and the docstrings first and derives the right behaviour from them, not only from the examples.",
    ),
)


def write_rubric(skill: Skill, functions: Sequence[FunctionInfo], craft: Craft) -> str:
    """Text of tests/rubric.md: the craft of the family, and what the skill itself asks of this code, quoted."""
    related = about(skill, functions)
    rules = [s for s in related[:15] if _IMPERATIVE.search(s) and not _AVOID.search(s)]
    bans = [s for s in related[:15] if _AVOID.search(s)]
    method = next((s for s in related if s not in (*rules[:1], *bans[:1])), "")
    source = f"{skill.name}, {skill.licence.spdx}" if skill.licence.spdx else skill.name
    must, avoid, best = list(craft.must), list(craft.avoid), list(craft.best)
    must += [f'Keeps to the rule that the skill states: "{_quote(rules[0])}" ({source})'] if rules else []
    avoid += [f'Breaks what the skill rules out: "{_quote(bans[0])}" ({source})'] if bans else []
    best += [f'Works by the skill\'s own method: "{_quote(method)}" ({source})'] if method else []
    blocks = (("Must-do", must), ("Must-avoid", avoid), ("Best-practice", best))
    return "\n".join(
        f"## {name}\n\n" + "".join(f"- {item}\n" for item in items[:3]) for name, items in blocks
    )


def _quote(sentence: str) -> str:
    return sentence.replace('"', "'")
