import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skill2env.authors import demo
from skill2env.authors.protocol import (
    Allowance,
    AllowanceSpent,
    CreateReply,
    CreateRequest,
    Limit,
    Refusal,
)
from skill2env.authors.scripted import Files, ScriptedAuthor, Step, write_files
from skill2env.authors.workspace import DEFAULT_LIMITS
from skill2env.config import SolutionMode
from skill2env.create import CreateRejected, FolderCache, Grounded, create, freeze_digest
from skill2env.create.fakes import FAKE_REFERENCE, FakeHost, rejecting
from skill2env.create.freeze import scan
from skill2env.errors import Boundary, BudgetReached, InfraError, UserError
from skill2env.records import (
    Candidate,
    Finding,
    GateOutcome,
    GateResult,
    Phase,
    Reason,
    Severity,
    Skill,
    Skipped,
    SkipReason,
    StagedAsset,
    TaskContract,
    TaskSpec,
    Usage,
    Verdict,
    VerdictStatus,
)

CONTRACT, SOLUTION, REPAIR = (Phase.CONTRACT, 0), (Phase.SOLUTION, 0), (Phase.REPAIR, 1)


@pytest.fixture
def make(
    spec: TaskSpec, skill: Skill, skill_dir: Path, bench: FakeHost, tmp_path: Path
) -> Callable[..., Any]:
    """Run the stage with some steps of the demo replaced."""

    def run(steps: dict[tuple[Phase, int], Step] | None = None, **options: Any) -> Any:
        played: dict[tuple[Phase, int], Step] = {CONTRACT: demo.files, SOLUTION: demo.files} | (steps or {})
        author = options.pop("author", None) or ScriptedAuthor(steps=played, usage=Usage(input_tokens=3))
        host = options.pop("host", None) or bench.host()
        return create(spec, skill, skill_dir, author, host, **{"work_dir": tmp_path / "work"} | options)

    return run


def contract_files(request: CreateRequest, **changes: str | bytes | None) -> Files:
    return demo.files(request) | changes


def with_files(changes: dict[str, Any]) -> Step:
    return lambda request: {
        path: data for path, data in (demo.files(request) | changes).items() if data is not None
    }


# ---------------------------------------------------------------------------------------------- the good way


def test_candidate(make: Callable[..., Any], bench: FakeHost, spec: TaskSpec) -> None:
    made = make()
    assert isinstance(made, Candidate)
    assert set(scan(made.path)) == {
        "instruction.md",
        "task.toml",
        "environment/Dockerfile",
        "environment/app/in/ledger.csv",
        "tests/test.sh",
        "tests/grade.py",
        "tests/ledger.csv",
        "tests/rubric.md",
        "solution/solve.sh",
    }
    assert (made.path / "environment/Dockerfile").read_text() == demo.DOCKERFILE.replace(
        "debian-bookworm", FAKE_REFERENCE
    )
    assert made.base_image == "debian-bookworm@sha256:" + "ab" * 32
    assert made.contract.title == "Settle the monthly ledger"
    assert freeze_digest(made.path) == made.freeze_digest
    ((task, digest, files),) = bench.seals
    assert (task, digest) == (spec.task_name, made.freeze_digest)
    assert set(files) == set(scan(made.path)) - {"solution/solve.sh"}
    assert [name for name, _ in bench.seen] == ["contract", "solution"]
    assert "solution/solve.sh" not in bench.seen[0][1]
    assert [(note.phase, note.round, note.usage.input_tokens, note.cached) for note in bench.notes] == [
        (Phase.CONTRACT, 0, 3, False),
        (Phase.SOLUTION, 0, 3, False),
    ]


def test_same_inputs_same_bytes(make: Callable[..., Any], tmp_path: Path) -> None:
    first, second = make(work_dir=tmp_path / "a"), make(work_dir=tmp_path / "b")
    assert scan(first.path) == scan(second.path)
    assert first.freeze_digest == second.freeze_digest


