"""The `dataset` verb over a published folder."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from skill2env.cli import main as cli


@pytest.fixture
def dataset(bench: Any, tmp_path: Path) -> Path:
    bench.put(tmp_path / "out", bench.make("a", source="npm:a@1"), bench.make("b", skill="other", licence=""))
    return tmp_path / "out"


def run(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert cli.run([str(argument) for argument in arguments]) == code
    captured = capsys.readouterr()
    return captured.err if code == 2 else captured.out


def test_show(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = run(capsys, "dataset", "show", dataset)
    assert "org/data 1.0.0: 2 tasks" in told
    assert "npm:a@1" in told
    assert "unknown" in told
    document = json.loads(run(capsys, "dataset", "show", dataset, "--json"))
    assert [task["folder"] for task in document["tasks"]] == ["a", "b"]
    assert document["problems"] == []
    (dataset / "a/instruction.md").write_text("x")
    assert "problem: org/a" in run(capsys, "dataset", "show", dataset, code=1)


def test_drop(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing to take down" in run(capsys, "dataset", "drop", dataset, code=2)
    assert "no task of" in run(capsys, "dataset", "drop", dataset, "--task", "zzz", code=2)
    assert "--skill is empty" in run(capsys, "dataset", "drop", dataset, "--skill", "", code=2)
    told = run(capsys, "dataset", "drop", dataset, "--source", "npm:*", "--licence", "GPL*")
    assert told == "dropped org/a\norg/data is now 2.0.0 with 1 tasks\n"
    document = json.loads(run(capsys, "dataset", "drop", dataset, "--licence", "unknown", "--json"))
    assert document == {"version": "3.0.0", "dropped": ["org/b"], "left": 0}


def test_push_and_pull(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("huggingface_hub", reason="the extra 'huggingface' is not installed")
    spec = importlib.util.spec_from_file_location("hub_stand_in", Path(__file__).with_name("hub_stand_in.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("HF_TOKEN", "test")
    assert "repository is missing" in run(capsys, "dataset", "push", dataset, code=2)
    assert "not known" in run(capsys, "dataset", "push", dataset, "--to", "nowhere", code=2)
    with module.StandIn() as hub:
        told = run(capsys, "dataset", "push", dataset, "o/d", "--endpoint", hub.url, "--public", "--json")
        assert json.loads(told)["pushed"].startswith(hub.url)
        told = run(capsys, "dataset", "pull", "o/d", tmp_path / "pulled", "--endpoint", hub.url)
        assert f"2 tasks in {tmp_path / 'pulled'}" in told
        again = run(capsys, "dataset", "pull", "o/d", tmp_path / "pulled", "--endpoint", hub.url, code=2)
        assert "not empty" in again
