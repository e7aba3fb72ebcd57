"""A task's base is exchanged only when the task verifies on the new one."""

import subprocess
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.create.freeze import freeze_digest
from skill2env.errors import UserError
from skill2env.harbor.sandboxes import choose_sandbox, namespace_sandbox
from skill2env.harbor.task_toml import render_task_toml
from skill2env.publish.dataset import require_state
from skill2env.publish.integrity import problems
from skill2env.publish.publish import Accepted, publish
from skill2env.rebind import MakeContext, rebind
from skill2env.records import Candidate, GateOutcome, GateResult, Reason, Verdict, VerdictStatus
from skill2env.sandbox import catalog
from skill2env.sandbox.base_registry import push_base
from skill2env.sandbox.images import BaseImage
from skill2env.sandbox.logins import CONFIG_VARIABLE
from skill2env.verify.gate import GateContext
from skill2env.verify.rules import Profile
from skill2env.verify.verify import verify

PUBLIC = "debian:bookworm-slim@sha256:" + "b" * 64


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeContext:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "docker"))

    def make(image_map: Mapping[str, str]) -> GateContext:
        return GateContext(
            namespace_sandbox(image_map), tmp_path / "evidence", image_map=image_map, infra_retries=0
        )

    return make


@pytest.fixture
def task(builder: ModuleType, base: BaseImage, tmp_path: Path) -> Path:
    return builder.build_task(tmp_path / "task", reference=base.reference)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def provenance(task: Path) -> dict[str, object]:
    return tomllib.loads((task / "task.toml").read_text())["metadata"]["skill2env"]


@pytest.mark.sandbox
def test_a_task_goes_to_another_image_and_back(task: Path, base: BaseImage, context: MakeContext) -> None:
    before = contents(task)
    done = rebind(task, PUBLIC, context=context)
    assert done.references == {base.reference: PUBLIC}
    assert done.verdict is not None
    assert done.verdict.status is VerdictStatus.ACCEPTED, done.verdict.message
    assert done.stood_in, "another digest is named than the one that ran"
    assert done.written == task
    dockerfile = before["environment/Dockerfile"].decode()
    assert (task / "environment/Dockerfile").read_text() == dockerfile.replace(base.reference, PUBLIC)
    told = provenance(task)
    assert (told["base_image"], told["freeze_digest"]) == (PUBLIC, freeze_digest(task))
    for mapped in ({}, {"debian:bookworm-slim": "debian-bookworm"}):
        verdict = verify(task, profile=Profile.OURS, context=context(mapped))
        expected = (VerdictStatus.ACCEPTED, None) if mapped else (VerdictStatus.REJECTED, Reason.PIN_MISMATCH)
        assert (verdict.status, verdict.reason) == expected, (
            "later, whoever runs it must say what may stand in"
        )
    back = rebind(task, "ours", context=context)
    assert not back.stood_in
    after = contents(task)
    assert {k: v for k, v in after.items() if k != "task.toml"} == {
        k: v for k, v in before.items() if k != "task.toml"
    }
    assert provenance(task)["base_image"] == f"debian-bookworm@{base.digest}"
    assert rebind(task, "ours", context=context).verdict is None, "nothing to do"
    assert contents(task) == after
    assert sorted(path.name for path in task.parent.iterdir()) == ["evidence", "task"]


@pytest.mark.sandbox
def test_a_task_that_is_rejected_on_its_new_base_stays_as_it_was(
    builder: ModuleType, base: BaseImage, tmp_path: Path, context: MakeContext
) -> None:
    # It builds on no base but the one whose digest its Dockerfile names, as a task that needs an older tool would.
    broken = builder.DOCKERFILE.format(reference=PUBLIC) + "RUN exit 3\n"
    task = builder.build_task(tmp_path / "task", reference=PUBLIC, changes={"environment/Dockerfile": broken})
    before = contents(task)
    done = rebind(task, "ours", context=context)
    assert done.verdict is not None
    assert done.verdict.reason is Reason.BUILD_FAILED
    assert done.written is None
    assert contents(task) == before
    assert not list(tmp_path.glob(".tmp-*"))


