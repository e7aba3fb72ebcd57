"""Sentences of the skill that concern certain code: the grounding of workflows, and the rubric that quotes them."""

import re
from collections.abc import Iterable, Sequence

from skill2env.authors.code.understand import FunctionInfo
from skill2env.records import Skill

MIN_CHARS, MAX_CHARS = 25, 240
_IMPERATIVE = re.compile(r"\b(must|never|always|do not|don't|only|ensure|require[sd]?|should|avoid|cannot|no )\b", re.I)
_AVOID = re.compile(r"\b(never|do not|don't|avoid|must not|cannot|without)\b", re.I)
_WORD = re.compile(r"[a-z][a-z0-9]{2,}")
_COMMON = frozenset(
    "the and for with from that this not are was has have when then than its into per each one two use used using "
    "value values result results return returns list dict str int float bool none true false name names file files "
    "data skill path args get set self main input output".split()
)


def sentences(skill: Skill) -> list[str]:
    """Lines of prose and list items of the skill's text, verbatim, without their markers."""
    found: dict[str, None] = {}
    fenced = False
    for line in skill.body.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            continue
        text = re.sub(r"^\s*(?:[-*+]|\d+[.)]|>|#+)\s+", "", line).strip()
        if fenced or "|" in text or line.startswith("#") or not MIN_CHARS <= len(text) <= MAX_CHARS:
            continue
        if not re.match(r"(?:[-*] )?\*?\*?(?:You are|Fire this|Fire when)\b", text) and text[-1] in ".!?:)`*\"'" or text[:1].isupper():
            found.setdefault(text)
    return list(found)


def words(text: str) -> set[str]:
    """Significant words, with names in snake and camel case taken apart."""
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text).replace("_", " ").lower()
    return {word for word in _WORD.findall(apart) if word not in _COMMON}


def about(skill: Skill, functions: Iterable[FunctionInfo], extra: str = "") -> list[str]:
    """The skill's sentences by how much they share with names, parameters and docstrings; best first, none without."""
    wanted: set[str] = words(extra)
    names: set[str] = set()
    for info in functions:
        names |= words(info.name)
        wanted |= words(" ".join([*info.parameters, info.doc]))
    ranked: list[tuple[float, int, str]] = []
    for index, sentence in enumerate(sentences(skill)):
        has = words(sentence)
        score = 3 * len(has & names) + len(has & wanted) + (1 if _IMPERATIVE.search(sentence) else 0)
        if has & (names | wanted):
            ranked.append((-score / (6 + len(has)) ** 0.5, index, sentence))
    return [sentence for *_, sentence in sorted(ranked)]


def grounding(skill: Skill, functions: Sequence[FunctionInfo], count: int = 3) -> tuple[str, ...]:
    """Up to `count` sentences that a workflow on `functions` rests on; the skill's first sentence when none matches."""
    found = about(skill, functions)[:count]
    return tuple(found or sentences(skill)[:1])


def write_rubric(skill: Skill, functions: Sequence[FunctionInfo], faults: int) -> str:
    """Text of tests/rubric.md: the craft of repair, and what the skill itself asks of this code, quoted."""
    related = about(skill, functions)
    rules = [s for s in related[:12] if _IMPERATIVE.search(s) and not _AVOID.search(s)]
    bans = [s for s in related[:20] if _AVOID.search(s)]
    method = next((s for s in related if s not in rules[:1] and s not in bans[:1]), "")
    source = f"{skill.name}, {skill.licence.spdx}" if skill.licence.spdx else skill.name
    many = "each of the faults" if faults > 1 else "the fault"
    must = [
        f"Finds the cause: the final change mends {many} at the place that computes the wrong value, and the agent can say "
        "why the reported cases came out wrong.",
        "Runs reported cases before and after the change, and tries inputs of its own near the ones reported.",
    ]
    must += [f'Keeps to the rule that the skill states: "{_quote(rules[0])}" ({source})'] if rules else []
    avoid = [
        "Special-cases the reported inputs, edits expected.txt or the sample data, or catches an error to hide a wrong value.",
        "Rewrites, reformats or renames code that has nothing to do with the fault.",
    ]
    avoid += [f'Breaks what the skill rules out: "{_quote(bans[0])}" ({source})'] if bans else []
    best = ["Reads README.md and the docstrings first and derives the right behaviour from them, not only from the examples."]
    best += [f'Works by the skill\'s own method: "{_quote(method)}" ({source})'] if method else []
    blocks = (("Must-do", must), ("Must-avoid", avoid), ("Best-practice", best))
    return "\n".join(f"## {name}\n\n" + "".join(f"- {item}\n" for item in items[:3]) for name, items in blocks)


def _quote(sentence: str) -> str:
    return sentence.replace('"', "'")