def test_workspaces(make: Callable[..., Any]) -> None:
    seen: dict[str, set[str]] = {}

    def look(request: CreateRequest) -> Files:
        seen[request.phase] = set(scan(request.workspace))
        assert (request.workspace / "source/scripts/add.py").read_text() == "print(1)\n"
        (request.workspace / "source/SKILL.md").write_text("changed")  # ignored
        return demo.files(request)

    assert isinstance(make({CONTRACT: look, SOLUTION: look}), Candidate)
    source = {"source/SKILL.md", "source/scripts/add.py"}
    assert seen["contract"] == source
    assert seen["solution"] - source == {
        "task/instruction.md",
        "task/environment/Dockerfile",
        "task/environment/app/in/ledger.csv",
        "task/tests/test.sh",
        "task/tests/grade.py",
        "task/tests/ledger.csv",
        "task/tests/rubric.md",
    }


def test_a_solution_written_in_the_contract_session_is_left_behind(make: Callable[..., Any]) -> None:
    extra = {"solution/solve.sh": "early", "task.toml": "x", "NOTES.md": "n", "tests/__pycache__/g.pyc": b"1"}
    made = make({CONTRACT: with_files(extra)})
    assert (made.path / "solution/solve.sh").read_text() == demo.SOLVE
    assert 'title = "Settle' in (made.path / "task.toml").read_text()
    assert not (made.path / "NOTES.md").exists()
    assert not (made.path / "tests/__pycache__").exists()


# ---------------------------------------------------------------------------------------------- the freeze

TAMPER: dict[str, Callable[[Path], Any]] = {
    "changed tests/test.sh": lambda task: (task / "tests/test.sh").write_text("exit 0"),
    "changed tests/rubric.md": lambda task: (task / "tests/rubric.md").write_text("# easier"),
    "changed environment/Dockerfile": lambda task: (task / "environment/Dockerfile").write_text("FROM x"),
    "changed instruction.md": lambda task: (task / "instruction.md").write_text("Do nothing."),
    "changed tests/grade.py": lambda task: (task / "tests/grade.py").chmod(0o755),
    "deleted tests/ledger.csv": lambda task: (task / "tests/ledger.csv").unlink(),
    "added task.toml": lambda task: (task / "task.toml").write_text("[agent]\nuser = 'root'\n"),
    "added tests/conftest.py": lambda task: (task / "tests/conftest.py").write_text("x"),
    "added environment/answer.csv": lambda task: (task / "environment/answer.csv").write_text("x"),
    "added contract.json": lambda task: (task / "contract.json").write_text("{}"),
    "deleted instruction.md": lambda task: (task / "instruction.md").rename(task / "solution/instruction.md"),
    "refused tests/link": lambda task: (task / "tests/link").symlink_to("/etc/passwd"),
    "refused tests/pipe": lambda task: os.mkfifo(task / "tests/pipe"),
    "deleted tests/rubric.md": lambda task: (
        (task / "tests/rubric.md").unlink(),
        (task / "tests/rubric.md").symlink_to("../instruction.md"),
    ),
}


@pytest.mark.parametrize("line", TAMPER)
@pytest.mark.parametrize("phase", [SOLUTION, REPAIR])
def test_a_session_that_touches_the_contract(
    make: Callable[..., Any], bench: FakeHost, line: str, phase: tuple[Phase, int]
) -> None:
    def tamper(request: CreateRequest) -> Files:
        TAMPER[line](request.workspace / "task")
        return demo.files(request)

    bench.solution_verdicts = [rejecting(Reason.ORACLE_FAILED)] if phase is REPAIR else []
    result = make({phase: tamper})
    assert isinstance(result, CreateRejected)
    assert result.reason is Reason.FREEZE_BROKEN
    assert any(line in detail for detail in result.details)
    assert result.path is not None
    assert freeze_digest(result.path) == result.freeze_digest == bench.seals[0][1]
    assert len(bench.seen) == (2 if phase is REPAIR else 1), "no check runs on what a broken freeze left"


def test_whole_task_folder_replaced(make: Callable[..., Any]) -> None:
    def swap(request: CreateRequest) -> CreateReply:
        task = request.workspace / "task"
        task.rename(request.workspace / "elsewhere")
        task.symlink_to("/etc")
        return CreateReply()

    assert make({SOLUTION: swap}).reason is Reason.FREEZE_BROKEN
    assert make({CONTRACT: swap}).reason is Reason.UNSAFE_FILE


