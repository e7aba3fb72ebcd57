"""Lint, digest, dataset manifest, and the variants of a task."""

import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.errors import Boundary, UserError
from skill2env.harbor.dataset import (
    Dataset,
    DatasetEntry,
    DatasetHeader,
    changed_tasks,
    read_dataset_toml,
    render_dataset_toml,
)
from skill2env.harbor.digest import task_digest
from skill2env.harbor.faults import creation_fault, is_suspect, machine_fault
from skill2env.harbor.lint import CRASH_CODE, lint_task_all
from skill2env.harbor.outcome import TrialFailure, TrialPhase
from skill2env.harbor.sandboxes import (
    COMPOSE_ENVIRONMENT,
    ENGINE_ENVIRONMENTS,
    NAMESPACE_ENVIRONMENT,
    choose_sandbox,
)
from skill2env.harbor.variant import variant

REFERENCE = "registry.example/debian-bookworm@sha256:" + "a" * 64


def test_our_format_is_clean_under_every_rule(builder: ModuleType, tmp_path: Path) -> None:
    assert lint_task_all(builder.build_task(tmp_path, reference=REFERENCE)) == ()


def test_switches_of_the_task_itself_are_ignored(builder: ModuleType, tmp_path: Path) -> None:
    def config(text: str) -> str:
        return text.replace('user = "agent"\n', "") + '\n[metadata.harbor.lint]\nignore = ["root-agent"]\n'

    codes = {
        finding.code
        for finding in lint_task_all(builder.build_task(tmp_path, reference="debian", config=config))
    }
    assert codes == {"harbor-lint:root-agent", "harbor-lint:unpinned-image"}


def test_crash_of_the_linter_is_a_finding(builder: ModuleType, tmp_path: Path) -> None:
    task = builder.build_task(
        tmp_path, reference=REFERENCE, changes={"tests/test.sh": b"#!/bin/bash\n# caf\xe9\n"}
    )
    (finding,) = lint_task_all(task)
    assert finding.code == CRASH_CODE
    assert "UnicodeDecodeError" in finding.message


def test_digest_covers_what_is_published_and_nothing_else(builder: ModuleType, tmp_path: Path) -> None:
    task = builder.build_task(tmp_path / "a", reference=REFERENCE)
    same = builder.build_task(tmp_path / "b", reference=REFERENCE, changes={"notes.txt": "x"})
    other = builder.build_task(tmp_path / "c", reference=REFERENCE, changes={"tests/grade.py": "x"})
    assert task_digest(task) == task_digest(same) != task_digest(other)
    assert task_digest(task).startswith("sha256:")


def _dataset(tasks: tuple[DatasetEntry, ...]) -> Dataset:
    header = DatasetHeader(
        "org/set",
        "1.2.0",
        description='A "set" \\ of tasks',
        keywords=("b", "a"),
        metadata={"skill2env": {"n": 1}},
    )
    return Dataset(header, tasks, {"card.md": "sha256:" + "c" * 64})


def test_manifest_is_the_same_for_any_order_and_reads_back(tmp_path: Path) -> None:
    tasks = tuple(DatasetEntry(f"org/t{n}", "sha256:" + str(n) * 64) for n in range(3))
    text = render_dataset_toml(_dataset(tasks))
    assert text == render_dataset_toml(_dataset(tasks[::-1]))
    assert tomllib.loads(text)["dataset"]["keywords"] == ["a", "b"]
    (tmp_path / "dataset.toml").write_text(text)
    again = read_dataset_toml(tmp_path)
    assert again.tasks == tasks
    assert render_dataset_toml(again) == text


@pytest.mark.parametrize("content", [None, "x =", "[dataset]\nname = 'no slash'\n", b"\xff"])
def test_bad_manifest_is_the_users_to_mend(content: str | bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "dataset.toml").write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UserError) as caught:
        read_dataset_toml(tmp_path)
    assert caught.value.hint


def test_manifest_with_a_bad_name() -> None:
    with pytest.raises(UserError):
        render_dataset_toml(Dataset(DatasetHeader("no slash", "1.0.0")))


def test_changed_tasks_are_named(builder: ModuleType, tmp_path: Path) -> None:
    where = [("org/one", "one"), ("org/two", "two")]
    for _, folder in where:
        builder.build_task(tmp_path / folder, reference=REFERENCE)
    entries = tuple(DatasetEntry(name, task_digest(tmp_path / folder)) for name, folder in where)
    dataset = _dataset((*entries, DatasetEntry("org/gone", "sha256:" + "9" * 64)))
    assert changed_tasks(tmp_path, dataset, where) == ("org/gone",)
    (tmp_path / "two" / "instruction.md").write_text("changed")
    assert changed_tasks(tmp_path, dataset, where) == ("org/gone", "org/two")


def test_variants_change_only_what_is_asked(builder: ModuleType, tmp_path: Path) -> None:
    task = builder.build_task(
        tmp_path, reference=REFERENCE, config=lambda text: text.replace("no-network", "public")
    )
    before = task_digest(task)
    with variant(task) as same, variant(task, mode="separate") as also:
        assert same == also == task
    with variant(task, mode="shared", offline=True) as copy:
        data = tomllib.loads((copy / "task.toml").read_text())
        assert data["verifier"]["environment_mode"] == "shared"
        assert {data[part]["network_mode"] for part in ("agent", "verifier", "environment")} == {"no-network"}
        assert (copy / "tests" / "grade.py").read_bytes() == (task / "tests" / "grade.py").read_bytes()
    assert not copy.exists()
    assert task_digest(task) == before


