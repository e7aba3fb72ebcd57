"""What a history file says of each task."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from skill2env.errors import UserError
from skill2env.records import Reason, Verdict, VerdictStatus
from skill2env.verify import history
from skill2env.verify.gate import GateContext, Level
from skill2env.verify.history import append, health
from skill2env.verify.many import Verified

ACCEPTED = Verdict(status=VerdictStatus.ACCEPTED)
REJECTED = Verdict(status=VerdictStatus.REJECTED, reason=Reason.UNSTABLE, message="m")
INFRA = Verdict(status=VerdictStatus.INFRA, boundary="network")
TASK = Verified(Path("x"), ACCEPTED, name="org/x", content="sha256:1")


def _note(file: Path, context: GateContext, day: int, *items: Verified) -> None:
    append(file, items, context, Level.STANDARD, datetime(2026, 5, day, tzinfo=UTC))


def test_first_seen_last_verified_and_drift(
    context: GateContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "deep" / "history.jsonl"
    other = Verified(Path("y"), ACCEPTED, content="sha256:2")
    _note(file, context, 1, TASK, other)
    _note(file, context, 2, replace(TASK, verdict=INFRA))
    _note(
        file,
        context,
        3,
        replace(TASK, verdict=REJECTED),
        replace(other, content="sha256:3", verdict=REJECTED),
    )
    x, y = health(file)
    assert (x.task, x.first_seen, x.last_verified, x.runs) == (
        "org/x",
        "2026-05-01T00:00:00+00:00",
        "2026-05-03T00:00:00+00:00",
        3,
    )
    assert x.drift == "accepted -> rejected unstable, with the same gates"
    assert (y.task, y.verdict, y.drift) == ("y", "rejected", ""), "a changed task does not drift"
    monkeypatch.setattr(history, "gates_version", lambda: "sha256:new")
    _note(file, context, 4, TASK)
    assert health(file)[0].drift == "rejected unstable -> accepted, with other gates"


def test_verdicts_of_the_cache_are_no_verification(context: GateContext, tmp_path: Path) -> None:
    file = tmp_path / "h"
    assert append(file, [replace(TASK, cached=True)], context, Level.PAPER) == 0
    assert health(file) == []


def test_cut_lines_are_passed_over(context: GateContext, tmp_path: Path) -> None:
    file = tmp_path / "h"
    _note(file, context, 1, TASK)
    file.write_bytes(file.read_bytes()[:-9])
    _note(file, context, 2, TASK)
    (found,) = health(file)
    assert (found.first_seen[:10], found.runs) == ("2026-05-02", 1)


def test_several_runs_at_once(context: GateContext, tmp_path: Path) -> None:
    file = tmp_path / "h"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda day: _note(file, context, day, *[TASK] * 30), range(1, 9)))
    assert health(file)[0].runs == 240


def test_what_is_no_history(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}\nsome text\n")
    for name in ("x", "absent"):
        with pytest.raises(UserError) as caught:
            health(tmp_path / name)
        assert caught.value.hint
