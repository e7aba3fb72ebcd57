"""Samples, labels on disk, and what they say."""

import json
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.errors import UserError
from skill2env.verify.cache import content_of
from skill2env.view.labels import Answer, Label, LabelFile, Question, rates, sample_of, wilson

YES = dict.fromkeys(Question, Answer.YES)


@pytest.mark.parametrize(
    ("hits", "total", "interval"),
    [
        (0, 0, (0, 1)),
        (0, 10, (0, 0.2775)),
        (5, 10, (0.2366, 0.7634)),
        (10, 10, (0.7225, 1)),
        (81, 263, (0.2553, 0.3662)),
    ],
)
def test_wilson_by_published_values(hits: int, total: int, interval: tuple[float, float]) -> None:
    assert wilson(hits, total) == pytest.approx(interval, abs=6e-5)


def test_a_sample_grows_and_does_not_depend_on_company() -> None:
    names = [f"t{number}" for number in range(50)]
    few, many = sample_of(names, 5, 1), sample_of(list(reversed(names)), 20, 1)
    assert many[:5] == few
    assert sample_of(names, 5, 2) != few
    assert [name for name in sample_of([*names, "new"], 21, 1) if name != "new"][:20] == many
    assert len(sample_of(names, 500, 1)) == 50


def test_labels_outlive_the_process_and_end_with_a_change(builder: ModuleType, tmp_path: Path) -> None:
    task = builder.build_task(tmp_path / "task", reference="x")
    path = tmp_path / "deep" / "labels.json"
    LabelFile(path, 7).add("task", Label(content=content_of(task), answers=YES, note="ok"))
    again = LabelFile(path, 7)
    assert again.current({"task": task, "other": tmp_path}) == {
        "task": Label(content=content_of(task), answers=YES, note="ok")
    }
    (task / "instruction.md").write_text("changed")
    assert again.of("task", task) is None


def test_labels_of_another_seed_or_none_at_all(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    LabelFile(path, 1).add("x", Label(content="c", answers=YES))
    with pytest.raises(UserError, match="seed 1"):
        LabelFile(path, 2)
    for text in ("{", "[]", json.dumps({"seed": 1, "labels": {"x": 3}})):
        path.write_text(text)
        with pytest.raises(UserError, match="no file of labels"):
            LabelFile(path, 1)


def test_unsure_is_counted_by_itself() -> None:
    answers = [Answer.YES, Answer.NO, Answer.NO, Answer.UNSURE]
    labels = {
        str(n): Label(content="c", answers={**YES, Question.SHORTCUT: given})
        for n, given in enumerate(answers)
    }
    (shortcut, faithful, _) = rates(labels)
    assert (shortcut.yes, shortcut.no, shortcut.unsure, shortcut.share) == (1, 2, 1, pytest.approx(1 / 3))
    assert faithful.interval[1] == 1
    assert rates({})[0].share is None
