"""Planning's side of `child`: records behaviour of the original and of many changed copies.

Runs inside the sandbox; reads one job as JSON from standard input, answers with JSON on standard output::

    {"mode": "record", "root": DIR, "cases": [...], "seed": "0", "shift_days": 0}
        -> {ID: {"outcome": ..., "reached": [[file, function], ...]}}
    {"mode": "compare", "root": DIR, "cases": [...], "expected": {ID: outcome}, "full": false,
     "trees": [{"id": ..., "texts": {file: text}, "cases": [ID, ...] or null}]}
        -> {TREE: {ID: outcome or word}}     only cases that differ; word: value, raised, died
    {"mode": "print", "programs": {NAME: FILE}}
        -> {NAME: what the program prints}

Every job names the libraries to import once, in "preload".
"""

import contextlib
import datetime
import json
import os
import runpy
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import child
from tagged_values import same
from warm import preload

HERE = Path(__file__).resolve().parent
SECONDS_A_TREE = 600
"""A backstop: what hangs is ended by the limits of a case, which count the processor's time and so do not depend on how
busy the machine is."""
MAX_CALLS = 40_000
"""A case that makes more calls, of Python or built-in functions, is too slow to be repeated hundreds of times. Counting
calls and not seconds gives the same answer on every machine."""
WORKERS = 2
WALL_SECONDS_A_CASE = 20.0
MAX_DEATHS = 2
OWN = ("child", "tagged_values", "warm")


