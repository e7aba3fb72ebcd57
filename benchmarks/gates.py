"""How long the two model-free gates take: an Oracle and a Nop trial of one task whose image is cached.

    .venv/bin/python benchmarks/gates.py [--repeats 15] [--task DIR] [--stock N] [--no-engines] [--json] [--check 2.5]

Measured in turns in one run, so that a busy machine slows all rows alike:

    floor     Harbor with an environment that does nothing, plus the task's own scripts under bare bubblewrap
    separate  the pair in the namespace sandbox, with a verifier in a sandbox of its own (four sandboxes)
    shared    the same with one sandbox a trial
    docker    separate in our environment on docker, podman the same on podman, where they answer
    docker-stock  separate in Harbor's own docker environment (needs compose), with --stock because it takes a minute

Medians of the pairs are compared with the median floor. ``--check X`` exits 1 when separate is above X floors.
"""

import argparse
import functools
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "true")


from skill2env.harbor.sandboxes import (
    COMPOSE_ENVIRONMENT,
    ENGINE_ENVIRONMENTS,
    NAMESPACE_ENVIRONMENT,
    SandboxChoice,
)
from skill2env.harbor.trial import run_trial
from skill2env.sandbox.engine import ENGINES, answers, engine
from skill2env.sandbox.engine_bases import ensure_engine_base, tag_of
from skill2env.sandbox.identity import Tier, current_identity
from skill2env.sandbox.images import build_image
from skill2env.sandbox.launch import launch
from skill2env.sandbox.layout import DEFAULT_PATH
from skill2env.sandbox.scratch import remove_tree

DOCKERFILE = """\
FROM debian-bookworm
RUN useradd --create-home agent && mkdir /app && chown agent /app
COPY --chown=agent readings.csv /app/
WORKDIR /app
"""
SOLVE = """\
#!/bin/bash
set -e
cd /app
python3 - <<'END'
import csv, json
from collections import defaultdict
sums = defaultdict(list)
with open("readings.csv") as file:
    for row in csv.DictReader(file):
        sums[row["station"]].append(float(row["value"]))
with open("report.json", "w") as file:
    json.dump({name: round(sum(v) / len(v), 3) for name, v in sorted(sums.items())}, file)
END
"""
TEST = """\
#!/bin/bash
mkdir -p /logs/verifier
python3 - <<'END'
import json
from pathlib import Path
wanted = {f"s{n:02}": round(sum(range(n, n + 100)) / 100, 3) for n in range(20)}
try:
    found = json.loads(Path("/app/report.json").read_text())
except (OSError, ValueError):
    found = {}
names = float(set(found) == set(wanted))
means = sum(found.get(name) == mean for name, mean in wanted.items()) / len(wanted)
rewards = {"names": names, "means": means, "reward": (names + means) / 2}
Path("/logs/verifier/reward.json").write_text(json.dumps(rewards))
Path("/logs/verifier/reward.txt").write_text(str(rewards["reward"]))
END
"""
TASK = """\
schema_version = "1.4"
artifacts = ["/app/report.json"]
[task]
name = "benchmark/gates"
[agent]
timeout_sec = 60
user = "{user}"
[verifier]
timeout_sec = 60
environment_mode = "separate"
network_mode = "no-network"
[environment]
network_mode = "no-network"
cpus = 1
memory_mb = 1024
storage_mb = 1024
"""


