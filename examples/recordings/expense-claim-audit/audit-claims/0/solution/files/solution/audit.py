"""Apply the policy's rules one after the other; a refused line leaves the game."""

import csv
import sys
from collections import defaultdict
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

app = Path(sys.argv[1])
CENT = Decimal("0.01")


def read(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


rates = defaultdict(list)
for row in read(app / "rates.csv"):
    rates[row["currency"]].append((row["date"], Decimal(row["per_eur"])))
receipts = {row["line_id"] for row in read(app / "receipts.csv")}

lines = []
for path in sorted((app / "claims").glob("*.csv")):
    for row in read(path):
        row["employee"] = path.stem.split("_")[0]
        amount = Decimal(row["amount"])
        if row["currency"] != "EUR":
            day, per_eur = max(r for r in rates[row["currency"]] if r[0] <= row["expense_date"])
            amount = amount / per_eur
        row["eur"] = row["payable"] = amount.quantize(CENT, ROUND_HALF_UP)
        row["shop"] = " ".join(row["merchant"].split()).casefold()
        row["reason"] = ""
        lines.append(row)
lines.sort(key=lambda row: int(row["line_id"][1:]))


def refuse(row, reason):
    row["reason"], row["payable"] = reason, Decimal("0.00")


def alive():
    return [row for row in lines if not row["reason"]]


first = set()
for row in alive():
    key = (row["employee"], row["expense_date"], row["shop"], row["currency"], Decimal(row["amount"]))
    if key in first:
        refuse(row, "duplicate")
    first.add(key)
for row in alive():
    if (date.fromisoformat(row["submitted"]) - date.fromisoformat(row["expense_date"])).days > 60:
        refuse(row, "late")
for row in alive():
    if row["eur"] > 75 and row["line_id"] not in receipts:
        refuse(row, "no_receipt")
groups = defaultdict(list)
for row in alive():
    if row["category"] != "meal" and row["eur"] <= 75:
        groups[row["employee"], row["expense_date"], row["shop"], row["category"]].append(row)
for group in groups.values():
    if sum(row["eur"] for row in group) > 75:
        for row in group:
            if row["line_id"] not in receipts:
                refuse(row, "split")
left = defaultdict(lambda: Decimal("55.00"))
for row in alive():
    if row["category"] == "meal":
        key = row["employee"], row["expense_date"]
        paid = min(row["eur"], left[key])
        left[key] -= paid
        if paid < row["eur"]:
            row["reason"], row["payable"] = "meal_cap", paid

out = app / "out"
out.mkdir(exist_ok=True)
with open(out / "lines.csv", "w", newline="", encoding="utf-8") as handle:
    writer = csv.DictWriter(handle, ["line_id", "eur", "payable", "reason"], extrasaction="ignore")
    writer.writeheader()
    writer.writerows(lines)
with open(out / "employees.csv", "w", newline="", encoding="utf-8") as handle:
    writer = csv.writer(handle)
    writer.writerow(["employee", "claimed", "payable", "refused"])
    for employee in sorted({row["employee"] for row in lines}):
        mine = [row for row in lines if row["employee"] == employee]
        claimed, payable = (sum((row[c] for row in mine), Decimal(0)) for c in ("eur", "payable"))
        writer.writerow([employee, claimed, payable, claimed - payable])
assert sum(row["payable"] for row in lines) <= sum(row["eur"] for row in lines)
