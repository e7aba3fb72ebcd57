"""What a reader of a report is shown of the evidence: ends of outputs, the kill matrix, diffs of mutants. Bounded.

Evidence was written by untrusted tasks: links are not followed, and everything here is text to show, not to believe.
"""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from pydantic import Field

from skill2env.harbor.outcome import read_head, read_tail
from skill2env.records import GateOutcome, GateResult, Record, Verdict

EXCERPT = 4 * 1024
"""Bytes of an output that are shown, from its end."""
EXCERPTS = 12
"""Outputs of a gate that are shown."""
DIFFS = 200
_MATRIX_LIMIT = 512 * 1024
_MUTANTS = "mutants"
_NAMES = (
    "verifier/test-stdout.txt",
    "verifier/test-stderr.txt",
    "agent/oracle.txt",
    "agent/output.txt",
    "exception.txt",
    "build.log",
)


class Excerpt(Record):
    """The end of one output."""

    gate: str
    where: str
    """Path below the gate's folder."""
    text: str


class Exhibits(Record):
    """What is shown of one task's evidence."""

    excerpts: tuple[Excerpt, ...] = ()
    matrix: dict[str, Any] | None = None
    """What gate `mutants` wrote of its kill matrix."""
    diffs: dict[str, str] = Field(default_factory=dict)
    """Mutant -> unified diff."""
    problem: str = ""
    """Why the evidence could not be read; empty when it could."""


def collect(evidence: Path, verdict: Verdict) -> Exhibits:
    """Read the exhibits of one task.

    Args:
        evidence: its evidence folder, with one folder a gate.
        verdict: what its gates said.
    """
    try:
        excerpts = tuple(
            item for gate in verdict.gates if gate.evidence for item in _excerpts(evidence, gate)
        )
        mutants = evidence / _MUTANTS
        diffs = {path.stem: _text(path, 16 * 1024) for path in _listed(mutants, ".diff")[:DIFFS]}
        return Exhibits(excerpts=excerpts, matrix=_matrix(mutants / "matrix.json"), diffs=diffs)
    except OSError as error:
        return Exhibits(problem=f"the evidence cannot be read: {error.strerror}")


def _excerpts(evidence: Path, gate: GateResult) -> Iterator[Excerpt]:
    """Outputs of the trials of a gate that did not pass, and of the two trials that every task has."""
    if gate.outcome not in (GateOutcome.REJECTED, GateOutcome.INFRA) and gate.gate not in ("nop", "oracle"):
        return
    folder = evidence / gate.evidence
    shown = 0
    for path in _files(folder, depth=4):
        where = path.relative_to(folder).as_posix()
        if shown == EXCERPTS:
            return
        if where.endswith(_NAMES):
            text = read_tail(path, EXCERPT).strip()
            if text:
                shown += 1
                yield Excerpt(gate=gate.gate, where=where, text=text)


def _files(folder: Path, depth: int) -> Iterator[Path]:
    for entry in sorted(os.scandir(folder), key=lambda item: item.name):
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISREG(mode):
            yield Path(entry.path)
        elif stat.S_ISDIR(mode) and depth:
            yield from _files(Path(entry.path), depth - 1)


def _listed(folder: Path, suffix: str) -> list[Path]:
    return [path for path in _files(folder, 1) if path.suffix == suffix] if folder.is_dir() else []


def _matrix(path: Path) -> dict[str, Any] | None:
    data = read_head(path, _MATRIX_LIMIT)
    try:
        value = json.loads(data or b"null")
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _text(path: Path, limit: int) -> str:
    return (read_head(path, limit) or b"").decode("utf-8", errors="replace")
