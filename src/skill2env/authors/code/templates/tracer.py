"""A pytest plugin that writes down, while a project's own tests run, which calls they make.

Planning only; runs inside the sandbox. For every module-level function, or method of a plain record class, of the
project: its arguments as they were at the call, in the tagged form of `tagged_values`. For every script that a test starts:
its arguments. Files below the temporary folder become part of the arguments.

Set TRACE_ROOT (the project), TRACE_OUT (the JSON file to write) and TRACE_SHIFT (days to move the clock).
"""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from tagged_values import MAX_TEXT, Encoder, Unsupported, canonical

ROOT = Path(os.environ["TRACE_ROOT"]).resolve()
OUT = Path(os.environ["TRACE_OUT"])
CALLS_A_FUNCTION = 32
TRIES_A_FUNCTION = 400
COMMANDS = 40
FOLDER_FILES = 12


class Recorder:
    """What has been seen so far."""

    def __init__(self) -> None:
        self.tests: dict[str, str] = {}
        self.calls: list[dict[str, Any]] = []
        self.commands: list[dict[str, Any]] = []
        self.test = ""
        self.temporary: list[Path] = [Path("/tmp")]
        self._seen: set[str] = set()
        self._tries: dict[str, int] = {}
        self._kept: dict[str, int] = {}
        self._files: dict[str, str | None] = {}
        self._busy = False

    def file_of(self, filename: str) -> "str | None":
        """Path relative to the project, or None for code that is not the project's or is a test."""
        if filename not in self._files:
            self._files[filename] = None
            path = Path(filename)
            if path.suffix == ".py" and path.is_absolute():
                resolved = path.resolve()
                if resolved.is_relative_to(ROOT):
                    relative = resolved.relative_to(ROOT)
                    is_test = relative.name.startswith(("test_", "conftest")) or "tests" in relative.parts
                    self._files[filename] = None if is_test else relative.as_posix()
        return self._files[filename]

    def locate(self, kind: type) -> "str | None":
        """File that defines a class of the project; tests may have imported it under any module name."""
        try:
            return self.file_of(str(inspect.getfile(kind)))
        except (TypeError, OSError):
            return None

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """Called by the interpreter at every call of a Python function."""
        if event != "call" or self._busy:
            return
        code = frame.f_code
        file = self.file_of(code.co_filename)
        if file is None or code.co_name.startswith("<") or "<locals>" in code.co_qualname:
            return
        if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            return
        name = code.co_qualname
        key = f"{file}:{name}"
        self._tries[key] = self._tries.get(key, 0) + 1
        if self._tries[key] > TRIES_A_FUNCTION or self._kept.get(key, 0) >= CALLS_A_FUNCTION:
            return
        self._busy = True
        try:
            self._keep(key, {"kind": "function", "file": file, "name": name, **self._arguments(frame)})
        except Unsupported:
            pass
        finally:
            self._busy = False

    def _keep(self, key: str, call: dict[str, Any]) -> None:
        text = canonical(call)
        if text in self._seen or '"/tmp/' in text:
            return
        self._seen.add(text)
        self._kept[key] = self._kept.get(key, 0) + 1
        self.calls.append({**call, "test": self.test})

    def _arguments(self, frame: FrameType) -> dict[str, Any]:
        code, values = frame.f_code, frame.f_locals
        names = code.co_varnames
        positional = names[: code.co_argcount]
        keyword = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        rest = code.co_argcount + code.co_kwonlyargcount
        args = [values[name] for name in positional]
        kwargs = {name: values[name] for name in keyword}
        if code.co_flags & inspect.CO_VARARGS:
            args += values[names[rest]]
            rest += 1
        if code.co_flags & inspect.CO_VARKEYWORDS:
            kwargs.update(values[names[rest]])
        encoder = Encoder(self.locate, self.path)
        return {
            "args": [encoder.encode(value) for value in args],
            "kwargs": {name: encoder.encode(value) for name, value in kwargs.items()},
        }

    def path(self, text: str, kind: str) -> Any:
        """Tagged input for an absolute path of the project or below a temporary folder; None for anything else."""
        if not text.startswith("/") or "\n" in text or len(text) > 400:
            return None
        path = Path(os.path.normpath(text))
        if path.is_relative_to(ROOT):
            return {"$": "root", "v": path.relative_to(ROOT).as_posix(), "as": kind}
        name = self._name(path)
        if name is None:
            return None
        if path.is_file():
            return {"$": "file", "name": name, "text": _text(path), "as": kind}
        if path.is_dir():
            return {"$": "folder", "name": name, "files": _texts(path), "as": kind}
        return {"$": "fresh", "name": name, "as": kind}

    def _name(self, path: Path) -> "str | None":
        for base in self.temporary:
            if path.is_relative_to(base):
                parts = path.relative_to(base).parts[1:]  # the first is the test's own folder
                if parts:
                    return Path(*parts).as_posix()
                return f"input{path.suffix}" if path.is_file() else "."
        return None

    def command(self, argv: Any) -> None:
        """A test starts a process: keep it when it is one of the project's scripts."""
        if not isinstance(argv, (list, tuple)) or len(argv) < 2 or len(self.commands) >= COMMANDS:
            return
        texts = [str(item) for item in argv]
        if "python" not in Path(texts[0]).name:
            return
        file = self.file_of(texts[1])
        if file is None:
            return
        try:
            encoder = Encoder(self.locate, self.path)
            call = {"kind": "command", "file": file, "argv": [encoder.encode(text) for text in texts[2:]]}
        except Unsupported:
            return
        text = canonical(call)
        if text not in self._seen and '"/tmp/' not in text:
            self._seen.add(text)
            self.commands.append({**call, "test": self.test})


