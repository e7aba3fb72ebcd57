"""The gates in order, and what they say together."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from skill2env.errors import InfraError
from skill2env.records import GateOutcome, GateResult, TaskContract, Verdict, VerdictStatus
from skill2env.store.files import write_json
from skill2env.verify import (
    agreement,
    alternatives,
    answers,
    build,
    cheats,
    config,
    dockerfile,
    files,
    form,
    leak,
    lint,
    metrics,
    mutants,
    nop,
    oracle,
    pin,
    repeat,
    rubric,
    shell,
    surroundings,
    twins,
    undeclared,
)
from skill2env.verify.gate import Gate, GateContext, Level, Stage, Subject, to_result
from skill2env.verify.rules import Profile
from skill2env.verify.static import fetches, given, hosts, injection, secrets
from skill2env.verify.support import unsupported

_CONTRACT = frozenset({Stage.CONTRACT, Stage.TASK})
_SOLUTION = frozenset({Stage.SOLUTION, Stage.TASK})
_TASK = frozenset({Stage.TASK})
_ALWAYS = frozenset(Level)

GATES: tuple[Gate, ...] = (
    Gate("files", files.check, _CONTRACT, _ALWAYS),
    Gate("config", config.check, _CONTRACT),
    Gate("shell", shell.check),
    Gate("rubric", rubric.check, _CONTRACT),
    Gate("metrics", metrics.check, _CONTRACT),
    Gate("dockerfile", dockerfile.check, _CONTRACT),
    Gate("secrets", secrets.check, _CONTRACT),
    Gate("injection", injection.check, _CONTRACT),
    Gate("fetches", fetches.check),
    Gate("given", given.check, _SOLUTION),
    Gate("hosts", hosts.check),
    Gate("lint", lint.check, _CONTRACT),
    Gate("build", build.check, _CONTRACT),
    Gate("pin", pin.check, _CONTRACT),
    Gate("leak", leak.check, _CONTRACT),
    Gate("nop", nop.check, _CONTRACT, _ALWAYS),
    Gate("oracle", oracle.check, _SOLUTION, _ALWAYS),
    Gate("agreement", agreement.check, _TASK),
    Gate("undeclared", undeclared.check, _TASK),
    Gate("answers", answers.check, _TASK),
    Gate("cheats", cheats.check, _TASK),
    Gate("mutants", mutants.check, _TASK),
    Gate("repeat", repeat.check, _TASK),
    Gate("format", form.check, _TASK),
    Gate("alternatives", alternatives.check, _TASK),
    Gate("surroundings", surroundings.check, _TASK),
    Gate("twins", twins.check, _TASK),
)
"""Cheapest first. None of them involves a model. Robustness probes join at the end."""

_RESULT_FILE = "result.json"
_PAUSE_SEC = 0.5


def verify(
    task_dir: Path,
    *,
    profile: Profile,
    context: GateContext,
    level: Level = Level.STANDARD,
    contract: TaskContract | None = None,
    all_gates: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Verdict:
    """Run the gates on a whole task.

    Args:
        task_dir: a task directory, of any quality.
        profile: how strictly findings are read.
        context: where trials run and evidence is kept.
        level: how much is checked.
        contract: what the contract session said; None reads ``[metadata.skill2env]``.
        all_gates: go on after a rejection, to see everything at once. Gates that need what failed are not run.
        progress: called with each gate's name before it runs.

    Returns:
        Accepted, rejected for the first rejecting gate's reason, or infra. Never raises for a bad task.
    """
    subject = Subject(task_dir, profile, Stage.TASK, contract)
    context = replace(context, level=level, every=all_gates)
    refused = unsupported(subject, context)
    if refused is not None:
        return _verdict([refused])
    return _run(subject, context, level=level, all_gates=all_gates, progress=progress)


def check_contract(candidate_dir: Path, contract: TaskContract, context: GateContext) -> Verdict:
    """Judge a candidate before its seal: everything that needs no solution, up to Nop.

    Args:
        candidate_dir: environment/, tests/, instruction.md, and the host's task.toml without ``[metadata]``.
        contract: the parsed contract.json.
        context: where trials run and evidence is kept.
    """
    return _run(Subject(candidate_dir, Profile.OURS, Stage.CONTRACT, contract), context)


def check_solution(candidate_dir: Path, contract: TaskContract, context: GateContext) -> Verdict:
    """Judge the reference solution of a sealed candidate: its scripts, and one Oracle.

    The verifier's output, for repairs, lies in the evidence below ``oracle/trial/verifier/test-stdout.txt``; see
    `solution_feedback`.
    """
    return _run(Subject(candidate_dir, Profile.OURS, Stage.SOLUTION, contract), context)


def solution_feedback(verdict: Verdict, context: GateContext) -> str:
    """What a repair session is told after `check_solution`: the finding, and the ends of both outputs.

    Returns:
        Plain text; empty when the verdict is accepted.
    """
    from skill2env.harbor.outcome import read_tail

    if verdict.status is VerdictStatus.ACCEPTED:
        return ""
    trial = context.evidence / oracle.NAME / "trial"
    parts = [verdict.message]
    for title, place in (
        ("solve.sh printed", "agent/oracle.txt"),
        ("test.sh printed", "verifier/test-stdout.txt"),
    ):
        text = read_tail(trial / place, 16 * 1024).strip()
        if text:
            parts.append(f"{title}:\n{text}")
    return "\n\n".join(part for part in parts if part)


def _run(
    subject: Subject,
    context: GateContext,
    *,
    level: Level = Level.STANDARD,
    all_gates: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Verdict:
    results: list[GateResult] = []
    ended = ""
    for gate in GATES:
        if subject.stage not in gate.stages or level not in gate.levels:
            continue
        if ended and (not all_gates or _is_moot(gate, results)):
            results.append(
                GateResult(gate=gate.name, outcome=GateOutcome.NOT_RUN, message=f"gate {ended} ended it")
            )
            continue
        if progress is not None:
            progress(gate.name)
        result = _judge(gate, subject, context)
        results.append(result)
        if result.outcome in (GateOutcome.REJECTED, GateOutcome.INFRA):
            ended = ended or gate.name
            if result.outcome is GateOutcome.INFRA:
                all_gates = False
    return _verdict(results)


def _is_moot(gate: Gate, results: Sequence[GateResult]) -> bool:
    """Whether a gate would only repeat what an earlier one said, or touch what nobody should."""
    rejected = {result.gate for result in results if result.outcome is GateOutcome.REJECTED}
    needs = {
        "lint": {"config"},
        "build": {"config"},
        "pin": {"build"},
        "leak": {"build"},
        "nop": {"config", "build"},
        "oracle": {"config", "build"},
        "agreement": {"config", "build", "oracle"},
        "undeclared": {"config", "build", "oracle"},
        "answers": {"config", "build", "oracle"},
        "cheats": {"config", "build", "oracle"},
        "mutants": {"config", "build", "oracle"},
        "repeat": {"config", "build", "oracle"},
        "format": {"config", "build", "oracle"},
        "alternatives": {"config", "build", "oracle"},
        "surroundings": {"config", "build", "oracle"},
    }
    unsafe = any(f.code in files.UNSAFE for result in results for f in result.findings)
    return bool(needs.get(gate.name, set()) & rejected) or (unsafe and gate.name in needs)


def _judge(gate: Gate, subject: Subject, context: GateContext) -> GateResult:
    begun, trials, trial_seconds = time.monotonic(), subject.trials, subject.trial_seconds
    shutil.rmtree(context.evidence / gate.name, ignore_errors=True)
    failure: InfraError | None = None
    for attempt in range(context.infra_retries + 1):
        if attempt:
            time.sleep(_PAUSE_SEC * attempt)
        try:
            result = to_result(gate.name, gate.run(subject, context), subject.profile)
            break
        except InfraError as error:
            failure = error
            if not error.transient:
                result = _infra(gate.name, error)
                break
    else:
        assert failure is not None
        result = _infra(gate.name, failure)
    cost = {
        "seconds": round(time.monotonic() - begun, 3),
        "trials": subject.trials - trials,
        "trial_seconds": round(subject.trial_seconds - trial_seconds, 3),
    }
    return _keep(result.model_copy(update=cost), context)


def _infra(gate: str, error: InfraError) -> GateResult:
    message = f"{error.message}. {error.hint}" if error.hint else error.message
    return GateResult(
        gate=gate, outcome=GateOutcome.INFRA, message=message, values={"boundary": error.boundary.value}
    )


def _keep(result: GateResult, context: GateContext) -> GateResult:
    """Write the result beside its logs, when there is anything to keep."""
    folder = context.evidence / result.gate
    if not folder.is_dir() and not result.findings and result.outcome is GateOutcome.PASSED:
        return result
    folder.mkdir(parents=True, exist_ok=True)
    kept = result.model_copy(update={"evidence": result.gate})
    write_json(folder / _RESULT_FILE, kept.model_dump(mode="json"))
    return kept


def _verdict(results: Sequence[GateResult]) -> Verdict:
    gates = tuple(results)
    for result in results:
        if result.outcome is GateOutcome.REJECTED:
            message = f"{result.gate}: {result.message}"
            return Verdict(status=VerdictStatus.REJECTED, reason=result.reason, message=message, gates=gates)
    for result in results:
        if result.outcome is GateOutcome.INFRA:
            return Verdict(
                status=VerdictStatus.INFRA,
                boundary=str(result.values.get("boundary", "")),
                message=f"{result.gate}: {result.message}",
                gates=gates,
            )
    return Verdict(status=VerdictStatus.ACCEPTED, gates=gates)
