"""A small skill of our own that carries code, tests and sample data: parcels are priced by weight and zone."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from skill2env.authors.code.bench import SandboxBench
from skill2env.authors.code.understand import Project, understand
from skill2env.ingest import load_skill
from skill2env.records import Skill
from skill2env.sandbox.catalog import DEFAULT_BASE
from skill2env.sandbox.doctor import namespace_works
from skill2env.sandbox.images import ensure_base, resolve_image

SKILL_MD = """
---
name: parcel-rates
description: Price parcels by weight and zone. Use when a shipment has to be priced.
license: MIT
---

# Parcel rates

You are **Parcel Rates**, an assistant.

## When to use

Whenever somebody says parcel.

## Rules

- Parcels up to and including 5 kg are light; the weight must never be rounded before the class is chosen.
- The total of a batch is the sum of its parcels, each rounded to cents.
- Zones are compared without regard to case or surrounding blanks.
- Never price a parcel without a zone.

## Usage

```bash
python parcel_rates.py --input parcels.csv --output out
python skills/parcel-rates/parcel_rates.py --demo --output /tmp/out
```
"""

CODE = '''
"""Price parcels."""

import argparse
import csv
import json
import sys
from pathlib import Path

RATES = {"home": 4.2, "near": 6.9, "far": 11.5}


def weight_class(weight: float) -> str:
    """Class of a parcel: light up to 5 kg, medium up to 20 kg, heavy above."""
    if weight <= 0:
        raise ValueError("weight must be positive")
    if weight <= 5:
        return "light"
    if weight <= 20:
        return "medium"
    return "heavy"


def zone_name(text: str) -> str:
    """Zone without blanks, lower case."""
    return text.strip().lower()


def price(weight: float, zone: str) -> float:
    """Price of one parcel in cents-exact currency."""
    base = RATES[zone_name(zone)]
    factor = {"light": 1.0, "medium": 1.75, "heavy": 3.0}[weight_class(weight)]
    surcharge = 0.0
    if weight > 10 and zone_name(zone) != "home":
        surcharge = (weight - 10) * 0.35
    return round(base * factor + surcharge, 2)


def price_batch(rows: list) -> dict:
    """Prices of a batch, dearest first, with the total."""
    priced = []
    for row in rows:
        priced.append({"id": row["id"], "price": price(float(row["weight"]), row["zone"])})
    priced.sort(key=lambda item: (-item["price"], item["id"]))
    return {"parcels": priced, "total": round(sum(item["price"] for item in priced), 2)}


def read_rows(path: Path) -> list:
    """Rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def main(argv=None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--input", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--demo", action="store_true")
    args = parser.parse_args(argv)
    source = Path(__file__).parent / "parcels.csv" if args.demo else args.input
    result = price_batch(read_rows(source))
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / "prices.json").write_text(json.dumps(result, indent=1))
    print(f"{len(result['parcels'])} parcels, {result['total']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''

TESTS = """
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import parcel_rates


CLASSES = [(0.5, "light"), (5, "light"), (5.1, "medium"), (20, "medium"), (20.5, "heavy")]
PRICES = [(1, "home", 4.2), (12, " Near ", 12.78), (30, "far", 41.5), (15, "home", 7.35)]


@pytest.mark.parametrize("weight, name", CLASSES)
def test_class(weight, name):
    assert parcel_rates.weight_class(weight) == name


@pytest.mark.parametrize("weight, zone, cost", PRICES)
def test_price(weight, zone, cost):
    assert parcel_rates.price(weight, zone) == pytest.approx(cost)


def test_no_weight():
    with pytest.raises(ValueError):
        parcel_rates.weight_class(0)


def test_batch():
    given = [("a", "5", "far"), ("b", "21", "near"), ("c", "5", "far")]
    rows = [{"id": name, "weight": weight, "zone": zone} for name, weight, zone in given]
    found = parcel_rates.price_batch(rows)
    assert [item["id"] for item in found["parcels"]] == ["b", "a", "c"]


def test_script(tmp_path):
    table = tmp_path / "in.csv"
    table.write_text("id,weight,zone\\nx,3,home\\ny,20,far\\nz,5,near\\n")
    script = Path(parcel_rates.__file__)
    done = subprocess.run([sys.executable, str(script), "--input", str(table), "--output", str(tmp_path / "o")])
    assert done.returncode == 0 and (tmp_path / "o" / "prices.json").is_file()
"""

SAMPLE = "id,weight,zone\nA1,2.5,home\nA2,5,near\nA3,18,far\nA4,26,near\nA5,0.4,far\n"


@pytest.fixture(scope="session")
def parcel_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("skills") / "parcel-rates"
    files = {
        "SKILL.md": SKILL_MD.lstrip(),
        "parcel_rates.py": dedent(CODE).lstrip(),
        "tests/test_parcel_rates.py": TESTS.lstrip(),
        "parcels.csv": SAMPLE,
        ".notes/todo.md": "hidden\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def parcel_skill(parcel_dir: Path) -> Skill:
    return load_skill(parcel_dir)


@pytest.fixture(scope="session")
def parcel_project(parcel_skill: Skill, parcel_dir: Path) -> Project:
    return understand(parcel_skill, parcel_dir)


@pytest.fixture(scope="session")
def base_layers() -> tuple[Path, ...]:
    """The plain base; skips where sandboxes cannot start."""
    if not namespace_works():
        pytest.skip("this machine forbids the namespace sandbox: see `skill2env doctor`")
    return (ensure_base().rootfs,)


@pytest.fixture
def bench(base_layers: tuple[Path, ...]) -> Iterator[SandboxBench]:
    del base_layers
    with SandboxBench(resolve_image(DEFAULT_BASE)) as started:
        yield started
