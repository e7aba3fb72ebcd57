"""Tell an agent which skills lie in its container: name and description of each; the rest is for it to open."""

import io
import re
import shlex
from typing import Any, cast

from harbor.environments.base import BaseEnvironment
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

FOLDER = "/runtime/skills"
"""Where Harbor puts skills that a run brings, unless a task says otherwise."""
MOST_SKILLS = 50
_HEAD_BYTES = 8192
_DESCRIPTION_CHARS = 1024
_FENCED = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


async def offered(environment: BaseEnvironment, folder: str | None) -> str:
    """What is added to an agent's rules; empty where there are no skills.

    Args:
        environment: the agent's container.
        folder: where skills lie in it, each in a folder of its own.
    """
    if not folder:
        return ""
    place = shlex.quote(folder)
    found = await environment.exec(
        f"find {place} -mindepth 2 -maxdepth 2 -name SKILL.md -type f | sort | head -n {MOST_SKILLS}"
    )
    lines: list[str] = []
    for path in (found.stdout or "").splitlines():
        head = await environment.exec(f"head -c {_HEAD_BYTES} {shlex.quote(path)}")
        name, description = _described(head.stdout or "", path)
        lines.append(f"- {name}: {description} ({path})")
    if not lines:
        return ""
    told = "\n".join(lines)
    return f"\n\nSkills that may help. Before you use one, read its file; the folder around it belongs to it.\n{told}"


def _described(text: str, path: str) -> tuple[str, str]:
    """Name and description on one line each; the folder's name where the front matter cannot be read."""
    folder = path.rsplit("/", 2)[-2]
    fenced = _FENCED.match(text)
    try:
        # Untrusted text: the safe loader builds plain data, and the size was bounded before.
        loaded: Any = YAML(typ="safe").load(io.StringIO(fenced[1])) if fenced else None
    except (YAMLError, ValueError, RecursionError):
        loaded = None
    table = cast("dict[Any, Any]", loaded) if isinstance(loaded, dict) else {}
    name, description = (" ".join(str(table.get(key) or "").split()) for key in ("name", "description"))
    return name[:100] or folder, description[:_DESCRIPTION_CHARS] or "(no description)"
