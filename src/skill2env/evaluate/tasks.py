"""Which tasks were made of a skill, and the copy of the skill that agents are given."""

import re
import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from skill2env.errors import UserError
from skill2env.harbor.outcome import read_head
from skill2env.store.files import check_writable, copy_tree, move_into_place, staged_folder

SKILL_FILE = "SKILL.md"
_NAME = re.compile(r"^name:[ \t]*[\"']?([A-Za-z0-9][A-Za-z0-9._-]{0,63})[\"']?[ \t]*$", re.MULTILINE)


def skill_name(skill: Path) -> str:
    """The name in a skill's front matter where it can be a folder's name, else the name of its folder.

    Raises:
        UserError: the folder is no skill.
    """
    head = read_head(skill / SKILL_FILE, 16 * 2**10)
    if head is None:
        raise UserError(f"{skill} is no skill: it has no {SKILL_FILE}", hint="give the folder that holds it")
    found = _NAME.search(head.decode("utf-8", errors="replace").split("\n---", 1)[0])
    return found[1] if found else skill.absolute().name


def stage_skill(skill: Path, out: Path) -> Path:
    """Copy a skill below `out`, without links and devices, in a folder with its name."""
    name = skill_name(skill)
    check_writable(out)
    target = out / "skill" / name
    with staged_folder(out) as stage:
        copy_tree(skill, stage / name)
        shutil.rmtree(out / "skill", ignore_errors=True)
        move_into_place(stage / name, target)
    return target


def tasks_of(skill: Path, tasks: Sequence[Path], *, every: bool) -> list[Path]:
    """Those that were made of the skill, by the name in their provenance; all of them with `every`.

    Raises:
        UserError: there are none.
    """
    if every:
        return list(tasks)
    names = {skill_name(skill), skill.absolute().name}
    found = [task for task in tasks if _made_of(task) in names]
    if not found:
        raise UserError(
            f"none of the {len(tasks)} tasks was made of the skill {skill_name(skill)!r}",
            hint="compile the skill first, or compare on all of them with --all-tasks",
        )
    return found


def _made_of(task: Path) -> str:
    try:
        found: Any = tomllib.loads((read_head(task / "task.toml") or b"").decode())
    except ValueError:
        return ""
    for key in ("metadata", "skill2env", "skill", "name"):
        found = cast("dict[str, Any]", found).get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""
