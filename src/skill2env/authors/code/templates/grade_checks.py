"""Grades checks that were written for a project: they must pass on right versions and fail on wrong ones.

Standard library only. Each version is a private copy of the project whose modules hold byte code and no text, so that a
check can only tell versions apart by what they do. Right versions are the original, as written and as written out from
its syntax tree; they run among the wrong ones, in an order that nobody can know, each in a fresh folder and a process of
its own. What cannot change a score any more is not run.

versions.json: {"checks": FOLDER, "name": NAME, "files": {PATH: TEXT}, "paths": [FOLDER], "metrics": [NAME x 3],
"known": [{FILE: [[START, END, TEXT]]}], "hidden": [same], "needed": N, "order": [INDEX], "preload": [NAME]}
"""

import ast
import base64
import contextlib
import json
import marshal
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
from grading import NOBODY, OUT, end_group, end_others, several_users, take, write_reward  # noqa: E402

SECONDS_A_RUN = 12
SECONDS_TO_START = 20
RIGHT = 4
STUB = "import base64, marshal\nexec(marshal.loads(base64.b64decode({code!r})))\n"


def changed(text: str, spans: "list[Any]") -> str:
    """A module with byte spans replaced."""
    data = text.encode()
    for start, end, new in sorted(spans, reverse=True):
        data = data[:start] + new.encode() + data[end:]
    return data.decode()


def sealed(path: str, text: str, written_out: bool) -> str:
    """A module that does the same and shows nothing."""
    tree = ast.parse(text)
    source = ast.unparse(tree) if written_out else text
    code = marshal.dumps(compile(source, path, "exec", dont_inherit=True))
    return STUB.format(code=base64.b64encode(code))


def shown(path: str, text: str, version: "dict[str, Any]", written_out: bool) -> str:
    """What a file of a version holds; a module that does not compile stays as it is."""
    if not path.endswith(".py"):
        return text
    try:
        return sealed(path, changed(text, version.get(path, [])), written_out)
    except SyntaxError:
        return text


class Versions:
    """Writes versions of the project; files that a version leaves as they are were sealed once."""

    def __init__(self, spec: Any) -> None:
        self._spec = spec
        self._plain: dict[tuple[str, bool], str] = {}

    def place(self, version: "dict[str, Any]", written_out: bool, root: Path) -> None:
        """Write one version."""
        for path, text in self._spec["files"].items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            key = (path, written_out)
            if path in version:
                new = shown(path, text, version, written_out)
            else:
                if key not in self._plain:
                    self._plain[key] = shown(path, text, {}, written_out)
                new = self._plain[key]
            target.write_text(new, encoding="utf-8", newline="")


class Starter:
    """A process that starts checks; its hash seed is theirs."""

    def __init__(self, scratch: Path, seed: int, preload: "list[str]") -> None:
        env = {
            "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": str(seed),
            "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        command = ["/usr/bin/python3", "-s", "-P", "-B", str(HERE / "starter.py")]
        self._env = env
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=scratch
        )  # fmt: skip
        self._rest = b""
        self._tell({"preload": preload})

    def _tell(self, order: Any) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()

    def _answer(self, name: str, seconds: float) -> "int | None":
        """The next answer; None when there is none in time."""
        assert self._process.stdout is not None
        descriptor, end = self._process.stdout.fileno(), time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                return None
            data = os.read(descriptor, 4096)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        found = json.loads(line).get(name)
        return found if isinstance(found, int) else None

    def run(self, folder: Path, spec: Any, work: Path) -> str:
        """How the checks in a folder end: passed, failed or stuck."""
        paths = [str(folder / path) for path in spec["paths"]]
        env = {**self._env, "HOME": str(work), "TMPDIR": str(work), "PYTHONPATH": ":".join(paths)}
        self._tell({"folder": str(folder), "paths": paths, "checks": spec["checks"], "env": env})
        pid = self._answer("pid", SECONDS_TO_START)
        if pid is None:
            return "stuck"
        code = self._answer("code", SECONDS_A_RUN)
        end_group(pid)
        end_others()
        if code is None:
            self._answer("code", SECONDS_A_RUN)  # of the one that was just ended
            return "stuck"
        return "passed" if code == 0 else "failed"

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def run(spec: Any, starter: Starter, place: Any, delivered: Path, root: Path) -> str:
    """How the checks end on one version, in a folder of its own that is gone afterwards."""
    folder, work = root / spec["name"], root / "tmp"
    place(folder)
    shutil.copytree(delivered, folder / spec["checks"])
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    work.mkdir()
    if several_users():
        os.chown(work, NOBODY, NOBODY)
    try:
        return starter.run(folder, spec, work)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def run_all(spec: Any, delivered: Path, scratch: Path) -> "list[str]":
    """A word for every version; empty for those whose end cannot matter any more."""
    versions = [{}] * RIGHT + [*spec["known"], *spec["hidden"]]
    first_hidden = RIGHT + len(spec["known"])
    words = [""] * len(versions)
    made = Versions(spec)
    starters = [Starter(scratch, seed, spec["preload"]) for seed in (1, 2)]
    try:
        for position, number in enumerate(spec["order"]):
            if number >= first_hidden and words[first_hidden:].count("failed") >= spec["needed"]:
                continue  # enough hidden mistakes were noticed
            root = scratch / f"v{position}"

            def place(folder: Path, number: int = number) -> None:
                made.place(versions[number], number % 2 == 1, folder)

            words[number] = run(spec, starters[position % 2], place, delivered, root)
            if number < RIGHT and words[number] != "passed":
                break  # such checks earn nothing
    finally:
        for starter in starters:
            starter.stop()
    return words


def score(right: "list[str]", known: "list[str]", hidden: "list[str]", needed: int) -> "list[float]":
    """Sound checks, known mistakes, hidden mistakes. Checks that fail on a right version, or notice nothing, earn nothing."""
    caught = sum(word == "failed" for word in hidden)
    noticed = sum(word == "failed" for word in known)
    if not right or any(word != "passed" for word in right) or not caught + noticed:
        return [0.0, 0.0, 0.0]
    return [float(caught > 0 and noticed > 0), noticed / len(known), min(1.0, caught / needed)]


def main() -> None:
    """Zeros, all versions, scores."""
    spec = json.loads((HERE / "versions.json").read_text(encoding="utf-8"))
    OUT.mkdir(parents=True, exist_ok=True)
    write_reward(dict.fromkeys(spec["metrics"], 0.0))
    known = len(spec["known"])
    words = [""] * (RIGHT + known + len(spec["hidden"]))
    scratch = Path(tempfile.mkdtemp(prefix="grade-"))
    try:
        scratch.chmod(0o755)
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):  # some mount it read-only
                HERE.chmod(0o700)  # the versions lie here
        delivered = scratch / "delivered"
        take(Path(spec["delivered"]), delivered)
        if any(path.name.startswith("test") for path in delivered.rglob("*.py")):
            words = run_all(spec, delivered, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    right, rest = words[:RIGHT], words[RIGHT:]
    print("right versions:", " ".join(right))
    print("known mistakes:", " ".join(rest[:known]))
    print("hidden mistakes:", " ".join(rest[known:]))
    scores = dict(zip(spec["metrics"], score(right, rest[:known], rest[known:], spec["needed"])))
    write_reward(scores)
    print(json.dumps(scores))


if __name__ == "__main__":
    main()
