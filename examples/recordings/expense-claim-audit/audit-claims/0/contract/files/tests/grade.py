"""Audit the private copy of the claims again and compare with what was delivered, metric by metric."""

import csv
import io
import sys
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # python runs isolated, so the helper beside us must be named

from reward import delivered_text, run  # noqa: E402

CENT = Decimal("0.01")
THRESHOLD = Decimal("75.00")
MEAL_CAP = Decimal("55.00")


def rows(name):
    with open(HERE / name, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def converted(claim, rates):
    amount = Decimal(claim["amount"])
    if claim["currency"] != "EUR":
        known = [r for r in rates if r["currency"] == claim["currency"] and r["date"] <= claim["expense_date"]]
        amount /= Decimal(max(known, key=lambda r: r["date"])["per_eur"])
    return amount.quantize(CENT, ROUND_HALF_UP)


def audit():
    """Return {line_id: (employee, eur, payable, reason)} by the rules of the policy."""
    rates = rows("private_rates.csv")
    held = {row["line_id"] for row in rows("private_receipts.csv")}
    claims = sorted(rows("private_claims.csv"), key=lambda c: c["line_id"])
    verdict, seen, groups, meals = {}, set(), {}, {}
    for claim in claims:
        line, eur = claim["line_id"], converted(claim, rates)
        merchant = " ".join(claim["merchant"].lower().split())
        spent, sent = date.fromisoformat(claim["expense_date"]), date.fromisoformat(claim["submitted"])
        twin = (claim["employee"], spent, merchant, claim["currency"], Decimal(claim["amount"]))
        reason = ""
        if twin in seen:
            reason = "duplicate"
        elif (sent - spent).days > 60:
            reason = "late"
        elif eur > THRESHOLD and line not in held:
            reason = "no_receipt"
        seen.add(twin)
        verdict[line] = [claim["employee"], eur, Decimal("0.00") if reason else eur, reason]
        if not reason and claim["category"] != "meal" and eur <= THRESHOLD:
            groups.setdefault((claim["employee"], spent, merchant, claim["category"]), []).append(line)
        if not reason and claim["category"] == "meal":
            meals.setdefault((claim["employee"], spent), []).append(line)
    for lines in groups.values():
        if len(lines) > 1 and sum(verdict[line][1] for line in lines) > THRESHOLD:
            for line in lines:
                if line not in held:
                    verdict[line][2:] = [Decimal("0.00"), "split"]
    for lines in meals.values():
        left = MEAL_CAP
        for line in lines:
            paid = min(verdict[line][1], left)
            if paid < verdict[line][1]:
                verdict[line][2:] = [paid, "meal_cap"]
            left -= paid
    return verdict


def table(path, header, key):
    """Parse a delivered CSV into {key: row}; None when it is not exactly what was asked for."""
    text = delivered_text(path)
    if text is None:
        return None
    found = list(csv.DictReader(io.StringIO(text)))
    if not found or list(found[0]) != header:
        return None
    table = {row[key]: row for row in found}
    return table if len(table) == len(found) else None


def money(text):
    """A delivered amount with exactly two decimals, or None."""
    text = (text or "").strip()
    whole, dot, cents = text.lstrip("-").partition(".")
    if not (dot and whole.isascii() and whole.isdigit() and cents.isascii() and cents.isdigit() and len(cents) == 2):
        return None
    return Decimal(text)


def grade():
    truth = audit()
    lines = table("/app/out/lines.csv", ["line_id", "eur", "payable", "reason"], "line_id")
    people = table("/app/out/employees.csv", ["employee", "claimed", "payable", "refused"], "employee")
    scores = dict.fromkeys(METRICS, 0)
    if lines is not None and set(lines) == set(truth):
        scores["conversion"] = int(all(money(lines[i]["eur"]) == t[1] for i, t in truth.items()))
        scores["payable"] = int(all(money(lines[i]["payable"]) == t[2] for i, t in truth.items()))
        scores["reasons"] = int(all((lines[i]["reason"] or "").strip() == t[3] for i, t in truth.items()))
    sums = {}
    for employee, eur, payable, _ in truth.values():
        claimed, paid = sums.get(employee, (0, 0))
        sums[employee] = (claimed + eur, paid + payable)
    if people is not None and set(people) == set(sums):
        scores["totals"] = int(
            all(
                [money(people[e][c]) for c in ("claimed", "payable", "refused")] == [claimed, paid, claimed - paid]
                for e, (claimed, paid) in sums.items()
            )
        )
    return scores


METRICS = ("conversion", "reasons", "payable", "totals")
run(METRICS, grade)
