"""A dataset as strangers run it: compiled from the examples, served from a registry, run by Harbor's own command line.

    .venv/bin/python benchmarks/harbor_run.py [--skills NAME,NAME] [--engines docker,podman] [--no-stock] [--workers 2]

Compiles the example skills with their recorded authoring sessions, pushes the bases that the Dockerfiles name to a
registry on this machine (Debian's docker-registry), and runs Oracle and Nop with ``harbor run`` in our namespace
sandbox, in ours on each engine that answers, and in Harbor's own docker environment. Prints every reward. Exit code 1
when two of them disagree, the Oracle does not earn 1 or the Nop not 0.

Harbor's own docker enforces no-network with an image that it pulls. Where that cannot be had, its environment runs with
compose's ``network_mode: none`` instead, which is said.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skill2env.sandbox import catalog
from skill2env.sandbox.engine import ENGINES, answers

ROOT = Path(__file__).resolve().parent.parent
AGENTS = {"oracle": 1.0, "nop": 0.0}
OURS = {"docker": "skill2env.sandbox:DockerEnvironment", "podman": "skill2env.sandbox:PodmanEnvironment"}
NAMESPACE = "skill2env.sandbox:NamespaceEnvironment"
STOCK, STOCK_OFFLINE = "docker", "skill2env.harbor.docker:OfflineDockerEnvironment"

type Rewards = dict[str, dict[str, float] | str]
"""Task -> metrics, or what went wrong."""


@contextmanager
def registry(folder: Path) -> Iterator[str]:
    """A registry of this machine; yields ``localhost:PORT``."""
    program = shutil.which("docker-registry")
    if program is None:
        raise SystemExit("docker-registry is missing (scripts/docker.sh installs it)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = folder / "registry.yml"
    settings.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {folder}/registry}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\nlog: {{level: error}}\n"
    )
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([program, "serve", str(settings)], **quiet) as process:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        try:
            yield f"localhost:{port}"
        finally:
            process.terminate()


def program(name: str, *arguments: str | Path, environment: dict[str, str]) -> str:
    """Run a program of this virtual environment and return what it printed; a failure ends everything."""
    command = [str(Path(sys.executable).with_name(name)), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stdout


def compiled(skills: list[str], folder: Path, environment: dict[str, str]) -> Path:
    """Compile the examples; returns the dataset."""
    dataset = folder / "dataset"
    for skill in skills:
        program(
            "skill2env", "compile", ROOT / "examples/skills" / skill, "--recordings", ROOT / "examples/recordings",
            "--out", dataset, "--run", folder / f"run-{skill}", "--allow-degraded", environment=environment,
        )  # fmt: skip
    return dataset


def bases_of(dataset: Path) -> list[str]:
    """Catalog names of the bases that the Dockerfiles of a dataset name."""
    lines = [
        line for file in dataset.glob("*/environment/Dockerfile") for line in file.read_text().splitlines()
    ]
    names = {catalog.catalog_name(line.split()[1], {}) for line in lines if line.startswith("FROM ")}
    return sorted(name for name in names if name)


def refusal(text: str) -> str:
    """The error at the end of what Harbor printed, without the frame around it."""
    lines = [line.strip("╭╰─╮╯│ ") for line in text.splitlines()]
    return " ".join(line for line in lines[-6:] if line) or "nothing was said"


def harbor_run(
    dataset: Path, kind: str, agent: str, jobs: Path, workers: int, environment: dict[str, str]
) -> tuple[Rewards, float]:
    """(rewards by task, seconds) of one ``harbor run``."""
    command = [
        str(Path(sys.executable).with_name("harbor")), "run", "-y", "-q", "-p", str(dataset), "-a", agent, "-e", kind,
        "-n", str(workers), "--jobs-dir", str(jobs), "--job-name", "job",
    ]  # fmt: skip
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
    seconds = time.monotonic() - begun
    found: Rewards = {}
    for file in sorted(jobs.glob("job/*/result.json")):
        result = json.loads(file.read_text())
        error = (result.get("exception_info") or {}).get("exception_message", "")
        rewards = (result.get("verifier_result") or {}).get("rewards")
        found[result["task_name"].rpartition("/")[2]] = (
            rewards or (error.strip().splitlines() or ["no reward"])[-1]
        )
    if not found:
        told = refusal(done.stderr or done.stdout)
        found = dict.fromkeys((task.parent.name for task in dataset.glob("*/task.toml")), f"refused: {told}")
    return found, seconds


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--skills", default="expense-claim-audit,vendor-feed-intake", help="of examples/skills"
    )
    parser.add_argument(
        "--engines", default=",".join(ENGINES), help="of these, the ones that answer are used"
    )
    parser.add_argument("--no-stock", action="store_true", help="leave Harbor's own docker environment out")
    parser.add_argument("--workers", type=int, default=2, help="trials at one time")
    options = parser.parse_args()
    engines = [name for name in ENGINES if name in options.engines.split(",") and answers(name)]
    with tempfile.TemporaryDirectory(prefix="skill2env-harbor-run-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with registry(folder) as host:
            quiet = {"HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "true"}
            environment = {**os.environ, **quiet, catalog.REGISTRY_VARIABLE: f"{host}/skill2env"}
            os.environ[catalog.REGISTRY_VARIABLE] = environment[catalog.REGISTRY_VARIABLE]
            dataset = compiled(options.skills.split(","), folder, environment)
            for base in bases_of(dataset):
                program(
                    "skill2env",
                    "sandbox",
                    "bases",
                    "push",
                    base,
                    f"{host}/skill2env",
                    environment=environment,
                )
            kinds = {"namespace": NAMESPACE, **{f"ours on {one}": OURS[one] for one in engines}}
            if "docker" in engines and not options.no_stock:
                kinds["Harbor's docker"] = STOCK
            return compare(dataset, kinds, folder, options.workers, environment)


def compare(
    dataset: Path, kinds: dict[str, str], folder: Path, workers: int, environment: dict[str, str]
) -> int:
    """Run everything and print the table; 1 when something is not as it should be."""
    tasks = sorted(file.parent.name for file in dataset.glob("*/task.toml"))
    print(f"{len(tasks)} tasks, {workers} at a time, load {os.getloadavg()[0]:.1f}\n")
    wrong = 0
    for agent, expected in AGENTS.items():
        first: Rewards = {}
        for number, (label, kind) in enumerate(kinds.items()):
            jobs = folder / f"{agent}-{number}"
            found, seconds = harbor_run(dataset, kind, agent, jobs, workers, environment)
            if kind == STOCK and all(isinstance(value, str) for value in found.values()):
                print(
                    f"{agent:6} {label}: {next(iter(found.values()))[-300:]}\n{'':7}again with {STOCK_OFFLINE}"
                )
                found, seconds = harbor_run(
                    dataset, STOCK_OFFLINE, agent, jobs / "again", workers, environment
                )
            first = first or found
            same = found == first
            right = all(
                isinstance(value, dict) and set(value.values()) == {expected} for value in found.values()
            )
            right = right and sorted(found) == sorted(first) and len(found) == len(tasks)
            wrong += not (same and right)
            mark = "equal" if same and right else "WRONG"
            print(f"{agent:6} {label:16} {seconds:6.1f} s  {mark}")
            for task, value in found.items():
                told = (
                    value
                    if isinstance(value, str)
                    else " ".join(f"{k}={v:g}" for k, v in sorted(value.items()))
                )
                if number == 0 or not (same and right):
                    print(f"{'':7}{task}: {told}")
    print(f"\n{wrong} runs that are wrong or differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
