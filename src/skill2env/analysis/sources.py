"""Which skill each task was made from, as the tasks state it and as far as the skills at hand can be named."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from skill2env.analysis.records import Notes, SkillText, TaskRecord

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OTHER = re.compile(r"[\W_]+")


def slug(name: str) -> str:
    """A name in the form in which names are compared."""
    return _OTHER.sub("-", name.lower()).strip("-")


def match_sources(
    tasks: Sequence[TaskRecord], skills: Sequence[SkillText], notes: Notes
) -> "NDArray[np.int64]":
    """Place of each task's skill among `skills`, -1 where it cannot be told; shape (tasks,).

    The digest decides; where the skills have none, the name as declared does, then the name of the folder. A name that
    several skills have decides nothing.
    """
    digests = {skill.digest: at for at, skill in enumerate(skills) if skill.digest}
    by_name = _unique(skills, lambda skill: slug(skill.name))
    by_folder = _unique(skills, lambda skill: slug(skill.key.rsplit("/", 1)[-1]))
    found = np.full(len(tasks), -1, dtype=np.int64)
    for at, task in enumerate(tasks):
        if task.skill_digest in digests:
            found[at] = digests[task.skill_digest]
            continue
        if not task.skill:
            notes.add("source-unstated", "the task does not say which skill it was made from", task.key)
            continue
        name = slug(task.skill)
        place = next(
            (table[name] for table in (by_name, by_folder) if name and table.get(name) is not None), None
        )
        if place is not None:
            found[at] = place
        elif name in by_name or name in by_folder:
            notes.add("source-ambiguous", f"several skills are called {name}", task.key)
        else:
            notes.add("source-missing", f"there is no skill {name} among those given", task.key)
    return found


def _unique(skills: Sequence[SkillText], name_of: Callable[[SkillText], str]) -> Mapping[str, int | None]:
    table: dict[str, int | None] = {}
    for at, skill in enumerate(skills):
        name = name_of(skill)
        table[name] = None if name in table else at
    return table
