from pathlib import Path
from typing import Any

import pytest

from skill2env.errors import UserError
from skill2env.publish.dataset import require_state
from skill2env.publish.entry import read_manifest
from skill2env.publish.takedown import Selector, drop, parse_selector
from skill2env.records import Reason


@pytest.fixture
def dataset(bench: Any, tmp_path: Path) -> Path:
    path = tmp_path / "out"
    bench.put(
        path,
        bench.make("a", skill="audio", licence="GPL-3.0-only", source="npm:audio@1.2"),
        bench.make("b", skill="tables", licence="MIT", source="npm:tables@3"),
        bench.make("c", skill="local", licence=""),
    )
    return path


@pytest.mark.parametrize(
    ("selector", "left"),
    [
        ("source:npm:audio@1.2", "bc"),
        ("source:npm:*", "c"),
        ("source:local", "ab"),
        ("licence:GPL-*", "bc"),
        ("licence:unknown", "ab"),
        ("skill:tables", "ac"),
        ("task:org/b", "ac"),
        ("task:b", "ac"),
    ],
)
def test_drop_removes_folder_notices_and_index_lines(dataset: Path, selector: str, left: str) -> None:
    state, gone = drop(dataset, [parse_selector(selector)])
    assert "".join(sorted(e.folder for e in state.entries)) == left
    assert state.version == "2.0.0"
    assert selector in state.taken_down
    for entry in gone:
        assert not (dataset / entry.folder).exists()
        assert not (dataset / "LICENSES" / entry.notices).exists()
        assert entry.name not in state.digests
    card = (dataset / "README.md").read_text()
    assert f"`{selector}`" in card
    assert f"{len(left)} tasks in Harbor's" in card


def test_what_was_taken_down_does_not_come_back(bench: Any, dataset: Path) -> None:
    drop(dataset, [Selector("licence", "GPL*")])
    outcomes = bench.put(
        dataset, bench.make("a", skill="audio", licence="GPL-3.0-only", source="npm:audio@1.2")
    )
    assert outcomes[0].refused is Reason.TAKEN_DOWN
    assert "licence:GPL*" in outcomes[0].detail
    assert "a" not in {e.folder for e in read_manifest(dataset)}


def test_drop_goes_on_after_a_kill_between_folders_and_index(dataset: Path) -> None:
    import shutil

    shutil.rmtree(dataset / "b")
    state, _ = drop(dataset, [Selector("task", "b")])
    assert [e.folder for e in state.entries] == ["a", "c"]


def test_dropping_everything_leaves_an_empty_dataset(dataset: Path) -> None:
    state, gone = drop(dataset, [Selector("task", "*")])
    assert len(gone) == 3
    assert not state.entries
    assert sorted(p.name for p in dataset.iterdir()) == ["README.md", "dataset.toml", "manifest.jsonl"]
    assert not require_state(dataset).entries


def test_mistakes(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no task of"):
        drop(dataset, [Selector("task", "nothing")])
    with pytest.raises(UserError, match="not a dataset folder"):
        drop(tmp_path / "none", [Selector("task", "*")])
    for text in ("colour:red", "task:", "task"):
        with pytest.raises(UserError, match="not a take-down"):
            parse_selector(text)