@pytest.mark.sandbox
def test_the_result_may_go_elsewhere(
    builder: ModuleType, base: BaseImage, tmp_path: Path, context: MakeContext
) -> None:
    task = builder.build_task(tmp_path / "task", reference=PUBLIC, metadata=False)
    before = contents(task)
    done = rebind(task, "ours", context=context, out=tmp_path / "other")
    assert done.written == tmp_path / "other"
    assert contents(task) == before
    changed = contents(tmp_path / "other")
    assert base.reference.encode() in changed["environment/Dockerfile"]
    assert changed["task.toml"] == before["task.toml"], "no provenance of ours, nothing to note"
    with pytest.raises(UserError, match="exists"):
        rebind(task, "ours", context=context, out=tmp_path / "other")


@pytest.mark.sandbox
@pytest.mark.network
@pytest.mark.slow
def test_the_public_binding_installs_the_packages_of_the_base(
    builder: ModuleType,
    base: BaseImage,
    registry_server: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    context: MakeContext,
) -> None:
    pushed = push_base(base, f"{registry_server()}/library", tag="bookworm-slim")
    public = pushed.reference.partition("@")[0] + ":bookworm-slim"
    small = replace(
        catalog.lookup("data-bookworm"), packages=(*catalog.COMMON, "jq", "sqlite3"), public=public
    )
    monkeypatch.setitem(catalog.CATALOG, "data-bookworm", small)
    reference = f"registry.example/skill2env/data-bookworm@sha256:{'d' * 64}"
    dockerfile = builder.DOCKERFILE.format(reference=reference) + "RUN jq --version && sqlite3 --version\n"
    task = builder.build_task(
        tmp_path / "task", reference=reference, changes={"environment/Dockerfile": dockerfile}
    )
    done = rebind(task, "public", context=context)
    assert done.verdict is not None
    assert done.verdict.status is VerdictStatus.ACCEPTED, done.verdict.message
    lines = (task / "environment/Dockerfile").read_text().split("\n")
    assert lines[:2] == ["# skill2env base: data-bookworm", f"FROM {public}@{base.digest}"]
    assert " jq " in lines[2]
    assert "\n".join(lines[3:]) == dockerfile.partition("\n")[2]


@pytest.mark.parametrize(
    ("dockerfile", "message"),
    [
        ("FROM python:3.12\n", "FROM python:3.12 means no base of the catalog"),
        ("FROM\n", "cannot be read"),
        (b"FROM x\xff\n", "cannot be read"),
        (None, "no task with a Dockerfile"),
    ],
)
def test_what_has_no_other_binding_is_said(
    tmp_path: Path, context: MakeContext, dockerfile: str | bytes | None, message: str
) -> None:
    (tmp_path / "task/environment").mkdir(parents=True)
    if dockerfile is not None:
        data = dockerfile.encode() if isinstance(dockerfile, str) else dockerfile
        (tmp_path / "task/environment/Dockerfile").write_bytes(data)
    with pytest.raises(UserError, match=message):
        rebind(tmp_path / "task", "ours", context=context)


