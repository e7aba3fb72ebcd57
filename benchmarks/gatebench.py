"""Run the gates over labelled tasks: recall by kind, false rejections, trials and seconds, beside the two paper gates.

    python benchmarks/gatebench.py [FOLDER] [--levels paper,standard,strict] [--workers 2] [--json FILE]

FOLDER holds ``labels.json`` (or several ``labels*.json``) and the tasks, in ``tasks/`` or beside the labels; ``@BASE@``
in their Dockerfiles stands for the base. Where it holds ``paper_gates.json`` the verdicts of level paper must equal it,
except for tasks labelled as flaky. A `warn` fault may be rejected when another gate has a reason; each is printed with
that reason, for a person to judge. Exit code 1 when they do not, when a sound task is rejected, or when a level finds
fewer of the `reject` faults than it must (standard 0.9, strict all).
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skill2env.harbor.sandboxes import namespace_sandbox
from skill2env.records import Severity, Verdict, VerdictStatus
from skill2env.sandbox.images import ensure_base
from skill2env.verify.gate import GateContext, Level
from skill2env.verify.many import Verified, verify_many
from skill2env.verify.rules import Profile

PLACEHOLDER = "@BASE@"
UNPINNED = "localhost/s2e-base"
"""Image that the tasks without a pin name."""
WORDS = {VerdictStatus.ACCEPTED: "accept", VerdictStatus.REJECTED: "reject", VerdictStatus.INFRA: "infra"}
LEAST_RECALL = {Level.PAPER: 0.0, Level.STANDARD: 0.9, Level.STRICT: 1.0}

type Labels = Mapping[str, Mapping[str, Any]]


def read_labels(folder: Path) -> dict[str, dict[str, Any]]:
    files = sorted(folder.glob("labels*.json"))
    return {item["id"]: item for file in files for item in json.loads(file.read_text(encoding="utf-8"))}


def copy_tasks(folder: Path, target: Path, reference: str) -> list[Path]:
    """Copies that may be built: writable, and on a base that exists."""
    inner = folder / "tasks"
    tasks: list[Path] = []
    for source in sorted((inner if inner.is_dir() else folder).iterdir()):
        if not source.is_dir():
            continue
        copy = target / source.name
        shutil.copytree(source, copy, symlinks=True)
        for path in [copy, *copy.rglob("*")]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o200)
        for dockerfile in copy.rglob("Dockerfile"):
            text = dockerfile.read_text(encoding="utf-8")
            dockerfile.write_text(text.replace(PLACEHOLDER, reference), encoding="utf-8")
        tasks.append(copy)
    return tasks


def run(
    tasks: Sequence[Path], level: Level, base: str, workers: int, evidence: Path
) -> tuple[dict[str, Verified], float]:
    image_map = {UNPINNED: base}
    context = GateContext(namespace_sandbox(image_map), evidence, image_map=image_map)
    begun = time.monotonic()
    verified = verify_many(tasks, profile=Profile.FOREIGN, context=context, workers=workers, level=level)
    return {item.path.name: item for item in verified}, time.monotonic() - begun


def warned(verdict: Verdict) -> bool:
    return any(finding.severity is Severity.WARN for finding in verdict.findings)


def is_found(verdict: Verdict, severity: str) -> bool:
    """A `reject` fault is found when the task is rejected, a `warn` fault also when it is flagged."""
    rejected = verdict.status is VerdictStatus.REJECTED
    return rejected or (severity == "warn" and warned(verdict))


def trials(verdict: Verdict) -> int:
    return sum(gate.trials for gate in verdict.gates)


def overhead(verdict: Verdict) -> float:
    """Seconds of gates beyond those of their trials, where these ran one by one."""
    return sum(max(0.0, gate.seconds - gate.trial_seconds) for gate in verdict.gates)


def summary(found: Mapping[str, Verified], labels: Labels, seconds: float) -> dict[str, Any]:
    """The figures of one level."""
    kinds: dict[str, list[bool]] = {}
    recall: dict[str, list[bool]] = {"reject": [], "warn": []}
    for name, label in sorted(labels.items()):
        if label["label"] != "sound":
            hit = is_found(found[name].verdict, label["severity"])
            kinds.setdefault(label["kind"], []).append(hit)
            recall[label["severity"]].append(hit)
    sound = [name for name in sorted(found) if labels[name]["label"] == "sound"]
    accepted = [item.verdict for item in found.values() if item.verdict.status is VerdictStatus.ACCEPTED]
    return {
        "tasks": len(found),
        "seconds": round(seconds, 1),
        "recall": {severity: [sum(hits), len(hits)] for severity, hits in recall.items()},
        "kinds": {kind: [sum(hits), len(hits)] for kind, hits in sorted(kinds.items())},
        "missed": [
            name
            for name, label in sorted(labels.items())
            if label["label"] != "sound" and not is_found(found[name].verdict, label["severity"])
        ],
        "rejected_warn": {
            name: found[name].verdict.message
            for name, label in sorted(labels.items())
            if label["severity"] == "warn" and found[name].verdict.status is VerdictStatus.REJECTED
        },
        "sound": len(sound),
        "false_rejections": [n for n in sound if found[n].verdict.status is VerdictStatus.REJECTED],
        "undecided": [n for n in sorted(found) if found[n].verdict.status is VerdictStatus.INFRA],
        "trials": sum(trials(item.verdict) for item in found.values()),
        "most_trials": max((trials(verdict) for verdict in accepted), default=0),
        "mean_trials_accepted": round(sum(map(trials, accepted)) / max(1, len(accepted)), 1),
        "verdicts": {name: verdict_of(found[name]) for name in sorted(found)},
    }


def verdict_of(item: Verified) -> dict[str, Any]:
    verdict = item.verdict
    return {
        "verdict": WORDS[verdict.status],
        "reason": str(verdict.reason or verdict.boundary or ""),
        "message": verdict.message,
        "trials": trials(verdict),
        "seconds": round(sum(gate.seconds for gate in verdict.gates), 2),
        "beyond_trials": round(overhead(verdict), 2),
    }


def compare_paper(found: Mapping[str, Verified], expected: Mapping[str, str], labels: Labels) -> int:
    wrong = 0
    for name in sorted(expected):
        verdict = found[name].verdict
        word = WORDS[verdict.status]
        flaky = "paper_gates_accept_rate" in labels[name]
        if word != expected[name]:
            wrong += not flaky
            note = "flaky, either is right" if flaky else "WRONG"
            print(f"  {name}: {word}, expected {expected[name]} ({note}): {verdict.message[:160]}")
    print(f"  {wrong} verdicts differ from paper_gates.json")
    return wrong


def table(summaries: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Levels beside each other: totals first, then recall of each kind."""
    levels = list(summaries)
    yield "  ".join([f"{'':34}", *(f"{level:>10}" for level in levels)])
    rows: dict[str, list[str]] = {
        "recall of reject faults": [_share(summaries[level]["recall"]["reject"]) for level in levels],
        "recall of warn faults": [_share(summaries[level]["recall"]["warn"]) for level in levels],
        "warn faults rejected": [str(len(summaries[level]["rejected_warn"])) for level in levels],
        "sound tasks rejected": [
            f"{len(summaries[level]['false_rejections'])}/{summaries[level]['sound']}" for level in levels
        ],
        "undecided": [str(len(summaries[level]["undecided"])) for level in levels],
        "trials": [str(summaries[level]["trials"]) for level in levels],
        "trials of an accepted task": [str(summaries[level]["mean_trials_accepted"]) for level in levels],
        "most trials of an accepted task": [str(summaries[level]["most_trials"]) for level in levels],
        "seconds": [f"{summaries[level]['seconds']:.1f}" for level in levels],
        "seconds a task": [
            f"{summaries[level]['seconds'] / max(1, summaries[level]['tasks']):.2f}" for level in levels
        ],
    }
    for kind in next(iter(summaries.values()))["kinds"]:
        rows[f"  {kind}"] = [_share(summaries[level]["kinds"][kind]) for level in levels]
    for name, cells in rows.items():
        yield "  ".join([f"{name:34}", *(f"{cell:>10}" for cell in cells)])