def test_blind_hides_tests_rubric_and_verifier_output(make: Callable[..., Any], bench: FakeHost) -> None:
    seen: list[tuple[set[str], str, bool, str]] = []

    def look(request: CreateRequest) -> Files:
        files = set(scan(request.workspace / "task"))
        seen.append((files, request.feedback, request.informed, request.prompt))
        return demo.files(request)

    bench.solution_verdicts = [rejecting(Reason.ORACLE_FAILED)]
    made = make({SOLUTION: look, REPAIR: look}, solution=SolutionMode.BLIND)
    assert isinstance(made, Candidate)
    assert made.repairs == 1
    for files, _, informed, prompt in seen:
        assert not any(path.startswith("tests/") for path in files)
        assert not informed
        assert "hidden on purpose" in prompt
    assert seen[1][1] == "x is 0 (blind)"
    assert "solution/solve.sh" in seen[1][0]
    assert (made.path / "tests/rubric.md").is_file()


def test_blind_session_that_writes_tests_breaks_the_freeze(make: Callable[..., Any]) -> None:
    result = make({SOLUTION: with_files({"tests/test.sh": "exit 0"})}, solution=SolutionMode.BLIND)
    assert result.reason is Reason.FREEZE_BROKEN
    assert "added tests/test.sh" in result.details


def test_checks_that_write_into_the_task_change_nothing(make: Callable[..., Any], bench: FakeHost) -> None:
    def sloppy(path: Path, _: object) -> Verdict:
        (path / "tests/leftover").write_text("x")
        (path / "tests/test.sh").write_text("x")
        return Verdict(status=VerdictStatus.ACCEPTED)

    made = make(host=replace(bench.host(), check_solution=sloppy))
    assert freeze_digest(made.path) == made.freeze_digest


# ---------------------------------------------------------------------------------------------- repairs


def test_repair_rounds(make: Callable[..., Any], bench: FakeHost) -> None:
    requests: list[CreateRequest] = []

    def mend(request: CreateRequest) -> Files:
        requests.append(request)
        assert (request.workspace / "feedback/verifier.txt").read_text() == request.feedback
        assert (request.workspace / "task/solution/solve.sh").is_file()
        return {"solution/solve.sh": f"# round {request.round}\n"}

    bench.solution_verdicts = [
        rejecting(Reason.ORACLE_FAILED, "totals = 0.5", totals=0.5),
        rejecting(Reason.ORACLE_ERROR),
    ]
    made = make({REPAIR: mend, (Phase.REPAIR, 2): mend})
    assert isinstance(made, Candidate)
    assert made.repairs == 2
    assert (made.path / "solution/solve.sh").read_text() == "# round 2\n"
    assert [request.round for request in requests] == [1, 2]
    assert '"totals": 0.5' in requests[0].prompt
    assert requests[0].feedback == "x is 0 (informed)"
    contract = [
        {path: d for path, d in files.items() if not path.startswith("solution/")} for _, files in bench.seen
    ]
    assert all(files == contract[0] for files in contract)


MEND = (Phase.CONTRACT, 1)


def test_a_contract_is_mended_before_the_seal(make: Callable[..., Any], bench: FakeHost) -> None:
    requests: list[CreateRequest] = []

    def mend(request: CreateRequest) -> Files:
        requests.append(request)
        task = request.workspace / "task"
        assert (task / "instruction.md").is_file()
        assert (task / "contract.json").is_file(), "what was handed in lies there as it was"
        return {"instruction.md": (task / "instruction.md").read_text() + "One more sentence.\n"}

    bench.contract_verdicts = [
        rejecting(Reason.NOP_REWARDED, "totals_right = 1 for nothing"),
        rejecting(Reason.LINT),
    ]
    made = make({MEND: mend, (Phase.CONTRACT, 2): mend})
    assert isinstance(made, Candidate)
    assert (made.path / "instruction.md").read_text().endswith("One more sentence.\nOne more sentence.\n")
    assert [request.round for request in requests] == [1, 2]
    assert "totals_right = 1 for nothing" in requests[0].prompt
    assert "round 2 of 2" in requests[1].prompt
    assert len(bench.seals) == 1


