"""Grades changed code: runs it on recorded inputs and compares with what is right.

Standard library only. The project's code runs as a child process (`child.py`) that knows inputs and no answers; as
another user when this one is root. Zeros are on disk before anything of the project is looked at. Answers are judged as
they come: once no part of the work can be wholly right any more, what must stay right is not run, since it earns nothing.

cases.json: {"project": DIR, "metrics": [NAME x 4], "groups": [{"reported": [ID], "unreported": [ID]}], "joint": [ID],
"kept": [ID], "interface": {FILE: {FUNCTION: [PARAMETER]}}, "cases": [...], "expected": {ID: outcome}, "preload": [NAME]}
"""

import ast
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
from grading import NOBODY, OUT, several_users, sweep, take, unprivileged, write_reward  # noqa: E402
from tagged_values import same  # noqa: E402

SECONDS = 50
MAX_ANSWERS = 64 * 2**20
CHILD = ("child.py", "tagged_values.py", "warm.py")


class Watch:
    """Judges answers as they come."""

    def __init__(self, spec: Any, skip: Path) -> None:
        self.right: set[str] = set()
        self._seen: set[str] = set()
        self._spec = spec
        self._skip = skip
        self._open = [{*group["reported"], *group["unreported"]} for group in spec["groups"]]

    @property
    def is_open(self) -> bool:
        """Whether a part of the work may still be wholly right."""
        return bool(self._open)

    def take(self, line: bytes) -> None:
        """One line; the first answer of a case counts, and anything malformed is no answer."""
        try:
            answer = json.loads(line)
            key, outcome = answer["id"], answer["outcome"]
            if key in self._seen:
                return
            self._seen.add(key)
        except (ValueError, KeyError, TypeError, RecursionError):
            return
        if key in self._spec["expected"] and is_right(outcome, self._spec["expected"][key]):
            self.right.add(key)
        elif self._open:
            self._open = [part for part in self._open if key not in part]
            if not self._open:
                self._let_go()

    def _let_go(self) -> None:
        """Tell the child which cases nobody needs any more; it knows of none before."""
        fresh = self._skip.with_name("skip.new")
        fresh.write_text("\n".join(self._spec["kept"]), encoding="ascii")
        fresh.chmod(0o644)
        os.replace(fresh, self._skip)


def drain(reader: int, watch: Watch) -> None:
    """Read the child's answers to their end; beyond the limit they are thrown away."""
    size = 0
    pending: list[bytes] = []
    while data := os.read(reader, 65536):
        size += len(data)
        if size > MAX_ANSWERS:
            continue
        head, newline, tail = data.rpartition(b"\n")
        if not newline:
            pending.append(data)
            continue
        for line in b"".join([*pending, head]).split(b"\n"):
            watch.take(line)
        pending = [tail]
    watch.take(b"".join(pending))


def run_child(scratch: Path, tree: Path, spec: Any) -> Watch:
    """Everything that the child answers within the time, judged."""
    work = scratch / "work"
    work.mkdir()
    if several_users():
        os.chown(work, NOBODY, NOBODY)
    reader, writer = os.pipe()
    skip = scratch / "run" / "skip"
    # -I would also ignore the hash seed; the environment is ours alone, so -s -P leave nothing for others to plant
    command = [
        "/usr/bin/python3",
        "-s",
        "-P",
        "-B",
        str(scratch / "run" / "child.py"),
        str(tree),
        str(work / "w"),
    ]
    process = subprocess.Popen(
        [*command, str(writer), str(skip)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "HOME": str(work),
            "PYTHONHASHSEED": "0",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        },
        cwd=work,
        pass_fds=(writer,),
        preexec_fn=unprivileged,
    )
    os.close(writer)
    watch = Watch(spec, skip)
    reading = threading.Thread(target=drain, args=(reader, watch), daemon=True)
    reading.start()
    job = {"cases": spec["cases"], "preload": spec["preload"]}
    try:
        process.communicate(json.dumps(job).encode(), timeout=SECONDS)
    except subprocess.TimeoutExpired:
        print("the project's code did not end in time")
    finally:
        sweep(process)
    reading.join(2)
    return watch


def is_right(outcome: Any, expected: Any) -> bool:
    """Compare without trusting the shape of what was answered."""
    try:
        return same(outcome, expected)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def parameters(path: Path) -> "dict[str, list[str]]":
    """Parameter names of the module-level functions of an untrusted file; nothing when it cannot be read."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node.name] = [
                a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            ]
    return found


def same_interface(tree: Path, wanted: "dict[str, dict[str, list[str]]]") -> bool:
    """True when every function that must be there is, with the parameters that it must have."""
    for file, functions in wanted.items():
        found = parameters(tree / file)
        if any(found.get(name) != names for name, names in functions.items()):
            return False
    return True


def score(right: "set[str]", spec: Any, interface: bool) -> "list[float]":
    """Shown cases, hidden cases, behaviour that must stay, interface.

    A part of the work counts when all its cases are right; cases of several faults count as one more part; what must
    stay counts once a part is wholly done.
    """
    groups, joint = spec["groups"], spec["joint"]
    shown = [right.issuperset(group["reported"]) for group in groups]
    hidden = [right.issuperset(group["unreported"]) for group in groups]
    done = any(a and b for a, b in zip(shown, hidden))
    together = [right.issuperset(joint)] if joint else []
    return [
        sum(shown) / len(groups),
        sum(hidden + together) / (len(groups) + len(together)),
        float(done and right.issuperset(spec["kept"])),
        float(done and interface),
    ]


def main() -> None:
    """Zeros, run, compare, scores."""
    spec = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))
    OUT.mkdir(parents=True, exist_ok=True)
    write_reward(dict.fromkeys(spec["metrics"], 0.0))
    scratch = Path(tempfile.mkdtemp(prefix="grade-"))
    try:
        scratch.chmod(0o755)
        (scratch / "run").mkdir(mode=0o755)
        for name in CHILD:
            shutil.copyfile(HERE / name, scratch / "run" / name)
            (scratch / "run" / name).chmod(0o644)
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):  # some mount it read-only
                HERE.chmod(0o700)  # the answers lie here
        take(Path(spec["project"]), scratch / "tree")
        interface = same_interface(scratch / "tree", spec["interface"])
        watch = run_child(scratch, scratch / "tree", spec)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    right = watch.right.copy()
    for number, group in enumerate(spec["groups"], 1):
        for part, word in (("reported", "shown"), ("unreported", "hidden")):
            print(f"part {number}, {word}: {len(right & set(group[part]))} of {len(group[part])} cases right")
    for part in ("joint", "kept") if watch.is_open else ("joint",):
        print(f"{part}: {len(right & set(spec[part]))} of {len(spec[part])} cases right")
    scores = dict(zip(spec["metrics"], score(right, spec, interface)))
    write_reward(scores)
    print(json.dumps(scores))


if __name__ == "__main__":
    main()
