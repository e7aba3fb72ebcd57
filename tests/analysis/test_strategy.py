"""Steps of solutions: names go, the method stays."""

from pathlib import Path
from typing import Any

from skill2env.analysis.reading import read_corpus
from skill2env.analysis.strategy import python_steps, shell_steps, strategy_of, tools_of

ONE = """import csv
totals = {}
with open("accounts.csv") as stream:
    for row in csv.DictReader(stream):
        if row["void"] == "yes":
            continue
        totals[row["account"]] = totals.get(row["account"], 0) + int(row["amount"])
print(sorted(totals))
"""


def test_renamed_programs_have_equal_steps() -> None:
    other = ONE.replace("totals", "hours").replace("accounts.csv", "shifts.txt").replace("row", "entry")
    assert python_steps(ONE) == python_steps(other)
    assert ".DictReader" in "".join(python_steps(ONE))
    assert python_steps(ONE) != python_steps(ONE.replace("continue", "break"))
    assert python_steps("def broken(:") == []


def test_shell_keeps_commands_and_flags() -> None:
    script = b"#!/bin/bash\nset -e\nfor f in a b; do /usr/bin/sort -u -k2 \"$f\" | awk '{print}'; done\n"
    assert shell_steps(script) == ["for", "pipeline", "sort -k2 -u", "awk"]
    heredoc = b"python3 - <<'X'\nimport json\njson.loads('1')\nX\n"
    assert shell_steps(heredoc) == ["python3", "call .loads"]


def test_of_a_task(make_task: Any, tmp_path: Path) -> None:
    (make_task("one", solution="python3 solution.py\nsed -i s/a/b/ x\n") / "solution/solution.py").write_text(
        ONE
    )
    (task,) = read_corpus(tmp_path / "data").tasks
    assert strategy_of(task)[:2] == ("python3", "sed -i")
    assert len(strategy_of(task)) > 10
    assert tools_of(task) == {"python3", "sed"}
