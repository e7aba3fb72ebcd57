"""What a reason means and how to mend it, for people and for programs.

Reasons that gates give take their advice from the rules table, so the two cannot drift apart.
"""

import difflib
from collections.abc import Mapping
from enum import StrEnum

from skill2env.errors import Boundary, UserError
from skill2env.records import Reason, Record, SkipReason, meaning
from skill2env.verify.rules import RULES

_REASONS: Mapping[Reason, str] = {
    Reason.CONTRACT_INVALID: "Write contract.json exactly as the schema in the contract prompt says.",
    Reason.FREEZE_BROKEN: "Let the solution session write below solution/ only; everything else is sealed.",
    Reason.SOLUTION_EXHAUSTED: "Read the verifier's output of the last round in the evidence: when the instruction does"
    " not say what is graded, compile again with another seed, else allow more rounds.",
    Reason.TAKEN_DOWN: "Nothing to mend: the owner does not want it. `skill2env dataset show` lists the take-downs.",
    Reason.DUPLICATE: "Nothing to mend: the dataset holds this task. Another seed or workflow gives another one.",
}

_SKIPS: Mapping[SkipReason, str] = {
    SkipReason.NEEDS_ACCOUNT: "Choose a workflow on local files, or add recorded answers of the service to the skill.",
    SkipReason.NEEDS_NETWORK: "Choose a workflow without live services, or add fixtures of what they answer.",
    SkipReason.NEEDS_HARDWARE: "Nothing to mend on this kind of machine.",
    SkipReason.NEEDS_GUI: "Choose a workflow whose result is a file.",
    SkipReason.NEEDS_HUMAN: "Choose a workflow that ends before somebody has to approve.",
    SkipReason.NEEDS_ROOT_AGENT: "Choose a workflow that an unprivileged user can finish and whose result is files.",
    SkipReason.UNSAFE: "Read the skill before you use it anywhere; it was not compiled on purpose.",
    SkipReason.PURE_KNOWLEDGE: "Give the skill a method whose result can be checked.",
    SkipReason.TOO_THIN: "Write down steps, inputs, outputs and what good work looks like.",
    SkipReason.LICENCE: "Add a licence file that allows derived works, or change the licence policy of the run.",
    SkipReason.NO_CODE: "Use an author with a model or recordings (`--author`), or add code with tests to the skill.",
    SkipReason.CODE_NOT_ALIVE: "Pin the skill's dependencies and mend its own tests, or use another author.",
    SkipReason.NO_STABLE_BEHAVIOUR: "Make the code's output independent of time, chance and set order.",
    SkipReason.NO_FAULT_FOUND: "Add tests or examples that reach more of the code, or use another author.",
    SkipReason.NO_RECORDING: "Record a session with `skill2env record`, or use another author.",
    SkipReason.UNREADABLE: "Give SKILL.md to the user who compiles, as a regular file inside the skill's folder.",
    SkipReason.AUTHOR_GAVE_UP: "Read the session's messages in the run folder; try another model or seed.",
    SkipReason.TOO_EXPENSIVE: "Raise `--max-usd-per-task`, or choose a cheaper model; the session is in the ledger.",
}

_BOUNDARIES: Mapping[Boundary, str] = {
    Boundary.SANDBOX: "Run `skill2env doctor`: it names the command that mends the machine. Or use --sandbox docker.",
    Boundary.BUILD: "Run again alone on the machine; if it stays, read the build log in the evidence.",
    Boundary.NETWORK: "Check that package mirror and registries can be reached, then run again.",
    Boundary.PROVIDER: "Check the model's key, quota and endpoint, then run again: finished calls are kept.",
    Boundary.AUTHOR: "Read the session's log in the run folder, then run again.",
    Boundary.HARBOR: "Run again; if it stays, report the message together with `skill2env doctor`.",
    Boundary.STORAGE: "Make room or choose a folder you may write to, then run again; finished work is kept.",
}

_KINDS: Mapping[type[StrEnum], str] = {
    Reason: "rejection",
    SkipReason: "skip",
    Boundary: "infrastructure",
}


class Explanation(Record):
    """One word of the tables at the end of a run."""

    name: str
    kind: str
    """``rejection``, ``skip`` or ``infrastructure``."""
    meaning: str
    mend: tuple[str, ...]
    """What to do, one sentence each, most general first."""
    findings: tuple[str, ...] = ()
    """Codes of the findings that lead to this rejection."""


def names() -> tuple[str, ...]:
    """Everything that can be explained, in the order of the enums."""
    return tuple(member.value for enum in _KINDS for member in enum)


def explain(name: str) -> Explanation:
    """Explain a reason, a skip reason, a boundary or the code of a finding.

    Raises:
        UserError: there is no such word; the hint names the nearest ones.
    """
    wanted = name.strip().lower()
    for enum in _KINDS:
        for member in enum:
            if member.value == wanted.replace("-", "_"):
                return _explanation(member)
    for rule in RULES:
        if rule.code == wanted or (wanted.partition(":")[0] == rule.code and ":" in wanted):
            whole = _explanation(rule.reason)
            return whole.model_copy(update={"mend": (rule.mend,), "findings": (wanted,)})
    known = (*names(), *(rule.code for rule in RULES))
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "`skill2env explain` lists everything"
    raise UserError(f"nothing is called {name!r}", hint=hint)


def _explanation(member: StrEnum) -> Explanation:
    advice: dict[str, None] = {}
    codes: list[str] = []
    match member:
        case Reason():
            if member in _REASONS:
                advice[_REASONS[member]] = None
            for rule in RULES:
                if rule.reason is member:
                    advice[rule.mend] = None
                    codes.append(rule.code)
        case SkipReason():
            advice[_SKIPS[member]] = None
        case Boundary():
            advice[_BOUNDARIES[member]] = None
        case _:  # pragma: no cover - `_KINDS` names the three enums above
            raise TypeError(type(member).__name__)
    return Explanation(
        name=member.value,
        kind=_KINDS[type(member)],
        meaning=meaning(member),
        mend=tuple(advice),
        findings=tuple(codes),
    )
