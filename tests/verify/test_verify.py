"""The whole sequence on a sound task, and one bad example for every reason that a gate can give."""

import dataclasses
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.records import GateOutcome, Reason, VerdictStatus
from skill2env.sandbox.identity import current_identity
from skill2env.verify.gate import GateContext, Level
from skill2env.verify.rules import Profile
from skill2env.verify.verify import GATES, check_contract, check_solution, solution_feedback, verify

pytestmark = pytest.mark.sandbox

Make = Callable[..., Path]


def test_sound_task_passes_every_gate(runnable_task: Make, context: GateContext) -> None:
    verdict = verify(runnable_task(), profile=Profile.OURS, context=context)
    assert verdict.status is VerdictStatus.ACCEPTED, verdict.message
    assert [gate.gate for gate in verdict.gates] == [gate.name for gate in GATES]
    lacking = {"twins", "alternatives"}  # there is no other task, and no other solution
    assert {gate.outcome for gate in verdict.gates if gate.gate not in lacking} == {GateOutcome.PASSED}
    assert verdict.findings == ()


def test_evidence_digests_repeat(runnable_task: Make, context: GateContext, tmp_path: Path) -> None:
    task = runnable_task()
    again = dataclasses.replace(context, evidence=tmp_path / "elsewhere")
    first, second = (verify(task, profile=Profile.OURS, context=where) for where in (context, again))
    assert [gate.evidence_digest() for gate in first.gates] == [
        gate.evidence_digest() for gate in second.gates
    ]
    assert (context.evidence / "oracle" / "trial" / "result.json").is_file()


def test_paper_level_runs_two_gates_on_what_may_be_touched(runnable_task: Make, context: GateContext) -> None:
    verdict = verify(runnable_task(), profile=Profile.OURS, context=context, level=Level.PAPER)
    assert [gate.gate for gate in verdict.gates] == ["files", "nop", "oracle"]
    assert verdict.status is VerdictStatus.ACCEPTED
    assert not verdict.findings


def _pipe(task: Path) -> None:
    (task / "instruction.md").unlink()
    os.mkfifo(task / "instruction.md")


def _way_out(task: Path) -> None:
    shutil.rmtree(task / "tests")
    (task / "tests").symlink_to(Path(__file__).parent)


@pytest.mark.parametrize("level", [Level.PAPER, Level.STANDARD])
@pytest.mark.parametrize("change", [_pipe, _way_out])
def test_what_may_not_be_touched_is_never_run(
    make_task: Make, context: GateContext, change: Callable[[Path], None], level: Level
) -> None:
    """A pipe would hold up whoever opens it; a link would bring files of this machine into a container."""
    task = make_task(metadata=False)
    change(task)
    for everything in (False, True):
        verdict = verify(task, profile=Profile.FOREIGN, context=context, level=level, all_gates=everything)
        assert (verdict.status, verdict.reason) == (VerdictStatus.REJECTED, Reason.UNSAFE_FILE) or (
            verdict.reason is Reason.MALFORMED and level is Level.STANDARD
        ), verdict.message
        assert sum(gate.trials for gate in verdict.gates) == 0
        ran = {gate.gate for gate in verdict.gates if gate.outcome is not GateOutcome.NOT_RUN}
        assert not ran & {"lint", "build", "nop", "oracle"}


def test_paper_level_keeps_other_files_to_the_others(runnable_task: Make, context: GateContext) -> None:
    task = runnable_task(changes={"tests/rubric.md": None, "environment/.env": "x"})
    (task / "solution/again.sh").symlink_to("solve.sh")
    verdict = verify(task, profile=Profile.OURS, context=context, level=Level.PAPER)
    assert verdict.status is VerdictStatus.ACCEPTED, verdict.message


