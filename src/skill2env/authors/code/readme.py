"""The text of a skill as the documentation of its code."""

import re

from skill2env.records import Skill

AGENT_SECTIONS = re.compile(
    r"\b(trigger|when to use|when not to use|why this exists|do not fire|example queries|integration with|agent boundary"
    r"|chaining partners|maintenance|citations?)\b",
    re.I,
)


def readme(skill: Skill) -> str:
    """The skill's text as the project's documentation: sections that only tell an agent when to act are left out."""
    kept: list[str] = []
    skipping = 0
    fenced = False
    for line in skill.body.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        heading = None if fenced else re.match(r"(#+)\s+(.*)", line)
        if heading:
            level = len(heading[1])
            if skipping and level <= skipping:
                skipping = 0
            if not skipping and AGENT_SECTIONS.search(heading[2]):
                skipping = level
        if not skipping and not re.match(r"You are \*\*", line):
            kept.append(line.rstrip())
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return (body if body.startswith("# ") else f"# {skill.name}\n\n{body}") + "\n"
