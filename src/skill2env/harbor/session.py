"""What an authoring trial reports about its agent: cost, how it ended, whose failure it was, what was said."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from harbor.models.trial.error_policy import ERROR_POLICIES

from skill2env.harbor.outcome import TrialOutcome, TrialPhase, read_head

_READ_LIMIT = 64 * 2**20
_MESSAGE_CHARS = 100_000
_HOSTS = 1000
_MACHINE = frozenset(
    {
        "EnvironmentStartTimeoutError",
        "SandboxBuildFailedError",
        "AgentSetupTimeoutError",
        "HealthcheckError",
        "SandboxLikelyOutOfMemoryError",
        "SSHAccessError",
        "RuntimeRequestError",
    }
)
"""Harbor's names for failures of the machine below an agent."""
_PROVIDER_ENDS = frozenset(
    {
        "AgentAuthenticationError",
        "ModelNotFoundError",
        "ApiProviderResourceNotFoundError",
        "AuthenticationError",
        "PermissionDeniedError",
        "NotFoundError",
        "UnsupportedModelParametersError",
        "BadRequestError",
        "UnsupportedParamsError",
        "BudgetExceededError",
    }
)
"""A provider's failures that trying again does not mend."""
_LAYER = frozenset({"IndexError", "APIResponseValidationError"})
"""What model libraries raise on replies without choices; Harbor takes it for an honest zero."""
_TOO_LONG = frozenset({"OutputTokenExceededError", "ContextWindowExceededError"})
"""A model that writes on until it is cut off, again and again, or talks itself out of what it can read."""
_DECLINED = frozenset({"AgentSafetyRefusalError", "ContentPolicyViolationError"})


@dataclass(frozen=True, slots=True)
class Failed:
    """Whose failure ended a session."""

    whose: str
    """``provider``, ``machine``, ``time``, ``declined``, ``length``, ``window`` or ``agent``."""
    message: str
    transient: bool
    """Whether trying again can help."""
    graded: bool = True
    """What it had left may be graded. False where the agent's own program broke, which Harbor grades all the same."""


@dataclass(frozen=True, slots=True)
class AgentReport:
    """What Harbor recorded about the agent of one trial."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    """As the agent says; None when it knows no price, and 0 from some that know none either."""
    turns: int = 0
    estimated: bool = False
    """Some of the tokens were estimated: no counts were given, or replies broke off."""
    tool_calls: int = 0
    """Of the trajectory, when the agent writes one."""
    stop: str = ""
    """Why the built-in agent ended; empty for others."""
    summary: str = ""
    failed: Failed | None = None
    messages: tuple[tuple[str, str], ...] = field(default=())
    """(role, text) of the trajectory, when the agent writes one."""
    hosts: tuple[str, ...] = ()
    """``HOST:PORT VERDICT`` of what the sandbox asked for through the proxy, sorted."""


def read_report(outcome: TrialOutcome) -> AgentReport:
    """Read the agent's side of a trial; what is missing or malformed counts as nothing."""
    result = _table(_json(outcome.folder / "result.json"))
    told = _table(result.get("agent_result"))
    metadata = _table(told.get("metadata"))
    steps = _steps(_table(_json(outcome.folder / "agent" / "trajectory.json")))
    turns = metadata.get("turns", metadata.get("n_episodes"))
    return AgentReport(
        input_tokens=_count(told.get("n_input_tokens")),
        output_tokens=_count(told.get("n_output_tokens")),
        cached_tokens=_count(told.get("n_cache_tokens")),
        cost_usd=_cost(told.get("cost_usd")),
        turns=_count(turns) or sum(step.get("source") == "agent" for step in steps),
        estimated=bool(metadata.get("tokens_estimated")),
        tool_calls=sum(len(cast("list[Any]", step.get("tool_calls") or [])) for step in steps),
        stop=str(metadata.get("stop") or ""),
        summary=str(metadata.get("summary") or ""),
        failed=_failed(outcome, metadata),
        messages=tuple(_messages(steps)),
        hosts=hosts_seen(outcome.folder),
    )


def hosts_seen(folder: Path) -> tuple[str, ...]:
    """``HOST:PORT VERDICT`` of everything that the proxy of a trial was asked for; sorted, at most a thousand."""
    found: set[str] = set()
    for log in sorted(folder.glob("network-*.jsonl")):
        for line in (read_head(log, _READ_LIMIT) or b"").decode("utf-8", "replace").splitlines():
            entry = _table(_parsed(line))
            if entry.get("host") and len(found) < _HOSTS:
                found.add(f"{entry['host']}:{entry.get('port', 0)} {entry.get('verdict', '')}")
    return tuple(sorted(found))


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None


