"""Time limits of a trial that differ from the task's own."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds; None leaves the task's own value."""

    agent_sec: float | None = None
    """Replaces the time limit of the solution or agent."""
    verifier_sec: float | None = None
    """Replaces the time limit of the verifier."""
    agent_cap_sec: float | None = None
    """The task's own limit counts up to this one."""
    verifier_cap_sec: float | None = None
    """The same for the verifier."""
    build_multiplier: float | None = None
    """Factor on the task's build time limit."""
