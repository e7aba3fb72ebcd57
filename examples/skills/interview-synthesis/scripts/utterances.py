"""Print a transcript as numbered utterances: one line each, tab separated (number, speaker, text).

Usage: python3 utterances.py TRANSCRIPT.md

A transcript has a front part up to a line "---", then utterances "M: ..." or "P: ..."; a line that starts with
two spaces continues the utterance before it.
"""

import sys


def utterances(path):
    """Return [(number, speaker, text)] with numbers from 1."""
    found, inside = [], False
    with open(path, encoding="utf-8") as handle:
        for line in handle:
            line = line.rstrip("\n")
            if not inside:
                inside = line.strip() == "---"
            elif line.startswith("  ") and found:
                found[-1][1] += " " + line.strip()
            elif line[:2] in ("M:", "P:"):
                found.append([line[0], line[2:].strip()])
    return [(number, speaker, text) for number, (speaker, text) in enumerate(found, 1)]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for row in utterances(sys.argv[1]):
        print(*row, sep="\t")
