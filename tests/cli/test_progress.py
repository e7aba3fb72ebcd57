import os
import pty
import subprocess
import sys
import threading

import pytest

from skill2env.cli.progress import line, shown
from skill2env.progress import Event, EventKind, silent

EVENTS = [
    Event(EventKind.PHASE, "reading", total=2),
    Event(EventKind.STEP, "a", "plan"),
    Event(EventKind.DONE, "a", "3 workflows"),
    Event(EventKind.REUSED, "b"),
    Event(EventKind.REDO, "plan c", "skill, prompt"),
    Event(EventKind.NOTE, "odd", "[bold]not markup[/bold]"),
    Event(EventKind.PHASE, "publishing"),
]
LINES = ["reading: 2", "", "  a: 3 workflows", "", "  plan c: done again, because of skill, prompt"]


def test_one_line_an_event() -> None:
    assert [line(event) for event in EVENTS[:5]] == LINES


def test_plain_lines_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(quiet=False) as progress:
        for event in EVENTS:
            progress(event)
    out, err = capsys.readouterr()
    assert not out
    assert err.splitlines() == [
        *filter(None, LINES),
        "odd: [bold]not markup[/bold]",
        "  1 finished before",
        "publishing",
    ]


def test_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(quiet=True) as progress:
        assert progress is silent
        progress(EVENTS[0])
    assert capsys.readouterr().err == ""


CODE = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("events", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from skill2env.cli.progress import shown
with shown(quiet=False) as progress:
    for event in module.EVENTS:
        progress(event)
print("result")
"""


def test_a_terminal_gets_bars_on_standard_error_and_results_stay_clean() -> None:
    """A pseudo-terminal as standard error, a pipe as standard output."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, __file__],
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(slave)
    seen: list[bytes] = []

    def read() -> None:
        while True:
            try:
                data = os.read(master, 4096)
            except OSError:  # the other side is closed
                return
            if not data:
                return
            seen.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    out, _ = process.communicate(timeout=60)
    reader.join(10)
    os.close(master)
    shown_there = b"".join(seen).decode()
    assert out == b"result\n"
    assert "2/2" in shown_there
    assert "[bold]not markup[/bold]" in shown_there
    assert "a: 3 workflows" in shown_there


def test_names_of_others_move_no_cursor_and_begin_no_line() -> None:
    told = line(Event(EventKind.DONE, "a\nb\x1b[2Jc", "rejected\r\x9b1mfor \u202ename"))
    assert told == "  a b [2Jc: rejected  1mfor  name"
