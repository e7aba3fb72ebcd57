"""Findings of an earlier run, so that only what is new counts.

A finding is the same when task, code and place are the same. The place is compared without its line, which moves, and
the message is not compared, which may hold numbers. A task goes by its name in task.toml, not by its path.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from skill2env.errors import UserError
from skill2env.records import Finding
from skill2env.verify.many import Verified

_HINT = "give the output of an earlier `skill2env verify --json`"


class Baseline:
    """What was found before."""

    def __init__(self, known: frozenset[tuple[str, str, str]]) -> None:
        self._known = known

    @classmethod
    def read(cls, path: Path) -> "Baseline":
        """Read the output of ``verify --json``, of this version or an earlier one.

        Raises:
            UserError: it cannot be read, or is something else.
        """
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"the baseline {path} cannot be read: {error}", hint=_HINT) from None
        known: set[tuple[str, str, str]] = set()
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    known.update(_findings(json.loads(line)))
                except (ValueError, KeyError, TypeError, AttributeError):
                    raise UserError(f"{path}, line {number} is no record of a task", hint=_HINT) from None
        return cls(frozenset(known))

    def knows(self, verified: Verified, finding: Finding) -> bool:
        """Whether a finding was there before."""
        return _key(verified.name or verified.path.name, finding.code, finding.where) in self._known


def _findings(record: Any) -> Iterator[tuple[str, str, str]]:
    fields = cast("dict[str, Any]", record)
    task = str(fields.get("task") or Path(fields["path"]).name)
    for gate in fields["gates"]:
        for finding in gate["findings"]:
            yield _key(task, finding["code"], finding["where"])


def _key(task: str, code: str, where: str) -> tuple[str, str, str]:
    place, _, line = where.rpartition(":")
    return task, code, place if place and line.isdigit() else where
