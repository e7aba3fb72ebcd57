"""Recording any author and replaying it gives the same plans and candidates."""

import base64
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skill2env.authors import demo
from skill2env.authors.protocol import (
    Author,
    CreateReply,
    CreateRequest,
    Message,
    PlanReply,
    PlanRequest,
    identity_for,
    pinned_axes,
)
from skill2env.authors.record import RecordingAuthor
from skill2env.authors.recorded import RecordedAuthor
from skill2env.authors.recording import find_recordings
from skill2env.authors.scripted import Files, ScriptedAuthor, Step, write_files
from skill2env.create import CreateRejected, create
from skill2env.create.fakes import FakeHost, rejecting
from skill2env.create.freeze import scan
from skill2env.diversify import SpecRequest, sample_batch
from skill2env.errors import Boundary, InfraError, UserError
from skill2env.plan import plan_workflows
from skill2env.records import Candidate, Phase, Reason, Skill, Skipped, SkipReason, TaskSpec, Usage

CONTRACT, SOLUTION, REPAIR = (Phase.CONTRACT, 0), (Phase.SOLUTION, 0), (Phase.REPAIR, 1)
PAID = Usage(model="m", input_tokens=7, output_tokens=5, micro_dollars=11, turns=2)


def unsafe(request: CreateRequest) -> CreateReply:
    os.mkfifo(request.workspace / "task/pipe")
    return CreateReply(usage=PAID)


def link(request: CreateRequest) -> Files:
    (request.workspace / "task/tests/link").symlink_to("/etc/passwd")
    return demo.files(request)


def tamper(request: CreateRequest) -> Files:
    task = request.workspace / "task"
    (task / "tests/rubric.md").write_text("easier")
    (task / "tests/grade.py").unlink()
    return demo.files(request) | {"tests/conftest.py": "x"}


SCRIPTS: dict[str, dict[tuple[Phase, int], Step]] = {
    "plain": {CONTRACT: demo.files, SOLUTION: demo.files},
    "repaired": {
        CONTRACT: demo.files,
        SOLUTION: {"solution/solve.sh": "exit 1", "solution/helper.py": "x"},
        REPAIR: lambda request: demo.files(request) | {"solution/helper.py": None},
    },
    "breaks the freeze": {CONTRACT: demo.files, SOLUTION: tamper},
    "links into the contract": {CONTRACT: demo.files, SOLUTION: link},
    "skips": {CONTRACT: Skipped(reason=SkipReason.NEEDS_GUI, detail="a canvas")},
    "skips late": {CONTRACT: demo.files, SOLUTION: Skipped(reason=SkipReason.AUTHOR_GAVE_UP)},
    "unsafe": {CONTRACT: unsafe},
    "gives up": {CONTRACT: {}},
    "invalid contract": {CONTRACT: lambda request: demo.files(request) | {"contract.json": "[]"}},
}


def make(author: Author, spec: TaskSpec, skill: Skill, skill_dir: Path, work: Path, repairs: int) -> Any:
    bench = FakeHost(solution_verdicts=[rejecting(Reason.ORACLE_FAILED)] * repairs)
    made = create(spec, skill, skill_dir, author, bench.host(), work_dir=work)
    files = scan(made.path) if isinstance(made, Candidate | CreateRejected) and made.path else {}
    plain = made.model_dump(mode="json", exclude={"path", "author"})
    return plain, files, [(note.phase, note.round, note.usage) for note in bench.notes]


@pytest.mark.parametrize("name", SCRIPTS)
def test_replay_equals_the_original(
    name: str, spec: TaskSpec, skill: Skill, skill_dir: Path, tmp_path: Path
) -> None:
    repairs = 1 if name == "repaired" else 0
    inner = ScriptedAuthor(steps=SCRIPTS[name], usage=PAID, label=name)
    recorder = RecordingAuthor(inner, tmp_path / "rec")
    original = plan_workflows(skill, skill_dir, recorder, count=2, seed=1)
    first = make(recorder, spec, skill, skill_dir, tmp_path / "w1", repairs)
    replay = RecordedAuthor.load(tmp_path / "rec")
    assert plan_workflows(skill, skill_dir, replay, count=2, seed=1) == original
    assert make(replay, spec, skill, skill_dir, tmp_path / "w2", repairs) == first
    assert make(inner, spec, skill, skill_dir, tmp_path / "w3", repairs) == first


