"""A person's judgement of a random sample of tasks: what is asked, how it is kept, and what it says about all of them.

This is the check that would falsify the gates' claim: if people find shortcuts in tasks that every gate passed, the
gates are too weak, and the interval says how sure that is.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from pathlib import Path
from statistics import NormalDist

from pydantic import Field, ValidationError

from skill2env.errors import UserError
from skill2env.records import Record
from skill2env.store.files import write_json
from skill2env.verify.cache import content_of

CONFIDENCE = 0.95


class Question(StrEnum):
    """What is asked of each task."""

    SHORTCUT = "shortcut"
    """Can full reward be had without doing the work?"""
    FAITHFUL = "faithful"
    """Does the task ask for what the skill teaches?"""
    UNAMBIGUOUS = "unambiguous"
    """Would two careful readers of the instruction deliver the same?"""


class Answer(StrEnum):
    """What a person says."""

    YES = "yes"
    NO = "no"
    UNSURE = "unsure"


class Label(Record):
    """One task, judged."""

    content: str
    """Digest of the task that was looked at; a changed task is asked again."""
    answers: dict[Question, Answer]
    note: str = ""


class Labels(Record):
    """A labels file."""

    seed: int
    labels: dict[str, Label] = Field(default_factory=dict[str, Label])
    """By name of the task's folder below the dataset."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What the answers to one question say."""

    question: Question
    yes: int
    no: int
    unsure: int
    """Counted by themselves: unknown is neither yes nor no."""

    @property
    def share(self) -> float | None:
        """Share of yes among yes and no; None when there is neither."""
        decided = self.yes + self.no
        return self.yes / decided if decided else None

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of the share."""
        return wilson(self.yes, self.yes + self.no)


def wilson(hits: int, total: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson's score interval of a share; everything is possible when nothing was looked at.

    Args:
        hits: how often.
        total: out of how many.
        confidence: in (0,1).
    """
    if not total:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, square = hits / total, z * z / total
    middle = (share + square / 2) / (1 + square)
    half = z * sqrt(share * (1 - share) / total + square / (4 * total)) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def sample_of(tasks: Sequence[str], count: int, seed: int) -> list[str]:
    """A random sample in random order: a larger one begins with the smaller one, and new tasks move none of the others.

    Args:
        tasks: names, each once.
        count: how many are wanted; all when there are fewer.
        seed: another one gives another sample.
    """
    return sorted(tasks, key=lambda name: hashlib.sha256(f"{seed}\0{name}".encode()).digest())[:count]


class LabelFile:
    """The labels of one sample on disk; written whole after each answer, so that nothing is lost by a kill."""

    def __init__(self, path: Path, seed: int) -> None:
        """Open it, or begin it.

        Raises:
            UserError: it is something else, or belongs to another seed.
        """
        self._path = path
        self._labels = _read(path, seed)

    def add(self, name: str, label: Label) -> None:
        """Keep a label, in place of an earlier one of the same task.

        Raises:
            InfraError: boundary ``storage``.
        """
        self._labels = self._labels.model_copy(update={"labels": {**self._labels.labels, name: label}})
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self._path, self._labels.model_dump(mode="json"))

    def of(self, name: str, task: Path) -> Label | None:
        """The label of a task; None when there is none, or the task has changed since."""
        label = self._labels.labels.get(name)
        return label if label is not None and label.content == content_of(task) else None

    def current(self, tasks: Mapping[str, Path]) -> dict[str, Label]:
        """The labels of these tasks that still hold."""
        found = ((name, self.of(name, task)) for name, task in tasks.items())
        return {name: label for name, label in found if label is not None}


def _read(path: Path, seed: int) -> Labels:
    if not path.exists():
        return Labels(seed=seed)
    try:
        labels = Labels.model_validate(json.loads(path.read_bytes()))
    except (OSError, ValueError, ValidationError) as error:
        raise UserError(
            f"{path} is no file of labels: {error}", hint="give another one with --labels"
        ) from None
    if labels.seed != seed:
        raise UserError(
            f"{path} holds the sample of seed {labels.seed}, not {seed}",
            hint=f"go on with --seed {labels.seed}, or begin another file with --labels",
        )
    return labels


def rates(labels: Mapping[str, Label]) -> list[Rate]:
    """What the labels say, a rate for each question."""
    return [
        Rate(
            question, *(_count(labels, question, answer) for answer in (Answer.YES, Answer.NO, Answer.UNSURE))
        )
        for question in Question
    ]


def _count(labels: Mapping[str, Label], question: Question, answer: Answer) -> int:
    return sum(label.answers.get(question) is answer for label in labels.values())
