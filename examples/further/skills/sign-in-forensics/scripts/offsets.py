"""Print the clock offset of each run of paired events, and where it changes.

Usage: python3 offsets.py PAIRS.csv
The file has the header ``place,reference,other``: where the event stands in the other log, and the two times as seconds.
Offset = reference - other. Rows are taken in the order of the file.
"""

import csv
import sys


def runs(rows):
    """Yield (first place, last place, offset, pairs) of neighbouring rows with one offset."""
    current = None
    for row in rows:
        offset = int(row["reference"]) - int(row["other"])
        if current and current[2] == offset:
            current = (current[0], row["place"], offset, current[3] + 1)
            continue
        if current:
            yield current
        current = (row["place"], row["place"], offset, 1)
    if current:
        yield current


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], newline="", encoding="utf-8") as handle:
        for first, last, offset, pairs in runs(csv.DictReader(handle)):
            print(f"{first} to {last}: {offset:+d} s ({pairs} pairs)")
