"""Check the private draft against the private transcripts again and compare with what was delivered."""

import csv
import io
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # python runs isolated, so the helper beside us must be named

from reward import delivered_text, run  # noqa: E402

METRICS = ("verdicts", "places", "people", "clean_report")
MARK = re.compile(r"\[[^\[\]]*\]|\u2026|\.\.\.")
QUOTE = re.compile(r'- (Q\d+) \((P\d+)\): ["\u201c\u201d](.*)["\u201c\u201d]\s*')


def plain(text):
    for fancy, simple in (("\u201c", '"'), ("\u201d", '"'), ("\u2019", "'"), ("\u2018", "'"), ("\u2013", "-"), ("\u2014", "-")):
        text = text.replace(fancy, simple)
    return " ".join(text.replace("\u00a0", " ").split())


def utterances():
    """[(session, number, speaker, text)] in order; the transcripts stand in one private file, split by form feeds."""
    found = []
    for part in (HERE / "private_transcripts.txt").read_text(encoding="utf-8").split("\f"):
        session = re.search(r"^# Session (S\d+)$", part, re.M).group(1)
        person = re.search(r"^Person: (P\d+)$", part, re.M).group(1)
        spoken = []
        for line in part.split("\n---\n", 1)[1].split("\n"):
            if line[:2] in ("M:", "P:"):
                spoken.append([person if line[0] == "P" else "M", line[2:]])
            elif line.startswith("  ") and spoken:
                spoken[-1][1] += " " + line
        found += [(session, n, who, plain(text)) for n, (who, text) in enumerate(spoken, 1)]
    return found


def after(text, piece, start=0):
    """Index behind the first whole-word occurrence of a piece at or after start, or -1."""
    while (at := text.find(piece, start)) >= 0:
        end = at + len(piece)
        if not (at and text[at - 1].isalnum()) and not text[end : end + 1].isalnum():
            return end
        start = at + 1
    return -1


def holds(text, pieces):
    position = 0
    for piece in pieces:
        position = after(text, piece, position)
        if position < 0:
            return False
    return True


def check(quote, person, spoken):
    """(verdict, session, utterance, speaker) of one quote."""
    text = plain(quote)
    pieces = [piece.strip() for piece in MARK.split(text) if piece.strip()]
    own = [u for u in spoken if u[2] == person]
    for verdict, pool in (("elided" if MARK.search(text) else "exact", own), ("misattributed", [u for u in spoken if u[2] != person])):
        for session, number, who, said in pool:
            if holds(said, pieces):
                return verdict, session, str(number), who
    stitched = all(any(after(said, piece) >= 0 for *_, said in own) for piece in pieces)
    return ("stitched" if stitched else "not_found"), "", "", ""


def table(name, header):
    text = delivered_text(f"/app/out/{name}")
    if text is None:
        return None
    found = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if row]
    if not found or found[0] != header or any(len(row) != len(header) for row in found):
        return None
    parsed = {row[0]: row[1:] for row in found[1:]}
    return parsed if len(parsed) == len(found) - 1 else None


def grade():
    spoken = utterances()
    draft = (HERE / "private_report.md").read_text(encoding="utf-8")
    truth, people, kept = {}, {}, []
    for line in draft.split("\n"):
        match = QUOTE.fullmatch(line)
        if match:
            quote_id, person, text = match.groups()
            truth[quote_id] = check(text, person, spoken)
            usable = truth[quote_id][0] in ("exact", "elided")
            count, good = people.get(person, (0, 0))
            people[person] = (count + 1, good + usable)
            if not usable:
                continue
        kept.append(line)
    scores = dict.fromkeys(METRICS, 0)
    found = table("quotes.csv", ["quote_id", "verdict", "session", "utterance", "speaker"])
    if found is not None and set(found) == set(truth):
        scores["verdicts"] = int(all(found[q][0] == t[0] for q, t in truth.items()))
        scores["places"] = int(all(tuple(found[q][1:]) == t[1:] for q, t in truth.items()))
    named = table("people.csv", ["person", "quotes", "usable"])
    scores["people"] = int(named == {p: [str(n), str(good)] for p, (n, good) in people.items()})
    report = delivered_text("/app/out/report.md")
    scores["clean_report"] = int(report is not None and report.rstrip("\n") == "\n".join(kept).rstrip("\n"))
    return scores


run(METRICS, grade)
