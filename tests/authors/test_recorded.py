"""Recordings come from strangers: damaged, hostile and stale ones."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skill2env.authors.record import RecordingAuthor
from skill2env.authors.recorded import RecordedAuthor
from skill2env.authors.recording import find_recordings
from skill2env.authors.scripted import ScriptedAuthor
from skill2env.authors.workspace import DEFAULT_LIMITS
from skill2env.create import CreateRejected, create
from skill2env.create.fakes import FakeHost
from skill2env.errors import UserError
from skill2env.plan import plan_workflows
from skill2env.records import Candidate, Reason, Skill, Skipped, SkipReason, TaskSpec


@pytest.fixture
def recordings(spec: TaskSpec, skill: Skill, skill_dir: Path, tmp_path: Path) -> Path:
    """One good recording in ``rec/closing``."""
    author = RecordingAuthor(ScriptedAuthor(), tmp_path / "rec")
    plan_workflows(skill, skill_dir, author, count=1, seed=1)
    create(spec, skill, skill_dir, author, FakeHost().host(), work_dir=tmp_path / "w0")
    return tmp_path / "rec"


@pytest.fixture
def replay(
    recordings: Path, spec: TaskSpec, skill: Skill, skill_dir: Path, tmp_path: Path
) -> Callable[..., Any]:
    def run(**changes: Any) -> Any:
        author = RecordedAuthor.load(recordings, accept_stale=changes.pop("accept_stale", False))
        changed = skill.model_copy(update=changes)
        work = tmp_path / "work" / "deep"
        return create(spec, changed, skill_dir, author, FakeHost().host(), work_dir=work)

    return run


def session(recordings: Path, phase: str) -> Path:
    return recordings / "closing/settle-ledger/0" / phase


def edit(path: Path, **changes: Any) -> None:
    data = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(data | changes))


def everything(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


# ---------------------------------------------------------------------------------------------- hostile files

HOSTILE: dict[str, tuple[str, Callable[[Path], Any], Reason]] = {
    "link out": ("contract", lambda f: (f / "tests/key").symlink_to("/etc/passwd"), Reason.UNSAFE_FILE),
    "link to a folder out": (
        "contract",
        lambda f: (f / "environment/etc").symlink_to("/etc"),
        Reason.UNSAFE_FILE,
    ),
    "link inside": (
        "solution",
        lambda f: (f / "solution/again.sh").symlink_to("solve.sh"),
        Reason.UNSAFE_FILE,
    ),
    "FIFO": ("contract", lambda f: os.mkfifo(f / "tests/pipe"), Reason.UNSAFE_FILE),
    "set-user-id": ("solution", lambda f: (f / "solution/solve.sh").chmod(0o4755), Reason.UNSAFE_FILE),
    "newline in a name": ("contract", lambda f: (f / "tests/a\nb").write_text("x"), Reason.UNSAFE_FILE),
    "name that is not UTF-8": (
        "contract",
        lambda f: (f / os.fsdecode(b"tests/\xff")).write_text("x"),
        Reason.UNSAFE_FILE,
    ),
    "file too large": (
        "contract",
        lambda f: (f / "environment/big").write_bytes(b"0" * (DEFAULT_LIMITS.max_file_bytes + 1)),
        Reason.TOO_LARGE,
    ),
    "sparse terabyte": (
        "contract",
        lambda f: os.truncate(f / "environment/Dockerfile", 2**40),
        Reason.TOO_LARGE,
    ),
    "too many files": (
        "contract",
        lambda f: [(f / f"environment/{n}").write_text("") for n in range(DEFAULT_LIMITS.max_files)],
        Reason.TOO_LARGE,
    ),
    "too deep": ("contract", lambda f: (f / "/".join(["d"] * 20)).mkdir(parents=True), Reason.TOO_LARGE),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name: str, recordings: Path, replay: Callable[..., Any], tmp_path: Path) -> None:
    phase, attack, reason = HOSTILE[name]
    attack(session(recordings, phase) / "files")
    before = everything(tmp_path)
    result = replay()
    assert isinstance(result, CreateRejected)
    assert result.reason is reason
    made = {
        path
        for path in everything(tmp_path) - before
        if "/work/deep" not in path and not path.endswith("/work")
    }
    assert not made, "nothing is written outside of the work folder"


@pytest.mark.parametrize(
    "path", ["../../../../escaped", "/etc/hostname", "a\0b", "tests/../../x", "a\\b", ""]
)
def test_hostile_deletions(path: str, recordings: Path, replay: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "escaped").write_text("still here")
    edit(session(recordings, "solution") / "session.json", deleted=[path])
    result = replay()
    assert result.reason is Reason.UNSAFE_FILE
    assert result.message.isprintable()
    assert (tmp_path / "escaped").read_text() == "still here"


@pytest.mark.parametrize("part", ["settle-ledger", "settle-ledger/0", "settle-ledger/0/contract"])
def test_linked_folders_are_not_followed(
    part: str, recordings: Path, replay: Callable[..., Any], tmp_path: Path
) -> None:
    real = recordings / "closing" / part
    real.rename(tmp_path / "elsewhere")
    real.symlink_to(tmp_path / "elsewhere")
    result = replay()
    assert isinstance(result, Skipped)
    assert result.reason is SkipReason.NO_RECORDING


def test_linked_files_folder_is_an_empty_session(recordings: Path, replay: Callable[..., Any]) -> None:
    real = session(recordings, "contract") / "files"
    real.rename(real.parent / "real")
    real.symlink_to("real")
    assert replay().reason is SkipReason.AUTHOR_GAVE_UP


TAMPER = {
    "tests/test.sh": "exit 0",
    "tests/rubric.md": "# easier",
    "environment/Dockerfile": "FROM scratch",
    "instruction.md": "Do nothing.",
    "task.toml": "[agent]\nuser = 'root'\n",
    "tests/conftest.py": "x",
    "solution.py": "outside",
    "contract.json": "{}",
}


@pytest.mark.parametrize("path", TAMPER)
def test_recorded_solution_that_touches_the_contract(
    path: str, recordings: Path, replay: Callable[..., Any]
) -> None:
    target = session(recordings, "solution") / "files" / path
    target.parent.mkdir(exist_ok=True)
    target.write_text(TAMPER[path])
    result = replay()
    assert isinstance(result, CreateRejected)
    assert result.reason is Reason.FREEZE_BROKEN
    assert path in result.message


def test_recorded_solution_that_puts_a_file_where_a_folder_was(
    recordings: Path, replay: Callable[..., Any]
) -> None:
    (session(recordings, "solution") / "files/tests").write_text("a file")
    result = replay()
    assert result.reason is Reason.FREEZE_BROKEN
    assert "added tests" in result.details
    assert "deleted tests/test.sh" in result.details


def test_recorded_deletion_of_a_sealed_folder(recordings: Path, replay: Callable[..., Any]) -> None:
    edit(session(recordings, "solution") / "session.json", deleted=["tests"])
    assert replay().reason is Reason.FREEZE_BROKEN


# ---------------------------------------------------------------------------------------------- damaged, missing, stale


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"usage": 3}', '{"deleted": "x"}', '{"extra": 1}', "\ud800", "[" * 100_000],
)
def test_damaged_session(content: str, recordings: Path, replay: Callable[..., Any]) -> None:
    (session(recordings, "contract") / "session.json").write_bytes(content.encode("utf-8", "surrogatepass"))
    result = replay()
    assert isinstance(result, Skipped)
    assert result.reason is SkipReason.NO_RECORDING
    assert "session.json" in result.detail


def test_session_without_json_is_enough(recordings: Path, replay: Callable[..., Any]) -> None:
    """Recordings written by hand need only the files."""
    (session(recordings, "contract") / "session.json").unlink()
    assert isinstance(replay(), Candidate)


def test_missing_sessions(recordings: Path, replay: Callable[..., Any]) -> None:
    session(recordings, "solution").rename(session(recordings, "repair-1"))
    result = replay()
    assert (result.reason, "solution" in result.detail) == (SkipReason.NO_RECORDING, True)


def test_unlisted_task(recordings: Path, replay: Callable[..., Any]) -> None:
    edit(recordings / "closing/recording.json", tasks=[])
    result = replay()
    assert result.reason is SkipReason.NO_RECORDING
    assert "does not list settle-ledger/0" in result.detail


def test_stale(replay: Callable[..., Any]) -> None:
    changed = "sha256:" + "cd" * 32
    result = replay(digest=changed)
    assert result.reason is SkipReason.NO_RECORDING
    assert "cdcdcdcdcdcd" in result.detail
    assert "--accept-stale" in result.detail
    assert isinstance(replay(digest=changed, accept_stale=True), Candidate)


def test_unknown_skill(replay: Callable[..., Any]) -> None:
    result = replay(digest="sha256:" + "cd" * 32, slug="other", accept_stale=True)
    assert result.detail == "no recording of other (there are: closing)"


@pytest.mark.parametrize("content", ["", "{}[]", '{"workflows": {}}', '{"skipped": {"reason": "no"}}'])
def test_damaged_plan(content: str, recordings: Path, skill: Skill, skill_dir: Path) -> None:
    (recordings / "closing/plan.json").write_text(content)
    plan = plan_workflows(skill, skill_dir, RecordedAuthor.load(recordings), seed=1)
    assert plan.skipped is not None
    assert plan.skipped.reason is SkipReason.NO_RECORDING


def test_plan_by_hand_and_no_plan(recordings: Path, skill: Skill, skill_dir: Path) -> None:
    path = recordings / "closing/plan.json"
    workflows = json.loads(json.loads(path.read_text())["text"])
    path.write_text(json.dumps({"workflows": workflows}))
    plan = plan_workflows(skill, skill_dir, RecordedAuthor.load(recordings), seed=1)
    assert [workflow.name for workflow in plan.workflows] == ["settle-ledger"]
    path.unlink()
    plan = plan_workflows(skill, skill_dir, RecordedAuthor.load(recordings), seed=1)
    assert plan.skipped is not None
    assert "no plan.json" in plan.skipped.detail


@pytest.mark.parametrize(
    "changes",
    [
        {"schema_version": 2},
        {"skill": {"name": "x", "slug": "../x", "digest": "sha256:" + "0" * 64}},
        {"skill": {"name": "x", "slug": "x", "digest": "md5:1"}},
        {"tasks": [{"workflow": "../../etc", "variant": 0, "axes": {}}]},
        {"tasks": [{"workflow": "a\0b", "variant": 0, "axes": {}}]},
        {"tasks": [{"workflow": "a", "variant": -1, "axes": {}}]},
        {"unknown": 1},
    ],
)
def test_damaged_index_names_the_folder(changes: dict[str, Any], recordings: Path) -> None:
    edit(recordings / "closing/recording.json", **changes)
    with pytest.raises(UserError, match=r"damaged recording .*closing"):
        RecordedAuthor.load(recordings)


def test_index_that_is_a_link_is_none(recordings: Path, tmp_path: Path) -> None:
    index = recordings / "closing/recording.json"
    index.rename(tmp_path / "index.json")
    index.symlink_to(tmp_path / "index.json")
    assert find_recordings(recordings) == ()


def test_folder_of_one_recording_and_links_between_recordings(recordings: Path) -> None:
    assert len(find_recordings(recordings / "closing")) == 1
    (recordings / "alias").symlink_to("closing")
    (recordings / "notes").mkdir()
    assert len(find_recordings(recordings)) == 1


def test_same_skill_twice(recordings: Path) -> None:
    shutil.copytree(recordings / "closing", recordings / "copy")
    with pytest.raises(UserError, match="same skill"):
        find_recordings(recordings)


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        RecordedAuthor.load(tmp_path / "nowhere")
