"""What one trial did, as a record of ours: everything a gate needs and nothing it would have to look up."""

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from skill2env.harbor.rewards import READ_LIMIT, Reward, read_reward

OUTPUT_LIMIT = 64 * 1024
"""Bytes of a solution's or verifier's output that are kept in the record (the end of it); the file keeps all."""


class TrialPhase(StrEnum):
    """Parts of a trial, in order."""

    CREATE = "create"
    """Harbor reads the task; nothing runs yet."""
    ENVIRONMENT = "environment"
    """The agent's container is built and started."""
    AGENT_SETUP = "agent_setup"
    """Health check and the agent's own preparation."""
    AGENT = "agent"
    """The agent works."""
    VERIFIER = "verifier"
    """The verifier's container is built and started, and tests/test.sh runs."""
    TEARDOWN = "teardown"
    """Everything after the verifier."""


@dataclass(frozen=True, slots=True)
class TrialFailure:
    """An exception that Harbor recorded, or that reading the task raised."""

    type: str
    """Name of the exception's class."""
    message: str
    """At most 4,000 characters."""
    phase: TrialPhase

    @property
    def timed_out(self) -> bool:
        """Whether a time limit of the task ended the phase."""
        return "Timeout" in self.type or "timed out" in self.message


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """One agent on one task."""

    agent: str
    folder: Path
    """Harbor's trial folder; does not exist when the failure's phase is ``create``."""
    mode: str = ""
    """``shared`` or ``separate``; empty for tasks with several steps."""
    rewards: Mapping[str, float] | None = None
    """What Harbor read; None when it read nothing."""
    valid: bool = False
    """Harbor's own verdict that the reward counts."""
    failure: TrialFailure | None = None
    suspect: bool = False
    """The failure may be the machine's as well as the task's: run again before blaming either."""
    solve_exit_code: int | None = None
    """Exit code of the reference solution or script when it was not 0; None when it was 0 or never ran."""
    reward_json: bytes | None = None
    """Content of reward.json, at most `READ_LIMIT` + 1 bytes; None when there is none."""
    reward_txt: bytes | None = None
    """The same for reward.txt."""
    agent_output: str = ""
    """End of what the agent printed, at most `OUTPUT_LIMIT` bytes."""
    verifier_output: str = ""
    """End of what the verifier printed, at most `OUTPUT_LIMIT` bytes."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """Wall time by phase, and ``total``."""
    degraded: str = ""
    """How the sandbox was weaker than it should be (``single-uid``); empty when it was not, or nobody says."""
    absent_limits: tuple[str, ...] = ()
    """Limits that the task asked for and the machine could not enforce."""
    breaches: tuple[str, ...] = ()
    """Limits that the task broke, for which the sandbox ended it."""
    steps: bool = False
    """The task has several steps; reward files lie in the steps' folders then and are not read."""

    @property
    def artifacts(self) -> Path:
        """Folder with the collected artifacts, mirrored below their absolute paths."""
        return self.folder / "artifacts"

    def reward(self) -> Reward:
        """The reward as written by the verifier, read strictly; for tasks with several steps as Harbor joined it."""
        if self.steps:
            return Reward(dict(self.rewards or {}))
        return read_reward(self.reward_json, self.reward_txt)


@dataclass(frozen=True, slots=True)
class Confinement:
    """What our own sandbox noted beside a trial, over all its containers."""

    degraded: str = ""
    absent: tuple[str, ...] = ()
    breaches: tuple[str, ...] = ()


def read_confinement(folder: Path) -> Confinement:
    """Notes of the namespace sandbox in a trial's folder; nothing for other environments."""
    notes = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("sandbox-*.json"))]
    return Confinement(
        degraded=next((note["degraded"] for note in notes if note["degraded"]), ""),
        absent=tuple(sorted({name for note in notes for name in note["absent"]})),
        breaches=tuple(note["breach"] for note in notes if note["breach"]),
    )


def read_head(path: Path, limit: int = READ_LIMIT) -> bytes | None:
    """First `limit` + 1 bytes of a regular file that untrusted code wrote; None when there is none.

    Links are not followed and pipes are not waited for, because the name may point anywhere on the host.
    """
    return _read(path, limit + 1, from_end=False)


def read_tail(path: Path, limit: int = OUTPUT_LIMIT) -> str:
    """Last `limit` bytes of a regular file as text; empty when there is none. Links are not followed."""
    return (_read(path, limit, from_end=True) or b"").decode("utf-8", errors="replace")


def _read(path: Path, limit: int, *, from_end: bool) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as stream:
        if from_end and status.st_size > limit:
            stream.seek(status.st_size - limit)
        return stream.read(limit)