def _text(path: Path) -> str:
    if path.stat().st_size > MAX_TEXT:
        raise Unsupported("file too large")
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Unsupported("file is not text") from error


def _texts(folder: Path) -> dict[str, str]:
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    if len(found) > FOLDER_FILES:
        raise Unsupported("folder too large")
    return {path.relative_to(folder).as_posix(): _text(path) for path in found}


if int(os.environ.get("TRACE_SHIFT", "0")):
    from recorder import shift_clock

    shift_clock(int(os.environ["TRACE_SHIFT"]))

RECORDER = Recorder()
_popen = subprocess.Popen.__init__


def _watched_popen(self: Any, args: Any, *rest: Any, **options: Any) -> None:
    if options.get("stdin") in (None, subprocess.DEVNULL):
        RECORDER.command(args)
    _popen(self, args, *rest, **options)


def pytest_configure() -> None:
    """Start watching processes."""
    subprocess.Popen.__init__ = _watched_popen  # type: ignore[method-assign]


def pytest_runtest_setup(item: Any) -> None:
    """Name the test and its temporary folder."""
    RECORDER.test = item.nodeid
    base = getattr(item.config, "_tmp_path_factory", None)
    if base is not None:
        RECORDER.temporary = [Path(str(base.getbasetemp())).resolve(), Path("/tmp")]


def pytest_pyfunc_call() -> None:
    """Watch from here, so that fixtures of pytest itself cost nothing."""
    sys.setprofile(RECORDER.profile)


def pytest_runtest_teardown() -> None:
    """Stop watching."""
    sys.setprofile(None)


def pytest_runtest_logreport(report: Any) -> None:
    """Keep one word a test: the worst of its phases."""
    rank = ["passed", "skipped", "failed"]
    before = RECORDER.tests.get(report.nodeid, "passed")
    RECORDER.tests[report.nodeid] = max(before, report.outcome, key=rank.index)


def pytest_sessionfinish() -> None:
    """Write everything down."""
    sys.setprofile(None)
    found = {"tests": RECORDER.tests, "calls": RECORDER.calls, "commands": RECORDER.commands}
    OUT.write_text(json.dumps(found), encoding="utf-8")
