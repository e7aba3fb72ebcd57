"""Runs a project's code, untrusted, case by case: the process on the far side of the grader.

    python3 child.py ROOT WORK FD [SKIP] < job.json        (answers as JSON lines on file descriptor FD)

job.json: {"cases": [...], "preload": [NAME, ...]}; SKIP is a file that may appear while cases run and names, one a line,
those that nobody needs any more.

A case is a call of a module-level function (``kind: function``) or a run of a script (``kind: command``). Each case
runs in a process of its own, forked from one that has already imported the module, in an empty folder of its own, so
that no case can see what another did. The answers hold what happened, never whether it is right: what is expected
stays with the grader.
"""

import contextlib
import gc
import importlib
import json
import os
import resource
import runpy
import shutil
import signal
import sys
import types
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tagged_values import MAX_TEXT, Decoder, Encoder, Unsupported, same
from warm import Compiled, preload

CPU_SECONDS_A_CASE = 4.0
CPU_SECONDS_AN_IMPORT = 10.0
WALL_SECONDS_A_CASE = 12.0
MAX_DEATHS = 5
"""Cases of one module that may die before the rest is given up; bounds the time of code that hangs."""
MAX_MEMORY_BYTES = 768 * 2**20
MAX_FILE_BYTES = 8 * 2**20
MAX_FILES = 24


class Project:
    """The code under test: imports its modules and names its classes."""

    def __init__(self, root: Path, work: Path, channel: int, skip: str = "") -> None:
        self.root = root
        self.work = work
        self.channel = channel
        self.compiled = Compiled(root)
        self.null = os.open(os.devnull, os.O_RDWR)
        self.streams = (sys.stdout, sys.stderr)
        self._skip = skip
        self._skipped: set[str] = set()

    def is_needed(self, case: Any) -> bool:
        """False for a case that the reader of the answers does not wait for any more."""
        if self._skip and not self._skipped and os.path.exists(self._skip):
            self._skipped = set(Path(self._skip).read_text(encoding="ascii").split())
        return case["id"] not in self._skipped

    def module(self, file: str) -> Any:
        """Import `file`, with its package when it lies in one."""
        path = self.root / file
        names, folder = [path.stem], path.parent
        while (folder / "__init__.py").is_file() and folder != self.root:
            names.insert(0, folder.name)
            folder = folder.parent
        for entry in (str(self.root), str(folder)):
            if entry not in sys.path:
                sys.path.insert(0, entry)
        if names[-1] == "__init__" and len(names) > 1:
            names.pop()
        return importlib.import_module(".".join(names))

    def load(self, file: str, name: str) -> Any:
        """The object called `name` (dots allowed) of `file`."""
        found = self.module(file)
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def locate(self, kind: type) -> "str | None":
        """File of a class of the project, None for others."""
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if file is None:
            return None
        with contextlib.suppress(ValueError):
            return Path(file).resolve().relative_to(self.root).as_posix()
        return None

    def clean(self, text: str) -> str:
        """Replace the two folders, whose places differ from run to run."""
        return text.replace(str(self.work), "<work>").replace(str(self.root), "<root>")

    def encode(self, value: Any) -> Any:
        """Tagged form of a result."""
        return Encoder(self.locate, clean=self.clean).encode(value)


def _read(path: str) -> str:
    with open(path, "rb") as handle:
        return handle.read(MAX_TEXT).decode("utf-8", "replace")


def _snapshot(project: Project) -> dict[str, str]:
    """Text of every file in the case's folder."""
    found: dict[str, str] = {}
    if not os.listdir(project.work):  # mostly so, and much cheaper to see
        return found
    for path in sorted(project.work.rglob("*")):
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
            found[path.relative_to(project.work).as_posix()] = project.clean(_read(str(path)))
            if len(found) >= MAX_FILES:
                break
    return found


def _call(project: Project, case: Any) -> dict[str, Any]:
    """Run a function case in this process."""
    decoder = Decoder(project.root, project.work, project.load)
    args = [decoder.decode(item) for item in case["args"]]
    kwargs = {key: decoder.decode(item) for key, item in case.get("kwargs", {}).items()}
    before = _snapshot(project)
    target = project.load(case["file"], case["name"])
    try:
        value = target(*args, **kwargs)
        outcome: dict[str, Any] = {"value": project.encode(value)}
    except SystemExit as error:
        outcome = {"exit": error.code if isinstance(error.code, int) else int(error.code is not None)}
    except Unsupported:
        raise
    except Exception as error:
        return {"raised": type(error).__name__}
    with contextlib.suppress(Unsupported):  # arguments changed in place are part of the result
        fresh = Decoder(project.root, project.work, project.load)
        after = project.encode(args)
        if not same(after, project.encode([fresh.decode(item) for item in case["args"]])):
            outcome["arguments"] = after
    files = _snapshot(project)
    if files != before:
        outcome["files"] = {name: text for name, text in files.items() if before.get(name) != text}
    return outcome


