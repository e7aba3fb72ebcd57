"""Difficulty from job folders."""

import json
from pathlib import Path
from typing import Any

import pytest

from skill2env.analysis.difficulty import band_of, difficulty
from skill2env.analysis.reading import read_corpus
from skill2env.analysis.records import Notes
from skill2env.analysis.trials import read_trials
from skill2env.errors import UserError


def trial(
    folder: Path, name: str, task: str, rewards: Any, *, agent: str = "solver", error: str = ""
) -> None:
    place = folder / name
    place.mkdir(parents=True)
    tree = {
        "task_name": task,
        "task_id": {"path": f"/somewhere/{task.rsplit('/', 1)[-1]}"},
        "agent_info": {"name": agent, "model_info": {"name": "small"}},
        "verifier_result": None if rewards is None else {"rewards": rewards},
        "exception_info": {"exception_type": error} if error else None,
    }
    (place / "result.json").write_text(json.dumps(tree))


def test_figures(make_task: Any, tmp_path: Path) -> None:
    for key, complexity in (
        ("a", "turns-05-10"),
        ("b", "turns-11-20"),
        ("c", "turns-21-40"),
        ("d", "turns-05-10"),
    ):
        make_task(
            key, axes={"complexity": complexity}, domain="cybersecurity" if key == "a" else "data engineering"
        )
    jobs = tmp_path / "jobs"
    for at in range(4):
        trial(jobs, f"a{at}", "org/a", {"reward": 1.0})
        trial(jobs, f"b{at}", "org/b", {"reward": 1.0 if at < 2 else 0.5, "x": 0})
        trial(jobs, f"c{at}", "c", {"m": 0.0, "n": 0.5})
    trial(jobs, "timeout", "org/c", None, error="AgentTimeoutError")
    trial(jobs, "broken", "org/a", None, error="EnvironmentStartError")
    trial(jobs, "stranger", "org/zzz", {"reward": 1})
    trial(jobs, "oracle", "org/d", {"reward": 1}, agent="oracle")
    trial(jobs, "wild", "org/b", {"reward": 7})
    (jobs / "result.json").write_text('{"stats": {}}')
    (jobs / "odd").mkdir()
    (jobs / "odd/result.json").write_text("{")
    notes = Notes()
    found = difficulty(read_corpus(tmp_path / "data"), read_trials([jobs], notes), notes=notes)
    assert (found.tasks, found.tried, found.trials, found.ungraded) == (4, 3, 14, 1)
    by_key = {item.task: item for item in found.details}
    assert (by_key["a"].band, by_key["b"].band, by_key["c"].band) == ("everybody", "useful", "nobody")
    assert (by_key["b"].trials, by_key["b"].passed, by_key["b"].mean) == (5, 3, 0.8)
    assert by_key["b"].pass_at == {1: 0.6, 2: 0.9, 4: 1.0}
    assert by_key["c"].mean == 0.2
    assert by_key["a"].low < 0.6
    assert found.nobody == ("c",)
    assert found.everybody == ("a",)
    assert found.pass_at[1].value == pytest.approx((1 + 0.6 + 0) / 3, abs=1e-4)
    assert found.pass_at[1].low < found.pass_at[1].value < found.pass_at[1].high
    assert found.by_domain["cybersecurity"].value == 1
    assert list(found.by_complexity) == ["turns-05-10", "turns-11-20", "turns-21-40"]
    assert found.agreement == 1
    assert found.agents == {"solver/small": 15}
    assert found.oddities == {
        "reward-out-of-range": 1, "result-unreadable": 1, "trial-of-no-task": 1, "trial-ungraded": 1,
    }  # fmt: skip
    assert difficulty(read_corpus(tmp_path / "data"), read_trials([jobs], Notes()), agent="other").tried == 0
    assert len(read_trials([jobs], Notes(), controls=True)) == len(read_trials([jobs], Notes())) + 1


def test_bands_and_what_is_no_job(tmp_path: Path) -> None:
    assert [band_of(share) for share in (0, 0.3, 0.31, 0.8, 0.9, 1)] == [
        "nobody", "hard", "useful", "useful", "easy", "everybody",
    ]  # fmt: skip
    with pytest.raises(UserError, match="no trial"):
        read_trials([tmp_path], Notes())
    with pytest.raises(UserError, match="no folder"):
        read_trials([tmp_path / "no"], Notes())
