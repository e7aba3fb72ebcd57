"""``--where`` filters: which tasks of a dataset an analysis, a rollout or a training run looks at.

``domain=cybersecurity`` · ``axis.complexity=turns-05-10`` (or ``complexity=...``) · ``licence=MIT`` · ``skill=pdf-*``.
``*`` and ``?`` match; several values after one ``=`` are divided by ``|``; ``!=`` excludes. All filters must hold.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from skill2env.analysis.languages import languages_of, verifier_of
from skill2env.analysis.records import UNDECIDED, UNKNOWN, TaskRecord
from skill2env.axes import AXIS_NAMES
from skill2env.errors import UserError

_FORM = re.compile(r"\s*(?P<name>[a-z][a-z_.]*)\s*(?P<sign>!?=)\s*(?P<value>.*?)\s*", re.DOTALL)

FIELDS: dict[str, Callable[[TaskRecord], Iterable[str]]] = {
    "name": lambda task: (task.name, task.key),
    "domain": lambda task: (task.domain or UNDECIDED, task.category),
    "skill": lambda task: (task.skill or UNKNOWN,),
    "workflow": lambda task: (task.workflow or UNKNOWN,),
    "licence": lambda task: (task.licence or UNKNOWN,),
    "author": lambda task: (task.author or UNKNOWN,),
    "difficulty": lambda task: (task.difficulty or UNKNOWN,),
    "keyword": lambda task: task.keywords,
    "language": languages_of,
    "verifier": lambda task: (verifier_of(task),),
}
"""Name of a filter -> the values of a task that it looks at. The axes follow under their own names."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter."""

    name: str
    values: tuple[str, ...]
    """Patterns; one must match."""
    wanted: bool = True
    """False for ``!=``."""

    def holds(self, task: TaskRecord) -> bool:
        """Whether a task passes; letter case does not matter."""
        axis = self.name.removeprefix("axis.").removeprefix("axes.")
        found = FIELDS[self.name](task) if self.name in FIELDS else (task.axes.get(axis, UNKNOWN),)
        matched = any(
            fnmatch.fnmatchcase(value.lower(), pattern) for value in found for pattern in self.values
        )
        return matched is self.wanted


def parse_where(texts: Sequence[str]) -> tuple[Condition, ...]:
    """Understand filters as they are typed.

    Raises:
        UserError: a filter has another form or an unknown name.
    """
    return tuple(_parse(text) for text in texts)


def _parse(text: str) -> Condition:
    match = _FORM.fullmatch(text)
    if match is None or not match["value"]:
        raise UserError(
            f"--where {text} is no filter", hint="NAME=VALUE, as domain=cybersecurity or licence=MIT"
        )
    name = {"license": "licence"}.get(match["name"], match["name"])
    if name not in FIELDS and name.removeprefix("axis.").removeprefix("axes.") not in AXIS_NAMES:
        known = ", ".join((*FIELDS, *AXIS_NAMES))
        raise UserError(f"--where does not know {name}", hint=f"one of {known}")
    values = tuple(value.strip().lower() for value in match["value"].split("|"))
    return Condition(name, values, match["sign"] == "=")


def select(tasks: Iterable[TaskRecord], conditions: Sequence[Condition]) -> tuple[TaskRecord, ...]:
    """The tasks that pass all filters, in their order."""
    return tuple(task for task in tasks if all(condition.holds(task) for condition in conditions))