def test_what_a_session_asked_of_the_network_is_replayed(
    spec: TaskSpec, skill: Skill, skill_dir: Path, tmp_path: Path
) -> None:
    def online(request: CreateRequest) -> CreateReply:
        write_files(request.workspace / "task", demo.files(request))
        return CreateReply(hosts=("files.example.org:443 allowed",))

    inner = ScriptedAuthor(steps={CONTRACT: online, SOLUTION: demo.files})
    first = make(RecordingAuthor(inner, tmp_path / "rec"), spec, skill, skill_dir, tmp_path / "w1", 0)
    assert first[0]["hosts"] == ["files.example.org:443"]
    assert make(RecordedAuthor.load(tmp_path / "rec"), spec, skill, skill_dir, tmp_path / "w2", 0) == first


def test_replay_pins_the_axes_whatever_the_seed(
    spec: TaskSpec, skill: Skill, skill_dir: Path, tmp_path: Path
) -> None:
    recorder = RecordingAuthor(ScriptedAuthor(), tmp_path / "rec")
    make(recorder, spec, skill, skill_dir, tmp_path / "w1", 0)
    replay = RecordedAuthor.load(tmp_path / "rec")
    workflow = spec.workflow
    assert pinned_axes(recorder, skill, workflow, 0) is None
    pinned = pinned_axes(replay, skill, workflow, 0)
    assert pinned == spec.axes
    assert sample_batch([SpecRequest(skill, workflow, 0, pinned)], run_seed=999)[0].axes == spec.axes
    assert pinned_axes(replay, skill, workflow, 1) is None


def test_identities(skill: Skill, skill_dir: Path, spec: TaskSpec, tmp_path: Path) -> None:
    inner = ScriptedAuthor()
    recorder = RecordingAuthor(inner, tmp_path / "rec")
    assert recorder.identity == inner.identity
    make(recorder, spec, skill, skill_dir, tmp_path / "w1", 0)
    before = identity_for(RecordedAuthor.load(tmp_path / "rec"), skill)
    assert (before.name, before.version) == ("recorded", "1")
    (tmp_path / "rec/closing/settle-ledger/0/solution/files/solution/solve.sh").chmod(0o644)
    after = identity_for(RecordedAuthor.load(tmp_path / "rec"), skill)
    assert after.digest != before.digest
    other = skill.model_copy(update={"digest": "sha256:" + "0" * 64, "slug": "other"})
    assert identity_for(RecordedAuthor.load(tmp_path / "rec"), other).digest == ""


def test_layout(spec: TaskSpec, skill: Skill, skill_dir: Path, tmp_path: Path) -> None:
    """The layout that docs/recordings.md shows."""
    recorder = RecordingAuthor(ScriptedAuthor(usage=PAID), tmp_path / "rec")
    plan_workflows(skill, skill_dir, recorder, count=2, seed=1)
    make(recorder, spec, skill, skill_dir, tmp_path / "w1", 0)
    folder = tmp_path / "rec/closing"
    assert sorted(path.name for path in folder.iterdir()) == ["plan.json", "recording.json", "settle-ledger"]
    assert sorted(path.name for path in (folder / "settle-ledger/0").iterdir()) == ["contract", "solution"]
    assert sorted(scan(folder / "settle-ledger/0/solution")) == ["files/solution/solve.sh", "session.json"]
    session = json.loads((folder / "settle-ledger/0/contract/session.json").read_text())
    assert session["usage"]["input_tokens"] == 7
    assert (
        session["messages"][0] == Message(role="assistant", text=session["messages"][0]["text"]).model_dump()
    )
    dockerfile = (folder / "settle-ledger/0/contract/files/environment/Dockerfile").read_text()
    assert dockerfile.startswith("FROM debian-bookworm\n"), "the catalog base, never a digest"
    index = json.loads((folder / "recording.json").read_text())
    assert index["skill"] == {"name": "closing", "slug": "closing", "digest": skill.digest}
    assert [(task["workflow"], task["variant"]) for task in index["tasks"]] == [("settle-ledger", 0)]


def test_infra_failures_are_not_stored(spec: TaskSpec, skill: Skill, skill_dir: Path, tmp_path: Path) -> None:
    def fail(_: CreateRequest) -> CreateReply:
        raise InfraError(Boundary.PROVIDER, "overloaded")

    recorder = RecordingAuthor(ScriptedAuthor(steps={CONTRACT: demo.files, SOLUTION: fail}), tmp_path / "rec")
    with pytest.raises(InfraError):
        make(recorder, spec, skill, skill_dir, tmp_path / "w", 0)
    assert not (tmp_path / "rec/closing/settle-ledger/0/solution").exists()
    assert RecordedAuthor.load(tmp_path / "rec").recordings[0].task("settle-ledger", 0) is not None


