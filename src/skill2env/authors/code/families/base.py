"""What a family of tasks is: the workflows that it can offer for a skill, and the files of one task."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from skill2env.authors.code.bench import Bench
from skill2env.authors.code.study import Study
from skill2env.records import Skill, TaskSpec, Workflow


class NoTask(Exception):
    """This spec cannot become a task of this family. Says why."""


@dataclass(frozen=True, slots=True)
class Draft:
    """All files of a task, by path below ``task/``."""

    contract: Mapping[str, str]
    """Of the contract session."""
    solution: Mapping[str, str]
    """Of the solution session."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One workflow and what its family needs to make tasks of it."""

    workflow: Workflow
    material: Any
    """The family's own; never leaves it."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What every task of every family starts from."""

    spec: TaskSpec
    skill: Skill
    found: Study


type Offers = Callable[[Skill, Study], list[Offer]]
type Drafter = Callable[[Bench, Ground, Offer], Draft]


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of task."""

    name: str
    about: str
    """One sentence for the docs."""
    offers: Offers
    """Every workflow, the most promising first; depends on the skill alone. No sandbox."""
    draft: Drafter
    """Makes one task. Raises `NoTask` or `BenchFailed` when this spec gives none."""