def test_a_broken_contract_json_is_mended(make: Callable[..., Any], bench: FakeHost) -> None:
    broken = with_files({"contract.json": "{"})
    made = make({CONTRACT: broken, MEND: demo.files})
    assert isinstance(made, Candidate)
    assert [name for name, _ in bench.seen] == ["contract", "solution"]


def test_mending_ends(make: Callable[..., Any], bench: FakeHost) -> None:
    bench.contract_verdicts = [rejecting(Reason.NOP_REWARDED, "first")] * 3
    steps = {MEND: demo.files, (Phase.CONTRACT, 2): demo.files}
    result = make(steps)
    assert (result.reason, result.message) == (Reason.NOP_REWARDED, "first")
    assert (result.path / "instruction.md").is_file()
    bench.contract_verdicts = [rejecting(Reason.NOP_REWARDED, "none")]
    assert make(steps, max_mends=0).message == "none"
    bench.contract_verdicts = [rejecting(Reason.NOP_REWARDED, "no such step")]
    assert make({}).message == "no such step", "an author that cannot mend is not asked"
    bench.contract_verdicts = [rejecting(Reason.NOP_REWARDED, "given up")]
    gone = Skipped(reason=SkipReason.AUTHOR_GAVE_UP, detail="cannot")
    assert make({MEND: gone}).message == "given up", "giving up keeps the rejection"


def test_a_task_that_costs_too_much_is_skipped(make: Callable[..., Any], bench: FakeHost) -> None:
    bench.allowances = [None, Allowance(0, Limit.TASK)]
    assert make({}).reason is SkipReason.TOO_EXPENSIVE

    def spend(request: CreateRequest) -> Files:
        assert request.allowance is not None
        raise AllowanceSpent("spent", usage=Usage(model="m", input_tokens=5, micro_dollars=70))

    bench.allowances = [Allowance(60, Limit.SESSION)]
    assert make({CONTRACT: spend}).reason is SkipReason.TOO_EXPENSIVE
    assert (bench.notes[-1].outcome, bench.notes[-1].usage.micro_dollars) == ("budget", 70)
    bench.allowances = [Allowance(60)]
    with pytest.raises(BudgetReached):
        make({CONTRACT: spend})


def test_what_was_set_aside_is_given_back(make: Callable[..., Any], bench: FakeHost) -> None:
    def stumble(_: CreateRequest) -> Files:
        raise UserError("the sandbox cannot take this agent")

    bench.allowances = [Allowance(60)]
    with pytest.raises(UserError):
        make({CONTRACT: stumble})
    assert len(bench.released) == 1
    assert not bench.notes


