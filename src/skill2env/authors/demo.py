"""The sessions of the scripted author: a small bookkeeping task, sound enough for every gate, varied by the seed."""

import random
import re
from dataclasses import dataclass
from importlib import resources

from skill2env.authors.protocol import CreateRequest
from skill2env.records import Metric, Phase, Skill, TaskContract, Workflow, canonical_json

VERSION = "1"
ACCOUNTS = ("Harbour Cafe", "Northside Clinic", "Print Shop", "Rowing Club", "Tram Depot", "Weaving Mill")

SUM_SENTENCE = (
    "Write /app/out/totals.csv with the header account,cents and a row for each account with a counted line."
)
VOID_SENTENCE = "Write /app/out/voided.txt with the number of every line that was voided, one a row."

INSTRUCTION = f"""Our ledger for the month is in /app/in/ledger.csv (columns line,account,cents,note). Please add it up.

A line whose note is `VOID n` cancels the line with the number n: neither of the two counts. A line that was voided
twice is cancelled once, and voiding a voiding line brings nothing back. Account names were typed by hand: ignore
letter case and surplus spaces, and write each name in the spelling of its first line, without surplus spaces.

{SUM_SENTENCE} The amount is in whole cents. Row order is up to you.

{VOID_SENTENCE} Voiding lines themselves are not listed.
"""

DOCKERFILE = """FROM debian-bookworm
RUN useradd --create-home --shell /bin/bash agent
COPY app/ /app/
RUN mkdir -p /app/out && chown agent:agent /app/out
WORKDIR /app
"""

RUBRIC = """# Rubric

## Must-do
- Counts every ledger line exactly once and leaves out voided and voiding lines.
- Treats spellings of one account as one account.

## Must-avoid
- Drops or doubles a line without saying so.

## Best-practice
- Resolves all cancellations before adding anything up, and checks that counted plus cancelled lines equal the ledger.
"""

METHOD = '''
import csv, re


def settle(rows):
    """Ledger rows -> (account -> cents, numbers of voided lines)."""
    void = {}
    for row in rows:
        match = re.fullmatch(r"VOID (\\d+)", row["note"].strip())
        if match:
            void[row["line"]] = match[1]
    voided = set(void.values())
    totals, names = {}, {}
    for row in rows:
        shown = " ".join(row["account"].split())
        name = names.setdefault(shown.casefold(), shown)
        if row["line"] not in void and row["line"] not in voided:
            totals[name] = totals.get(name, 0) + int(row["cents"])
    return totals, voided - set(void)
'''

GRADE = (
    '''"""Recompute the month from the private ledger and compare."""
import json, os, stat
'''
    + METHOD
    + """

def read(path):
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as stream:
        facts = os.fstat(stream.fileno())
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > 1_000_000:
            raise ValueError("not a plain file")
        return stream.read(1_000_000).decode("utf-8-sig")


def score(check):
    try:
        return 1.0 if check() else 0.0
    except Exception:
        return 0.0


def put(name, text):
    part = f"/logs/verifier/.{name}.part"
    with open(part, "w") as stream:
        stream.write(text)
    os.replace(part, f"/logs/verifier/{name}")


with open("/tests/ledger.csv", newline="") as stream:
    totals, voided = settle(list(csv.DictReader(stream)))


def totals_right():
    rows = list(csv.reader(read("/app/out/totals.csv").splitlines()))
    if [cell.strip() for cell in rows[0]] != ["account", "cents"]:
        return False
    found = [(row[0].strip(), int(row[1])) for row in rows[1:] if row]
    return len(found) == len(totals) and dict(found) == totals


def voided_right():
    found = read("/app/out/voided.txt").split()
    return len(found) == len(set(found)) and set(found) == voided


reward = {"totals_right": score(totals_right), "voided_right": score(voided_right)}
reward["reward"] = sum(reward.values()) / 2
put("reward.json", json.dumps(reward))
put("reward.txt", str(reward["reward"]))
"""
)

