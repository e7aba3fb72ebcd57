"""Many skills: where and when work runs, never what it does.

Stages of one scope that follow each other are chained per element and run on worker threads; stages of the whole batch
run alone between them. Elements are handed out and collected in canonical order, so the number of workers changes
nothing but the time. More machines would replace `Workers` and nothing else.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Any

from skill2env.config import RunConfig
from skill2env.errors import BudgetReached, Skill2EnvError
from skill2env.interrupts import interruptible
from skill2env.pipeline import STAGES, Scope, Stage
from skill2env.progress import Event, EventKind, Progress, silent
from skill2env.publish.dataset import DatasetState
from skill2env.store import report
from skill2env.store.report import ReasonRow, Spend
from skill2env.wiring import Batch, open_batch
from skill2env.work import Cancelled


class BatchStatus(StrEnum):
    """How a batch ended."""

    FINISHED = "finished"
    """Every skill and item is final."""
    PENDING = "pending"
    """Something failed for a reason of the surroundings; run again."""
    BUDGET = "budget"
    """The budget is reached."""
    INTERRUPTED = "interrupted"
    """Ctrl-C, SIGTERM or SIGHUP."""


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What a batch came to."""

    status: BatchStatus
    run_folder: Path
    dataset_folder: Path
    dataset: DatasetState | None
    """None when nothing was published yet."""
    reasons: tuple[ReasonRow, ...]
    spend: Spend
    advice: tuple[str, ...] = ()
    """Sentences for a person, for example which author would serve the skills that were skipped."""
    summary: dict[str, Any] = field(default_factory=dict[str, Any])

    def document(self) -> dict[str, Any]:
        """Everything as plain data."""
        dataset = self.dataset
        return {
            **self.summary,
            "status": self.status.value,
            "run_folder": str(self.run_folder),
            "dataset": {
                "folder": str(self.dataset_folder),
                "name": dataset.name if dataset else "",
                "version": dataset.version if dataset else "",
                "tasks": len(dataset.entries) if dataset else 0,
            },
            "advice": list(self.advice),
        }


def compile_batch(
    paths: Sequence[Path], *, out: Path, run: Path, config: RunConfig, progress: Progress = silent
) -> BatchOutcome:
    """Compile skills into a dataset; the same call again goes on where the last one stopped.

    Args:
        paths: skill folders, or folders that hold some.
        out: dataset folder.
        run: run folder.
        config: settings.
        progress: receives events.

    Raises:
        UserError: no skill is found, or a setting does not fit.
        InfraError: storage failed, or another process works in one of the folders.
    """
    with open_batch(paths, out=out, run=run, config=config, progress=_one_at_a_time(progress)) as batch:
        status = BatchStatus.FINISHED
        bug: Exception | None = None
        try:
            with interruptible():
                bug = _run_stages(batch)
        except KeyboardInterrupt:
            status = BatchStatus.INTERRUPTED
        except BudgetReached as reached:
            status = BatchStatus.BUDGET
            batch.advise(reached.message)
        except BaseException:
            batch.end("failed")
            raise
        if bug is not None:
            batch.end("failed")
            raise bug
        if status is BatchStatus.FINISHED and report.unfinished(batch.ledger, batch.run):
            status = BatchStatus.PENDING
        batch.end(status.value)
        return _outcome(batch, status)


def _run_stages(batch: Batch) -> Exception | None:
    """Run all stages; returns the first bug met in an element, after everything else is done."""
    bug: Exception | None = None
    for scope, group in groupby(STAGES, key=lambda stage: stage.scope):
        chain = tuple(group)
        if scope is Scope.BATCH:
            for stage in chain:
                batch.progress(Event(EventKind.PHASE, stage.title))
                with batch.spent.on(stage.name):
                    stage.run(batch, None)
        else:
            bug = _fan_out(batch, chain, batch.elements(scope)) or bug
    return bug


def _fan_out(batch: Batch, chain: Sequence[Stage], elements: Sequence[Any]) -> Exception | None:
    """Run a chain of stages on every element, on worker threads.

    A storage failure and a reached budget end the batch, because the next element would meet them too; a bug in one
    element does not, but is not forgotten either.
    """
    batch.progress(Event(EventKind.PHASE, chain[-1].title, total=len(elements)))
    bug: Exception | None = None
    with ThreadPoolExecutor(batch.config.workers, thread_name_prefix="skill2env") as pool:
        waiting = {pool.submit(_run_chain, batch, chain, element) for element in elements}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    error = _error_of(future)
                    if isinstance(error, Skill2EnvError):
                        raise error
                    bug = bug or error
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                batch.progress(
                    Event(
                        EventKind.NOTE, "stopping", "a second Ctrl-C ends at once; nothing finished is lost"
                    )
                )
            for future in waiting:
                future.cancel()
            batch.cancel(pool.shutdown)
            raise
    return bug


def _error_of(future: "Future[None]") -> Exception | None:
    error = future.exception()
    if error is None or isinstance(error, Cancelled):
        return None
    if isinstance(error, Exception):
        return error
    raise error


def _run_chain(batch: Batch, chain: Sequence[Stage], element: Any) -> None:
    for stage in chain:
        if batch.cancelled.is_set():
            raise Cancelled
        if element.ended:
            break
        batch.progress(Event(EventKind.STEP, element.label, stage.name))
        try:
            with batch.spent.on(stage.name):
                stage.run(batch, element)
        except Cancelled:
            raise
        except Skill2EnvError:
            batch.cancelled.set()  # whatever reaches this point ends the batch; no worker starts anything new
            raise
        except Exception:
            element.broken = True
            raise
    batch.close_element(element)


def _one_at_a_time(progress: Progress) -> Progress:
    lock = threading.Lock()

    def locked(event: Event) -> None:
        with lock:
            progress(event)

    return locked


def _outcome(batch: Batch, status: BatchStatus) -> BatchOutcome:
    ledger, run = batch.ledger, batch.run
    return BatchOutcome(
        status=status,
        run_folder=batch.folder.path,
        dataset_folder=batch.dataset,
        dataset=batch.published,
        reasons=tuple(report.reasons(ledger, run)),
        spend=report.spend(ledger),
        advice=tuple(batch.advice),
        summary=report.summary(ledger, run),
    )
