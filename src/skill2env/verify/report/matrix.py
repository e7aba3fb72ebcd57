"""The kill matrix of gate `mutants` as rows for a page, read tolerantly: it comes from a file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

_ROWS = 200


@dataclass(frozen=True, slots=True)
class MutantRow:
    """One wrong version of the reference solution."""

    name: str
    about: str
    """What was changed, and where."""
    fate: str
    """``killed``, ``survived``, or why it does not count (``equivalent``, ``broken``)."""
    cells: tuple[str, ...]
    """What each metric gave, in the order of the matrix."""


@dataclass(frozen=True, slots=True)
class KillMatrix:
    """Which metrics noticed which mutants."""

    metrics: tuple[str, ...]
    rows: tuple[MutantRow, ...]

    def count(self, fate: str) -> int:
        """How many mutants met that fate."""
        return sum(row.fate == fate for row in self.rows)


def kill_matrix(value: Mapping[str, Any] | None) -> KillMatrix | None:
    """The matrix, or None where there is none that can be read.

    Args:
        value: content of ``mutants/matrix.json``: ``mutants``, a list of objects with ``mutant``, ``fate``, ``kind``,
            ``file``, ``line`` and ``metrics`` (metric -> number).
    """
    entries: Any = (value or {}).get("mutants")
    if not isinstance(entries, list):
        return None
    mutants = [
        cast("dict[str, Any]", entry) for entry in cast("list[Any]", entries) if isinstance(entry, dict)
    ]
    metrics = tuple(sorted({name for mutant in mutants for name in _metrics(mutant)}))
    return (
        KillMatrix(metrics, tuple(_row(mutant, metrics) for mutant in mutants[:_ROWS])) if mutants else None
    )


def _row(mutant: Mapping[str, Any], metrics: tuple[str, ...]) -> MutantRow:
    given = _metrics(mutant)
    place = ":".join(str(mutant[key]) for key in ("file", "line") if mutant.get(key))
    return MutantRow(
        name=str(mutant.get("mutant", "")),
        about=", ".join(filter(None, (str(mutant.get("kind", "")), place))),
        fate=str(mutant.get("fate", "")),
        cells=tuple(f"{given[name]:g}" if name in given else "-" for name in metrics),
    )


def _metrics(mutant: Mapping[str, Any]) -> dict[str, float]:
    found: Any = mutant.get("metrics")
    if not isinstance(found, dict):
        return {}
    pairs = cast("dict[Any, Any]", found).items()
    return {str(name): float(value) for name, value in pairs if isinstance(value, int | float)}
