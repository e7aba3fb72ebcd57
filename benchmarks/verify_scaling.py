"""What verification costs: trials x trial time against wall time, one core against two, and stock Harbor beside it.

    .venv/bin/python benchmarks/verify_scaling.py [--tasks 100] [--level standard] [--ways 2x2,2x1,3x1] [--check]

Small sound tasks are copied, each copy with a fixture of its own, so that no image, layer or verdict is shared; nothing
is taken from the cache of verdicts. Measured one after the other in one run, so that ratios hold on a busy machine too:

    serial   one task at a time, one trial at a time: wall time, the time of its trials, and what gates add beyond
    WxT      W tasks at once with T trials each: efficiency is serial / (cores x wall), with at most two cores
    harbor   as many Oracle trials as one task had, by Harbor's own `Trial` alone, in an environment that does nothing
    docker   the same in Harbor's own docker environment, with ``--stock N`` trials, where docker answers

``--check`` exits 1 when gates add more than 10 % to the trials, the best way is below 0.8 of ideal, or a task has more
trials than its level may have (standard 45, strict 150).
"""

import argparse
import asyncio
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "true")
sys.path.insert(0, str(Path(__file__).parent))  # Harbor imports EmptyEnvironment by name

from gatebench import PLACEHOLDER
from gates import stock_task
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

from skill2env.harbor.quiet import quiet_harbor
from skill2env.harbor.sandboxes import COMPOSE_ENVIRONMENT, namespace_sandbox
from skill2env.records import VerdictStatus
from skill2env.sandbox.engine import answers
from skill2env.sandbox.images import ensure_base
from skill2env.verify.gate import GateContext, Level
from skill2env.verify.many import Verified, verify_many
from skill2env.verify.rules import Profile