SOLVE = (
    """#!/bin/bash
# Resolve the cancellations first, then add up what is left.
set -euo pipefail
python3 - <<'PY'
"""
    + METHOD
    + """
with open("/app/in/ledger.csv", newline="") as stream:
    totals, voided = settle(list(csv.DictReader(stream)))
with open("/app/out/totals.csv", "w", newline="") as stream:
    csv.writer(stream).writerows([("account", "cents"), *sorted(totals.items())])
with open("/app/out/voided.txt", "w") as stream:
    stream.writelines(f"{line}\\n" for line in sorted(voided, key=int))
PY
"""
)


def workflows(skill: Skill) -> list[Workflow]:
    """One workflow, resting on the first sentence of the skill that is long enough; none when there is no such one."""
    sentence = first_sentence(skill)
    if not sentence:
        return []
    return [
        Workflow(
            name="settle-ledger",
            summary="Add up a ledger in which lines cancel each other.",
            scenario="A bookkeeper closes the month.",
            initial_world="A ledger of forty lines with voided entries and inconsistent account names.",
            planted_problem="Voiding lines point forwards, twice at one line, and at each other.",
            difficulty_source="A single pass over the file counts some of the cancelled lines.",
            solution_sketch="Collect all cancellations, then add up the rest.",
            verifier_strategy="Recompute from a private copy of the ledger.",
            grounding=(sentence,),
        )
    ]


def first_sentence(skill: Skill) -> str:
    """The first line of the description or body with at least twenty characters, blanks joined."""
    lines = [" ".join(line.split()) for line in (*skill.description.splitlines(), *skill.body.splitlines())]
    return next((line for line in lines if len(line) >= 20), "")


def files(request: CreateRequest) -> dict[str, str | bytes | None]:
    """What the session of this phase writes."""
    if request.phase is not Phase.CONTRACT:
        return {"solution/solve.sh": SOLVE}
    ledger = _Ledger.of(request.spec.seed).text()
    contract = TaskContract(
        title="Settle the monthly ledger",
        metrics=(
            Metric(name="totals_right", sentence=SUM_SENTENCE),
            Metric(name="voided_right", sentence=VOID_SENTENCE),
        ),
        artifacts=("/app/out/totals.csv", "/app/out/voided.txt"),
        keywords=("bookkeeping", "csv"),
    )
    return {
        "contract.json": canonical_json(contract),
        "instruction.md": INSTRUCTION,
        "environment/Dockerfile": DOCKERFILE,
        "environment/app/in/ledger.csv": ledger,
        "tests/test.sh": verifier_script(("totals_right", "voided_right")),
        "tests/grade.py": GRADE,
        "tests/ledger.csv": ledger,
        "tests/rubric.md": RUBRIC,
    }


def verifier_script(metrics: tuple[str, ...]) -> str:
    """The test.sh that the contract prompt shows, with these metric names."""
    skeleton = resources.files("skill2env.prompts").joinpath("parts", "test.sh").read_text(encoding="utf-8")
    zeros = ", ".join(f'"{name}": 0' for name in metrics)
    return re.sub(r'"first_metric": 0, "second_metric": 0', zeros, skeleton)


@dataclass(frozen=True, slots=True)
class _Ledger:
    rows: tuple[tuple[int, str, int, str], ...]

    @classmethod
    def of(cls, seed: int) -> "_Ledger":
        rng = random.Random(seed)
        names = rng.sample(ACCOUNTS, 4)
        rows: list[tuple[int, str, int, str]] = []
        for line in range(1, 41):
            name = rng.choice(names)
            typed = rng.choice((name, name.upper(), f"{name} ", name.replace(" ", "  ")))
            rows.append((line, typed, rng.randrange(100, 90_000), "booked"))
        for line, target in ((12, 30), (17, 5), (25, 5), (33, 12), (38, rng.randrange(18, 24))):
            number, name, cents, _ = rows[line - 1]
            rows[line - 1] = (number, name, cents, f"VOID {target}")
        return cls(tuple(rows))

    def text(self) -> str:
        return "line,account,cents,note\n" + "".join(
            f"{n},{name},{cents},{note}\n" for n, name, cents, note in self.rows
        )