def test_a_paid_session_that_cannot_be_kept_is_paid_all_the_same(
    make: Callable[..., Any], bench: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise InfraError(Boundary.STORAGE, "no space left")

    monkeypatch.setattr(FolderCache, "put", full)
    with pytest.raises(InfraError):
        make({}, cache=FolderCache(Path("nowhere")))
    assert [(note.outcome, note.usage.input_tokens) for note in bench.notes] == [("storage", 3)]


def test_no_slip_no_second_chance(make: Callable[..., Any], bench: FakeHost) -> None:
    def link(request: CreateRequest) -> Files:
        (request.workspace / "task" / "escape").symlink_to("/etc/passwd")
        return demo.files(request)

    result = make({CONTRACT: link, MEND: demo.files})
    assert result.reason is Reason.UNSAFE_FILE


def test_a_repair_may_remove_a_file(make: Callable[..., Any], bench: FakeHost) -> None:
    bench.solution_verdicts = [rejecting(Reason.ORACLE_FAILED)]
    first = with_files({"solution/helper.py": "x"})
    made = make({SOLUTION: first, REPAIR: {"solution/helper.py": None}})
    assert not (made.path / "solution/helper.py").exists()


def test_exhausted(make: Callable[..., Any], bench: FakeHost) -> None:
    bench.solution_verdicts = [rejecting(Reason.ORACLE_FAILED, "low")] * 3
    result = make({REPAIR: demo.files, (Phase.REPAIR, 2): demo.files})
    assert result.reason is Reason.SOLUTION_EXHAUSTED
    assert result.repairs == 2
    assert "low" in result.message
    assert result.gates
    assert (result.path / "solution/solve.sh").is_file()


def test_no_rounds_and_no_repair_session(make: Callable[..., Any], bench: FakeHost) -> None:
    bench.solution_verdicts = [rejecting(Reason.ORACLE_FAILED)] * 2
    assert make(max_repairs=0).reason is Reason.SOLUTION_EXHAUSTED
    result = make()
    assert result.reason is Reason.SOLUTION_EXHAUSTED
    assert "no such session" in result.message


def test_missing_solution_is_repaired_without_an_oracle(make: Callable[..., Any], bench: FakeHost) -> None:
    made = make({SOLUTION: {"solution/README.md": "later"}, REPAIR: demo.files})
    assert isinstance(made, Candidate)
    assert made.repairs == 1
    assert [name for name, _ in bench.seen] == ["contract", "solution"]


def test_contract_faults_found_late_are_not_repaired(make: Callable[..., Any], bench: FakeHost) -> None:
    bench.solution_verdicts = [rejecting(Reason.BUILD_FAILED, "gone")]
    result = make({REPAIR: demo.files})
    assert (result.reason, result.repairs) == (Reason.BUILD_FAILED, 0)


def test_feedback_is_bounded(make: Callable[..., Any], bench: FakeHost) -> None:
    bench.feedback = "a" * 100_000
    bench.solution_verdicts = [rejecting(Reason.ORACLE_FAILED)]
    sizes: list[int] = []

    def measure(request: CreateRequest) -> Files:
        sizes.append(len(request.feedback))
        return demo.files(request)

    make({REPAIR: measure})
    assert sizes[0] < 17_000


# ---------------------------------------------------------------------------------------------- bad contracts


def fifo(request: CreateRequest) -> CreateReply:
    os.mkfifo(request.workspace / "task/pipe")
    return CreateReply()


def link(request: CreateRequest) -> Files:
    (request.workspace / "task/tests").mkdir()
    (request.workspace / "task/tests/secret").symlink_to("/etc/shadow")
    return demo.files(request)


def setuid(request: CreateRequest) -> CreateReply:
    path = request.workspace / "task/instruction.md"
    path.write_text("x")
    path.chmod(0o4755)
    assert path.stat().st_mode & stat.S_ISUID
    return CreateReply()


def refused(_: CreateRequest) -> CreateReply:
    return CreateReply(
        refused=Refusal(reason=Reason.UNSAFE_FILE, path="../x", message="../x: leaves the folder")
    )


@pytest.mark.parametrize(
    ("step", "reason", "words"),
    [
        (fifo, Reason.UNSAFE_FILE, "FIFO"),
        (link, Reason.UNSAFE_FILE, "symbolic link"),
        (setuid, Reason.UNSAFE_FILE, "set-user-id"),
        (refused, Reason.UNSAFE_FILE, "leaves the folder"),
        (
            with_files({"environment/big": b"0" * (DEFAULT_LIMITS.max_file_bytes + 1)}),
            Reason.TOO_LARGE,
            "larger than",
        ),
        (with_files({f"environment/{n}": "" for n in range(2001)}), Reason.TOO_LARGE, "files and folders"),
        (with_files({"environment/Dockerfile": None}), Reason.MALFORMED, "Dockerfile is missing"),
        (with_files({"environment/Dockerfile": b"FROM \xff"}), Reason.DOCKERFILE_RULE, "UTF-8"),
        (with_files({"environment/Dockerfile": "FROM ubuntu:22.04\n"}), Reason.DOCKERFILE_RULE, "catalog"),
        (
            with_files({"environment/Dockerfile": f"FROM {FAKE_REFERENCE}\n"}),
            Reason.DOCKERFILE_RULE,
            "catalog",
        ),
        (with_files({"environment/Dockerfile": "RUN true\n"}), Reason.DOCKERFILE_RULE, "no FROM"),
        (with_files({"contract.json": None}), Reason.CONTRACT_INVALID, "missing"),
        (with_files({"contract.json": "[]"}), Reason.CONTRACT_INVALID, "contract.json"),
        (with_files({"contract.json": "{"}), Reason.CONTRACT_INVALID, "JSON"),
        (with_files({"contract.json": "{" * 100_000}), Reason.CONTRACT_INVALID, "JSON"),
        (with_files({"contract.json": '{"title": "Only a title"}'}), Reason.CONTRACT_INVALID, "metrics"),
        (with_files({"contract.json": " " * 300_000}), Reason.CONTRACT_INVALID, "larger than"),
    ],
)
def test_bad_contract_sessions(
    make: Callable[..., Any], bench: FakeHost, step: Step, reason: Reason, words: str
) -> None:
    result = make({CONTRACT: step})
    assert isinstance(result, CreateRejected)
    assert result.reason is reason
    assert words in result.message
    assert bench.seen == []
    assert bench.seals == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"artifacts": ["app/out"]}, "plain absolute path"),
        ({"artifacts": ["/app/../etc"]}, "plain absolute path"),
        ({"artifacts": ["/"]}, "plain absolute path"),
        ({"artifacts": ["/app/a\nb"]}, "plain absolute path"),
        ({"artifacts": ["/logs/verifier"]}, "below /logs"),
        ({"artifacts": []}, "artifacts"),
        ({"metrics": [{"name": "a", "sentence": "s"}] * 2}, "named twice"),
        (
            {"metrics": [{"name": "reward", "sentence": "s"}, {"name": "b", "sentence": "s"}]},
            "reward is the mean",
        ),
        (
            {"metrics": [{"name": "Not ok", "sentence": "s"}, {"name": "b", "sentence": "s"}]},
            "metrics.0.name",
        ),
        ({"limits": {"cpus": 999}}, "limits.cpus"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_bad_contract_json(make: Callable[..., Any], change: dict[str, Any], words: str) -> None:
    import json

    def step(request: CreateRequest) -> Files:
        contract = json.loads(str(demo.files(request)["contract.json"])) | change
        return contract_files(request, **{"contract.json": json.dumps(contract)})

    result = make({CONTRACT: step})
    assert result.reason is Reason.CONTRACT_INVALID
    assert words in result.message
    assert result.path is not None, "kept for a look"


def test_contract_that_harbor_refuses(make: Callable[..., Any], bench: FakeHost) -> None:
    def refuse(*_: object) -> str:
        raise UserError("task.toml cannot be written: bad keyword")

    assert make(host=replace(bench.host(), render_task_toml=refuse)).reason is Reason.CONTRACT_INVALID


def test_rejected_contract_is_never_repaired(make: Callable[..., Any], bench: FakeHost) -> None:
    bench.contract_verdicts = [rejecting(Reason.NOP_REWARDED, "nop earns 1")]
    result = make()
    assert (result.reason, result.message) == (Reason.NOP_REWARDED, "nop earns 1")
    assert bench.seals == []
    assert [note.phase for note in bench.notes] == [Phase.CONTRACT]


# ---------------------------------------------------------------------------------------------- skips, infra, resume


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ({CONTRACT: Skipped(reason=SkipReason.NEEDS_GUI)}, SkipReason.NEEDS_GUI),
        (
            {CONTRACT: {"skip.json": '{"reason": "needs_network", "detail": "live prices"}'}},
            SkipReason.NEEDS_NETWORK,
        ),
        ({CONTRACT: {"skip.json": "because"}}, SkipReason.AUTHOR_GAVE_UP),
        ({CONTRACT: {}}, SkipReason.AUTHOR_GAVE_UP),
        ({CONTRACT: {"notes.txt": "thinking"}}, SkipReason.AUTHOR_GAVE_UP),
        ({SOLUTION: Skipped(reason=SkipReason.NO_RECORDING)}, SkipReason.NO_RECORDING),
        ({SOLUTION: {"solution/skip.json": '{"reason": "author_gave_up"}'}}, SkipReason.AUTHOR_GAVE_UP),
    ],
)
def test_skips(make: Callable[..., Any], steps: dict[tuple[Phase, int], Step], reason: SkipReason) -> None:
    result = make(steps)
    assert isinstance(result, Skipped)
    assert result.reason is reason


