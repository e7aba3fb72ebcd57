"""Near-duplicates: time and recall of `near` beside its peers, on the same texts in one run.

    python benchmarks/duplicates.py [FOLDER] [--planted 400] [--scale 5000,20000] [--family 800] [--json FILE]

FOLDER holds files called SKILL.md at any depth; without it only made-up texts are used. Peers (datasketch, rensa) take
part where they are installed; they are no dependency of the project. Recall: of the planted near-copies whose exact
Jaccard measure reaches the threshold, how many are found. Exit code 1 when ours finds fewer than 0.995 of them, or when
time grows faster than the number of texts by more than a fifth.
"""

import argparse
import importlib.metadata
import itertools
import json
import os
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from skill2env.near import DEFAULT_THRESHOLD, Document, cluster, near_pairs
from skill2env.similarity import DEFAULT_SIZE, jaccard, shingles, words

type Pairs = set[tuple[int, int]]

LEAST_RECALL = 0.995
PERMUTATIONS = 128
_LETTERS = "etaoinshrdlucmfwypvbgk"


def vocabulary(seed: int, size: int = 30_000) -> list[str]:
    """Made-up words, commonest first."""
    rng = random.Random(seed)
    return ["".join(rng.choices(_LETTERS, k=rng.randint(2, 9))) for _ in range(size)]


def made_up_text(rng: random.Random, known: Sequence[str], length: int) -> str:
    """A text whose words are about as unevenly common as those of prose."""
    return " ".join(known[int(len(known) * rng.random() ** 4)] for _ in range(length))


def near_copy(text: str, target: float, rng: random.Random, size: int = DEFAULT_SIZE) -> str:
    """`text` with so many words replaced that its Jaccard measure with the original is about `target`."""
    found = words(text)
    many = max(len(found) - size + 1, 1)
    budget = many * (1 - target) / (1 + target)
    touched: set[int] = set()
    for place in rng.sample(range(len(found)), len(found)):
        hit = {at for at in range(place - size + 1, place + 1) if 0 <= at < many}
        if len(touched | hit) > budget:
            break
        touched |= hit
        found[place] = f"zz{rng.randrange(10**9)}"
    return " ".join(found)


def family(rng: random.Random, known: Sequence[str], members: int, target: float) -> list[str]:
    """Texts made of one template: each shares so much with each other that their Jaccard measure is about `target`."""
    template = words(made_up_text(rng, known, 900))
    own = round(len(template) * (1 - target) / (2 * target))
    return [" ".join([*template, *(f"m{rng.randrange(10**9)}" for _ in range(own))]) for _ in range(members)]


# ------------------------------------------------------------------------------------------------ who takes part


def ours(texts: Sequence[str], threshold: float) -> Pairs:
    return {(later, earlier) for later, earlier, _ in near_pairs(texts, threshold=threshold)}


def with_datasketch(texts: Sequence[str], threshold: float) -> Pairs:
    from datasketch import MinHash, MinHashLSH

    sets = [shingles(text) for text in texts]
    index = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
    found: Pairs = set()
    made = MinHash.bulk([[" ".join(one).encode() for one in item] for item in sets], num_perm=PERMUTATIONS)
    for place, sketch in enumerate(made):
        found |= {(place, other) for other in index.query(sketch)}
        index.insert(place, sketch)
    return {pair for pair in found if jaccard(sets[pair[0]], sets[pair[1]]) >= threshold}


def with_rensa(texts: Sequence[str], threshold: float) -> Pairs:
    from rensa import RMinHash, RMinHashLSH

    sets = [shingles(text) for text in texts]
    index = RMinHashLSH(threshold=threshold, num_perm=PERMUTATIONS, num_bands=16)
    found: Pairs = set()
    for place, item in enumerate(sets):
        sketch = RMinHash(num_perm=PERMUTATIONS, seed=42)
        sketch.update([" ".join(one) for one in item])
        found |= {(place, other) for other in index.query(sketch)}
        index.insert(place, sketch)
    return {pair for pair in found if jaccard(sets[pair[0]], sets[pair[1]]) >= threshold}


def shingling_only(texts: Sequence[str], threshold: float) -> Pairs:
    del threshold
    return {(len(shingles(text)), 0) for text in texts} and set()


