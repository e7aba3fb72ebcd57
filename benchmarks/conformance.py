"""Gatebench in the namespace sandbox and in each engine that answers, metric by metric.

    .venv/bin/python benchmarks/conformance.py [FOLDER] [--workers 2] [--only TASK,TASK] [--engines docker,podman]

Runs the Oracle and the Nop of every task in each of them and prints a table. Exit code 1 when two sandboxes disagree on
a reward, or one of them fails where another one does not. Tasks labelled as flaky may disagree.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from gatebench import UNPINNED, copy_tasks

from skill2env.errors import InfraError
from skill2env.harbor.limits import Timeouts
from skill2env.harbor.sandboxes import SandboxChoice, engine_sandbox, namespace_sandbox
from skill2env.harbor.trial import run_trial
from skill2env.sandbox.engine import ENGINES, answers
from skill2env.sandbox.images import ensure_base

FLAKY = "flaky"
AGENTS = ("oracle", "nop")


def told(task: Path, agent: str, choice: SandboxChoice, trials: Path) -> str:
    """What one trial came to, in a form that can be compared."""
    try:
        outcome = run_trial(
            task,
            agent,
            environment=choice,
            trials_dir=trials,
            timeouts=Timeouts(agent_cap_sec=120, verifier_cap_sec=120),
        )
    except InfraError as error:
        return f"infra: {error.boundary}"
    rewards = outcome.rewards or {}
    words = " ".join(f"{name}={value:g}" for name, value in sorted(rewards.items()))
    failed = f" {outcome.failure.type}" if outcome.failure else ""
    code = f" exit {outcome.solve_exit_code}" if outcome.solve_exit_code is not None else ""
    return (words or "no reward") + failed + code


def row(task: Path, choices: Sequence[SandboxChoice], trials: Path) -> tuple[str, dict[str, list[str]]]:
    """(task, {sandbox: results of Oracle and Nop})."""
    return task.name, {
        choice.name: [told(task, agent, choice, trials) for agent in AGENTS] for choice in choices
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = Path(__file__).resolve().parent.parent.parent / "shared/gatebench"
    parser.add_argument("folder", nargs="?", type=Path, default=default)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="names of tasks, separated by commas")
    parser.add_argument(
        "--engines", default=",".join(ENGINES), help="of these, the ones that answer are compared"
    )
    arguments = parser.parse_args()
    labels = {item["id"]: item["kind"] for item in json.loads((arguments.folder / "labels.json").read_text())}
    image_map = {UNPINNED: "debian-bookworm"}
    choices = [
        namespace_sandbox(image_map),
        *(
            engine_sandbox(name, image_map)
            for name in ENGINES
            if name in arguments.engines.split(",") and answers(name)
        ),
    ]
    only = set(filter(None, arguments.only.split(",")))
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="skill2env-conformance-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        tasks = [
            task
            for task in copy_tasks(arguments.folder, folder / "tasks", ensure_base().reference)
            if not only or task.name in only
        ]
        print(f"{'task':24} {'agent':6} " + " ".join(f"{choice.name:10}" for choice in choices) + " rewards")
        with ThreadPoolExecutor(arguments.workers) as pool:
            for task, found in pool.map(lambda task: row(task, choices, folder / "trials"), tasks):
                for number, agent in enumerate(AGENTS):
                    results = {kind: values[number] for kind, values in found.items()}
                    first = results["namespace"]
                    flaky = FLAKY in str(labels.get(task, ""))
                    marks = [
                        "same" if value == first else "flaky" if flaky else "DIFFERS"
                        for value in results.values()
                    ]
                    wrong += marks.count("DIFFERS")
                    # All failing alike would be agreement about nothing.
                    wrong += labels.get(task) == "sound" and first.startswith(("no reward", "infra"))
                    print(f"{task:24} {agent:6} " + " ".join(f"{mark:10}" for mark in marks) + f" {first}")
                    for kind, value in results.items():
                        if value != first:
                            print(f"{'':31} {kind}: {value}")
    kinds = ", ".join(choice.name for choice in choices)
    print(f"\n{len(tasks)} tasks in {kinds}: {wrong} differences or sound tasks without a reward")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
