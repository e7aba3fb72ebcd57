"""Run the gates over a gatebench folder and compare them with its labels.

    python benchmarks/gatebench.py [FOLDER] [--base debian-bookworm] [--workers 2] [--skip-standard]

Two passes: the paper gates alone (Nop and Oracle), whose verdicts must equal paper_gates.json except for tasks labelled
as flaky, and every gate with the profile `foreign`, which must accept all sound tasks. Exit code 1 when either fails.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skill2env.harbor.sandboxes import namespace_sandbox
from skill2env.records import VerdictStatus
from skill2env.sandbox.images import ensure_base
from skill2env.verify.gate import GateContext, Level
from skill2env.verify.many import Verified, verify_many
from skill2env.verify.rules import Profile

PLACEHOLDER = "@BASE@"
UNPINNED = "localhost/s2e-base"
"""Image that the tasks without a pin name."""
WORDS = {VerdictStatus.ACCEPTED: "accept", VerdictStatus.REJECTED: "reject", VerdictStatus.INFRA: "infra"}


def copy_tasks(folder: Path, target: Path, reference: str) -> list[Path]:
    tasks: list[Path] = []
    for source in sorted((folder / "tasks").iterdir()):
        copy = target / source.name
        shutil.copytree(source, copy, symlinks=True)
        for path in [copy, *copy.rglob("*")]:
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


def compare_paper(
    found: Mapping[str, Verified], expected: Mapping[str, str], labels: Mapping[str, Any]
) -> int:
    wrong = 0
    for name in sorted(expected):
        verdict = found[name].verdict
        word = WORDS[verdict.status]
        flaky = "paper_gates_accept_rate" in labels[name]
        if word != expected[name]:
            wrong += not flaky
            note = "flaky, either is right" if flaky else "WRONG"
            print(f"  {name}: {word}, expected {expected[name]} ({note}): {verdict.message[:160]}")
    return wrong


def print_standard(found: Mapping[str, Verified], labels: Mapping[str, Any]) -> int:
    counts: dict[str, int] = {}
    for name, verified in sorted(found.items()):
        verdict, label = verified.verdict, labels[name]
        warned = any(finding.severity.value == "warn" for finding in verdict.findings)
        word = WORDS[verdict.status]
        key = (
            f"{label['severity'] or 'sound'}: {word}{' with warnings' if warned and word == 'accept' else ''}"
        )
        counts[key] = counts.get(key, 0) + 1
        why = str(verdict.reason or verdict.boundary or "")
        print(f"  {name:22} {label['kind']:32} {word:7} {why:18} {verdict.message[:80]}")
    for key, count in sorted(counts.items()):
        print(f"  {count:3} {key}")
    sound = [name for name in found if labels[name]["label"] == "sound"]
    return sum(found[name].verdict.status is not VerdictStatus.ACCEPTED for name in sound)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path(__file__).parents[2] / "shared" / "gatebench"
    )
    parser.add_argument("--base", default="debian-bookworm", help="catalog name of the base image")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--skip-standard", action="store_true", help="run the paper gates only")
    options = parser.parse_args()
    labels = {
        item["id"]: item for item in json.loads((options.folder / "labels.json").read_text(encoding="utf-8"))
    }
    expected = json.loads((options.folder / "paper_gates.json").read_text(encoding="utf-8"))
    base = ensure_base(options.base, progress=print)
    with tempfile.TemporaryDirectory(prefix="gatebench-") as scratch:
        place = Path(scratch)
        place.chmod(0o755)
        tasks = copy_tasks(options.folder, place / "tasks", base.reference)
        found, seconds = run(tasks, Level.PAPER, options.base, options.workers, place / "paper")
        wrong = compare_paper(found, expected, labels)
        print(
            f"paper gates: {len(tasks)} tasks in {seconds:.1f} s, {wrong} verdicts differ from paper_gates.json"
        )
        false_alarms = 0
        if not options.skip_standard:
            found, seconds = run(tasks, Level.STANDARD, options.base, options.workers, place / "standard")
            false_alarms = print_standard(found, labels)
            print(
                f"standard gates: {len(tasks)} tasks in {seconds:.1f} s, {false_alarms} false alarms on sound tasks"
            )
    return 1 if wrong or false_alarms else 0


if __name__ == "__main__":
    sys.exit(main())
