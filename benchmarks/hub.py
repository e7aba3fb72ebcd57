"""How fast a hub is: from cold to decided, nothing changed, and at growing size; with processor time and memory.

    python benchmarks/hub.py [--corpus SOURCE]... [--recipe NAME] [--scale 2500,10000] [--workers N] [--json FILE]

SOURCE is anything that `skill2env hub add` takes. ``--scale`` makes so many skills by a seeded generator and prints the
time a skill takes relative to the smallest size (1.00 is linear). Wall time depends on what else the machine does, so
the load is printed beside it; processor time and memory are those of this process and all of its workers.
"""

import argparse
import json
import os
import random
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from skill2env.hub.database import Database
from skill2env.hub.folder import Hub, register
from skill2env.hub.queries import stats
from skill2env.hub.recipes import read_recipe
from skill2env.hub.sources import spec_of
from skill2env.hub.update import sync_hub

PAGE = resource.getpagesize()
TICKS = os.sysconf("SC_CLK_TCK")
SYLLABLES = "ka ro mi ten sol va ler du pi nor esh ta lu gan fer oma ist rel co bar".split()
NEAR_SHARE = 0.08
SEED = 7


class Meter:
    """Samples processor time and resident memory of this process and everything below it."""

    def __init__(self) -> None:
        self.peak = 0
        self._spent: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Meter":
        self._begun = time.monotonic()
        self._own = time.process_time()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.monotonic() - self._begun
        self._stop.set()
        self._thread.join()
        self.cpu = time.process_time() - self._own + sum(self._spent.values())

    def _run(self) -> None:
        stopped = False
        while not stopped:
            stopped = self._stop.wait(0.5)  # looking at /proc costs what is measured
            below = _below(os.getpid())
            self._spent |= {pid: spent for pid, spent, _ in below}
            own = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE
            self.peak = max(self.peak, own + sum(memory for _, _, memory in below))


def _below(root: int) -> list[tuple[int, float, int]]:
    """Pid, processor seconds and resident bytes of all descendants."""
    children: dict[int, list[tuple[int, float, int]]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = (
                Path(f"/proc/{name}/stat")
                .read_text(encoding="utf-8", errors="replace")
                .rpartition(")")[2]
                .split()
            )
        except OSError:
            continue
        spent = (int(words[11]) + int(words[12])) / TICKS
        children.setdefault(int(words[1]), []).append((int(name), spent, int(words[21]) * PAGE))
    found: list[tuple[int, float, int]] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [pid for pid, _, _ in below]
    return found


def make_skills(folder: Path, count: int) -> None:
    """Write skills of about the size of real ones; the same count gives the same bytes."""
    rng = random.Random(SEED)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(6_000)]
    bodies: list[str] = []
    for number in range(count):
        if bodies and rng.random() < NEAR_SHARE:
            body = _changed(rng, rng.choice(bodies), words)
        else:
            body = _body(rng, words)
            if len(bodies) < 2_000:
                bodies.append(body)
        place = folder / f"{number % 997:03d}" / f"skill-{number:06d}"
        (place / "scripts").mkdir(parents=True)
        name = "-".join(rng.sample(words, 2))[:50]
        about = f"{' '.join(rng.sample(words, 9)).capitalize()}. Use when {' '.join(rng.sample(words, 6))}."
        text = f"---\nname: {name}\ndescription: {about}\nlicense: MIT\n---\n{body}"
        (place / "SKILL.md").write_text(text, encoding="utf-8")
        if number % 4 == 0:
            (place / "scripts/run.py").write_text(f"# {name}\nprint({number})\n" * 20, encoding="utf-8")
        else:
            (place / "scripts").rmdir()


def _body(rng: random.Random, words: Sequence[str]) -> str:
    parts: list[str] = []
    for step in range(rng.randint(4, 16)):
        parts.append(f"## {rng.choice(words).capitalize()} {step}\n")
        parts += [" ".join(rng.choices(words, k=rng.randint(20, 60))) + "." for _ in range(2)]
        parts.append(f"```python\n{rng.choice(words)} = open('{rng.choice(words)}.csv').read()\n```\n")
        parts.append(f"| {rng.choice(words)} | {rng.randint(1, 999)} |\n")
    return "\n".join(parts)


