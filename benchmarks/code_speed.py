"""How many candidates an hour and core the `code` author and the gates make, from ingested skill to verdict.

    .venv/bin/python benchmarks/code_speed.py SKILL... [--tree NAME=SRC]... [--workflows 5] [--json FILE]

Each tree is a `src` folder of skill2env (this checkout's when none is given), so that two versions are compared on the
same skills in one run, one after the other. Images and layers are warm: a first run builds them before the clock
starts. Studies of skills are made anew. What counts is the processor's time of the compiler and of all that it started,
so that a busy machine does not change the result much; the load is told with it.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parent.parent
ACCOUNTS = Path("/sys/fs/cgroup/cpuacct")
CACHE_VARIABLE = "SKILL2ENV_CACHE"
ENTRY = "import sys; from skill2env.cli.main import main; sys.exit(main())"


def cache_without_studies(real: Path, target: Path) -> None:
    """A cache folder that shares everything with the real one but what authors have learned about skills."""
    target.mkdir()
    for entry in sorted(real.iterdir()):
        if entry.name not in ("authors", "verdicts"):
            (target / entry.name).symlink_to(entry)


class Meter:
    """The processor's time of a process and of everything that it starts.

    A group of the cpuacct controller counts all of it. Where there is none, only what was waited for is counted, which
    leaves out most of what runs in sandboxes; `how` says which.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._group: Path | None = ACCOUNTS / f"code-speed-{os.getpid()}"
        self._before = 0.0

    def __enter__(self) -> Self:
        try:
            assert self._group is not None
            self._group.mkdir()
        except OSError:
            self._group = None
        self._before = self._waited_for()
        return self

    def __exit__(self, *_: object) -> None:
        if self._group is None:
            self.seconds = self._waited_for() - self._before
            return
        self.seconds = int((self._group / "cpuacct.usage").read_text()) / 1e9
        with contextlib.suppress(OSError):
            self._group.rmdir()

    @property
    def how(self) -> str:
        """What was counted."""
        return "children waited for" if self._group is None else "cpuacct"

    def join(self) -> None:
        """In the child, before its program begins."""
        if self._group is not None:
            (self._group / "cgroup.procs").write_text(str(os.getpid()))

    @staticmethod
    def _waited_for() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime


def compiled(source: Path, skills: list[Path], scratch: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Compile once with one tree; its summary, and the seconds that it took."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o755, parents=True)
    sys.path.insert(0, str(ROOT / "src"))
    from skill2env.store.folders import cache_home

    cache_without_studies(cache_home(), scratch / "cache")
    env = {**os.environ, "PYTHONPATH": str(source), CACHE_VARIABLE: str(scratch / "cache")}
    command = [
        sys.executable, "-c", ENTRY, "compile", *map(str, skills), "--author", "code", "--workers", "1", "--json",
        "--workflows", str(options.workflows), "--level", options.level, "--allow-degraded", "--allow-near-duplicates",
        "--out", str(scratch / "dataset"), "--run", str(scratch / "run"),
    ]  # fmt: skip
    begun = time.monotonic()
    with Meter() as meter:
        done = subprocess.run(
            command, env=env, capture_output=True, cwd=scratch, check=False, preexec_fn=meter.join
        )
    wall = time.monotonic() - begun
    if done.returncode:
        raise SystemExit(
            f"compile ended with {done.returncode}: {(done.stderr + done.stdout).decode(errors='replace')[-2000:]}"
        )
    return {"wall": wall, "cpu": meter.seconds, "how": meter.how, "summary": json.loads(done.stdout)}


def facts(name: str, run: dict[str, Any]) -> dict[str, Any]:
    """What is told of one run."""
    attempts = [a for a in run["summary"]["attempts"] if a["status"] in ("published", "rejected")]
    gates: dict[str, list[float]] = {}
    trials, seconds = 0, 0.0
    killed = counting = 0
    for attempt in attempts:
        for gate in (attempt["verdict"] or {}).get("gates", []):
            gates.setdefault(gate["gate"], []).append(gate["seconds"])
            trials, seconds = trials + gate["trials"], seconds + gate["trial_seconds"]
            if gate["gate"] == "mutants":
                killed += gate["values"].get("killed", 0)
                counting += gate["values"].get("killed", 0) + gate["values"].get("survived", 0)
    count = max(1, len(attempts))
    return {
        "tree": name,
        "candidates": len(attempts),
        "reasons": run["summary"]["reasons"],
        "wall_seconds": round(run["wall"], 1),
        "cpu_seconds": round(run["cpu"], 1),
        "cpu_counted_by": run["how"],
        "cpu_seconds_each": round(run["cpu"] / count, 1),
        "candidates_an_hour_and_core": round(3600 * count / run["cpu"], 1),
        "trials_each": round(trials / count, 1),
        "seconds_a_trial": round(seconds / max(1, trials), 2),
        "mutants": {"killed": killed, "counting": counting},
        "gate_seconds_each": {
            k: round(sum(v) / count, 2) for k, v in gates.items() if sum(v) / count >= 0.05
        },
        "seconds": run["summary"].get("seconds", {}),
    }


def main() -> int:
    """Compile with every tree and tell what it took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("skills", type=Path, nargs="+", metavar="SKILL")
    parser.add_argument("--tree", action="append", default=[], metavar="NAME=SRC", help="version to measure")
    parser.add_argument("--workflows", type=int, default=5, help="candidates of each skill, at most")
    parser.add_argument("--level", default="standard", choices=("standard", "strict"))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    parser.add_argument(
        "--warm", action="store_true", help="images are known to be built: do not build them first"
    )
    options = parser.parse_args()
    trees = [tuple(tree.split("=", 1)) for tree in options.tree] or [("this", str(ROOT / "src"))]
    skills = [path.resolve() for path in options.skills]
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="code-speed-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)  # sandboxes run as another user
        for name, source in trees:
            if not options.warm:
                few = argparse.Namespace(**{**vars(options), "workflows": 1})
                compiled(Path(source).resolve(), skills, Path(folder) / "first", few)
            load = os.getloadavg()[0]
            run = compiled(Path(source).resolve(), skills, Path(folder) / "run", options)
            found.append(
                {
                    **facts(name, run),
                    "load_before": round(load, 1),
                    "load_after": round(os.getloadavg()[0], 1),
                }
            )
            print(json.dumps(found[-1], indent=1), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