def make_task(folder: Path) -> Path:
    """The task of this benchmark: a small report from a CSV file, checked in Python, as many tasks are."""
    for name in ("environment", "solution", "tests"):
        (folder / name).mkdir(parents=True)
    rows = [f"s{n:02},{n + k}" for k in range(100) for n in range(20)]
    files = {
        "task.toml": TASK.format(user="agent" if current_identity().several_users else "root"),
        "instruction.md": "Write report.json: the mean value of each station of readings.csv.\n",
        "environment/Dockerfile": DOCKERFILE,
        "environment/readings.csv": "\n".join(["station,value", *rows]) + "\n",
        "solution/solve.sh": SOLVE,
        "tests/test.sh": TEST,
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def pair(task: Path, choice: SandboxChoice, trials: Path, *, mode: str, check: bool = True) -> float:
    """Seconds of an Oracle and a Nop trial."""
    began = time.perf_counter()
    outcomes = [
        run_trial(task, agent, environment=choice, trials_dir=trials, mode=mode)
        for agent in ("oracle", "nop")
    ]
    took = time.perf_counter() - began
    problems = [outcome.failure for outcome in outcomes if outcome.failure is not None]
    if problems:
        raise SystemExit(f"a trial failed: {problems[0]}")
    if check and [bool(any((outcome.rewards or {}).values())) for outcome in outcomes] != [True, False]:
        raise SystemExit(f"unexpected rewards: {[outcome.rewards for outcome in outcomes]}")
    return took


@contextmanager
def fresh_overlay(layers: Sequence[Path], folder: Path) -> Generator[list[str]]:
    """Bubblewrap's arguments for an overlay of `layers` under new folders for writes, which go with the block."""
    identity = current_identity()
    files = Path(tempfile.mkdtemp(dir=folder))
    for name in ("upper", "work"):
        (files / name).mkdir()
    if identity.tier is Tier.ROOT:
        for path in (files, *files.iterdir()):
            os.chown(path, identity.root_uid, identity.root_gid)
    sources = [word for layer in layers for word in ("--overlay-src", str(layer))]
    writes = ["--overlay", str(files / "upper"), str(files / "work"), "/"]
    yield [*sources, *writes, "--dev", "/dev", "--proc", "/proc"]
    remove_tree(files, identity)


def run_bare(arguments: Sequence[str]) -> float:
    """Seconds of bare bubblewrap with these arguments, until it ends."""
    began = time.perf_counter()
    launched = launch(arguments, current_identity(), pass_fds=(), build=False)
    code = launched.process.wait(60)
    took = time.perf_counter() - began
    told = launched.told()
    launched.end()
    if code:
        raise SystemExit(f"{arguments[-1]} failed under bare bubblewrap: {told}")
    return took


class BareScripts:
    """The task's scripts with bubblewrap alone: one start each, solve and test for the Oracle and test for the Nop."""

    def __init__(self, task: Path, folder: Path) -> None:
        self.layers = build_image(task / "environment").layers
        self.task = folder / "task"
        shutil.copytree(task, self.task)
        self.folder = folder
        for path in (self.task, *self.task.rglob("*")):
            path.chmod(0o755)

    def __call__(self) -> float:
        """Seconds of the three runs."""
        rest = ["--ro-bind", str(self.task), "/mnt", "--clearenv", "--setenv", "PATH", DEFAULT_PATH]
        took = 0.0
        for scripts in (("solution/solve.sh", "tests/test.sh"), ("tests/test.sh",)):
            with fresh_overlay(self.layers, self.folder) as overlay:
                began = time.perf_counter()
                for script in scripts:
                    run_bare([*overlay, *rest, "--chdir", "/", "--", "/bin/bash", f"/mnt/{script}"])
                took += time.perf_counter() - began
        return took


def stock_task(task: Path, target: Path) -> Path:
    """The task as Harbor's own docker environment can build it: on our base as the engine has it."""
    shutil.copytree(task, target)
    base = ensure_engine_base(engine("docker"))
    dockerfile = target / "environment/Dockerfile"
    reference = tag_of(base.name, base.digest)
    # Our base says that SIGKILL ends it; other images do not, and there Harbor waits ten seconds for each container.
    text = re.sub(r"(?m)^FROM \S+", f"FROM {reference}\nSTOPSIGNAL SIGTERM", dockerfile.read_text())
    dockerfile.write_text(text)
    return target


def measure(task: Path, folder: Path, repeats: int, stock: int, engines: bool) -> dict[str, list[float]]:
    """Seconds of each row, one value a round."""
    ours, empty = (
        SandboxChoice("namespace", NAMESPACE_ENVIRONMENT),
        SandboxChoice("empty", "empty:EmptyEnvironment"),
    )
    trials, bare = folder / "trials", BareScripts(task, folder)
    rows: dict[str, Callable[[], float]] = {
        "harbor": lambda: pair(task, empty, trials, mode="separate", check=False),
        "scripts": bare,
        "separate": lambda: pair(task, ours, trials, mode="separate"),
        "shared": lambda: pair(task, ours, trials, mode="shared"),
    }
    for engine_name in (name for name in ENGINES if engines and answers(name)):
        choice = SandboxChoice(engine_name, ENGINE_ENVIRONMENTS[engine_name])
        rows[engine_name] = functools.partial(pair, task, choice, trials, mode="separate")
        rows[f"{engine_name}-shared"] = functools.partial(pair, task, choice, trials, mode="shared")
    if stock and "docker" in rows:
        theirs = stock_task(task, folder / "docker")
        harbors = SandboxChoice("docker-stock", COMPOSE_ENVIRONMENT)
        rows["docker-stock"] = lambda: pair(theirs, harbors, trials, mode="separate")
        rows["docker-stock-shared"] = lambda: pair(theirs, harbors, trials, mode="shared")
    found: dict[str, list[float]] = {name: [] for name in rows}
    for number in range(repeats + 1):
        for name, row in rows.items():
            if name.startswith("docker-stock") and number > stock:
                continue
            took = row()
            if number:  # the first round imports, builds and warms up
                found[name].append(took)
    found["floor"] = [a + b for a, b in zip(found["harbor"], found["scripts"], strict=True)]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=15, help="rounds after the first")
    parser.add_argument("--task", type=Path, help="a task directory; default: one made here")
    parser.add_argument(
        "--stock", type=int, default=0, help="rounds of Harbor's own docker environment; 0 for none"
    )
    parser.add_argument("--check", type=float, help="exit 1 when separate is above so many floors")
    parser.add_argument(
        "--no-engines", action="store_true", help="leave docker and podman out, which take seconds"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))  # Harbor imports EmptyEnvironment by name
    # Mapped users must be able to walk to the folder, so not below a home.
    with tempfile.TemporaryDirectory(prefix="skill2env-gates-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        task = arguments.task or make_task(folder / "made")
        found = measure(task, folder, arguments.repeats, arguments.stock, not arguments.no_engines)
    floor = statistics.median(found["floor"])
    table = {
        row: {
            "median": statistics.median(v),
            "min": min(v),
            "max": max(v),
            "floors": statistics.median(v) / floor,
        }
        for row, v in found.items()
    }
    if arguments.json:
        print(
            json.dumps(
                {"tier": current_identity().tier.value, "repeats": arguments.repeats, "rows": table}, indent=2
            )
        )
    else:
        print(
            f"tier {current_identity().tier.value}, {arguments.repeats} rounds, seconds for Oracle and Nop together"
        )
        for row, v in table.items():
            print(
                f"{row:19} median {v['median']:.3f}  min {v['min']:.3f}  max {v['max']:.3f}  {v['floors']:5.2f} floors"
            )
    ratio = table["separate"]["floors"]
    if arguments.check is not None and ratio > arguments.check:
        print(f"separate takes {ratio:.2f} floors, more than {arguments.check}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
