"""How long a sandbox takes to be ready, against bare bubblewrap with the same overlay; and pairs of trials a second.

    .venv/bin/python benchmarks/start.py [--repeats 200] [--pairs 60] [--check]

    bare     bubblewrap in a new user, mount, pid, ipc, uts and network namespace, the layers under a fresh upper
             folder, /dev and /proc, running /bin/true to its end: what the kernel and bubblewrap themselves need
    start    our sandbox until process 1 serves: the same and the seccomp filter, limits, network, upload channel
    command  one command in a sandbox that is up

The three are measured in turns, so that a busy machine slows all alike. Then Oracle and Nop pairs of one small task run
for each number of workers, shared and separate. ``--check`` exits 1 when start is above 3 times bare (medians), or the
best rate below 8 pairs a second shared or 5 separate.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "true")
sys.path.insert(0, str(Path(__file__).parent))

from gates import fresh_overlay, make_task, pair, run_bare

from skill2env.harbor.sandboxes import NAMESPACE_ENVIRONMENT, SandboxChoice
from skill2env.sandbox.bubblewrap import bubblewrap
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.images import build_image
from skill2env.sandbox.session import Sandbox, SandboxSpec

MOST_TIMES = 3.0
LEAST_PAIRS = {"shared": 8.0, "separate": 5.0}
WORKERS = (1, 2, 3, 4)


def bare_start(layers: tuple[Path, ...], folder: Path) -> float:
    """Seconds of bubblewrap with the overlay of `layers` and /bin/true in it."""
    with fresh_overlay(layers, folder) as overlay:
        return run_bare([*overlay, "--chdir", "/", "--", "/bin/true"])


def ours(layers: tuple[Path, ...]) -> tuple[float, float]:
    """Seconds until a sandbox serves, and of one command in it."""
    began = time.perf_counter()
    with Sandbox(SandboxSpec(layers=layers)) as box:
        up = time.perf_counter()
        done = box.exec(["/bin/true"])
        ran = time.perf_counter()
    if done.return_code:
        raise SystemExit(f"/bin/true failed: {done.stderr.decode(errors='replace')}")
    return up - began, ran - up


def rates(task: Path, trials: Path, pairs: int, report: Callable[[str], None]) -> dict[str, float]:
    """Best pairs a second by verifier mode."""
    choice = SandboxChoice("namespace", NAMESPACE_ENVIRONMENT)
    best: dict[str, float] = {}
    for mode in LEAST_PAIRS:
        for workers in WORKERS:
            with ThreadPoolExecutor(workers) as pool:
                began = time.perf_counter()
                list(pool.map(lambda _, mode=mode: pair(task, choice, trials, mode=mode), range(pairs)))
                rate = pairs / (time.perf_counter() - began)
            report(f"{mode:9} {workers} workers  {rate:6.2f} pairs a second")
            best[mode] = max(best.get(mode, 0.0), rate)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=60, help="pairs for each number of workers; 0 for none")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, tier {current_identity().tier.value}, {bubblewrap()}")
    with tempfile.TemporaryDirectory(prefix="skill2env-start-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        task = make_task(folder / "made")
        layers = build_image(task / "environment").layers
        found: dict[str, list[float]] = {"bare": [], "start": [], "command": []}
        for number in range(arguments.repeats + 5):
            bare, (start, command) = bare_start(layers, folder), ours(layers)
            if number >= 5:  # the first ones warm up
                for row, value in zip(found.values(), (bare, start, command), strict=True):
                    row.append(value)
        for row, values in found.items():
            print(
                f"{row:8} median {1000 * statistics.median(values):6.1f} ms  min {1000 * min(values):6.1f} ms"
            )
        times = statistics.median(found["start"]) / statistics.median(found["bare"])
        print(f"start / bare: {times:.2f} (medians), {min(found['start']) / min(found['bare']):.2f} (minima)")
        best = rates(task, folder / "trials", arguments.pairs, print) if arguments.pairs else {}
    slow = [mode for mode, rate in best.items() if rate < LEAST_PAIRS[mode]]
    return int(arguments.check and (times > MOST_TIMES or bool(slow)))


if __name__ == "__main__":
    raise SystemExit(main())