def test_a_second_session_replaces_the_first(
    spec: TaskSpec, skill: Skill, skill_dir: Path, tmp_path: Path
) -> None:
    steps: list[dict[str, Any]] = [
        {"solution/solve.sh": "one", "solution/old": "x"},
        {"solution/solve.sh": "two"},
    ]
    for step in steps:
        author = ScriptedAuthor(steps={CONTRACT: demo.files, SOLUTION: lambda _, s=step: s}, label="same")
        make(RecordingAuthor(author, tmp_path / "rec"), spec, skill, skill_dir, tmp_path / "w", 0)
    files = tmp_path / "rec/closing/settle-ledger/0/solution/files/solution"
    assert [path.name for path in files.iterdir()] == ["solve.sh"]
    assert (files / "solve.sh").read_text() == "two"


def test_another_author_into_the_same_folder(
    spec: TaskSpec, skill: Skill, skill_dir: Path, tmp_path: Path
) -> None:
    make(RecordingAuthor(ScriptedAuthor(), tmp_path / "rec"), spec, skill, skill_dir, tmp_path / "w", 0)
    other = RecordingAuthor(ScriptedAuthor(label="other"), tmp_path / "rec")
    with pytest.raises(UserError, match="another author"):
        make(other, spec, skill, skill_dir, tmp_path / "w", 0)


def test_two_skills_of_one_name(skill: Skill, skill_dir: Path, tmp_path: Path) -> None:
    recorder = RecordingAuthor(ScriptedAuthor(), tmp_path / "rec")
    twin = skill.model_copy(update={"digest": "sha256:" + "ab" * 32})
    for one in (skill, twin):
        plan_workflows(one, skill_dir, recorder, count=1, seed=1)
    assert sorted(path.name for path in (tmp_path / "rec").iterdir()) == ["closing", "closing-abababab"]
    replay = RecordedAuthor.load(tmp_path / "rec")
    assert replay.find(twin) != replay.find(skill)