def test_allowlist_is_cut_as_well(builder: ModuleType, tmp_path: Path) -> None:
    def config(text: str) -> str:
        return text.replace(
            '[agent]\nnetwork_mode = "no-network"',
            '[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["example.org"]',
        )

    task = builder.build_task(tmp_path, reference=REFERENCE, config=config)
    with variant(task, offline=True) as copy:
        data = tomllib.loads((copy / "task.toml").read_text())
        assert data["agent"]["network_mode"] == "no-network"
        assert "allowed_hosts" not in data["agent"]


def _failure(kind: str, message: str = "", phase: TrialPhase = TrialPhase.ENVIRONMENT) -> TrialFailure:
    return TrialFailure(kind, message, phase)


@pytest.mark.parametrize(
    ("failure", "boundary"),
    [
        (_failure("EnvironmentStartTimeoutError"), Boundary.BUILD),
        (_failure("RuntimeError", "Cannot connect to the Docker daemon at unix:///x"), Boundary.SANDBOX),
        (_failure("RuntimeError", "failed to solve: failed to do request: i/o timeout"), Boundary.NETWORK),
        (_failure("OSError", "[Errno 28] No space left on device"), Boundary.STORAGE),
        (_failure("RuntimeError", 'process "/bin/sh -c false" did not complete: exit code: 1'), None),
        (_failure("BuildFailed", "step 3: exit 1"), None),
        (_failure("NeedsDocker", "needs docker: ONBUILD at line 3"), Boundary.SANDBOX),
        (_failure("VerifierTimeoutError", "timed out", TrialPhase.VERIFIER), None),
        (_failure("RuntimeError", "no space left on device", TrialPhase.AGENT), None),
    ],
)
def test_whose_fault(failure: TrialFailure, boundary: Boundary | None) -> None:
    fault = machine_fault(failure)
    assert (fault.boundary if fault else None) is boundary


@pytest.mark.parametrize(
    ("failure", "suspect"),
    [
        (_failure("DownloadVerifierDirError", phase=TrialPhase.VERIFIER), True),
        (_failure("InfraError", "the sandbox has ended", TrialPhase.VERIFIER), True),
        (_failure("RewardFileNotFoundError", phase=TrialPhase.VERIFIER), False),
        (_failure("AgentTimeoutError", phase=TrialPhase.AGENT), False),
        (_failure("RuntimeError", "Command timed out after 2 seconds", TrialPhase.AGENT), False),
        (_failure("RuntimeError", "broken pipe", TrialPhase.AGENT), True),
    ],
)
def test_what_has_to_happen_twice(failure: TrialFailure, suspect: bool) -> None:
    assert is_suspect(failure) is suspect


def test_creation_faults() -> None:
    unsupported = creation_fault(ValueError("network_mode='no-network' is not supported by docker"))
    assert unsupported is not None
    assert (unsupported.boundary, unsupported.transient) == (Boundary.SANDBOX, False)
    assert creation_fault(FileNotFoundError("tests/test.sh")) is None
    full = creation_fault(OSError(28, "No space left on device"))
    assert full is not None
    assert full.boundary is Boundary.STORAGE


def test_choice_of_a_sandbox() -> None:
    def never() -> bool:
        raise AssertionError("must not be asked")

    mapped = choose_sandbox("auto", works=lambda: True, image_map={"b": "x", "a": "y"})
    assert mapped.import_path == NAMESPACE_ENVIRONMENT
    assert mapped.kwargs == {"image_map": {"a": "y", "b": "x"}}
    assert choose_sandbox("namespace", works=never).name == "namespace"
    docker, podman = ENGINE_ENVIRONMENTS["docker"], ENGINE_ENVIRONMENTS["podman"]
    assert choose_sandbox("docker", works=never).import_path == docker
    assert choose_sandbox("podman", works=never).import_path == podman
    for running, expected in ((("docker", "podman"), docker), (("podman",), podman), ((), docker)):
        found = choose_sandbox("auto", works=lambda: False, engine_answers=running.__contains__)
        assert found.import_path == expected


def test_any_other_environment_of_harbor_passes_through() -> None:
    config = choose_sandbox("e2b", allow_unlimited=True).to_config()
    assert config.type is not None
    assert (config.type.value, config.import_path, config.kwargs) == ("e2b", None, {})
    with pytest.raises(UserError, match="no sandbox is called 'dokcer'") as caught:
        choose_sandbox("dokcer")
    assert "auto, namespace, docker, podman" in caught.value.hint


def test_compose_services_stay_with_harbor(tmp_path: Path) -> None:
    choices = [choose_sandbox(kind) for kind in ("docker", "podman", "namespace", "e2b")]
    assert [choice.for_task(tmp_path) for choice in choices] == choices
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/docker-compose.yaml").write_text("services: {}")
    docker, podman, namespace, other = (choice.for_task(tmp_path) for choice in choices)
    assert docker.import_path == COMPOSE_ENVIRONMENT
    assert (podman.name, podman.import_path) == ("podman", "")
    assert [namespace, other] == choices[2:]