def _changed(rng: random.Random, body: str, words: Sequence[str]) -> str:
    """A near-copy: a few words replaced."""
    found = body.split(" ")
    for _ in range(max(1, len(found) // 150)):
        found[rng.randrange(len(found))] = rng.choice(words)
    return " ".join(found)


def measure(name: str, work: Callable[[], Any]) -> dict[str, Any]:
    """Run something once and print what it took."""
    load = os.getloadavg()[0]
    with Meter() as meter:
        work()
    row = {"what": name, "wall": round(meter.wall, 2), "cpu": round(meter.cpu, 2), "load": round(load, 1)}
    row["peak_mb"] = round(meter.peak / 1e6)
    print(
        f"{name:<34} {meter.wall:8.2f} s wall {meter.cpu:8.2f} s cpu {row['peak_mb']:6} MB  load before {load:.1f}",
        flush=True,
    )
    return row


def run(name: str, specs: Callable[[Hub], list[Any]], root: Path, workers: int) -> list[dict[str, Any]]:
    """From nothing to decided, and once more with nothing changed."""
    hub = Hub(root / "hub")
    register(hub, specs(hub))
    rows = [measure(f"{name}: cold", lambda: sync_hub(hub, workers=workers))]
    rows.append(measure(f"{name}: nothing changed", lambda: sync_hub(hub, workers=workers)))
    with Database.read(hub.index) as database:
        found = stats(database)
    rows[0] |= {"skills": found["skills"], "copies": found["copies"], "chosen": found["chosen"]}
    print(
        f"{'':<34} {found['skills']} contents, {found['copies']} copies, {found['chosen']} chosen", flush=True
    )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", action="append", default=[], help="a source; may be repeated")
    parser.add_argument("--recipe", default="", help="also the sources of a recipe (downloads them)")
    parser.add_argument("--scale", default="", help="sizes of generated corpora, separated by commas")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--dir", type=Path, default=None, help="where to work; removed afterwards")
    parser.add_argument("--json", type=Path, default=None)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    root = Path(tempfile.mkdtemp(prefix="hubbench-", dir=arguments.dir))
    try:
        for at, source in enumerate(arguments.corpus):
            place = root / f"corpus{at}"
            place.mkdir()
            rows += run(Path(source).name, lambda hub, s=source: [spec_of(hub, s)], place, arguments.workers)
        if arguments.recipe:
            (root / "recipe").mkdir()
            rows += run(
                arguments.recipe, lambda _: read_recipe(arguments.recipe), root / "recipe", arguments.workers
            )
        rows += scale([int(size) for size in arguments.scale.split(",") if size], root, arguments.workers)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0


def scale(sizes: Sequence[int], root: Path, workers: int) -> list[dict[str, Any]]:
    """Generated corpora, smallest first, with the cost of a skill relative to the smallest."""
    rows: list[dict[str, Any]] = []
    first: tuple[float, float] | None = None
    for size in sorted(sizes):
        place = root / f"scale{size}"
        make_skills(place / "skills", size)
        done = run(
            f"{size} generated", lambda hub, p=place: [spec_of(hub, str(p / "skills"))], place, workers
        )
        each = (done[0]["wall"] / size, done[0]["cpu"] / size)
        first = first or each
        ratios = [round(now / then, 2) for now, then in zip(each, first, strict=True)]
        done[0] |= {"wall_ratio": ratios[0], "cpu_ratio": ratios[1]}
        print(
            f"{'':<34} {1000 * each[0]:.2f} ms wall, {1000 * each[1]:.2f} ms cpu a skill;"
            f" {ratios[0]} and {ratios[1]} times those of {min(sizes)}"
        )
        rows += done
        shutil.rmtree(place, ignore_errors=True)
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