def test_infra_is_never_a_verdict(make: Callable[..., Any], bench: FakeHost) -> None:
    lost = Verdict(status=VerdictStatus.INFRA, boundary="network", message="mirror is down")
    bench.contract_verdicts = [lost]
    with pytest.raises(InfraError, match="mirror is down") as caught:
        make()
    assert caught.value.boundary is Boundary.NETWORK
    bench.solution_verdicts = [lost]
    with pytest.raises(InfraError):
        make()


def test_failing_author_is_noted_and_not_cached(
    make: Callable[..., Any], bench: FakeHost, tmp_path: Path
) -> None:
    def fail(request: CreateRequest) -> CreateReply:
        raise InfraError(Boundary.PROVIDER, "overloaded")

    cache = FolderCache(tmp_path / "cache")
    with pytest.raises(InfraError):
        make({SOLUTION: fail}, cache=cache)
    assert [(note.phase, note.outcome) for note in bench.notes] == [
        (Phase.CONTRACT, "finished"),
        (Phase.SOLUTION, "provider"),
    ]
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_finished_sessions_are_never_repeated(
    make: Callable[..., Any], bench: FakeHost, tmp_path: Path
) -> None:
    """A kill after each step, then a clean run: every session was held exactly once, and the bytes are the same."""
    held: list[Phase] = []

    def count(request: CreateRequest) -> Files:
        held.append(request.phase)
        return demo.files(request)

    class Killed(BaseException):
        pass

    def kill(*_: object) -> Any:
        raise Killed

    steps: dict[tuple[Phase, int], Step] = {CONTRACT: count, SOLUTION: count}
    cache = FolderCache(tmp_path / "cache")
    for field in ("check_contract", "record_seal", "check_solution"):
        with pytest.raises(Killed):
            make(steps, cache=cache, host=replace(bench.host(), **{field: kill}))
    (tmp_path / "work/task/tests/test.sh").write_text("damaged by the kill")
    made = make(steps, cache=cache)
    assert held == [Phase.CONTRACT, Phase.SOLUTION]
    assert bench.notes[-1].cached
    assert scan(made.path) == scan(make(work_dir=tmp_path / "fresh").path)


