"""Pair refunds first, then take claim pairs from the nearest date up."""

import csv
import datetime as dt
import re
import sys
from decimal import Decimal
from pathlib import Path

app = Path(sys.argv[1])
out = app / "out"
out.mkdir(exist_ok=True)


def read(name, delimiter=","):
    with open(app / name, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle, delimiter=delimiter))


def key(text):
    text = text.strip().upper()
    for prefix in ("SUMUP *", "SQ *"):
        text = text.removeprefix(prefix)
    words = text.split()
    numbered = next((i for i, word in enumerate(words) if re.search(r"\d", word)), len(words))
    return " ".join(re.sub(r"[^A-Z ]", "", " ".join(words[:numbered])).split())


def german(text):
    return Decimal(text.replace(".", "").replace(",", "."))


card_of = {row["employee"]: row["card"] for row in read("cards.csv")}
postings = sorted(read("statement.csv", ";"), key=lambda p: p["posting_id"])
for p in postings:
    p["date"] = dt.datetime.strptime(p["transaction_date"], "%d.%m.%Y").date()
    p["value"], p["eur"] = german(p["amount"]), german(p["settled_eur"])
    p["shop"], p["status"] = key(p["text"]), "unexplained"

for refund in sorted((p for p in postings if p["value"] < 0), key=lambda p: (p["date"], p["posting_id"])):
    best = None
    for p in postings:
        same = all(p[c] == refund[c] for c in ("card", "shop", "currency"))
        if same and p["value"] == -refund["value"] and p["date"] <= refund["date"] and p["status"] != "refunded":
            if best is None or (p["date"], p["posting_id"]) > (best["date"], best["posting_id"]):
                best = p
    if best:
        best["status"], refund["status"] = "refunded", "refund"

claims = read("claims.csv")
pairs = []
for claim in claims:
    for p in postings:
        if (
            p["status"] == "unexplained"
            and p["card"] == card_of[claim["employee"]]
            and p["shop"] == key(claim["merchant"])
            and p["currency"] == claim["currency"]
            and p["value"] == Decimal(claim["amount"])
        ):
            days = abs((p["date"] - dt.date.fromisoformat(claim["date"])).days)
            if days <= 3:
                pairs.append((days, p["posting_id"], claim["claim_id"]))
taken = {}
used = set()
for days, posting, claim in sorted(pairs):
    if claim not in taken and posting not in used:
        taken[claim] = (posting, days)
        used.add(posting)
for p in postings:
    if p["posting_id"] in used:
        p["status"] = "matched"


def write(name, header, lines):
    with open(out / name, "w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(header)
        writer.writerows(lines)


write("claims.csv", ["claim_id", "posting_id", "days"], [(c["claim_id"], *taken.get(c["claim_id"], ("", ""))) for c in claims])
write("postings.csv", ["posting_id", "status"], [(p["posting_id"], p["status"]) for p in postings])
lines = []
for card in sorted(set(card_of.values())):
    open_ones = [p["eur"] for p in postings if p["card"] == card and p["status"] == "unexplained"]
    lines.append((card, len(open_ones), f"{sum(open_ones, Decimal(0)):.2f}"))
write("cards.csv", ["card", "unexplained", "settled_eur"], lines)
