"""A history file: what each verification said of each task, one JSON line each, so that health can be told later.

Only real verifications are noted, none from the cache. Lines are appended under a lock: several runs may share a file;
a line that was cut short by a kill is passed over. The file diffs well and may lie in a repository.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from filelock import FileLock

from skill2env.errors import UserError
from skill2env.records import VerdictStatus
from skill2env.store.files import storage
from skill2env.verify.cache import gates_version
from skill2env.verify.gate import GateContext, Level
from skill2env.verify.many import Verified

_KEYS = frozenset({"at", "task", "content", "verdict", "reason", "gates"})


@dataclass(frozen=True, slots=True)
class Health:
    """What the history knows of one task."""

    task: str
    first_seen: str
    """ISO 8601, UTC."""
    last_verified: str
    """The last verification that ended in a verdict; empty when none did."""
    verdict: str
    """The last one: ``accepted``, ``rejected`` or ``infra``."""
    reason: str
    runs: int
    drift: str
    """How the verdict on unchanged content changed since the verification before; empty when it did not."""


def append(
    path: Path, verified: Sequence[Verified], context: GateContext, level: Level, now: datetime | None = None
) -> int:
    """Note the verdicts of a run.

    Args:
        path: the history file; made when missing.
        verified: the run's tasks; those whose verdict came from the cache are left out.
        context: where they were run.
        level: how much was checked.
        now: time of the run; the clock's when None.

    Returns:
        How many lines were written.

    Raises:
        InfraError: boundary ``storage``; the file cannot be written.
    """
    at = (now or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds")
    common = {"at": at, "level": level.value, "sandbox": context.sandbox.name, "gates": gates_version()}
    lines = [json.dumps(_line(item) | common, sort_keys=True) + "\n" for item in verified if not item.cached]
    with storage("writing the history", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"), path.open("ab+") as stream:
            if stream.seek(0, os.SEEK_END) and not _ends_whole(stream):
                stream.write(b"\n")
            stream.write("".join(lines).encode())
    return len(lines)


def _ends_whole(stream: Any) -> bool:
    stream.seek(-1, os.SEEK_END)
    return bool(stream.read(1) == b"\n")


def _line(item: Verified) -> dict[str, Any]:
    verdict = item.verdict
    return {
        "task": item.name or item.path.name,
        "content": item.content,
        "profile": item.profile.value,
        "verdict": verdict.status.value,
        "reason": verdict.reason.value if verdict.reason else verdict.boundary,
        "message": verdict.message[:300],
        "trials": sum(gate.trials for gate in verdict.gates),
        "seconds": round(sum(gate.seconds for gate in verdict.gates), 3),
    }


def health(path: Path) -> list[Health]:
    """What a history file says of each task, sorted by name.

    Raises:
        UserError: it cannot be read, or holds no line of a history.
    """
    try:
        text = path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise UserError(
            f"the history {path} cannot be read: {error.strerror}", hint="skill2env verify DIR --history FILE"
        ) from None
    by_task: dict[str, list[dict[str, Any]]] = {}
    for entry in _entries(text.splitlines()):
        by_task.setdefault(str(entry["task"]), []).append(entry)
    if text.strip() and not by_task:
        raise UserError(f"{path} is no history", hint="skill2env verify DIR --history FILE writes one")
    return [_health(task, entries) for task, entries in sorted(by_task.items())]


def _entries(lines: Iterable[str]) -> Iterable[dict[str, Any]]:
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and value.keys() >= _KEYS:  # pyright: ignore[reportUnknownMemberType]
            yield cast("dict[str, Any]", value)


def _health(task: str, entries: Sequence[dict[str, Any]]) -> Health:
    decided = [entry for entry in entries if entry["verdict"] != VerdictStatus.INFRA.value]
    last = entries[-1]
    return Health(
        task=task,
        first_seen=str(entries[0]["at"]),
        last_verified=str(decided[-1]["at"]) if decided else "",
        verdict=str(last["verdict"]),
        reason=str(last["reason"]),
        runs=len(entries),
        drift=_drift(decided),
    )


def _drift(decided: Sequence[dict[str, Any]]) -> str:
    """Another verdict on the same bytes: the world moved, or the gates did."""
    if len(decided) < 2:
        return ""
    before, now = decided[-2:]
    same = before["content"] == now["content"] and before["content"]
    if not same or (before["verdict"], before["reason"]) == (now["verdict"], now["reason"]):
        return ""
    why = "with the same gates" if before["gates"] == now["gates"] else "with other gates"
    words = (" ".join(filter(None, (str(e["verdict"]), str(e["reason"])))) for e in (before, now))
    return f"{' -> '.join(words)}, {why}"
