"""The grader's own judgement: what it takes, what it believes, how it scores."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.authors.code.templates import grade, grading

GROUPS = [{"reported": ["a"], "unreported": ["b", "c"]}, {"reported": ["d"], "unreported": ["e"]}]
SPEC: dict[str, Any] = {"groups": GROUPS, "joint": [], "kept": ["k"]}


@pytest.mark.parametrize(
    ("right", "scores"),
    [
        ("", (0, 0, 0, 0)),
        ("k", (0, 0, 0, 0)),
        ("ak", (0.5, 0, 0, 0)),
        ("adk", (1, 0, 0, 0)),
        ("abk", (0.5, 0, 0, 0)),
        ("abck", (0.5, 0.5, 1, 1)),
        ("abc", (0.5, 0.5, 0, 1)),
        ("bcek", (0, 1, 0, 0)),
        ("abcdek", (1, 1, 1, 1)),
    ],
)
def test_score(right: str, scores: tuple[float, ...]) -> None:
    assert tuple(grade.score(set(right), SPEC, True)) == scores
    assert grade.score(set(right), SPEC, False)[3] == 0


@pytest.mark.parametrize(("right", "hidden"), [("", 0), ("abc", 1 / 3), ("abcde", 2 / 3), ("abcdej", 1)])
def test_cases_of_several_faults_are_one_more_part(right: str, hidden: float) -> None:
    assert grade.score(set(right), {**SPEC, "joint": ["j"]}, True)[1] == hidden


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("def f(a, b=1, *, c): ...\nx = 1\n", True),
        ("async def f(a, b, c): ...", True),
        ("def f(b, a, c): ...", False),
        ("def g(a, b, c): ...", False),
        ("def f(", False),
        ("(" * 3000, False),
        ("\0", False),
    ],
)
def test_interface_of_untrusted_files(tmp_path: Path, text: str, same: bool) -> None:
    (tmp_path / "m.py").write_text(text)
    assert grade.same_interface(tmp_path, {"m.py": {"f": ["a", "b", "c"]}}) is same
    assert grade.same_interface(tmp_path, {}) is True
    assert grade.same_interface(tmp_path, {"gone.py": {"f": []}}) is False


VALUES: dict[str, Any] = {**SPEC, "expected": {key: {"value": key} for key in "abcdek"}}


def told(key: str, value: Any = None) -> bytes:
    return json.dumps({"id": key, "outcome": {"value": key if value is None else value}}).encode()


def watched(folder: Path, *lines: bytes) -> grade.Watch:
    watch = grade.Watch(VALUES, folder / "skip")
    for line in lines:
        watch.take(line)
    return watch


@given(st.binary(max_size=200))
def test_garbage_is_no_answer(data: bytes) -> None:
    assert watched(Path("nowhere"), told("a"), *data.splitlines()).right == {"a"}


def test_the_first_answer_of_a_case_counts(tmp_path: Path) -> None:
    lines = [
        told("a"),
        told("a", 2),
        b"[1]",
        b'{"outcome": 3}',
        b'{"id": [], "outcome": 3}',
        told("b", 1),
        told("b"),
    ]
    assert watched(tmp_path, *lines).right == {"a"}


def test_what_must_stay_is_let_go_once_no_part_can_be_right(tmp_path: Path) -> None:
    first = watched(tmp_path, told("a"), told("c", "wrong"), told("k", "wrong"))
    assert first.is_open
    assert not (tmp_path / "skip").exists()
    second = watched(tmp_path, told("c", "wrong"), told("d", "wrong"))
    assert not second.is_open
    assert (tmp_path / "skip").read_text().split() == ["k"]
    second.take(told("e"))
    assert second.right == {"e"}


@given(st.lists(st.integers(1, 40), max_size=8))
def test_answers_come_in_pieces(sizes: list[int]) -> None:
    data = b"\n".join([told("a"), told("b", "wrong"), told("k")])
    watch = grade.Watch(VALUES, Path("nowhere"))
    reader, writer = os.pipe()
    for size in sizes:
        os.write(writer, data[:size])
        data = data[size:]
    os.write(writer, data)
    os.close(writer)
    grade.drain(reader, watch)
    os.close(reader)
    assert watch.right == {"a", "k"}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        1,
        "x",
        [],
        {},
        {"value": {"$": "float"}},
        {"value": {"$": "dict", "v": [[1]]}},
        {"value": {"$": "float", "v": "?"}},
        {"value": {"$": "float", "v": []}},
        {"value": {"v": "1.0"}},
    ],
)
def test_malformed_outcomes_are_wrong(answer: Any) -> None:
    assert not grade.is_right(answer, {"value": {"$": "float", "v": "1.0"}})
    assert not grade.is_right(answer, {"value": {"$": "dict", "v": [["a", 1]]}})


def test_only_plain_files_are_taken(tmp_path: Path) -> None:
    project, target = tmp_path / "project", tmp_path / "tree"
    (project / "sub").mkdir(parents=True)
    (project / "__pycache__").mkdir()
    for name in ("a.py", "sub/b.py", "__pycache__/a.pyc", "c.pyc"):
        (project / name).write_text("x")
    (project / "link.py").symlink_to("/etc/passwd")
    (project / "folder").symlink_to("/etc")
    os.mkfifo(project / "pipe")
    grading.take(project, target)
    assert sorted(p.relative_to(target).as_posix() for p in target.rglob("*") if p.is_file()) == [
        "a.py",
        "sub/b.py",
    ]


def test_a_flood_of_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "MAX_FILES", 3)
    for number in range(5):
        (tmp_path / f"{number}.py").write_text("")
    with pytest.raises(ValueError, match="too large"):
        grading.take(tmp_path, tmp_path.parent / "elsewhere")


def test_both_reward_files_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "OUT", tmp_path)
    grading.write_reward({"a": 1.0, "b": 0.5, "c": 0.0})
    found = json.loads((tmp_path / "reward.json").read_text())
    assert found == {"a": 1.0, "b": 0.5, "c": 0.0, "reward": 0.5}
    assert float((tmp_path / "reward.txt").read_text()) == found["reward"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reward.json", "reward.txt"]
