"""Progress of a run on standard error: a live line with rich on a terminal, one plain line an event otherwise."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from skill2env.cli.output import one_line, tell
from skill2env.progress import Event, EventKind, Progress, silent


@contextmanager
def shown(*, quiet: bool) -> Generator[Progress]:
    """A `Progress` that fits where standard error goes; `quiet` drops everything."""
    if quiet:
        yield silent
    elif sys.stderr.isatty():
        with _live() as progress:
            yield progress
    else:
        yield _Plain()


def line(event: Event) -> str:
    """One line of text for an event; empty for those that only move a bar. Names and messages may be anybody's."""
    return one_line(_told(event))


def _told(event: Event) -> str:
    match event.kind:
        case EventKind.PHASE:
            return f"{event.subject}: {event.total}" if event.total else event.subject
        case EventKind.DONE:
            return f"  {event.subject}: {event.detail}"
        case EventKind.REDO:
            return f"  {event.subject}: done again, because of {event.detail}"
        case EventKind.NOTE:
            return f"{event.subject}: {event.detail}" if event.detail else event.subject
        case _:
            return ""


class _Plain:
    """Prints what a log file should keep."""

    def __init__(self) -> None:
        self._reused = 0

    def __call__(self, event: Event) -> None:
        if event.kind is EventKind.REUSED:
            self._reused += 1
            return
        if self._reused and event.kind is EventKind.PHASE:
            tell(f"  {self._reused} finished before")
            self._reused = 0
        text = line(event)
        if text:
            tell(text)


@contextmanager
def _live() -> Generator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[now]}", style="dim", markup=False),
    )
    with Bars(*columns, console=console, transient=False) as bars:
        current = None

        def show(event: Event) -> None:
            nonlocal current
            if event.kind is EventKind.PHASE:
                if current is not None:
                    bars.update(current, now="")
                current = bars.add_task(event.subject, total=event.total or None, now="")
                return
            if event.kind in (EventKind.DONE, EventKind.REUSED) and current is not None:
                bars.advance(current)
            if event.kind is EventKind.COUNT and current is not None:
                bars.advance(current, event.total)
            if event.kind is EventKind.STEP and current is not None:
                bars.update(
                    current, now=one_line(f"{event.detail}: {event.subject}")[: max(20, console.width - 70)]
                )
            text = line(event)
            if text:
                console.print(Text(text), soft_wrap=True)

        yield show