def shift_clock(days: int) -> None:
    """Make Python code see a clock that is `days` ahead: whatever changes with it is not stable behaviour."""
    delta = days * 86400
    real = time.time
    real_local, real_gm, real_strftime = time.localtime, time.gmtime, time.strftime
    time.time = lambda: real() + delta
    time.localtime = lambda secs=None: real_local(time.time() if secs is None else secs)
    time.gmtime = lambda secs=None: real_gm(time.time() if secs is None else secs)
    time.strftime = lambda form, when=None: real_strftime(form, time.localtime() if when is None else when)

    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls.fromtimestamp(time.time(), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return cls.fromtimestamp(time.time(), datetime.timezone.utc).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

    class ShiftedDate(datetime.date):
        @classmethod
        def today(cls) -> Any:
            return cls.fromtimestamp(time.time())

    datetime.datetime = Shifted  # type: ignore[misc]
    datetime.date = ShiftedDate  # type: ignore[misc]


def observe(project: child.Project, case: Any, log: str) -> dict[str, Any]:
    """Run a case and add which functions of the project it reached."""
    reached: set[tuple[str, str]] = set()
    prefix = str(project.root) + os.sep

    calls = 0

    def profile(frame: Any, event: str, _: Any) -> None:
        nonlocal calls
        calls += 1
        if event == "call" and frame.f_code.co_filename.startswith(prefix):
            reached.add((frame.f_code.co_filename[len(prefix) :], frame.f_code.co_qualname))

    sys.setprofile(profile)
    try:
        outcome = child.run_case(project, case, log)
    finally:
        sys.setprofile(None)
    if calls > 2 * MAX_CALLS:  # a call and its return
        return {"unsupported": True}
    return {**outcome, "reached": sorted(reached)}


def spawn(root: Path, work: Path, job: Any, mode: str) -> "dict[str, Any]":
    """Answers of a child with the job's hash seed; cases without an answer died."""
    reader, writer = os.pipe()
    env = {**os.environ, "HOME": str(work), "PYTHONHASHSEED": job["seed"]}
    command = [sys.executable, "-s", str(HERE / "recorder.py"), mode, str(root), str(work), str(writer)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=env,
        pass_fds=(writer,),
        start_new_session=True,
    )
    os.close(writer)
    assert process.stdin is not None
    with contextlib.suppress(OSError), process.stdin:
        process.stdin.write(json.dumps({"cases": job["cases"], "preload": job["preload"]}).encode())
    return answers_of(process.pid, reader, job["cases"])


def forked(run: "Callable[[int], None]", cases: "list[Any]") -> "dict[str, Any]":
    """Answers of a process forked from this one that runs `run` with the descriptor for answers."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            os.close(reader)
            run(writer)
        os._exit(0)
    os.close(writer)
    return answers_of(pid, reader, cases)


def answers_of(pid: int, reader: int, cases: "list[Any]") -> "dict[str, Any]":
    """What a process and its children answer until it ends or its time is over; its group is ended then."""
    data: list[bytes] = []
    end = time.monotonic() + SECONDS_A_TREE
    over = False
    while not over:
        ready = select.select([reader], [], [], 0.2)[0]
        if ready:
            data.append(os.read(reader, 1 << 20))
            over = not data[-1]
        elif time.monotonic() > end or os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            over = True  # nothing is left to be read: whoever still holds the pipe was left behind
    with contextlib.suppress(OSError):
        os.killpg(pid, 9)
    os.waitpid(pid, 0)
    os.close(reader)
    answers: dict[str, Any] = {}
    for line in b"".join(data).splitlines():
        try:
            answer = json.loads(line)
            answers.setdefault(str(answer["id"]), answer["outcome"])
        except (ValueError, KeyError, TypeError):
            continue
    return {case["id"]: answers.get(case["id"], {"died": True}) for case in cases}


def record(job: Any) -> "dict[str, Any]":
    """Outcomes of the original."""
    with tempfile.TemporaryDirectory(prefix=f"r{job['seed']}-") as scratch:
        tree = Path(scratch) / ("t" * (3 + int(job["seed"]) % 5))
        shutil.copytree(job["root"], tree, symlinks=True)
        found = spawn(tree, Path(scratch) / "w", job, f"observe:{job['shift_days']}")
    return {key: {"outcome": value, "reached": value.pop("reached", [])} for key, value in found.items()}


def word(outcome: "dict[str, Any]") -> str:
    """How a changed outcome looks: a wrong value, an exception, or no answer at all."""
    if "died" in outcome or "unsupported" in outcome:
        return "died"
    return "raised" if "raised" in outcome else "value"


def compare(job: Any) -> "dict[str, Any]":
    """Cases whose outcome differs, per changed tree; `WORKERS` trees beside each other."""
    set_limits(MAX_DEATHS)
    preload(job["preload"])
    by_id = {case["id"]: case for case in job["cases"]}
    with tempfile.TemporaryDirectory(prefix="m") as scratch:
        places = [Path(scratch) / str(number) for number in range(WORKERS)]
        for place in places:
            place.mkdir()
        started = [share(job, by_id, number, place) for number, place in enumerate(places)]
        for pid in started:
            os.waitpid(pid, 0)
        found: dict[str, Any] = {}
        for place in places:
            found.update(json.loads((place / "found.json").read_text(encoding="utf-8")))
    return {tree["id"]: found[tree["id"]] for tree in job["trees"]}


def share(job: Any, by_id: "dict[str, Any]", number: int, place: Path) -> int:
    """Start a process for every tree of a worker; it leaves ``found.json``."""
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(Exception):
            found = {tree["id"]: one_tree(job, by_id, tree, place) for tree in job["trees"][number::WORKERS]}
            (place / "found.json").write_text(json.dumps(found), encoding="utf-8")
        os._exit(0)
    return pid


def one_tree(job: Any, by_id: "dict[str, Any]", tree: Any, place: Path) -> "dict[str, Any]":
    """Cases of one changed tree that differ from what is expected."""
    ids = list(by_id) if tree["cases"] is None else tree["cases"]
    cases = [by_id[i] for i in ids]
    with tempfile.TemporaryDirectory(prefix="t", dir=place) as scratch:
        root, work = Path(scratch) / "tree", Path(scratch) / "w"
        shutil.copytree(job["root"], root, symlinks=True)
        for file, text in tree["texts"].items():
            (root / file).write_text(text, encoding="utf-8", newline="")

        def run(channel: int) -> None:
            os.environ["HOME"] = str(work)
            child.run_all(child.Project(root, work, channel), cases)

        found = forked(run, cases)
    differing = {i: out for i, out in found.items() if not same(out, job["expected"][i])}
    return differing if job["full"] else {i: word(out) for i, out in differing.items()}


def prints(job: Any) -> "dict[str, str]":
    """Standard output of small programs; empty when one does not end."""
    preload(job["preload"])
    found: dict[str, str] = {}
    for name, file in job["programs"].items():
        with tempfile.TemporaryFile() as out:
            pid = os.fork()
            if pid == 0:
                with contextlib.suppress(BaseException):
                    os.setsid()
                    run_program(file, out.fileno())
                os._exit(0)
            end = time.monotonic() + SECONDS_A_TREE
            while time.monotonic() < end and not os.waitid(
                os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
            ):
                time.sleep(0.005)
            with contextlib.suppress(OSError):
                os.killpg(pid, 9)
            _, status = os.waitpid(pid, 0)
            out.seek(0)
            found[name] = "" if os.WIFSIGNALED(status) else out.read().decode("utf-8", "replace")
    return found


def run_program(file: str, out: int) -> None:
    """In a child: run a program as ``python3 FILE`` would, its standard output going to a file."""
    null = os.open(os.devnull, os.O_RDWR)
    for number, target in ((0, null), (1, out), (2, null)):
        os.dup2(target, number)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.path[:] = [entry for entry in sys.path if Path(entry) != HERE]
    sys.path.insert(0, os.path.dirname(file))
    for name in OWN:
        sys.modules.pop(name, None)
    sys.argv = [file]
    try:
        runpy.run_path(file, run_name="__main__")
    finally:
        sys.stdout.flush()


def set_limits(deaths: int) -> None:
    """Limits of a case while planning."""
    child.CPU_SECONDS_A_CASE = float(os.environ.get("CPU_SECONDS_A_CASE", "1"))
    child.WALL_SECONDS_A_CASE = WALL_SECONDS_A_CASE
    child.MAX_DEATHS = deaths


def main() -> None:
    """As a child (with arguments) or as the driver (without)."""
    job = json.load(sys.stdin)
    if len(sys.argv) == 5:
        days, root, work = (
            int(sys.argv[1].split(":")[1]),
            Path(sys.argv[2]).resolve(),
            Path(sys.argv[3]).resolve(),
        )
        set_limits(1_000_000)
        if days:
            shift_clock(days)
        preload(job["preload"])
        child.run_all(child.Project(root, work, int(sys.argv[4])), job["cases"], observe)
        return
    modes = {"record": record, "compare": compare, "print": prints}
    json.dump(modes[job["mode"]](job), sys.stdout)


if __name__ == "__main__":
    main()
