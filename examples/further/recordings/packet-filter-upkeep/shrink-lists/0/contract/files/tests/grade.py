"""Compare each delivered list with the private original packet by packet, count its rules, and find the dead rules again."""

import csv
import io
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # python runs isolated, so the helpers beside us must be named

from filters import dead, different, numbered, rules  # noqa: E402
from reward import delivered_text, run  # noqa: E402
from world import lists  # noqa: E402

LIMITS = {"edge": 15, "branch": 16, "lab": 15, "voice": 16}
METRICS = (*LIMITS, "dead")


def short_and_same(text, original, limit):
    """1 when the delivered text is a list of few enough rules that decides every packet like the original one."""
    if text is None:
        return 0
    try:
        mine = rules(text)
    except ValueError as problem:
        print(problem)
        return 0
    return int(len(mine) <= limit and not different(original, mine))


def grade():
    scores, unused = {}, set()
    for name, limit in LIMITS.items():
        given = numbered(lists()[f"{name}.rules"])
        original = list(given.values())
        unused |= {(f"{name}.rules", str(list(given)[index])) for index in dead(original)}
        scores[name] = short_and_same(delivered_text(f"/app/out/{name}.rules"), original, limit)
    text = delivered_text("/app/out/dead.csv") or ""
    table = [tuple(cell.strip() for cell in row) for row in csv.reader(io.StringIO(text)) if row]
    scores["dead"] = int(table[:1] == [("list", "line")] and sorted(table[1:]) == sorted(unused))
    return scores


if __name__ == "__main__":
    run(METRICS, grade)