def test_changed_input_is_a_new_session(make: Callable[..., Any], bench: FakeHost, tmp_path: Path) -> None:
    cache = FolderCache(tmp_path / "cache")
    make(cache=cache)
    make(cache=cache, solution=SolutionMode.BLIND)
    assert [(note.phase, note.cached) for note in bench.notes][2:] == [
        (Phase.CONTRACT, False),  # the mode is part of the key of every session of an attempt
        (Phase.SOLUTION, False),
    ]


def test_damaged_cache_entry_is_held_again(make: Callable[..., Any], bench: FakeHost, tmp_path: Path) -> None:
    cache = FolderCache(tmp_path / "cache")
    make(cache=cache)
    for entry in (tmp_path / "cache").iterdir():
        files = [path for path in entry.glob("files/**/*") if path.is_file()]
        files[0].write_text("rotten")
    made = make(cache=cache)
    assert isinstance(made, Candidate)
    assert not any(note.cached for note in bench.notes)
    make(cache=cache)
    assert all(note.cached for note in bench.notes[4:])


def test_refusals_are_cached_too(make: Callable[..., Any], bench: FakeHost, tmp_path: Path) -> None:
    cache = FolderCache(tmp_path / "cache")
    first, second = make({CONTRACT: link}, cache=cache), make({CONTRACT: link}, cache=cache)
    assert first == second
    assert [note.cached for note in bench.notes] == [False, True]


def test_budget_stops_before_a_paid_session_and_not_before_a_cached_one(
    make: Callable[..., Any], bench: FakeHost, tmp_path: Path
) -> None:
    def stop(phase: Phase) -> None:
        if phase is Phase.SOLUTION:
            raise BudgetReached("spent")

    bench.before, cache = stop, FolderCache(tmp_path / "cache")
    for _ in range(2):
        with pytest.raises(BudgetReached):
            make(cache=cache)
    assert bench.asked == [Phase.CONTRACT, Phase.SOLUTION, Phase.SOLUTION]


# ---------------------------------------------------------------------------------------------- public files


def asset(**changes: Any) -> dict[str, Any]:
    return {
        "what": "rates",
        "url": "https://example.org/rates.csv",
        "paths": ["environment/app/rates.csv"],
    } | changes


