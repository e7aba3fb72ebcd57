"""Blocks of runs against each other: planted gains are found, noise is not."""

import random
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra `train`)")

from skill2env.errors import UserError
from skill2env.train.local.batch import scheduled
from skill2env.train.local.curves import gain


def lines(slope: float, seed: int, tasks: int = 12, steps: int = 24) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    made: list[dict[str, Any]] = []
    for step in range(steps):
        values = {f"t{at}": 0.3 + slope * step / steps + rng.uniform(-0.1, 0.1) for at in range(tasks)}
        made.append({"step": step, "r_v": sum(values.values()) / tasks, "tasks": values})
    return made


def test_a_planted_gain_is_found() -> None:
    found = gain([lines(0.4, seed) for seed in (1, 2, 3)], block=6)
    assert found.beyond_chance
    assert 0.2 < found.low < found.last - found.first < found.high < 0.4
    assert (found.seeds, found.tasks) == (3, 12)


def test_noise_is_no_gain() -> None:
    assert not gain([lines(0.0, seed) for seed in (1, 2, 3)], block=6).beyond_chance


def test_runs_that_cannot_be_compared() -> None:
    with pytest.raises(UserError, match="no two blocks"):
        gain([lines(0.1, 1, steps=4)], block=3)
    apart = [{"step": at, "r_v": 0.5, "tasks": {f"t{at}": 0.5}} for at in range(4)]
    with pytest.raises(UserError, match="no task occurs"):
        gain([apart], block=2)


def test_the_schedule_takes_every_task_once_before_any_twice() -> None:
    drawn = scheduled(5, 3, 0, 15)
    assert [sorted(drawn[at : at + 5]) for at in (0, 5, 10)] == [[0, 1, 2, 3, 4]] * 3
    assert drawn[7:12] == scheduled(5, 3, 7, 5)
    assert scheduled(5, 4, 0, 15) != drawn
