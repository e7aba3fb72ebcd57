"""Duplicates in packages that hold real copies: what `near` finds against all pairs compared one by one.

    python benchmarks/copies.py FOLDER...

Each FOLDER is an unpacked package (``npm pack cc-sdd@3.0.2``, ``npm pack ecc-universal@2.0.0``; never installed). The
truth is the exact Jaccard measure of every pair of skill bodies, computed without any index. Exit code 1 when a pair
that reaches the threshold is missed or one that does not is reported.
"""

import argparse
import itertools
import os
import sys
import time
from pathlib import Path

from skill2env.ingest import find_skills, load_skill
from skill2env.near import DEFAULT_THRESHOLD, Document, Likeness, cluster, near_pairs
from skill2env.similarity import jaccard, shingles


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    failed = False
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    print(
        "| package | skills | near pairs | found | wrong | clusters | exact copies | near copies | seconds | brute |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for folder in parser.parse_args().folders:
        paths = find_skills(folder).folders
        bodies = [load_skill(path).body for path in paths]
        begun = time.perf_counter()
        found = {(a, b) for a, b, _ in near_pairs(bodies)}
        spent = time.perf_counter() - begun
        begun = time.perf_counter()
        sets = [shingles(body) for body in bodies]
        wanted = {
            (b, a)
            for a, b in itertools.combinations(range(len(sets)), 2)
            if jaccard(sets[a], sets[b]) >= DEFAULT_THRESHOLD
        }
        slow = time.perf_counter() - begun
        clusters = cluster([Document(str(path), body) for path, body in zip(paths, bodies, strict=True)])
        members = [member for one in clusters for member in one.members]
        exact = sum(member.likeness is Likeness.EXACT for member in members)
        print(
            f"| {folder.name} | {len(paths)} | {len(wanted)} | {len(found & wanted)} | {len(found - wanted)} | "
            f"{len(clusters)} | {exact} | {len(members) - exact} | {spent:.2f} | {slow:.2f} |"
        )
        failed |= found != wanted
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