TAKING_PART: dict[str, Callable[[Sequence[str], float], Pairs]] = {
    "ours": ours,
    "plain shingling alone": shingling_only,
    "datasketch": with_datasketch,
    "rensa": with_rensa,
}


def compare(texts: list[str], planted: list[tuple[int, int]], threshold: float) -> list[dict[str, Any]]:
    """Time and recall of everybody who is installed."""
    wanted = {
        pair for pair in planted if jaccard(shingles(texts[pair[0]]), shingles(texts[pair[1]])) >= threshold
    }
    rows: list[dict[str, Any]] = []
    for name, find in TAKING_PART.items():
        begun = time.perf_counter()
        try:
            found = find(texts, threshold)
        except ImportError:
            print(f"{name}: not installed, left out")
            continue
        spent = time.perf_counter() - begun
        version = "" if " " in name or name == "ours" else importlib.metadata.version(name)
        rows.append(
            {
                "who": f"{name} {version}".strip(),
                "texts": len(texts),
                "seconds": round(spent, 2),
                "pairs": len(found),
                "recall": None
                if name == "plain shingling alone"
                else len(found & wanted) / max(len(wanted), 1),
            }
        )
    return rows


def plant(texts: list[str], copies: int, rng: random.Random) -> list[tuple[int, int]]:
    """Append near-copies at Jaccard 0.75 to 0.99 of long enough texts; returns (copy, original)."""
    long = [place for place, text in enumerate(texts) if len(words(text)) > 120]
    planted: list[tuple[int, int]] = []
    for at in range(copies):
        original = rng.choice(long)
        texts.append(near_copy(texts[original], 0.75 + 0.24 * at / max(copies - 1, 1), rng))
        planted.append((len(texts) - 1, original))
    return planted


# ------------------------------------------------------------------------------------------------ growth


def made_up_corpus(count: int, members: int, seed: int) -> Iterator[str]:
    """Texts of some 1,000 words: a fifth near-copies, and one in 25 of a template's family."""
    rng, known = random.Random(seed), vocabulary(seed)
    families, members = max(1, count // 20_000), min(members, count // 25)
    left = count - families * members
    for _ in range(families):
        yield from family(rng, known, members, 0.6)
    for _ in range(left * 4 // 5):
        text = made_up_text(rng, known, rng.randint(200, 1800))
        yield text
        if rng.random() < 0.25:
            yield near_copy(text, rng.uniform(0.75, 0.99), rng)


def growth(counts: Sequence[int], members: int) -> list[dict[str, Any]]:
    """Seconds of `cluster` for growing numbers of texts."""
    rows: list[dict[str, Any]] = []
    for count in counts:
        documents = [
            Document(str(place), text) for place, text in enumerate(made_up_corpus(count, members, 11))
        ]
        begun, worked = time.perf_counter(), time.process_time()
        clusters = cluster(documents)
        rows.append(
            {
                "texts": len(documents),
                "words": sum(item.text.count(" ") + 1 for item in documents),
                "seconds": round(time.perf_counter() - begun, 2),
                "processor_seconds": round(time.process_time() - worked, 2),
                "clusters": len(clusters),
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        )
        print(json.dumps(rows[-1]))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--planted", type=int, default=400)
    parser.add_argument("--scale", default="5000,20000")
    parser.add_argument("--family", type=int, default=800)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    rng = random.Random(7)
    if chosen.folder:
        files = sorted(path for path in chosen.folder.rglob("SKILL.md") if path.is_file())
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in files]
    else:
        texts = list(made_up_corpus(3000, 100, 5))
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    rows = compare(texts, plant(texts, chosen.planted, rng), DEFAULT_THRESHOLD)
    for row in rows:
        print(json.dumps(row))
    counts = [int(item) for item in chosen.scale.split(",") if item]
    grown = growth(counts, chosen.family)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    if chosen.json:
        chosen.json.write_text(json.dumps({"compare": rows, "growth": grown}, indent=2), encoding="utf-8")
    missed = any(row["recall"] < LEAST_RECALL for row in rows if row["who"] == "ours")
    steep = any(
        after["processor_seconds"] / before["processor_seconds"] > 1.2 * after["words"] / before["words"]
        for before, after in itertools.pairwise(grown)
    )
    return int(missed or steep)


if __name__ == "__main__":
    sys.exit(main())
