"""What makes two tasks twins, and what does not."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from skill2env.harbor.likeness import likeness, portrait_of, quick_twins

INSTRUCTION = """\
The harbour office keeps its berths in `/app/berths.csv` with the columns `berth,length,depth`. Ships ask for a berth in
`/app/requests.csv` with the columns `ship,length,draught`. Give every ship, in the order of the requests, the shortest
free berth that is at least as long as the ship and at least half a metre deeper than its draught. Write
`/app/out/plan.csv` with the header `ship,berth`; a ship that gets no berth is written with an empty berth.
"""
SOLVE = """\
#!/bin/bash
set -euo pipefail
python3 - <<'PY'
import csv
berths = sorted(csv.DictReader(open("/app/berths.csv")), key=lambda b: float(b["length"]))
with open("/app/out/plan.csv", "w", newline="") as out:
    plan = csv.writer(out)
    plan.writerow(["ship", "berth"])
    for ship in csv.DictReader(open("/app/requests.csv")):
        for berth in berths:
            deep = float(berth["depth"]) >= float(ship["draught"]) + 0.5
            if deep and float(berth["length"]) >= float(ship["length"]):
                berths.remove(berth)
                plan.writerow([ship["ship"], berth["berth"]])
                break
        else:
            plan.writerow([ship["ship"], ""])
PY
"""
HARNESS = (
    "import json\n\n\ndef emit(grades):\n    json.dump(grades, open('/logs/verifier/reward.json', 'w'))\n" * 6
)
OTHER_NAMES = (
    ("berth", "stall"),
    ("ship", "horse"),
    ("harbour", "stable"),
    ("draught", "weight"),
    ("plan", "list"),
)


def renamed(text: str) -> str:
    for old, new in OTHER_NAMES:
        text = text.replace(old, new)
    return text


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def make(name: str, files: Mapping[str, str] | None = None) -> Path:
        content = {
            "instruction.md": INSTRUCTION,
            "solution/solve.sh": SOLVE,
            "tests/test.sh": "#!/bin/bash\nexec python3 /tests/grade.py\n",
            "tests/harness.py": HARNESS,
            "tests/grade.py": SOLVE.replace("plan", "want"),
            "environment/berths.csv": "berth,length,depth\nA,100,7\nB,220,11\n",
            **(files or {}),
        }
        for path, text in content.items():
            place = tmp_path / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return tmp_path / name

    return make


def test_other_names_and_numbers_make_no_other_task(write: Callable[..., Path]) -> None:
    one = portrait_of(write("one"))
    other = write("other", {"environment/berths.csv": "stall,length,depth\nX,31,2\nY,47,3\n"})
    for path in ("instruction.md", "solution/solve.sh", "tests/grade.py"):
        place = other / path
        place.write_text(renamed(place.read_text()).replace("half a metre", "a quarter of a metre"))
    found = quick_twins(one, portrait_of(other))
    assert found is not None
    assert min(found.instruction, found.solution) > 0.9
    assert found.fixtures < 0.5


def test_a_shared_harness_makes_no_twins(write: Callable[..., Path]) -> None:
    one = portrait_of(write("one"))
    instruction = (
        "Count the words of every page in `/app/pages` and write the ten most frequent ones, most frequent first and by"
        " alphabet among equals, to `/app/out/words.txt`, one word a line."
    )
    solve = (
        "#!/bin/bash\ncat /app/pages/* | tr -cs a-z '\\n' | sort | uniq -c | sort -k1,1nr -k2 | head"
        " | awk '{print $2}' > /app/out/words.txt\n"
    )
    other = portrait_of(write("other", {"instruction.md": instruction, "solution/solve.sh": solve}))
    assert likeness(one, other).tests == 1
    assert quick_twins(one, other) is None


def test_the_same_order_for_other_work_is_no_twin(write: Callable[..., Path]) -> None:
    """A family of tasks: one way to ask, one script that applies a change, and another change each time."""
    apply = "import json\nfor file, text in json.load(open('change.json')).items():\n    open(file, 'w').write(text)\n"
    one, other = (
        portrait_of(write(name, {"solution/apply.py": apply, "solution/change.json": change}))
        for name, change in (
            ("one", '{"billing.py": "return total - discount if total > floor else total"}'),
            ("other", '{"shipping.py": "zones.setdefault(country, []).append(parcel.weight)"}'),
        )
    )
    found = likeness(one, other)
    assert found.instruction == 1
    assert not found.twins


def test_anything_can_be_compared(write: Callable[..., Path], tmp_path: Path) -> None:
    task = write("task")
    (task / "tests" / "loop").symlink_to("/")
    (task / "environment" / "blob.bin").write_bytes(b"\0\1" * 9)
    (task / "instruction.md").write_bytes(b"\xff\xfe broken")
    shutil.copytree(task, tmp_path / "copy", symlinks=True)
    nothing = portrait_of(tmp_path / "absent")
    assert quick_twins(portrait_of(task), portrait_of(tmp_path / "copy")) is not None
    assert quick_twins(nothing, nothing) is None
    assert likeness(portrait_of(task), nothing).score < 0.3
