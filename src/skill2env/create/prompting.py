"""The prompts of the create phases, filled in."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from skill2env.authors.workspace import CollectLimits
from skill2env.axes import AXIS_NAMES, TURNS, axis_meaning
from skill2env.create.outcome import CreateRejected
from skill2env.prompts import prompt_digest, render
from skill2env.records import Severity, TaskContract, TaskSpec, Verdict, digest_of, meaning

MAX_FEEDBACK_CHARS = 16_000


@cache
def create_prompt_digest() -> str:
    """Digest of the prompts that made a candidate."""
    return digest_of({name: prompt_digest(name) for name in ("contract", "mend", "solution", "repair")})


def contract_prompt(spec: TaskSpec, bases: Mapping[str, str], limits: CollectLimits) -> str:
    """Prompt of the contract session."""
    return render("contract", **_assignment(spec), bases=bases, limits=limits)


def mend_prompt(spec: TaskSpec, stop: CreateRejected, *, rounds: tuple[int, int]) -> str:
    """Prompt of mending session number ``rounds[0]`` of ``rounds[1]``, for a contract that the checks turned away."""
    findings = [
        {"where": item.where, "message": item.message, "mend": item.mend}
        for gate in stop.gates
        for item in gate.findings
        if item.severity is not Severity.INFO
    ]
    feedback = {
        "reason": stop.reason.value,
        "meaning": meaning(stop.reason),
        "message": bounded(stop.message),
        "findings": findings[:50],
        "details": list(stop.details),
    }
    return render("mend", **_assignment(spec), round=rounds[0], max_rounds=rounds[1], feedback=feedback)


def _assignment(spec: TaskSpec) -> dict[str, Any]:
    values = spec.axes.model_dump()
    low, high = TURNS.get(spec.axes.complexity, (0, 0))
    return {
        "spec": spec,
        "axes": [(axis, values[axis], axis_meaning(axis, values[axis])) for axis in AXIS_NAMES],
        "turns": f"{low} to {high}" if high else spec.axes.complexity,
    }


def solution_prompt(contract: TaskContract, *, informed: bool) -> str:
    """Prompt of the solution session."""
    return render("solution", contract=contract, informed=informed)


def repair_prompt(
    contract: TaskContract, verdict: Verdict, *, informed: bool, rounds: tuple[int, int]
) -> str:
    """Prompt of repair session number ``rounds[0]`` of ``rounds[1]``."""
    return render(
        "repair",
        contract=contract,
        informed=informed,
        round=rounds[0],
        max_repairs=rounds[1],
        feedback={"verdict": verdict.message, "metrics": _metrics(verdict)},
    )


def bounded(text: str) -> str:
    """`text`, or its beginning and its end when it is longer than `MAX_FEEDBACK_CHARS`: errors stand at either."""
    if len(text) <= MAX_FEEDBACK_CHARS:
        return text
    half = MAX_FEEDBACK_CHARS // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def _metrics(verdict: Verdict) -> dict[str, float]:
    """Metric values of the last gate that has any."""
    for gate in reversed(verdict.gates):
        found = {name: value for name, value in gate.values.items() if isinstance(value, float)}
        if found:
            return found
    return {}
