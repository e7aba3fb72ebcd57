"""Many trials in one process: what leaks, and how much the process grows compared with Harbor alone.

    python benchmarks/soak.py [--trials 500] [--every 50]

Runs the same trial again and again in the namespace sandbox, and as often with an environment that does nothing, which
is Harbor's own growth; each in a process of its own. Exit code 1 when a mount, process, descriptor, thread or file
stays behind, or when the process grows by more than Harbor's own growth and 0.3 MB for each 100 trials.
"""

import argparse
import asyncio
import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

from skill2env.harbor.quiet import quiet_harbor
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.scratch import runtime_folder

OURS = "skill2env.sandbox:NamespaceEnvironment"
ALLOWED_MB = 0.3
"""For each 100 trials, beyond Harbor's own growth."""
WARM_UP = 100
"""Trials before the first look: until then, what is loaded once comes in."""
TASK = """
schema_version = "1.4"
artifacts = ["/app"]
[task]
name = "bench/soak"
[verifier]
environment_mode = "separate"
network_mode = "no-network"
[environment]
network_mode = "no-network"
memory_mb = 512
"""
TEST = '#!/bin/bash\necho "{\\"reward\\": $(cat /app/out)}" > /logs/verifier/reward.json\n'


def make_task(folder: Path) -> Path:
    for name in ("environment", "tests", "solution"):
        (folder / name).mkdir(parents=True)
    (folder / "task.toml").write_text(TASK)
    (folder / "instruction.md").write_text("Do it.\n")
    (folder / "environment/Dockerfile").write_text("FROM debian-bookworm\nWORKDIR /app\n")
    (folder / "solution/solve.sh").write_text("#!/bin/bash\n(setsid sleep 900 &); echo 1 > /app/out\n")
    (folder / "tests/test.sh").write_text(TEST)
    return folder


async def one(task: Path, trials: Path, number: int, import_path: str) -> None:
    config = TrialConfig(
        task=TaskConfig(path=task), trial_name=f"t{number}", trials_dir=trials, agent=AgentConfig(name="oracle"),
        environment=EnvironmentConfig(import_path=import_path),
    )  # fmt: skip
    result = await (await Trial.create(config)).run()
    rewards = result.verifier_result.rewards if result.verifier_result else None
    if rewards != {"reward": 1}:
        raise SystemExit(f"trial {number}: {rewards} {result.exception_info}")


def resident_mb() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def held() -> dict[str, int]:
    """What this process holds of the machine."""
    home = str(runtime_folder(current_identity()))
    own = f"{os.getpid()}-"
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate()),
        "children": len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()),
        "mounts": Path("/proc/self/mountinfo").read_text().count(home),
        "folders": sum(path.name.startswith(own) for path in runtime_folder(current_identity()).iterdir()),
        "bytes": sum(
            path.stat().st_size
            for folder in runtime_folder(current_identity()).iterdir()
            if folder.name.startswith(own)
            for path in folder.rglob("*")
            if path.is_file()
        ),
    }


def series(task: Path, folder: Path, import_path: str, *, trials: int, every: int) -> float:
    """Growth in MB for each 100 trials."""

    async def run() -> tuple[float, float]:
        for number in range(WARM_UP):
            await one(task, folder, number, import_path)
        before, start = held(), resident_mb()
        for number in range(WARM_UP, WARM_UP + trials):
            await one(task, folder, number, import_path)
            if (number - WARM_UP + 1) % every == 0:
                print(f"  {number - WARM_UP + 1} trials: {resident_mb():.1f} MB, {held()}", flush=True)
        await asyncio.sleep(1)
        after = held()
        leaks = {name: after[name] - before[name] for name in after if after[name] > before[name]}
        if leaks:
            raise SystemExit(f"left behind after {trials} trials: {leaks}")
        return start, resident_mb()

    begun = time.monotonic()
    start, end = asyncio.run(run())
    growth = (end - start) * 100 / trials
    print(
        f"{import_path}: {growth:.2f} MB per 100 trials, {(time.monotonic() - begun) / trials:.3f} s a trial"
    )
    return growth


def in_a_process(import_path: str, trials: int, every: int) -> float:
    """Run a series in a fresh process; its growth is what the last line of its output says."""
    command = [
        sys.executable,
        __file__,
        "--only",
        import_path,
        "--trials",
        str(trials),
        "--every",
        str(every),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        line = ""
        for line in child.stdout:
            print(line, end="", flush=True)
    if child.returncode:
        raise SystemExit(child.returncode)
    return float(line.split()[1])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--only", default="", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.only:
        quiet_harbor()
        sys.modules.setdefault("soak", sys.modules[__name__])
        with tempfile.TemporaryDirectory(prefix="soak-") as name:
            home = Path(name)
            home.chmod(0o755)
            sizes = {"trials": options.trials, "every": options.every}
            series(make_task(home / "task"), home / "trials", options.only, **sizes)
        return 0
    ours = in_a_process(OURS, options.trials, options.every)
    harbor = in_a_process("empty:EmptyEnvironment", options.trials, options.every)
    print(f"ours {ours:.2f}, Harbor alone {harbor:.2f}, allowed {harbor + ALLOWED_MB:.2f} MB per 100 trials")
    return int(ours > harbor + ALLOWED_MB)


if __name__ == "__main__":
    sys.exit(main())
