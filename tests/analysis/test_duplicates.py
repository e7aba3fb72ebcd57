"""Copies by part, and which of them are on purpose."""

import random
from pathlib import Path
from typing import Any

from skill2env.analysis.duplicates import duplicates
from skill2env.analysis.records import Corpus, TaskRecord


def words(seed: int, length: int = 80) -> str:
    return " ".join(f"w{number}x" for number in random.Random(seed).choices(range(500), k=length)).translate(
        str.maketrans("0123456789", "abcdefghij")
    )


def task(key: str, seed: int, **given: Any) -> TaskRecord:
    texts = {
        "instruction": words(seed),
        "world": words(seed + 1),
        "tests": words(seed + 2),
        "solution": words(seed + 3),
    }
    return TaskRecord(key=key, folder=Path(), name=key, **{"skill": key, "workflow": "w", **texts, **given})


def test_parts_and_kinds() -> None:
    tasks = (
        task("a", 0),
        task("b", 100, instruction=words(0) + " more"),
        task("c", 200, skill="s", workflow="one"),
        task("d", 300, skill="s", workflow="one", tests=words(202), solution=words(203)),
        task("e", 400, skill="s", workflow="two", solution=words(203)),
        task("f", 500, world=""),
        task("g", 600, world=""),
    )
    found = duplicates(Corpus("c", tasks))
    told = {(cluster.part, cluster.kind, cluster.tasks) for cluster in found.clusters}
    assert told == {
        ("instruction", "accident", ("a", "b")),
        ("tests", "variants", ("c", "d")),
        ("solution", "kin", ("c", "d", "e")),
        ("combined", "variants", ("c", "d")),
    }
    assert found.surplus == {"instruction": 1, "world": 0, "tests": 1, "solution": 2, "combined": 1}
    assert found.accidents["instruction"] == 1
    assert found.accidents["solution"] == 0


def test_a_frame_that_all_share_makes_no_copies() -> None:
    frame = words(9, 400)
    tasks = tuple(task(f"t{at}", 10 * at, tests=f"{frame} {words(1000 + at, 30)}") for at in range(20))
    assert duplicates(Corpus("c", tasks)).clusters == ()
    copied = (*tasks, task("z", 5000, tests=tasks[3].tests))
    (cluster,) = duplicates(Corpus("c", copied)).clusters
    assert (cluster.part, cluster.tasks, cluster.measures) == ("tests", ("t3", "z"), (1.0, 1.0))