def usage_so_far(trials_dir: Path) -> tuple[tuple[int, int, int], float | None]:
    """(input, output, cached) tokens and cost of the one trial below a folder, as its trajectory says; else zeros.

    For trials that ended without a result: trajectories are written with every turn.
    """
    for path in sorted(trials_dir.glob("*/agent/trajectory.json")):
        totals = _table(_table(_json(path)).get("final_metrics"))
        names = ("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens")
        given, written, cached = (_count(totals.get(name)) for name in names)
        return (given, written, cached), _cost(totals.get("total_cost_usd"))
    return (0, 0, 0), None


def artifact_failed(outcome: TrialOutcome, source: str) -> bool:
    """Whether Harbor could not fetch an artifact, which it notes and otherwise keeps to itself."""
    entries = _json(outcome.artifacts / "manifest.json")
    listed = cast("list[Any]", entries) if isinstance(entries, list) else []
    return any(
        _table(entry).get("source") == source and _table(entry).get("status") == "failed" for entry in listed
    )


def _failed(outcome: TrialOutcome, metadata: dict[str, Any]) -> Failed | None:
    failure = outcome.failure
    if failure is None or failure.phase in {TrialPhase.VERIFIER, TrialPhase.TEARDOWN}:
        return None
    told = f"{failure.type}: {failure.message}"[:1000]
    if failure.phase in {TrialPhase.CREATE, TrialPhase.ENVIRONMENT} or failure.type in _MACHINE:
        return Failed("machine", told, transient=failure.phase is not TrialPhase.CREATE)
    if failure.type in _DECLINED:
        return Failed("declined", told, transient=False)
    if failure.timed_out and failure.type == "AgentTimeoutError":
        # A request that nobody had answered yet: the provider hung, and the author may have been all right.
        if _provider_hung(metadata, outcome.seconds.get("agent", 0.0)):
            return Failed("provider", f"a request was never answered; {told}", transient=True)
        return Failed("time", told, transient=False)
    if failure.type in _PROVIDER_ENDS:
        return Failed("provider", told, transient=False)
    if failure.type in _TOO_LONG:
        # The very first request: nothing that any author could do about it.
        unread = failure.type == "ContextWindowExceededError" and metadata.get("turns") == 0
        return Failed("window" if unread else "length", told, transient=False)
    policy = ERROR_POLICIES.get(failure.type)
    if failure.type in _LAYER or (policy is not None and policy.should_retry and not policy.has_valid_reward):
        return Failed("provider", told, transient=True)
    return Failed("agent", told, transient=False, graded=policy is not None and policy.has_valid_reward)


def _provider_hung(metadata: dict[str, Any], seconds: float) -> bool:
    """Whether a time limit met an endpoint that did not answer, and not an author who was still at work.

    A request is nearly always open when the time is over. It counts when it had been open for half of the session or
    for a minute, or when the agent was waiting to send one again.
    """
    requests = _table(metadata.get("requests"))
    if requests:
        waited = _cost(requests.get("open_sec")) or 0.0
        return bool(requests.get("pausing")) or waited >= min(60.0, max(0.5, seconds / 2))
    times = metadata.get("api_request_times_msec")
    episodes = metadata.get("n_episodes")
    return isinstance(times, list) and isinstance(episodes, int) and episodes > len(cast("list[Any]", times))


def _messages(steps: list[dict[str, Any]]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for step in steps:
        role = {"agent": "assistant"}.get(str(step.get("source")), str(step.get("source")))
        calls = cast("list[Any]", step.get("tool_calls") or [])
        said = [_text(step.get("message")), *(json.dumps(call, sort_keys=True) for call in calls)]
        found.append((role, "\n".join(part for part in said if part)[:_MESSAGE_CHARS]))
        observation = _table(step.get("observation"))
        for result in cast("list[Any]", observation.get("results") or []):
            found.append(("tool", _text(_table(result).get("content"))[:_MESSAGE_CHARS]))
    return found


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(str(_table(part).get("text") or "") for part in cast("list[Any]", value))
    return "" if value is None else str(value)


def _steps(document: dict[str, Any]) -> list[dict[str, Any]]:
    steps = document.get("steps")
    return [_table(step) for step in cast("list[Any]", steps)] if isinstance(steps, list) else []


def _json(path: Path) -> Any:
    """What a file of a trial holds; None when it cannot be read."""
    try:
        if path.is_symlink() or path.stat().st_size > _READ_LIMIT:
            return None
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _cost(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    return float(value) if good else None