def _command(project: Project, case: Any) -> dict[str, Any]:
    """Run a script case in this process."""
    decoder = Decoder(project.root, project.work, project.load)
    argv = [str(decoder.decode(item)) for item in case["argv"]]
    script = project.root / case["file"]
    before = _snapshot(project)
    sys.argv = [str(script), *argv]
    sys.path.insert(0, str(script.parent))
    code = 0
    try:
        _run_script(project, script)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except Exception as error:
        return {"raised": type(error).__name__}
    files = {name: text for name, text in _snapshot(project).items() if before.get(name) != text}
    return {"exit": code, "files": files}


def _run_script(project: Project, script: Path) -> None:
    """Run a file as ``__main__``, from its code when that was compiled before."""
    compiled = project.compiled.code(script)
    if compiled is None:
        runpy.run_path(str(script), run_name="__main__")
        return
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=str(script), __cached__=None, __package__="")
    sys.modules["__main__"] = main
    exec(compiled, main.__dict__)


def run_case(project: Project, case: Any, log: str) -> dict[str, Any]:
    """One case, with its standard output (stderr is dropped: it is for people)."""
    out = os.open(log, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    for number, target in ((0, project.null), (1, out), (2, project.null)):
        os.dup2(target, number)
    sys.stdout, sys.stderr = project.streams
    os.chdir(project.work)
    sys.argv = ["program"]  # of a call; how the grader was started is nobody's business
    outcome = _call(project, case) if case["kind"] == "function" else _command(project, case)
    project.streams[0].flush()
    if os.fstat(1).st_size:
        outcome["stdout"] = project.clean(_read(log))
    return outcome


def _answer(channel: int, case: Any, outcome: dict[str, Any]) -> None:
    data = (json.dumps({"id": case["id"], "outcome": outcome}) + "\n").encode()
    while data:
        data = data[os.write(channel, data) :]


def _fresh_folder(work: Path) -> None:
    if not work.is_dir() or os.listdir(work):
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)


def _limit() -> None:
    """Keep code from taking the machine, for this process and all that it forks: memory, file size."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_one(project: Project, case: Any, observe: Any = None) -> bool:
    """Fork, run `case` there, answer; False when it died.

    `observe` (planning only) wraps the run and may add to the outcome.
    """
    _fresh_folder(project.work)
    pid = os.fork()
    if pid == 0:
        status = 3
        try:
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS_A_CASE)
            signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS_A_CASE)
            log = str(project.work) + ".log"
            outcome = run_case(project, case, log) if observe is None else observe(project, case, log)
            _answer(project.channel, case, outcome)
            status = 0
        except Unsupported:
            _answer(project.channel, case, {"unsupported": True})
            status = 0
        except MemoryError:
            status = 4
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        _answer(project.channel, case, {"died": True})
    return status == 0


def run_all(project: Project, cases: list[Any], observe: Any = None) -> None:
    """All cases, in blocks: one of the commands, one for each module whose functions are called.

    The first case of a block decides its place. Commands never share a process with imported modules.
    """
    blocks: dict[str, list[Any]] = {}
    for case in cases:
        blocks.setdefault(case["file"] if case["kind"] == "function" else "", []).append(case)
        project.compiled.add(case["file"])
    project.compiled.install()
    for stream in project.streams:
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    _limit()
    gc.freeze()  # what is here stays: forked processes need not copy pages to look at it
    for file, mine in blocks.items():
        if not file:
            _run_some(project, mine, observe)
        elif any(map(project.is_needed, mine)):
            _run_block(project, file, mine, observe)


def _run_block(project: Project, file: str, cases: list[Any], observe: Any) -> None:
    """Import a module in a process of its own and fork the calls of its functions from there."""
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            _fresh_folder(project.work)
            os.chdir(project.work)
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS_AN_IMPORT)
            signal.setitimer(signal.ITIMER_REAL, 2 * WALL_SECONDS_A_CASE)
            project.module(file)
        with contextlib.suppress(Exception):
            project.streams[0].flush()  # what the import printed is no case's output
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        with contextlib.suppress(BaseException):
            gc.freeze()
            _run_some(project, cases, observe)
        os._exit(0)
    os.waitpid(pid, 0)


def _run_some(project: Project, cases: list[Any], observe: Any) -> None:
    deaths = 0
    for case in cases:
        if not project.is_needed(case):
            continue
        deaths += not run_one(project, case, observe)
        if deaths >= MAX_DEATHS:
            return


def main() -> None:
    """Read the job, run its cases, answer."""
    root, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    job = json.load(sys.stdin)
    preload(job["preload"])
    run_all(Project(root, work, int(sys.argv[3]), "".join(sys.argv[4:5])), job["cases"])


if __name__ == "__main__":
    main()
