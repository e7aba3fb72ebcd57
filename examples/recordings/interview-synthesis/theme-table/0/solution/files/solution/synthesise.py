"""Base first, then people per theme and code, then agreement of the coders' own work."""

import csv
import sys
from collections import Counter, defaultdict
from pathlib import Path

app = Path(sys.argv[1])
out = app / "out"
out.mkdir(exist_ok=True)


def read(name):
    with open(app / name, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def write(name, header, lines):
    with open(out / name, "w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(header)
        writer.writerows(lines)


sessions = read("sessions.csv")
barred = {s["person"] for s in sessions if s["role"] == "staff" or s["consent"] == "withdrawn"}
person = {s["session"]: s["person"] for s in sessions if s["person"] not in barred and s["kind"] != "pilot"}
base = Counter(person.values())
write("base.csv", ["person", "sessions"], sorted(base.items()))

book = {row["code"]: row for row in read("codebook.csv")}
active = sorted(code for code, row in book.items() if row["status"] == "active")


def current(code):
    row = book[code]
    if row["status"] == "renamed":
        return current(row["now"])
    return {code} if row["status"] == "active" else set()


def sheet(name):
    marks = defaultdict(set)
    for row in read(f"coding/{name}.csv"):
        marks[row["segment"]] |= current(row["code"])
    return marks


a, b = sheet("coder_a"), sheet("coder_b")
settled = {row["segment"]: set().union(*map(current, row["codes"].split())) for row in read("coding/adjudicated.csv")}
evidence = [row for row in read("segments.csv") if row["session"] in person and row["speaker"] == "P"]

theme_people, theme_segments, code_people = defaultdict(set), Counter(), defaultdict(set)
for row in evidence:
    g = row["segment"]
    codes = settled.get(g, a[g] & b[g] if row["coders"] == "2" else a[g])
    who = person[row["session"]]
    for code in codes:
        code_people[code].add(who)
    for theme in {book[code]["theme"] for code in codes}:
        theme_people[theme].add(who)
        theme_segments[theme] += 1
themes = sorted({book[code]["theme"] for code in active})
write(
    "themes.csv",
    ["theme", "people", "segments", "share"],
    [(t, len(theme_people[t]), theme_segments[t], f"{len(theme_people[t]) / len(base):.3f}") for t in themes],
)
write("codes.csv", ["code", "people"], [(code, len(code_people[code])) for code in active])

double = [row["segment"] for row in evidence if row["coders"] == "2"]
lines = []
for code in active:
    n = len(double)
    n1 = sum(code in a[g] for g in double)
    n2 = sum(code in b[g] for g in double)
    both = sum(code in a[g] and code in b[g] for g in double)
    observed = (n - n1 - n2 + 2 * both) / n
    expected = (n1 * n2 + (n - n1) * (n - n2)) / n**2
    lines.append((code, n1, n2, both, "" if expected == 1 else f"{(observed - expected) / (1 - expected):.3f}"))
write("agreement.csv", ["code", "segments_a", "segments_b", "both", "kappa"], lines)