def _replace(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return change


ZERO = '{"sum": 0, "largest": 0, "reward": 0}'
ONE = '{"sum": 1, "largest": 1, "reward": 1}'

BAD_FILES: Mapping[str, tuple[Reason, str, dict[str, object]]] = {
    "no rubric file": (Reason.MALFORMED, "files", {"changes": {"tests/rubric.md": None}}),
    "empty instruction": (Reason.MALFORMED, "files", {"changes": {"instruction.md": " \n"}}),
    "instruction in Latin-1": (Reason.MALFORMED, "files", {"changes": {"instruction.md": b"caf\xe9"}}),
    "hidden text": (Reason.HIDDEN_TEXT, "files", {"changes": {"instruction.md": "Write\u200b it down.\n"}}),
    "leftover": (Reason.UNSAFE_FILE, "files", {"changes": {"tests/.DS_Store": "x"}}),
    "name with a line break": (Reason.UNSAFE_FILE, "files", {"changes": {"environment/a\nb": "x"}}),
    "large file": (Reason.TOO_LARGE, "files", {"changes": {"environment/big.bin": b"x" * (16 * 2**20 + 1)}}),
    "broken task.toml": (Reason.MALFORMED, "config", {"changes": {"task.toml": "= nonsense"}}),
    "open network": (
        Reason.CONFIG_RULE,
        "config",
        {"config": _replace('[agent]\nnetwork_mode = "no-network"', '[agent]\nnetwork_mode = "public"')},
    ),
    "shared verifier": (
        Reason.CONFIG_RULE,
        "config",
        {"config": _replace('environment_mode = "separate"', 'environment_mode = "shared"')},
    ),
    "host variable": (
        Reason.CONFIG_RULE,
        "config",
        {"config": lambda text: text + '\n[verifier.env]\nKEY = "${SECRET_KEY}"\n'},
    ),
    "Windows line ends": (
        Reason.SHELL_SYNTAX,
        "shell",
        {"changes": {"tests/test.sh": "#!/bin/bash\r\ntrue\r\n"}},
    ),
    "open quote": (
        Reason.SHELL_SYNTAX,
        "shell",
        {"changes": {"solution/solve.sh": "#!/bin/bash\necho 'x\n"}},
    ),
    "two sections": (Reason.RUBRIC_INVALID, "rubric", {"changes": {"tests/rubric.md": "## Must-do\n- x\n"}}),
    "other instruction": (
        Reason.METRIC_UNSOURCED,
        "metrics",
        {"changes": {"instruction.md": "Count the crates.\n"}},
    ),
    "no metric map": (Reason.METRIC_UNSOURCED, "metrics", {"metadata": False}),
    "no pin": (Reason.DOCKERFILE_RULE, "dockerfile", {"reference": "debian-bookworm"}),
    "self-made lint switch": (
        Reason.LINT,
        "lint",
        {
            "config": _replace(
                "[metadata.skill2env]",
                '[metadata.harbor.lint]\nignore = ["unknown-config-field"]\n\n[unheard_of]\nx = 1\n\n'
                "[metadata.skill2env]",
            ),
        },
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_file_is_rejected(case: str, make_task: Make, context: GateContext) -> None:
    reason, gate, settings = BAD_FILES[case]
    verdict = verify(make_task(**settings), profile=Profile.OURS, context=context)
    assert (verdict.status, verdict.reason) == (VerdictStatus.REJECTED, reason), verdict.message
    assert verdict.message.startswith(f"{gate}: ")
    rejecting = next(item for item in verdict.gates if item.gate == gate)
    assert all(finding.mend for finding in rejecting.findings)
    assert (context.evidence / rejecting.evidence / "result.json").is_file()


BAD_TRIALS: Mapping[str, tuple[Reason, str, Callable[[ModuleType], dict[str, str]]]] = {
    "failing RUN": (
        Reason.BUILD_FAILED,
        "build",
        lambda b: {"environment/Dockerfile": b.DOCKERFILE + "RUN echo no such thing >&2 && exit 3\n"},
    ),
    "verifier in the image": (
        Reason.PRIVATE_LEAK,
        "leak",
        lambda b: {
            "environment/Dockerfile": b.DOCKERFILE + "COPY check.py /app/check.py\n",
            "environment/check.py": b.GRADE,
        },
    ),
    "Nop earns": (Reason.NOP_REWARDED, "nop", lambda b: {"tests/test.sh": b.rewarding(ONE, "1")}),
    "Nop earns in text only": (
        Reason.REWARD_DISAGREES,
        "nop",
        lambda b: {"tests/test.sh": b.rewarding(ZERO, "1")},
    ),
    "unhealthy": (Reason.NOP_FAILED, "nop", lambda b: {}),
    "no reward": (Reason.REWARD_INVALID, "nop", lambda b: {"tests/test.sh": b.rewarding(None)}),
    "reward without total": (
        Reason.REWARD_DISAGREES,
        "nop",
        lambda b: {"tests/test.sh": b.rewarding('{"sum": 0, "largest": 0}', "0")},
    ),
    "other metrics than declared": (
        Reason.REWARD_DISAGREES,
        "nop",
        lambda b: {"tests/test.sh": b.rewarding('{"sum": 0, "smallest": 0, "reward": 0}', "0")},
    ),
    "verifier sleeps": (Reason.VERIFIER_HUNG, "nop", lambda b: {"tests/test.sh": "#!/bin/bash\nsleep 60\n"}),
    "solution exits 7": (
        Reason.ORACLE_ERROR,
        "oracle",
        lambda b: {"solution/solve.sh": b.SOLVE_SH + "echo almost; exit 7\n"},
    ),
    "solution sleeps after its work": (
        Reason.ORACLE_ERROR,
        "oracle",
        lambda b: {"solution/solve.sh": b.SOLVE_SH + "sleep 60\n"},
    ),
    "solution misses a metric": (
        Reason.ORACLE_FAILED,
        "oracle",
        lambda b: {"solution/solve.sh": b.SOLVE_SH + "echo 0 > /app/out/max.txt\n"},
    ),
    "verdict depends on the mode": (
        Reason.UNSTABLE,
        "agreement",
        lambda b: {"tests/test.sh": b.TEST_SH.replace("exec", "[ -d /solution ] && exit 0\nexec")},
    ),
}


@pytest.mark.parametrize("case", BAD_TRIALS)
def test_bad_behaviour_is_rejected(
    case: str, builder: ModuleType, runnable_task: Make, base: object, context: GateContext
) -> None:
    reason, gate, changes = BAD_TRIALS[case]
    if gate == "agreement" and not current_identity().several_users:
        pytest.skip("the other verifier mode needs several user ids")
    changed = {
        path: text.format(reference=base.reference) if path == "environment/Dockerfile" else text  # type: ignore[attr-defined]
        for path, text in changes(builder).items()
    }

    def config(text: str) -> str:
        text = text.replace("timeout_sec = 900.0", "timeout_sec = 4.0").replace(
            "timeout_sec = 120.0", "timeout_sec = 4.0"
        )
        if case == "unhealthy":
            text += '\n[environment.healthcheck]\ncommand = "false"\ninterval_sec = 0.1\nretries = 1\n'
        return text

    verdict = verify(runnable_task(changes=changed, config=config), profile=Profile.OURS, context=context)
    assert (verdict.status, verdict.reason) == (VerdictStatus.REJECTED, reason), verdict.message
    assert verdict.message.startswith(f"{gate}: ")


def test_base_that_differs_from_its_pin(runnable_task: Make, base: object, context: GateContext) -> None:
    other = base.reference.rpartition(":")[0] + ":" + "b" * 64  # type: ignore[attr-defined]
    verdict = verify(runnable_task(reference=other), profile=Profile.OURS, context=context)
    assert verdict.reason is Reason.PIN_MISMATCH


def test_missing_solution_folder(runnable_task: Make, context: GateContext) -> None:
    task = runnable_task(changes={"solution/solve.sh": None})
    verdict = verify(task, profile=Profile.FOREIGN, context=context)
    assert verdict.reason is Reason.ORACLE_ERROR


def test_all_gates_go_on_after_a_rejection(runnable_task: Make, context: GateContext) -> None:
    task = runnable_task(
        changes={"tests/rubric.md": "## Must-do\n- x\n", "solution/solve.sh": "#!/bin/bash\nexit 1\n"}
    )
    verdict = verify(task, profile=Profile.OURS, context=context, all_gates=True)
    outcomes = {gate.gate: gate.outcome for gate in verdict.gates}
    assert verdict.reason is Reason.RUBRIC_INVALID
    assert outcomes["oracle"] is GateOutcome.REJECTED
    assert outcomes["agreement"] is GateOutcome.NOT_RUN


def test_contract_before_the_seal_and_solution_after(
    builder: ModuleType, runnable_task: Make, context: GateContext
) -> None:
    task = runnable_task(metadata=False, changes={"solution/solve.sh": None})
    before = check_contract(task, builder.CONTRACT, context)
    assert before.status is VerdictStatus.ACCEPTED, before.message
    assert [gate.gate for gate in before.gates][-1] == "nop"
    (task / "solution").mkdir()
    (task / "solution" / "solve.sh").write_text(builder.SOLVE_SH)
    after = check_solution(task, builder.CONTRACT, context)
    assert after.status is VerdictStatus.ACCEPTED, after.message
    assert solution_feedback(after, context) == ""


def test_feedback_of_a_failing_solution(
    builder: ModuleType, runnable_task: Make, context: GateContext
) -> None:
    task = runnable_task(
        metadata=False,
        changes={
            "solution/solve.sh": "#!/bin/bash\necho tried\n",
            "tests/test.sh": builder.TEST_SH.replace("exec", "echo looking at the delivery\nexec"),
        },
    )
    verdict = check_solution(task, builder.CONTRACT, context)
    assert verdict.reason is Reason.ORACLE_FAILED
    feedback = solution_feedback(verdict, context)
    assert "tried" in feedback
    assert "looking at the delivery" in feedback


def test_single_user_id_is_part_of_the_evidence(runnable_task: Make, context: GateContext) -> None:
    if current_identity().several_users:
        pytest.skip("this user has several ids; scripts/ci_users.sh runs this as one who has not")
    verdict = verify(runnable_task(), profile=Profile.OURS, context=context)
    assert verdict.status is VerdictStatus.ACCEPTED, verdict.message
    values = {gate.gate: gate.values for gate in verdict.gates}
    assert values["nop"]["degraded"] == "single-uid"
    assert "mode-shared" not in values["agreement"]


def test_memory_that_a_verifier_eats_is_its_own_fault(runnable_task: Make, context: GateContext) -> None:
    hungry = "#!/bin/bash\nexec /usr/bin/python3 -c 'x = b\"x\" * (3 * 2**30); print(len(x))'\n"
    task = runnable_task(
        changes={"tests/test.sh": hungry},
        config=lambda text: text.replace("memory_mb = 1024", "memory_mb = 128"),
    )
    verdict = verify(task, profile=Profile.OURS, context=context)
    assert verdict.status is VerdictStatus.REJECTED, verdict.message
    assert verdict.reason in (Reason.REWARD_INVALID, Reason.NOP_FAILED)
