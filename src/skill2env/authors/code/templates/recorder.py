"""Planning's side of `child`: records behaviour of the original and of many changed copies.

Runs inside the sandbox; reads one job as JSON from standard input, answers with JSON on standard output::

    {"mode": "record", "root": DIR, "cases": [...], "seed": "0", "shift_days": 0}
        -> {ID: {"outcome": ..., "reached": [[file, function], ...]}}
    {"mode": "compare", "root": DIR, "cases": [...], "expected": {ID: outcome}, "full": false,
     "trees": [{"id": ..., "texts": {file: text}, "cases": [ID, ...] or null}]}
        -> {TREE: {ID: outcome or word}}     only cases that differ; word: value, raised, died
    {"mode": "print", "programs": {NAME: FILE}}
        -> {NAME: what the program prints}
"""

import datetime
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import child
from tagged_values import same

HERE = Path(__file__).resolve().parent
SECONDS_A_TREE = 600
"""A backstop: what hangs is ended by the limits of a case, which count the processor's time and so do not depend on how
busy the machine is."""
MAX_CALLS = 40_000
"""A case that makes more calls, of Python or built-in functions, is too slow to be repeated hundreds of times. Counting
calls and not seconds gives the same answer on every machine."""
WORKERS = 2


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


def spawn(root: Path, work: Path, cases: list[Any], *, seed: str, mode: str) -> dict[str, Any]:
    """Answers of one child process for `cases`; cases without an answer died."""
    import subprocess
    from concurrent.futures import ThreadPoolExecutor

    reader, writer = os.pipe()
    env = {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "HOME": str(work),
        "PYTHONHASHSEED": seed,
        "CPU_SECONDS_A_CASE": os.environ.get("CPU_SECONDS_A_CASE", "1"),
    }
    env["PYTHONDONTWRITEBYTECODE"] = env["OPENBLAS_NUM_THREADS"] = env["OMP_NUM_THREADS"] = "1"
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
    with ThreadPoolExecutor(1) as pool:
        lines = pool.submit(lambda: os.fdopen(reader, "rb").read())
        try:
            process.communicate(json.dumps(cases).encode(), timeout=SECONDS_A_TREE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
        answers: dict[str, Any] = {}
        for line in lines.result().splitlines():
            try:
                answer = json.loads(line)
                answers.setdefault(str(answer["id"]), answer["outcome"])
            except (ValueError, KeyError, TypeError):
                continue
    return {case["id"]: answers.get(case["id"], {"died": True}) for case in cases}


def record(job: Any) -> dict[str, Any]:
    """Outcomes of the original."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix=f"r{job['seed']}-") as scratch:
        tree = Path(scratch) / ("t" * (3 + int(job["seed"]) % 5))
        shutil.copytree(job["root"], tree, symlinks=True)
        mode = f"observe:{job['shift_days']}"
        found = spawn(tree, Path(scratch) / "w", job["cases"], seed=job["seed"], mode=mode)
    return {key: {"outcome": value, "reached": value.pop("reached", [])} for key, value in found.items()}


def word(outcome: dict[str, Any]) -> str:
    """How a changed outcome looks: a wrong value, an exception, or no answer at all."""
    if "died" in outcome or "unsupported" in outcome:
        return "died"
    return "raised" if "raised" in outcome else "value"


def compare(job: Any) -> dict[str, Any]:
    """Cases whose outcome differs, per changed tree."""
    import tempfile
    from concurrent.futures import ThreadPoolExecutor

    by_id = {case["id"]: case for case in job["cases"]}

    def one(tree: Any) -> tuple[str, dict[str, Any]]:
        ids = list(by_id) if tree["cases"] is None else tree["cases"]
        with tempfile.TemporaryDirectory(prefix="m") as scratch:
            root = Path(scratch) / "tree"
            shutil.copytree(job["root"], root, symlinks=True)
            for file, text in tree["texts"].items():
                (root / file).write_text(text, encoding="utf-8", newline="")
            found = spawn(root, Path(scratch) / "w", [by_id[i] for i in ids], seed="0", mode="plain")
        differing = {i: out for i, out in found.items() if not same(out, job["expected"][i])}
        return tree["id"], differing if job["full"] else {i: word(out) for i, out in differing.items()}

    with ThreadPoolExecutor(WORKERS) as pool:
        return dict(pool.map(one, job["trees"]))


def prints(job: Any) -> dict[str, str]:
    """Standard output of small programs; empty when one does not end."""
    import subprocess

    found: dict[str, str] = {}
    for name, file in job["programs"].items():
        env = {
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "HOME": "/tmp",
            "PYTHONHASHSEED": "7",
        }
        command = [sys.executable, "-B", file]
        try:
            done = subprocess.run(command, capture_output=True, env=env, timeout=SECONDS_A_TREE)
            found[name] = done.stdout.decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            found[name] = ""
    return found


def main() -> None:
    """As a child (with arguments) or as the driver (without)."""
    if len(sys.argv) == 5:
        mode, root, work = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve()
        observing = mode.startswith("observe:")
        child.CPU_SECONDS_A_CASE = float(os.environ.get("CPU_SECONDS_A_CASE", "1"))
        child.WALL_SECONDS_A_CASE = 20.0
        child.MAX_DEATHS = 1_000_000 if observing else 2
        if observing and mode != "observe:0":
            shift_clock(int(mode.split(":")[1]))
        project = child.Project(root, work, int(sys.argv[4]))
        child.run_all(project, json.load(sys.stdin), observe if observing else None)
        return
    job = json.load(sys.stdin)
    modes = {"record": record, "compare": compare, "print": prints}
    json.dump(modes[job["mode"]](job), sys.stdout)


if __name__ == "__main__":
    main()