def with_assets(*assets: dict[str, Any]) -> Step:
    def step(request: CreateRequest) -> Files:
        files = dict(demo.files(request))
        told = json.loads(str(files["contract.json"])) | {"assets": list(assets)}
        return files | {"contract.json": json.dumps(told)}

    return step


def test_public_files_are_staged_before_the_checks_and_sealed(
    make: Callable[..., Any], bench: FakeHost
) -> None:
    gate = GateResult(gate="assets", outcome=GateOutcome.PASSED, values={"asset-0": "sha256:aa"})

    def ground(task: Path, contract: TaskContract) -> Grounded:
        (named,) = contract.assets
        (task / named.paths[0]).write_text("1\n")
        staged = StagedAsset(asset=named, sha256="sha256:aa", size=2, address=named.url, licence="MIT")
        return Grounded(Verdict(status=VerdictStatus.ACCEPTED, gates=(gate,)), (staged,))

    made = make({CONTRACT: with_assets(asset())}, host=replace(bench.host(), ground=ground))
    assert isinstance(made, Candidate)
    assert "environment/app/rates.csv" in bench.seen[0][1]
    assert "environment/app/rates.csv" in bench.seals[0][2]
    assert [item.licence for item in made.assets] == ["MIT"]
    assert made.grounding == gate


def test_a_public_file_that_cannot_be_had_goes_back_to_the_author(
    make: Callable[..., Any], bench: FakeHost
) -> None:
    finding = Finding(
        code="asset-missing", severity=Severity.ERROR, message="answers 404", mend="Use the fallback."
    )
    gate = GateResult(gate="assets", outcome=GateOutcome.REJECTED, findings=(finding,))
    missing = Verdict(
        status=VerdictStatus.REJECTED,
        reason=Reason.ASSET_UNAVAILABLE,
        message="assets: answers 404",
        gates=(gate,),
    )
    verdicts = [missing, Verdict(status=VerdictStatus.ACCEPTED)]
    prompts: list[str] = []

    def mend(request: CreateRequest) -> Files:
        prompts.append(request.prompt)
        return demo.files(request)

    host = replace(bench.host(), ground=lambda task, contract: Grounded(verdicts.pop(0)))
    made = make({CONTRACT: with_assets(asset()), MEND: mend}, host=host)
    assert isinstance(made, Candidate)
    assert "answers 404" in prompts[0]
    assert "Use the fallback." in prompts[0]
    assert [name for name, _ in bench.seen] == ["contract", "solution"], "nothing was built for the first one"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"paths": ["../x"]}, "no path below"),
        ({"paths": ["/etc/passwd"]}, "no path below"),
        ({"paths": ["solution/x"]}, "no path below"),
        ({"paths": ["environment/"]}, "no path below"),
        ({"paths": ["environment/Dockerfile"]}, "the place of another file"),
        ({"paths": ["environment/a", "environment/a"]}, "the place of another file"),
        ({"url": ""}, "paths and no url"),
        ({"sha256": "beef"}, "assets.0.sha256"),
        ({"size": 3}, "assets.0.size"),
    ],
)
def test_places_of_public_files_are_checked(
    make: Callable[..., Any], changes: dict[str, Any], words: str
) -> None:
    result = make({CONTRACT: with_assets(asset(**changes))})
    assert result.reason is Reason.CONTRACT_INVALID
    assert words in result.message


def test_hosts_that_sessions_asked_for_are_kept(
    make: Callable[..., Any], bench: FakeHost, tmp_path: Path
) -> None:
    def online(request: CreateRequest) -> CreateReply:
        write_files(request.workspace / "task", demo.files(request))
        return CreateReply(hosts=("files.example.org:443 allowed", "evil.example:80 refused"))

    steps: dict[tuple[Phase, int], Step] = {CONTRACT: online}
    cache = FolderCache(tmp_path / "cache")
    for _ in range(2):
        made = make(steps, cache=cache)
        assert made.hosts == ("files.example.org:443",), "also from the cache"
    assert [note.hosts for note in bench.notes if note.phase is Phase.CONTRACT] == [
        ("files.example.org:443 allowed", "evil.example:80 refused")
    ] * 2
