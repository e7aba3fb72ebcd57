"""Check every quote of the draft against the transcripts."""

import csv
import re
import sys
from collections import Counter
from pathlib import Path

app = Path(sys.argv[1])
out = app / "out"
out.mkdir(exist_ok=True)
TYPOGRAPHY = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "\u00a0": " "})
GAP = re.compile(r"\[[^\]]*\]|…|\.{3}")


def normal(text):
    return re.sub(r"\s+", " ", text.translate(TYPOGRAPHY)).strip()


def read_transcript(path):
    head, _, talk = path.read_text(encoding="utf-8").partition("\n---\n")
    person = re.search(r"Person: (\S+)", head)[1]
    for number, match in enumerate(re.finditer(r"^([MP]):((?:.*)(?:\n  .*)*)", talk, re.M), 1):
        yield path.stem, number, person if match[1] == "P" else "M", normal(match[2])


spoken = [u for path in sorted((app / "transcripts").glob("*.md")) for u in read_transcript(path)]


def word_for_word(piece):
    return r"(?<![^\W_])" + re.escape(piece) + r"(?![^\W_])"


def judge(text, person):
    text = normal(text)
    pieces = [p.strip() for p in GAP.split(text)]
    pieces = [p for p in pieces if p]
    pattern = re.compile(".*?".join(word_for_word(p) for p in pieces))
    own = [u for u in spoken if u[2] == person]
    others = [u for u in spoken if u[2] != person]
    for verdict, pool in (("elided" if GAP.search(text) else "exact", own), ("misattributed", others)):
        for session, number, who, said in pool:
            if pattern.search(said):
                return verdict, session, number, who
    if all(any(re.search(word_for_word(p), u[3]) for u in own) for p in pieces):
        return "stitched", "", "", ""
    return "not_found", "", "", ""


named, usable, rows, lines = Counter(), Counter(), [], []
for line in (app / "report.md").read_text(encoding="utf-8").split("\n"):
    match = re.match(r'- (Q\d+) \((P\d+)\):[^"“”]*["“”](.*)["“”]', line)
    if match:
        verdict = judge(match[3], match[2])
        rows.append((match[1], *verdict))
        named[match[2]] += 1
        good = verdict[0] in ("exact", "elided")
        usable[match[2]] += good
        if not good:
            continue
    lines.append(line)
(out / "report.md").write_text("\n".join(lines), encoding="utf-8")
with open(out / "quotes.csv", "w", newline="", encoding="utf-8") as handle:
    csv.writer(handle).writerows([("quote_id", "verdict", "session", "utterance", "speaker"), *rows])
with open(out / "people.csv", "w", newline="", encoding="utf-8") as handle:
    csv.writer(handle).writerows([("person", "quotes", "usable"), *((p, named[p], usable[p]) for p in sorted(named))])
