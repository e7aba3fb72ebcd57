"""Grades delivered results: restored files, the tool's results, and the summary over them. Nothing delivered is run.

truth.json: {"delivered": DIR, "metrics": [NAME x 3], "orders": {ID: {"files": {NAME: TEXT}, "result": {...}}}}
"""

import json
import math
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
from grading import OUT, take, write_reward  # noqa: E402


def same(left: Any, right: Any) -> bool:
    """Equal JSON; numbers within 1e-9, truth values apart from numbers, texts without blanks at the end of lines."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return left == right or math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(left, str) and isinstance(right, str):
        return trimmed(left) == trimmed(right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left is right


def trimmed(text: str) -> "list[str]":
    """Lines without blanks at their ends, and without empty ones at the end."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


def read(path: Path) -> Any:
    """JSON of an untrusted file; None when there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None


def summary_of(orders: Any) -> "dict[str, Any]":
    """The summary that is right."""
    groups: "dict[str, list[str]]" = {}
    for name, order in orders.items():
        groups.setdefault(json.dumps(order["result"], sort_keys=True), []).append(name)
    lines = {
        name: sum(len(text.splitlines()) for text in order["files"].values())
        for name, order in orders.items()
    }
    alike = sorted(sorted(names) for names in groups.values() if len(names) > 1)
    return {"orders": len(orders), "lines": lines, "same": alike}


def text_of(path: Path) -> str:
    """An untrusted text file; empty when there is none."""
    try:
        return path.read_bytes().decode("utf-8-sig", "replace")
    except OSError:
        return ""


def score(orders: Any, outbox: Path) -> "list[float]":
    """Share of orders restored, share of orders with the right result, and whether the summary is right."""
    results, summary = read(outbox / "results.json"), read(outbox / "summary.json")
    restored = right = 0
    for name, order in orders.items():
        restored += all(
            trimmed(text_of(outbox / name / file)) == trimmed(text) for file, text in order["files"].items()
        )
        right += isinstance(results, dict) and name in results and same(results[name], order["result"])
    return [restored / len(orders), right / len(orders), float(same(summary, summary_of(orders)))]


def main() -> None:
    """Zeros, compare, scores."""
    spec = json.loads((HERE / "truth.json").read_text(encoding="utf-8"))
    OUT.mkdir(parents=True, exist_ok=True)
    write_reward(dict.fromkeys(spec["metrics"], 0.0))
    scratch = Path(tempfile.mkdtemp(prefix="grade-"))
    try:
        if os.path.isdir(spec["delivered"]) and not os.path.islink(spec["delivered"]):
            take(Path(spec["delivered"]), scratch / "outbox")
        scores = dict(zip(spec["metrics"], score(spec["orders"], scratch / "outbox")))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    write_reward(scores)
    print(json.dumps(scores))


if __name__ == "__main__":
    main()