def test_many_threads(skill: Skill, skill_dir: Path, tmp_path: Path) -> None:
    workflow = demo.workflows(skill)[0]
    specs = sample_batch([SpecRequest(skill, workflow, variant) for variant in range(6)], run_seed=1)
    recorder = RecordingAuthor(ScriptedAuthor(), tmp_path / "rec")
    threads = [
        threading.Thread(
            target=make, args=(recorder, spec, skill, skill_dir, tmp_path / f"w{spec.variant}", 0)
        )
        for spec in specs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    index = RecordedAuthor.load(tmp_path / "rec").recordings[0].index
    assert [task.variant for task in index.tasks] == list(range(6))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(
    written=st.dictionaries(
        st.sampled_from(["solution/solve.sh", "tests/test.sh", "solution/a/b.py", "task.toml", "tests"]),
        st.none() | st.binary(max_size=9),
    )
)
def test_any_change_of_a_session_survives_recording(
    written: dict[str, bytes | None],
    skill: Skill,
    skill_dir: Path,
    spec: TaskSpec,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    tmp_path = tmp_path_factory.mktemp("any")

    def act(request: CreateRequest) -> CreateReply:
        task = request.workspace / "task"
        for path, data in sorted(written.items()):
            target = task / path
            if data is None:
                if target.is_file():
                    target.unlink()
                continue
            if target.is_dir() or not (target.parent.is_dir() or not target.parent.exists()):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return CreateReply()

    def run(author: Author, name: str) -> Any:
        return make(author, spec, skill, skill_dir, tmp_path / name, 0)

    first = run(
        RecordingAuthor(ScriptedAuthor(steps={CONTRACT: demo.files, SOLUTION: act}), tmp_path / "rec"), "a"
    )
    assert run(RecordedAuthor.load(tmp_path / "rec"), "b") == first


KEY, OTHER = "sk-Zq83/kd+0v_Lw7Tn", "sk-Aa11/bb+2c_Dd3Ee"


class Keyed(ScriptedAuthor):
    """An author that was given a key."""

    def keys(self) -> dict[str, str]:
        return {"OPENAI_API_KEY": KEY, "SHORT": "json"}


def everything(folder: Path) -> str:
    return "\n".join(
        f"{path.relative_to(folder)}\n{path.read_text() if path.is_file() else ''}"
        for path in sorted(folder.rglob("*"))
    )


def says(key: str) -> dict[str, Step]:
    """Where a key can turn up in a contract session."""
    packed = base64.b64encode(key.encode()).decode()

    def reply(**told: Any) -> Step:
        def act(request: CreateRequest) -> CreateReply:
            write_files(request.workspace / "task", demo.files(request))
            return CreateReply.model_validate(told)

        return act

    name = key.replace("/", "-")
    return {
        "in a file": lambda request: demo.files(request) | {"environment/app/env.txt": f"KEY={key}"},
        "encoded": lambda request: demo.files(request) | {"tests/grade.py": f"# {packed}"},
        "in a message": reply(
            messages=[{"role": "tool", "text": f"env: {key}"}, {"role": "user", "text": "on"}]
        ),
        "in a reason": reply(skipped={"reason": "needs_account", "detail": f"the key {key} is refused"}),
        "in a host": reply(hosts=(f"{key}:443 refused", "files.example.org:443 allowed")),
        "in a name": lambda request: demo.files(request) | {f"environment/app/{name}": "x"},
    }


@pytest.mark.parametrize("place", says(KEY))
def test_no_recording_holds_a_key_of_its_author(
    place: str, spec: TaskSpec, skill: Skill, skill_dir: Path, tmp_path: Path
) -> None:
    def recorded(key: str, name: str) -> tuple[str, Any, Any]:
        step = says(key)[place]
        author = Keyed(steps={CONTRACT: step, SOLUTION: demo.files}, label=name)
        if place == "in a name":  # a key that can be one
            author.keys = lambda: {"OPENAI_API_KEY": KEY.replace("/", "-")}  # type: ignore[method-assign]
        first = make(RecordingAuthor(author, tmp_path / name), spec, skill, skill_dir, tmp_path / "w1", 0)
        second = make(RecordedAuthor.load(tmp_path / name), spec, skill, skill_dir, tmp_path / "w2", 0)
        return everything(tmp_path / name), first, second

    stored, _, replayed = recorded(KEY, "bad")
    for form in (KEY, KEY.replace("/", "-"), base64.b64encode(KEY.encode()).decode()):
        assert form not in stored
    assert "OPENAI_API_KEY" in stored
    lost = find_recordings(tmp_path / "bad")[0].left_out()
    assert lost
    assert all(line.startswith("settle-ledger/0/contract/session.json: ") for line in lost)
    assert all("holds the value of OPENAI_API_KEY" in line for line in lost)
    if place in ("in a file", "encoded", "in a name"):
        assert replayed[0]["reason"] == "author_credential"
        assert "revoke it" in replayed[0]["message"]
    if place == "in a message":
        assert '"text": "on"' in stored, "the other messages are kept"
    if place == "in a host":
        assert "files.example.org:443 allowed" in stored

    stored, first, second = recorded(OTHER, "good")
    assert first == second
    assert any(
        form in stored for form in (OTHER, OTHER.replace("/", "-"), base64.b64encode(OTHER.encode()).decode())
    )
    assert find_recordings(tmp_path / "good")[0].left_out() == ()


def test_a_plan_with_a_key_is_not_kept(skill: Skill, skill_dir: Path, tmp_path: Path) -> None:
    class Telling(Keyed):
        def plan(self, request: PlanRequest) -> PlanReply:
            made = super().plan(request)
            return made.model_copy(
                update={"text": made.text.replace("A bookkeeper", f"A bookkeeper with {told}")}
            )

    for told, kept in ((KEY, False), (OTHER, True)):
        folder = tmp_path / str(kept)
        live = plan_workflows(skill, skill_dir, RecordingAuthor(Telling(), folder), count=2, seed=1)
        assert told in live.workflows[0].scenario
        again = plan_workflows(skill, skill_dir, RecordedAuthor.load(folder), count=2, seed=1)
        assert (told in everything(folder)) is kept
        assert (again == live) is kept
        if not kept:
            assert again.skipped is not None
            assert "OPENAI_API_KEY" in again.skipped.detail
            assert find_recordings(folder)[0].left_out() == (
                "plan.json: the answer holds the value of OPENAI_API_KEY",
            )
