"""Count the private coding again by the study plan and compare with what was delivered."""

import csv
import io
import sys
from fractions import Fraction
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # python runs isolated, so the helper beside us must be named

from reward import delivered_text, run  # noqa: E402

METRICS = ("base", "themes", "codes", "agreement")


def rows(name):
    with open(HERE / f"private_{name}.csv", newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


class Study:
    """The inputs, reduced to what counts."""

    def __init__(self):
        book = {row["code"]: row for row in rows("codebook")}
        self.theme_of = {code: row["theme"] for code, row in book.items() if row["status"] == "active"}
        self.book = book
        sessions = rows("sessions")
        out = {row["person"] for row in sessions if row["role"] == "staff" or row["consent"] == "withdrawn"}
        self.person_of = {
            row["session"]: row["person"] for row in sessions if row["kind"] != "pilot" and row["person"] not in out
        }
        self.base = {}
        for person in self.person_of.values():
            self.base[person] = self.base.get(person, 0) + 1
        self.segments = [
            (row["segment"], self.person_of[row["session"]], row["coders"])
            for row in rows("segments")
            if row["session"] in self.person_of and row["speaker"] == "P"
        ]
        self.given = {name: self._given(name) for name in ("coder_a", "coder_b")}
        self.adjudicated = {
            row["segment"]: {self.present(code) for code in row["codes"].split()} - {None} for row in rows("adjudicated")
        }

    def present(self, code):
        """The active code that a code stands for, or None when it is retired."""
        while self.book[code]["status"] == "renamed":
            code = self.book[code]["now"]
        return code if self.book[code]["status"] == "active" else None

    def _given(self, name):
        found = {}
        for row in rows(name):
            code = self.present(row["code"])
            if code:
                found.setdefault(row["segment"], set()).add(code)
        return found

    def holding(self, segment, coders):
        if segment in self.adjudicated:
            return self.adjudicated[segment]
        first, second = (self.given[name].get(segment, set()) for name in ("coder_a", "coder_b"))
        return first & second if coders == "2" else first


def table(name, header):
    """{first column: other columns} of a delivered CSV below exactly this header, or None."""
    text = delivered_text(f"/app/out/{name}")
    if text is None:
        return None
    found = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if row]
    if not found or found[0] != header or any(len(row) != len(header) for row in found):
        return None
    parsed = {row[0]: row[1:] for row in found[1:]}
    return parsed if len(parsed) == len(found) - 1 else None


def near(text, exact):
    """True when text is a plain decimal with three places within rounding of the exact value."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    whole, dot, part = digits.partition(".")
    if not (dot and len(part) == 3 and (whole + part).isascii() and (whole + part).isdigit()):
        return False
    return abs(sign * Fraction(int(whole + part), 1000) - exact) <= Fraction(51, 100000)


def kappas(study):
    """{code: (a, b, both, kappa or None)} over double-coded participant segments."""
    double = [segment for segment, _, coders in study.segments if coders == "2"]
    found = {}
    for code in study.theme_of:
        first = {s for s in double if code in study.given["coder_a"].get(s, ())}
        second = {s for s in double if code in study.given["coder_b"].get(s, ())}
        p1, p2 = Fraction(len(first), len(double)), Fraction(len(second), len(double))
        observed = 1 - Fraction(len(first ^ second), len(double))
        expected = p1 * p2 + (1 - p1) * (1 - p2)
        kappa = None if expected == 1 else (observed - expected) / (1 - expected)
        found[code] = (len(first), len(second), len(first & second), kappa)
    return found


def grade():
    study = Study()
    themes, codes = {}, {code: set() for code in study.theme_of}
    for segment, person, coders in study.segments:
        holding = study.holding(segment, coders)
        for code in holding:
            codes[code].add(person)
        for theme in {study.theme_of[code] for code in holding}:
            themes.setdefault(theme, []).append(person)
    for theme in study.theme_of.values():
        themes.setdefault(theme, [])
    scores = dict.fromkeys(METRICS, 0)

    scores["base"] = int(table("base.csv", ["person", "sessions"]) == {p: [str(n)] for p, n in study.base.items()})
    found = table("themes.csv", ["theme", "people", "segments", "share"])
    if found is not None and set(found) == set(themes):
        scores["themes"] = int(
            all(
                found[t][:2] == [str(len(set(who))), str(len(who))]
                and near(found[t][2], Fraction(len(set(who)), len(study.base)))
                for t, who in themes.items()
            )
        )
    scores["codes"] = int(table("codes.csv", ["code", "people"]) == {c: [str(len(who))] for c, who in codes.items()})
    found, truth = table("agreement.csv", ["code", "segments_a", "segments_b", "both", "kappa"]), kappas(study)
    if found is not None and set(found) == set(truth):
        scores["agreement"] = int(
            all(
                found[code][:3] == [str(n) for n in values[:3]]
                and (found[code][3] == "" if values[3] is None else near(found[code][3], values[3]))
                for code, values in truth.items()
            )
        )
    return scores


run(METRICS, grade)
