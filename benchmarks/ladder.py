"""How far scripts without any understanding get on a dataset of code tasks: nop, test-reader, grep-and-revert.

    .venv/bin/python benchmarks/ladder.py DATASET [--limit N] [--json]

`nop` does nothing. `test-reader` believes the shown cases: it answers the calls of every run.py with its expected.txt
and leaves everything else alone. `grep-and-revert` turns single operators and numbers round, one at a time, until all
shown cases come out right. A good task gives the first two little, and the third a repair now and then.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "true")

from skill2env.harbor.agents import SCRIPT_AGENT
from skill2env.harbor.sandboxes import NAMESPACE_ENVIRONMENT, SandboxChoice
from skill2env.harbor.trial import run_trial

COMMON = """
import ast, os, re, subprocess, sys
from pathlib import Path
ROOT = Path.cwd()
CASES = sorted([*ROOT.glob("reports/case-*/run.py"), *ROOT.glob("examples/case-*/run.py")])
MODULES = [p for p in sorted(ROOT.rglob("*.py")) if not {"reports", "examples"} & set(p.relative_to(ROOT).parts)]

def wrong():
    "Number of shown cases that do not come out right."
    return sum(not right(case) for case in CASES)

def right(case):
    done = subprocess.run([sys.executable, "-B", str(case)], capture_output=True, timeout=30)
    return done.stdout == case.with_name("expected.txt").read_bytes()
"""

TEST_READER = (
    COMMON
    + """
TABLE = {}
for case in CASES:
    tree = ast.parse(case.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "show.call" and len(node.args) >= 1:
            name = ast.unparse(node.args[0])
            try:
                given = repr(tuple(ast.literal_eval(a) for a in node.args[1:]))
                answer = ast.literal_eval(case.with_name("expected.txt").read_text())
            except (ValueError, SyntaxError):
                continue
            TABLE.setdefault(name, {})[given] = answer
for path in MODULES:
    text = path.read_text()
    mine = {n: t for n, t in TABLE.items() if re.search(rf"^def {re.escape(n)}\\\\(", text, re.M)}
    for name, table in mine.items():
        text += (
            f"\\\\n_old_{name}, _table_{name} = {name}, {table!r}\\\\n"
            f"def {name}(*args, **kwargs):\\\\n"
            f"    found = _table_{name}.get(repr(args), _table_{name})\\\\n"
            f"    return _old_{name}(*args, **kwargs) if found is _table_{name} else found\\\\n"
        )
    path.write_text(text)
"""
).replace("\\\\", "\\")

REVERT = (
    COMMON
    + """
import time
SWAPS = (
    "<=|<  >=|>  ( < )|( <= )  ( > )|( >= )  ( + )|( - )  ( - )|( + )  ( * )|( / )  ( / )|( * )  min(|max(  max(|min(  "
    "( and )|( or )  ( or )|( and )  [0]|[-1]  [-1]|[0]  any(|all(  all(|any(  continue|break  break|continue  "
    "( = )|( += )  lstrip|strip  rstrip|strip  endswith|startswith  startswith|endswith  rsplit|split  "
    "reverse=True|reverse=False  reverse=False|reverse=True  False|True  True|False"
)
PAIRS = [[p[1:-1] if p[0] + p[-1] == "()" else p for p in pair.split("|")] for pair in SWAPS.split("  ")]

def edits(text):
    for found in re.finditer(r"(?<![\\w.])\\d+(?![\\w.])", text):
        for new in (int(found[0]) + 1, int(found[0]) - 1):
            yield text[: found.start()] + str(new) + text[found.end() :]
    for old, new in PAIRS:
        for found in re.finditer(re.escape(old), text):
            yield text[: found.start()] + new + text[found.end() :]

end = time.monotonic() + 90
for path in MODULES:
    text = path.read_text()
    for changed in edits(text):
        if time.monotonic() > end or not CASES:
            break
        try:
            ast.parse(changed)
        except SyntaxError:
            continue
        path.write_text(changed)
        if all(right(case) for case in CASES):
            sys.exit(0)
    path.write_text(text)
"""
)

LADDER = {"nop": "pass", "test-reader": TEST_READER, "grep-and-revert": REVERT}
FAMILIES = {
    "wrong-results": "repair",
    "rebuild": "rebuild",
    "migrate": "migrate",
    "write-tests": "author-tests",
    "operate": "operate",
}
"""Workflow's part of a task's name -> family."""


def family_of(name: str) -> str:
    """Family by the workflow's part of a task's name."""
    return next((family for part, family in FAMILIES.items() if f"-{part}-" in name), "other")


def climb(task: Path, solver: str, scratch: Path) -> dict[str, float]:
    """Metrics that a script earns; empty where the trial gave none."""
    source = scratch / f"{solver}.sh"
    source.write_text(
        f"#!/bin/bash\n/usr/bin/python3 - <<'LADDER'\n{LADDER[solver]}\nLADDER\ntrue\n", encoding="utf-8"
    )
    outcome = run_trial(
        task,
        SCRIPT_AGENT,
        environment=SandboxChoice("namespace", NAMESPACE_ENVIRONMENT),
        trials_dir=scratch / "trials",
        agent_kwargs={"source": str(source), "target": "/tmp/ladder"},
    )
    return dict(outcome.rewards or {})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--limit", type=int, default=0, help="so many tasks at most, by name; 0 takes all")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    tasks = sorted(path.parent for path in args.dataset.glob("*/task.toml"))
    tasks = tasks[: args.limit or len(tasks)]
    rows: list[dict[str, object]] = []
    means: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="ladder-") as folder:
        for task in tasks:
            for solver in LADDER:
                rewards = climb(task, solver, Path(folder))
                rows.append({"task": task.name, "solver": solver, "rewards": rewards})
                if "reward" in rewards:
                    means[family_of(task.name), solver].append(rewards["reward"])
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    print("| family | solver | tasks | mean reward | solved |\n|---|---|---|---|---|")
    for (family, solver), found in sorted(means.items()):
        solved = sum(value == 1 for value in found)
        print(f"| {family} | {solver} | {len(found)} | {sum(found) / len(found):.2f} | {solved} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
