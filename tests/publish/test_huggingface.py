import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.publish import huggingface
from skill2env.publish.takedown import Selector, drop

pytest.importorskip("huggingface_hub", reason="the extra 'huggingface' is not installed")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location("hub_stand_in", Path(__file__).with_name("hub_stand_in.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True, raising=False)
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    monkeypatch.setenv("HF_TOKEN", "test")
    with module.StandIn() as server:
        yield server


def test_push_then_pull_gives_the_same_bytes(bench: Any, hub: Any, tmp_path: Path) -> None:
    dataset = tmp_path / "out"
    bench.put(dataset, bench.make("a"), bench.make("b"))
    url = huggingface.push(dataset, "org/data", endpoint=hub.url)
    assert url.startswith(hub.url)
    assert "a/tests/test.sh" in hub.repos["org/data"]
    state = huggingface.pull("org/data", tmp_path / "pulled", endpoint=hub.url)
    assert state.version == "1.0.0"
    pulled = {name: data for name, (_, data) in bench.tree(tmp_path / "pulled").items()}
    assert pulled == {name: data for name, (_, data) in bench.tree(dataset).items()}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["candidates", "out", "pulled", "skills"]


def test_a_take_down_here_is_a_take_down_there(bench: Any, hub: Any, tmp_path: Path) -> None:
    dataset = tmp_path / "out"
    bench.put(dataset, bench.make("a"), bench.make("b", skill="other"))
    huggingface.push(dataset, "org/data", endpoint=hub.url)
    drop(dataset, [Selector("task", "a")])
    huggingface.push(dataset, "org/data", endpoint=hub.url)
    names = set(hub.repos["org/data"])
    assert not [name for name in names if name.startswith("a/")]
    assert "b/task.toml" in names
    assert b"2.0.0" in hub.repos["org/data"]["README.md"]


def test_a_tampered_repository_is_refused_and_leaves_nothing(bench: Any, hub: Any, tmp_path: Path) -> None:
    dataset = tmp_path / "out"
    bench.put(dataset, bench.make("a"))
    huggingface.push(dataset, "org/data", endpoint=hub.url)
    hub.repos["org/data"]["a/tests/test.sh"] = b"#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n"
    with pytest.raises(UserError, match="org/a"):
        huggingface.pull("org/data", tmp_path / "pulled", endpoint=hub.url)
    assert not (tmp_path / "pulled").exists()


def test_a_changed_dataset_is_not_pushed(bench: Any, hub: Any, tmp_path: Path) -> None:
    dataset = tmp_path / "out"
    bench.put(dataset, bench.make("a"))
    (dataset / "a/instruction.md").write_text("other")
    with pytest.raises(UserError, match=r"differ from dataset\.toml: org/a"):
        huggingface.push(dataset, "org/data", endpoint=hub.url)
    assert not hub.repos


def test_refusals_and_failures_are_told_apart(bench: Any, hub: Any, tmp_path: Path) -> None:
    dataset = tmp_path / "out"
    bench.put(dataset, bench.make("a"))
    with pytest.raises(UserError, match="no such repository"):
        huggingface.pull("org/none", tmp_path / "pulled", endpoint=hub.url)
    hub.repos["org/data"] = {"README.md": b"hello"}
    with pytest.raises(UserError, match="no such revision"):
        huggingface.pull("org/data", tmp_path / "pulled", endpoint=hub.url, revision="absent")
    with pytest.raises(UserError, match="not a dataset folder"):
        huggingface.pull("org/data", tmp_path / "pulled", endpoint=hub.url)
    with pytest.raises(UserError, match="not empty"):
        huggingface.pull("org/data", dataset, endpoint=hub.url)
    hub.fail = 403
    with pytest.raises(UserError, match="refused"):
        huggingface.push(dataset, "org/data", endpoint=hub.url)


def test_an_unreachable_hub_is_the_network(bench: Any, hub: Any, tmp_path: Path) -> None:
    dataset = tmp_path / "out"
    bench.put(dataset, bench.make("a"))
    with pytest.raises(InfraError) as caught:
        huggingface.push(dataset, "org/data", endpoint="http://127.0.0.1:9")
    assert caught.value.boundary is Boundary.NETWORK
    assert "--endpoint" in caught.value.hint


def test_the_missing_extra_is_named(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.put(tmp_path / "out", bench.make("a"))
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match="need the extra 'huggingface'") as caught:
        huggingface.push(tmp_path / "out", "org/data")
    assert "pip install" in caught.value.hint
