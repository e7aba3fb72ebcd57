"""What one rollout was, as it lies on disk: ``rollout.json`` in a folder with the trajectory and the evidence."""

from enum import StrEnum

from pydantic import Field

from skill2env.records import Record

RECORD_FILE = "rollout.json"
TRAJECTORY_FILE = "trajectory.json"
"""ATIF, as the agent wrote it."""
DIFFERENCE_FILE = "difference.json"
"""What the agent's container had changed at the end."""
TOKENS_FILE = "tokens.json"
"""Token ids and log-probabilities of each call of the policy, where the server gave them."""
INSTRUCTION_FILE = "instruction.md"
RUBRIC_FILE = "rubric.md"
"""Copies from the task, once for each task: what a judge needs to know."""


class RolloutStatus(StrEnum):
    """How a rollout ended. Only the first two have a reward."""

    VALID = "valid"
    """The agent came to its end and the verifier gave a reward."""
    TIMEOUT = "timeout"
    """The agent's time was over; what it had left was graded."""
    INVALID = "invalid"
    """The verifier gave no reward that can be read; that speaks about the task."""
    ERROR = "error"
    """The machine, the provider or the agent's program failed; that speaks about neither task nor policy."""


class Rollout(Record):
    """One trial used for training or judging."""

    group: str
    """Rollouts with the same group are compared with each other: one task, one agent, one policy."""
    attempt: int = Field(ge=0)
    task: str
    """``org/name``."""
    task_digest: str
    agent: str
    model: str = ""
    step: int | None = None
    """Training step of the policy that acted; None outside of training."""
    status: RolloutStatus
    reason: str = ""
    """Why the status is not `RolloutStatus.VALID`, or what happened on the way."""
    metrics: dict[str, float] | None = None
    """Named metrics as the verifier wrote them; None when there is no reward that counts."""
    outcome: float | None = None
    """r_V, the mean of the named metrics."""
    passed: bool = False
    """All named metrics equal 1."""
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    micro_dollars: int | None = None
    """What the agent says it cost; None when it knows no price."""
    seconds: dict[str, float] = Field(default_factory=dict[str, float])
    """Wall time by phase, and ``total``."""
    tries: int = 1
    """How often it was run until it ended so; more than once where the surroundings failed."""
    key: str = ""
    """Digest of everything that determines it: a rollout with another key is run again."""
    place: str = ""
    """Its folder, relative to the folder of all rollouts."""

    @property
    def id(self) -> str:
        """Unique in a folder of rollouts."""
        return f"{self.group}/{self.attempt}"
