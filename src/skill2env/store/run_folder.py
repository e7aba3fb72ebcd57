"""The run folder: where one run keeps its ledger, candidates and sessions, and who may write to it.

Layout::

    RUN.lock, RUN.pid      held and named by the process that works here
    ledger.sqlite          everything that was decided and what it cost (see `store.ledger`)
    candidates/NAME/       task folders, one per attempt, kept whether accepted or rejected
    evidence/NAME/         logs of the gates
    notices/DIGEST         licence texts of public files that tasks hold
    sessions/KEY/          what finished authoring sessions left, so that none is paid for twice
    work/                  workspaces of unfinished work; may be deleted when nobody holds the lock
"""

import json
import os
import shutil
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from filelock import FileLock, Timeout

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.store.files import check_writable, storage, sweep, write_json

LEDGER_NAME = "ledger.sqlite"
_LOCK_NAME = "RUN.lock"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths of one run. Making one touches nothing."""

    path: Path

    @property
    def ledger(self) -> Path:
        """The SQLite file."""
        return self.path / LEDGER_NAME

    @property
    def candidates(self) -> Path:
        """Task folders of all attempts."""
        return self.path / "candidates"

    @property
    def evidence(self) -> Path:
        """Logs of the gates."""
        return self.path / "evidence"

    @property
    def sessions(self) -> Path:
        """Results of finished authoring sessions."""
        return self.path / "sessions"

    @property
    def notices(self) -> Path:
        """Licence texts of public files, by digest."""
        return self.path / "notices"

    @property
    def work(self) -> Path:
        """Workspaces of unfinished work."""
        return self.path / "work"

    @contextmanager
    def locked(self) -> Generator[None]:
        """Hold the folder for this process: make it, lock it, sweep what an earlier process left unfinished.

        The lock is the kernel's and ends with the process, however it ends.

        Raises:
            UserError: no run was ever here, and what lies here would be emptied.
            InfraError: boundary ``storage``; another process works here (named by its pid), or the folder cannot be
                written to.
        """
        self._refuse_foreign()
        check_writable(self.path)
        lock = FileLock(self.path / _LOCK_NAME, timeout=0)
        with storage("locking", self.path):
            try:
                lock.acquire()
            except Timeout:  # a kind of OSError, so it must not reach storage()
                raise self._busy() from None
        try:
            write_json(self.path / "RUN.pid", {"pid": os.getpid(), "host": socket.gethostname()})
            with storage("emptying", self.work):
                if self.work.exists():
                    shutil.rmtree(self.work)
            for folder in (self.candidates, self.evidence, self.notices, self.sessions, self.work):
                with storage("making", folder):
                    folder.mkdir(exist_ok=True)
                sweep(folder)
            sweep(self.path)
            yield
        finally:
            with suppress(OSError):
                (self.path / "RUN.pid").unlink(missing_ok=True)
            lock.release()

    def holder(self) -> dict[str, Any] | None:
        """Process that holds the folder (``pid``, ``host``), or None when nobody does or it cannot be read."""
        try:
            found = json.loads((self.path / "RUN.pid").read_text())
        except (OSError, ValueError):
            return None
        return cast("dict[str, Any]", found) if isinstance(found, dict) else None

    def require(self) -> None:
        """Check that this is a run folder.

        Raises:
            UserError: there is no ledger here.
        """
        if not self.ledger.is_file():
            raise UserError(
                f"{self.path} is not a run folder: it has no {LEDGER_NAME}",
                hint="`skill2env run list` shows the runs below a folder",
            )

    def _refuse_foreign(self) -> None:
        if self.ledger.exists() or (self.path / _LOCK_NAME).exists():
            return
        with suppress(OSError):
            if any(self.work.iterdir()):
                raise UserError(
                    f"{self.path} is no run folder, and its {self.work.name}/ would be emptied",
                    hint="give a new folder, or one that holds a run, with --run",
                )

    def _busy(self) -> InfraError:
        holder = self.holder()
        who = f"process {holder['pid']} on {holder['host']}" if holder else "another process"
        return InfraError(
            Boundary.STORAGE,
            f"{self.path} is in use by {who}",
            hint="wait for it, stop it, or give this run a folder of its own with --run",
        )


def find_runs(root: Path, *, depth: int = 3) -> list[RunFolder]:
    """Run folders at or below `root`, sorted by path, at most `depth` levels down; links are not followed."""
    found: list[RunFolder] = []
    level = [root]
    for _ in range(depth + 1):
        below: list[Path] = []
        for folder in level:
            if (folder / LEDGER_NAME).is_file():
                found.append(RunFolder(folder))
                continue
            with suppress(OSError):
                entries = sorted(os.scandir(folder), key=lambda item: item.name)
                below += [
                    Path(e.path) for e in entries if e.is_dir(follow_symlinks=False) and e.name[0] != "."
                ]
        level = below
    return sorted(found, key=lambda run: run.path.as_posix())
