"""What a verifier wrote, read more strictly than Harbor reads it.

Harbor turns booleans into numbers, takes an empty object, ignores reward.txt when reward.json exists and never looks
at ranges. Trainers differ in which file they read first, so a reward is only portable when both say the same.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

TOTAL = "reward"
"""Name of the one number that every consumer reads; the mean of the others in tasks that we make."""

TOLERANCE = 1e-6
"""How far two renderings of one reward may lie apart (decimal texts are rounded)."""

READ_LIMIT = 64 * 1024
"""Longest reward file that is read, in bytes."""


class RewardProblem(StrEnum):
    """What is wrong with a reward."""

    MISSING = "reward-missing"
    """Neither reward.json nor reward.txt was written."""
    EMPTY = "reward-empty"
    """A reward file has no content."""
    TOO_LARGE = "reward-too-large"
    """A reward file is longer than any reward."""
    NOT_JSON = "reward-not-json"
    """reward.json is not JSON in UTF-8."""
    NOT_OBJECT = "reward-not-object"
    """reward.json is not an object of named metrics."""
    NO_METRICS = "reward-no-metrics"
    """reward.json is an empty object."""
    DUPLICATE = "reward-duplicate-name"
    """A metric is named twice."""
    NOT_NUMBER = "reward-not-number"
    """A metric is text, a list, an object or null."""
    BOOLEAN = "reward-boolean"
    """A metric is true or false; Harbor counts it as 1 or 0, other consumers do not."""
    NOT_FINITE = "reward-not-finite"
    """A metric is NaN or infinite."""
    OUT_OF_RANGE = "reward-out-of-range"
    """A metric lies outside [0,1]."""
    TEXT_UNREADABLE = "reward-text-unreadable"
    """reward.txt does not hold one finite number in [0,1]."""
    TEXT_DISAGREES = "reward-text-disagrees"
    """reward.txt and reward.json do not say the same."""


@dataclass(frozen=True, slots=True)
class Reward:
    """The named metrics of one trial, and everything that is wrong with them."""

    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    """Finite numbers only, in the order written; may hold numbers outside [0,1] (see `problems`)."""
    problems: Mapping[RewardProblem, str] = field(default_factory=dict[RewardProblem, str])
    """Kind of problem to one sentence about its first occurrence."""


def read_reward(reward_json: bytes | None, reward_txt: bytes | None) -> Reward:
    """Read the two files that a verifier may leave behind.

    Args:
        reward_json: content of reward.json, at most `READ_LIMIT` + 1 bytes of it; None when there is no such file.
        reward_txt: the same for reward.txt.
    """
    problems: dict[RewardProblem, str] = {}
    text = None if reward_txt is None else _read_text(reward_txt, problems)
    if reward_json is None:
        if reward_txt is None:
            problems[RewardProblem.MISSING] = "the verifier wrote neither reward.json nor reward.txt"
        return Reward({} if text is None else {TOTAL: text}, problems)
    metrics = _read_json(reward_json, problems)
    if text is not None and metrics and abs(text - total(metrics)) > TOLERANCE:
        problems[RewardProblem.TEXT_DISAGREES] = (
            f"reward.txt says {text:g}, reward.json says {total(metrics):g}"
        )
    return Reward(metrics, problems)


def named(metrics: Mapping[str, float]) -> Mapping[str, float]:
    """The metrics that count: all but the total, or the total where there is nothing else."""
    return {name: value for name, value in metrics.items() if name != TOTAL} or metrics


def mean(metrics: Mapping[str, float]) -> float:
    """Mean of the metrics that count; not a number when there are none."""
    parts = named(metrics)
    return sum(parts.values()) / len(parts) if parts else math.nan


def has_passed(metrics: Mapping[str, float]) -> bool:
    """Whether there are metrics, and each that counts equals 1."""
    return bool(metrics) and all(value == 1 for value in named(metrics).values())


def total(metrics: Mapping[str, float]) -> float:
    """The one number of a reward: the total where it is there, the mean of the metrics otherwise."""
    return metrics[TOTAL] if TOTAL in metrics else mean(metrics)


def _read_text(data: bytes, problems: dict[RewardProblem, str]) -> float | None:
    if not data.strip():
        problems[RewardProblem.EMPTY] = "reward.txt is empty"
        return None
    try:
        value = float(data[:READ_LIMIT].decode("utf-8"))
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:  # false for NaN as well
        problems[RewardProblem.TEXT_UNREADABLE] = f"reward.txt holds {_shown(data)}, not one number in [0,1]"
        return None
    return value


def _read_json(data: bytes, problems: dict[RewardProblem, str]) -> dict[str, float]:
    if not data:
        problems[RewardProblem.EMPTY] = "reward.json is empty"
        return {}
    if len(data) > READ_LIMIT:
        problems[RewardProblem.TOO_LARGE] = f"reward.json is longer than {READ_LIMIT} bytes"
        return {}
    names: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        names.extend(name for name, _ in items)
        return dict(items)

    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=pairs)
        "".join(names).encode()  # an escaped lone surrogate is no character, and nobody could write it down
    except (ValueError, RecursionError):
        problems[RewardProblem.NOT_JSON] = f"reward.json is not JSON: {_shown(data)}"
        return {}
    if not isinstance(value, dict):
        problems[RewardProblem.NOT_OBJECT] = (
            f"reward.json holds {_shown(data)}, not an object of named metrics"
        )
        return {}
    if not value:
        problems[RewardProblem.NO_METRICS] = "reward.json is an empty object"
    if len(names) != len(set(names)):
        problems[RewardProblem.DUPLICATE] = "reward.json names a metric twice"
    metrics: dict[str, float] = {}
    for name, item in value.items():  # pyright: ignore[reportUnknownVariableType]
        number = _number(str(name), item, problems)  # pyright: ignore[reportUnknownArgumentType]
        if number is not None:
            metrics[str(name)] = number  # pyright: ignore[reportUnknownArgumentType]
    return metrics


def _number(name: str, item: object, problems: dict[RewardProblem, str]) -> float | None:
    label = name[:60]
    if isinstance(item, bool):
        problems.setdefault(RewardProblem.BOOLEAN, f"metric {label!r} is {str(item).lower()}, not a number")
        return float(item)
    if not isinstance(item, int | float):
        problems.setdefault(
            RewardProblem.NOT_NUMBER, f"metric {label!r} is {type(item).__name__}, not a number"
        )
        return None
    try:
        number = float(item)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        problems.setdefault(RewardProblem.NOT_FINITE, f"metric {label!r} is not finite")
        return None
    if not 0 <= number <= 1:
        problems.setdefault(RewardProblem.OUT_OF_RANGE, f"metric {label!r} is {number:g}, outside [0,1]")
    return number


def _shown(data: bytes) -> str:
    return repr(data[:40].decode("utf-8", errors="replace"))
