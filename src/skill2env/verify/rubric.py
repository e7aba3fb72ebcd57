"""Gate `rubric`: three sections of one to three bullets, each with something to say about this task."""

import re
from collections.abc import Iterator

from skill2env.verify.gate import GateContext, Hit, Report, Subject
from skill2env.verify.reading import read_text
from skill2env.verify.static.rubrics import rubric_hits

WHERE = "tests/rubric.md"
SECTIONS = ("Must-do", "Must-avoid", "Best-practice")
MAX_BULLETS = 3
_HEADING = re.compile(r"##\s+(?P<name>.+?)\s*#*\s*")
_BULLET = re.compile(r"(?:[-*+]|\d+[.)])\s+(?P<text>.*)")


def check(subject: Subject, context: GateContext) -> Report:  # noqa: ARG001
    """Read the rubric's sections."""
    text = read_text(subject.task_dir / WHERE)
    if text is None or not text.strip():
        return Report([Hit("rubric-missing", "the rubric is missing, empty or not text", WHERE)])
    sections = read_sections(text)
    bullets = [bullet for _, found in sections for bullet in found] or _free_bullets(text)
    hits = [*_check(sections), *rubric_hits(subject, bullets)]
    return Report(hits, {name: len(bullets) for name, bullets in sections if name in SECTIONS})


def read_sections(text: str) -> list[tuple[str, list[str]]]:
    """Second-level headings of a rubric with their top-level bullets, in order."""
    sections: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        heading = _HEADING.fullmatch(line)
        bullet = _BULLET.fullmatch(line)  # indented bullets belong to the one above
        if heading:
            sections.append((heading["name"], []))
        elif bullet and sections:
            sections[-1][1].append(bullet["text"].strip())
    return sections


def _free_bullets(text: str) -> list[str]:
    return [match["text"].strip() for line in text.splitlines() if (match := _BULLET.fullmatch(line))]


def _check(sections: list[tuple[str, list[str]]]) -> Iterator[Hit]:
    names = [name for name, _ in sections]
    if tuple(names) != SECTIONS:
        shown = ", ".join(names) or "none"
        yield Hit("rubric-section", f"the sections are {shown}, not {', '.join(SECTIONS)}", WHERE)
    for name, bullets in sections:
        if name in SECTIONS and not 1 <= len(bullets) <= MAX_BULLETS:
            yield Hit(
                "rubric-bullets", f"section {name} has {len(bullets)} bullets, not 1 to {MAX_BULLETS}", WHERE
            )
        elif any(not bullet for bullet in bullets):
            yield Hit("rubric-bullets", f"section {name} has an empty bullet", WHERE)
