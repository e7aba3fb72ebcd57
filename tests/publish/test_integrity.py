import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skill2env.errors import UserError
from skill2env.publish.integrity import problems


@pytest.fixture
def dataset(bench: Any, tmp_path: Path) -> Path:
    bench.put(tmp_path / "out", bench.make("a"), bench.make("b"))
    return tmp_path / "out"


def test_a_published_dataset_has_no_problem(dataset: Path) -> None:
    assert problems(dataset) == []


DAMAGES: list[tuple[str, Callable[[Path], Any]]] = [
    ("org/a: changed or missing", lambda d: (d / "a/tests/test.sh").write_text("x")),
    ("org/b: changed or missing", lambda d: shutil.rmtree(d / "b")),
    ("stray: not in the manifest", lambda d: (d / "stray").mkdir()),
    (".tmp-x: left by an interrupted publish", lambda d: (d / ".tmp-x").mkdir()),
    ("README.md differs", lambda d: (d / "README.md").write_text("x")),
    ("notices of its skill are missing", lambda d: shutil.rmtree(d / "LICENSES")),
    ("a: listed twice", lambda d: (d / "manifest.jsonl").write_text((d / "manifest.jsonl").read_text() * 2)),
    (
        "list different tasks",
        lambda d: (d / "manifest.jsonl").write_text(
            (d / "manifest.jsonl").read_text().splitlines()[0] + "\n"
        ),
    ),
]


@pytest.mark.parametrize(("said", "damage"), DAMAGES, ids=[said for said, _ in DAMAGES])
def test_every_damage_is_named(dataset: Path, said: str, damage: Callable[[Path], Any]) -> None:
    damage(dataset)
    assert [line for line in problems(dataset) if said in line]


def test_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        problems(tmp_path)