def _share(pair: Sequence[int]) -> str:
    return f"{pair[0]}/{pair[1]}"


def failures(level: Level, figures: Mapping[str, Any]) -> Iterator[str]:
    right, total = figures["recall"]["reject"]
    if level is not Level.PAPER and total and right / total < LEAST_RECALL[level]:
        yield f"{level.value}: {right} of {total} reject faults found, {LEAST_RECALL[level]:.0%} wanted"
    for name in figures["false_rejections"]:
        yield f"{level.value}: sound task {name} is rejected: {figures['verdicts'][name]['message'][:200]}"
    for name, message in figures["rejected_warn"].items():
        print(f"  {level.value}: warn fault {name} is rejected as well, for {message}")
    for name in figures["missed"]:
        print(f"  {level.value}: missed {name}: {figures['verdicts'][name]['verdict']}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path(__file__).parents[2] / "shared" / "gatebench"
    )
    parser.add_argument("--base", default="debian-bookworm", help="catalog name of the base image")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--levels", default="paper,standard", help="levels to run, joined by commas")
    parser.add_argument("--only", default="", help="run only the tasks with these ids, joined by commas")
    parser.add_argument("--json", type=Path, help="write all figures there")
    options = parser.parse_args()
    labels = read_labels(options.folder)
    base = ensure_base(options.base, progress=print)
    summaries: dict[str, dict[str, Any]] = {}
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="gatebench-") as scratch:
        place = Path(scratch)
        place.chmod(0o755)
        wanted = set(filter(None, options.only.split(","))) or set(labels)
        tasks = [
            task
            for task in copy_tasks(options.folder, place / "tasks", base.reference)
            if task.name in wanted
        ]
        labels = {task.name: labels[task.name] for task in tasks if task.name in labels}
        tasks = [task for task in tasks if task.name in labels]
        for level in map(Level, options.levels.split(",")):
            found, seconds = run(tasks, level, options.base, options.workers, place / level.value)
            summaries[level.value] = summary(found, labels, seconds)
            expected = options.folder / "paper_gates.json"
            if level is Level.PAPER and expected.is_file() and not options.only:
                verdicts = json.loads(expected.read_text(encoding="utf-8"))
                if compare_paper(found, verdicts, labels):
                    wrong.append("paper: verdicts differ from paper_gates.json")
            wrong += failures(level, summaries[level.value])
            if options.json:
                options.json.write_text(json.dumps(summaries, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(summaries)))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
