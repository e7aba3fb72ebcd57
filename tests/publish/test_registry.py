import sys
from pathlib import Path
from typing import Any

import pytest

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.publish.registry import push_to_registry


@pytest.fixture
def dataset(bench: Any, tmp_path: Path) -> Path:
    bench.put(tmp_path / "out", bench.make("a"))
    return tmp_path / "out"


def saying(text: str, code: int) -> list[str]:
    """A command that prints its arguments and ends as told."""
    return [
        sys.executable,
        "-c",
        f"import sys; print(' '.join(sys.argv[1:])); print({text!r}); sys.exit({code})",
    ]


def test_harbors_own_command_asks_for_a_login(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UserError, match="needs a login") as caught:
        push_to_registry(dataset)
    assert caught.value.hint == "harbor auth login"


def test_success_and_visibility(dataset: Path) -> None:
    assert f"publish {dataset} --private" in push_to_registry(dataset, command=saying("done", 0))
    assert f"publish {dataset} --public" in push_to_registry(dataset, public=True, command=saying("done", 0))


def test_failures_have_one_boundary(dataset: Path) -> None:
    with pytest.raises(InfraError) as caught:
        push_to_registry(dataset, command=saying("ConnectError: no route", 1))
    assert caught.value.boundary is Boundary.NETWORK
    with pytest.raises(InfraError) as caught:
        push_to_registry(dataset, command=saying("Boom", 1))
    assert caught.value.boundary is Boundary.HARBOR
    with pytest.raises(UserError, match="is missing"):
        push_to_registry(dataset, command=["/nonexistent/harbor"])
    with pytest.raises(InfraError, match="did not end"):
        push_to_registry(
            dataset, command=[sys.executable, "-c", "import time; time.sleep(30)"], timeout_sec=0.5
        )


def test_a_changed_dataset_is_not_published(dataset: Path) -> None:
    (dataset / "a/instruction.md").write_text("other")
    with pytest.raises(UserError, match="differ from"):
        push_to_registry(dataset, command=saying("done", 0))