TASKS = Path(__file__).resolve().parent.parent / "tests/data/tasks"
SMALL = (
    "tower-busiest-sorted",
    "tower-tonnes-pinned",
    "tower-cards-sorted",
    "tower-truth-apart",
    "press-runs",
)
MOST_TRIALS = {Level.PAPER: 2, Level.STANDARD: 45, Level.STRICT: 150}
MOST_OVERHEAD = 0.10
LEAST_EFFICIENCY = 0.8
CORES = min(2, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Figures:
    """One way of verifying all tasks."""

    way: str
    wall_sec: float
    trials: int
    trial_sec: float
    """Wall times of all trials added up."""
    most_trials: int
    cpu_sec: float
    load: float
    """Of the machine when it began."""
    beyond: dict[str, float]
    """Seconds of the costliest gates that were no trials; only in the serial way."""


def copies(folder: Path, count: int, reference: str, mark: str) -> list[Path]:
    """Tasks of which no two have an image in common."""
    names = [name for name in SMALL if (TASKS / name).is_dir()]
    made: list[Path] = []
    for number in range(count):
        name = names[number % len(names)]
        target = folder / mark / f"{name}-{number:03}"
        shutil.copytree(TASKS / name, target, symlinks=True)
        dockerfile = target / "environment/Dockerfile"
        text = dockerfile.read_text(encoding="utf-8").replace(PLACEHOLDER, reference)
        # Before everything else, so that all later layers differ as well.
        first, _, rest = text.partition("\n")
        dockerfile.write_text(f"{first}\nCOPY copy.txt /etc/copy\n{rest}", encoding="utf-8")
        (target / "environment/copy.txt").write_text(f"{mark} {number} {time.time_ns()}\n", encoding="utf-8")
        made.append(target)
    return made


def measure(
    tasks: Sequence[Path], level: Level, evidence: Path, *, workers: int, at_once: int, way: str
) -> Figures:
    """Verify all tasks in one way.

    Raises:
        SystemExit: a task is not accepted, so that the figures would be those of something else.
    """
    context = GateContext(namespace_sandbox(), evidence, trials_at_once=at_once)
    load, cpu, begun = os.getloadavg()[0], _cpu(), time.monotonic()
    found = verify_many(
        tasks, profile=Profile.FOREIGN, context=context, workers=workers, level=level, twins=False
    )
    wall = time.monotonic() - begun
    shutil.rmtree(evidence, ignore_errors=True)
    for item in found:
        if item.verdict.status is not VerdictStatus.ACCEPTED:
            raise SystemExit(f"{item.path.name} is not accepted: {item.verdict.message}")
    each = [sum(gate.trials for gate in item.verdict.gates) for item in found]
    trial_sec = sum(gate.trial_seconds for item in found for gate in item.verdict.gates)
    beyond = _beyond(found) if workers == at_once == 1 else {}
    return Figures(way, wall, sum(each), trial_sec, max(each), _cpu() - cpu, load, beyond)


def _cpu() -> float:
    """Processor time of this process and of everything that ended below it."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _beyond(found: Sequence[Verified]) -> dict[str, float]:
    spent: Counter[str] = Counter()
    for item in found:
        for gate in item.verdict.gates:
            spent[gate.gate] += max(0.0, gate.seconds - gate.trial_seconds)
    return {name: round(seconds, 3) for name, seconds in spent.most_common(6)}


def harbor_trials(task: Path, folder: Path, count: int, environment: EnvironmentConfig) -> float:
    """Seconds of one trial by Harbor alone, the mean of `count` after one to warm up."""

    async def one(number: int) -> None:
        config = TrialConfig(
            task=TaskConfig(path=task), trial_name=f"t{number}", trials_dir=folder, agent=AgentConfig(name="oracle"),
            environment=environment.model_copy(deep=True),
        )  # fmt: skip
        result = await (await Trial.create(config)).run()
        if result.verifier_result is None:
            raise SystemExit(f"Harbor's own trial failed: {result.exception_info}")

    quiet_harbor()
    asyncio.run(one(0))
    begun = time.monotonic()
    for number in range(1, count + 1):
        asyncio.run(one(number))
    return (time.monotonic() - begun) / count


def report(
    serial: Figures, ways: Sequence[Figures], harbor: dict[str, float], tasks: int
) -> dict[str, object]:
    """Print everything and return it as plain data."""
    per_trial = serial.trial_sec / serial.trials
    whole = overhead(serial)
    print(
        f"{tasks} tasks, {serial.trials} trials ({serial.trials / tasks:.1f} a task, at most {serial.most_trials})"
    )
    print(
        f"serial: {serial.trials} trials x {per_trial:.3f} s = {serial.trial_sec:.1f} s; wall {serial.wall_sec:.1f} s, "
        f"{_aside(serial, tasks)}"
    )
    print(
        f"        beyond its trials {whole:.1%}, of which images {serial.beyond['build'] / serial.trial_sec:.1%}"
    )
    print("        " + ", ".join(f"{name} {spent / tasks:.2f} s" for name, spent in serial.beyond.items()))
    efficiency = {way.way: serial.wall_sec / (CORES * way.wall_sec) for way in ways}
    for way in ways:
        print(
            f"{way.way:6}: wall {way.wall_sec:.1f} s, {serial.wall_sec / way.wall_sec:.2f} times as fast, "
            f"{efficiency[way.way]:.2f} of ideal on {CORES} cores, {_aside(way, tasks)}"
        )
    for name, seconds in harbor.items():
        trials = seconds * serial.trials / tasks
        print(
            f"{name:6}: {seconds:.3f} s a trial, {trials:.1f} s for as many trials as one task has; our verdict takes "
            f"{serial.wall_sec / tasks:.1f} s, {serial.wall_sec / tasks / trials:.2f} times as long"
        )
    return {
        "tasks": tasks,
        "overhead": whole,
        "seconds_a_trial": per_trial,
        "efficiency": efficiency,
        "harbor_seconds_a_trial": harbor,
        "serial": asdict(serial),
        "ways": [asdict(way) for way in ways],
    }


def _aside(figures: Figures, tasks: int) -> str:
    spent = figures.cpu_sec / tasks
    return f"{figures.wall_sec / tasks:.2f} s and {spent:.2f} s of processor a task (load {figures.load:.1f})"


def overhead(serial: Figures) -> float:
    """Share of the trials' time that gates add to it."""
    return serial.wall_sec / serial.trial_sec - 1


def shortfalls(serial: Figures, best: float, level: Level) -> list[str]:
    """What is worse than it may be."""
    found: list[str] = []
    if overhead(serial) > MOST_OVERHEAD:
        found.append(f"gates add {overhead(serial):.1%} to the trials, more than {MOST_OVERHEAD:.0%}")
    if best < LEAST_EFFICIENCY:
        found.append(f"the best way reaches {best:.2f} of ideal, less than {LEAST_EFFICIENCY}")
    if serial.most_trials > MOST_TRIALS[level]:
        found.append(f"a task has {serial.most_trials} trials, more than {MOST_TRIALS[level]}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--level", type=Level, default=Level.STANDARD, choices=list(Level))
    parser.add_argument(
        "--ways", default="2x2,2x1,3x1", help="tasks at once x trials at once, joined by commas"
    )
    parser.add_argument(
        "--stock", type=int, default=0, help="trials in Harbor's own docker environment; 0 for none"
    )
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bound is missed")
    options = parser.parse_args()
    base = ensure_base("debian-bookworm", progress=print)
    with tempfile.TemporaryDirectory(prefix="verify-scaling-") as scratch:
        place = Path(scratch)
        place.chmod(0o755)
        measure(  # loads Harbor, downloads what probes need
            copies(place, 1, base.reference, "warm"),
            options.level,
            place / "e",
            workers=1,
            at_once=1,
            way="warm",
        )
        tasks = copies(place, options.tasks, base.reference, "serial")
        serial = measure(tasks, options.level, place / "e", workers=1, at_once=1, way="serial")
        ways: list[Figures] = []
        for way in filter(None, options.ways.split(",")):
            workers, at_once = map(int, way.split("x"))
            tasks = copies(place, options.tasks, base.reference, way)
            ways.append(measure(tasks, options.level, place / "e", workers=workers, at_once=at_once, way=way))
        count = max(2, serial.trials // options.tasks)
        harbor = {
            "harbor": harbor_trials(
                tasks[0], place / "h", count, EnvironmentConfig(import_path="empty:EmptyEnvironment")
            )
        }
        if options.stock and answers("docker"):
            theirs = stock_task(tasks[0], place / "theirs")
            docker = EnvironmentConfig(import_path=COMPOSE_ENVIRONMENT)
            harbor["docker"] = harbor_trials(theirs, place / "d", options.stock, docker)
    figures = report(serial, ways, harbor, options.tasks)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    best = max((serial.wall_sec / (CORES * way.wall_sec) for way in ways), default=1.0)
    wrong = shortfalls(serial, best, options.level)
    print("\n".join(wrong))
    return 1 if wrong and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
