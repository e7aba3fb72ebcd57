"""Grades checks that were written for a project: they must pass on right versions and fail on wrong ones.

Standard library only. Each version is a private copy of the project whose modules hold byte code and no text, so that a
check can only tell versions apart by what they do. Right versions are the original, as written and as written out from
its syntax tree; they run among the wrong ones, in an order that nobody can know, each in a fresh folder.

versions.json: {"checks": FOLDER, "name": NAME, "files": {PATH: TEXT}, "paths": [FOLDER], "metrics": [NAME x 3],
"known": [{FILE: [[START, END, TEXT]]}], "hidden": [same], "needed": N, "order": [INDEX]}
"""

import ast
import base64
import contextlib
import json
import marshal
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
from grading import NOBODY, OUT, several_users, sweep, take, unprivileged, write_reward  # noqa: E402

SECONDS_A_RUN = 12
SECONDS = 100
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


def place(spec: Any, version: "dict[str, Any]", written_out: bool, root: Path) -> None:
    """Write one version of the project."""
    for path, text in spec["files"].items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(shown(path, text, version, written_out), encoding="utf-8", newline="")


def run(spec: Any, delivered: Path, scratch: Path, number: int, version: Any) -> str:
    """How the checks end on one version: passed, failed or stuck."""
    folder = scratch / f"v{number * 7919 % 1009}" / spec["name"]
    place(spec, version, number % 2 == 1, folder)
    shutil.copytree(delivered, folder / spec["checks"])
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    work = folder.parent / "tmp"
    work.mkdir()
    if several_users():
        os.chown(work, NOBODY, NOBODY)
    env = {
        "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": str(work), "TMPDIR": str(work),
        "PYTHONHASHSEED": str(number), "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ":".join(str(folder / path) for path in spec["paths"]),
    }  # fmt: skip
    command = [
        "/usr/bin/python3",
        "-s",
        "-B",
        "-m",
        "unittest",
        "discover",
        "-s",
        spec["checks"],
        "-p",
        "test*.py",
    ]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=env,
        cwd=folder,
        preexec_fn=unprivileged,
    )
    try:
        code = process.wait(timeout=SECONDS_A_RUN)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        sweep(process)
        shutil.rmtree(folder.parent, ignore_errors=True)
    return "stuck" if code is None else "passed" if code == 0 else "failed"


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
    known, hidden = spec["known"], spec["hidden"]
    versions = [{}, {}, {}, {}, *known, *hidden]
    words = [""] * len(versions)
    scratch = Path(tempfile.mkdtemp(prefix="grade-"))
    try:
        scratch.chmod(0o755)
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):  # some mount it read-only
                HERE.chmod(0o700)  # the versions lie here
        delivered = scratch / "delivered"
        take(Path(spec["delivered"]), delivered)
        if any(path.name.startswith("test") for path in delivered.rglob("*.py")):
            for number in spec["order"]:
                words[number] = run(spec, delivered, scratch, number, versions[number])
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    right, rest = words[:4], words[4:]
    print("right versions:", " ".join(right))
    print("known mistakes:", " ".join(rest[: len(known)]))
    print("hidden mistakes:", " ".join(rest[len(known) :]))
    scores = dict(zip(spec["metrics"], score(right, rest[: len(known)], rest[len(known) :], spec["needed"])))
    write_reward(scores)
    print(json.dumps(scores))


if __name__ == "__main__":
    main()