@pytest.mark.sandbox
def test_the_index_of_a_dataset_follows(
    builder: ModuleType, base: BaseImage, tmp_path: Path, context: MakeContext
) -> None:
    candidate = builder.build_task(tmp_path / "candidate", reference=base.reference, metadata=False)
    (tmp_path / "skill").mkdir()
    accepted = Accepted(
        attempt_key="sha256:a",
        candidate=Candidate(
            path=candidate,
            spec=builder.SPEC,
            contract=builder.CONTRACT,
            author=builder.PROVENANCE.author,
            freeze_digest=freeze_digest(candidate),
            base_image=f"debian-bookworm@{base.digest}",
        ),
        verdict=Verdict(
            status=VerdictStatus.ACCEPTED, gates=(GateResult(gate="assets", outcome=GateOutcome.PASSED),)
        ),
        skill=builder.SKILL,
        skill_dir=tmp_path / "skill",
    )
    dataset = tmp_path / "dataset"

    def task_toml(item: Accepted) -> str:
        return render_task_toml(builder.SPEC, builder.CONTRACT, builder.SKILL, builder.PROVENANCE)

    state, (published,) = publish(
        [accepted], dataset, name="a/b", description="d", task_toml=task_toml, identity="sha256:r", ended={}
    )
    (before,) = state.entries
    done = rebind(dataset / published.folder, PUBLIC, context=context)
    assert done.written == dataset / published.folder
    after = require_state(dataset)
    assert problems(dataset) == []
    (entry,) = after.entries
    assert entry.base_image == PUBLIC
    assert entry.freeze_digest == freeze_digest(dataset / published.folder)
    assert entry.gates.keys() >= {"assets", "dockerfile", "build", "oracle"}
    assert entry.gates["assets"] == before.gates["assets"]
    assert entry.digest != published.digest
    assert after.version != state.version


@pytest.mark.docker
@pytest.mark.sandbox
@pytest.mark.slow
def test_an_engine_runs_the_pushed_base_itself(
    task: Path, base: BaseImage, registry_server: Callable[..., str], tmp_path: Path
) -> None:
    """What the registry serves is an image that docker pulls by our digest, and every gate accepts the task on it."""
    pushed = push_base(base, f"{registry_server()}/mine")

    def context(image_map: Mapping[str, str]) -> GateContext:
        sandbox = choose_sandbox("docker", image_map=image_map)
        return GateContext(sandbox, tmp_path / "evidence", image_map=image_map, infra_retries=0)

    try:
        pulled = subprocess.run(
            ["docker", "run", "--rm", pushed.reference, "tmux", "-V"], capture_output=True, check=False
        )
        assert (pulled.returncode, pulled.stdout[:5]) == (0, b"tmux "), pulled.stderr
        done = rebind(task, pushed.reference.partition("@")[0] + f":{pushed.tag}", context=context)
        assert done.verdict is not None
        assert done.verdict.status is VerdictStatus.ACCEPTED, done.verdict.message
        assert not done.stood_in
        named = f"{pushed.reference.partition('@')[0]}:{pushed.tag}@{base.digest}"
        assert (task / "environment/Dockerfile").read_text().startswith(f"FROM {named}\n")
    finally:
        subprocess.run(["docker", "rmi", "--force", pushed.reference], capture_output=True, check=False)


@pytest.mark.sandbox
def test_what_was_found_about_public_files_stays(
    builder: ModuleType, base: BaseImage, tmp_path: Path, context: MakeContext
) -> None:
    """The gate `assets` looked before the seal and is not run again: task.toml and index keep what it said."""
    found = GateResult(gate="assets", outcome=GateOutcome.PASSED, values={"asset-0": "sha256:" + "a" * 64})
    gone = GateResult(gate="pin", outcome=GateOutcome.PASSED, values={"old": True})
    told = replace(builder.PROVENANCE, gates=(found, gone))
    text = render_task_toml(builder.SPEC, builder.CONTRACT, builder.SKILL, told)
    task = builder.build_task(tmp_path / "task", reference=base.reference, changes={"task.toml": text})
    done = rebind(task, PUBLIC, context=context)
    assert done.verdict is not None
    assert done.verdict.status is VerdictStatus.ACCEPTED, done.verdict.message
    first, *others = provenance(task)["gates"]  # type: ignore[misc]
    assert first == {"gate": "assets", "outcome": "passed", "evidence": found.evidence_digest()}
    assert [gate["gate"] for gate in others] == [gate.gate for gate in done.verdict.gates]
    assert gone.evidence_digest() not in {gate["evidence"] for gate in others}
