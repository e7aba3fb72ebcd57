"""Match the private statement again and compare with what was delivered, metric by metric."""

import csv
import io
import re
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # python runs isolated, so the helper beside us must be named

from reward import delivered_text, run  # noqa: E402

METRICS = ("refunds", "matches", "statuses", "card_totals")


def rows(name, delimiter=","):
    with open(HERE / name, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle, delimiter=delimiter))


def merchant_key(text):
    text = re.sub(r"^(SUMUP|SQ) \*", "", text.upper().strip())
    words = []
    for word in text.split():
        if any(c.isdigit() for c in word):
            break
        words.append(word)
    return " ".join("".join(c for c in " ".join(words) if c.isalpha() or c == " ").split())


def postings():
    holder = {row["card"]: row["employee"] for row in rows("private_cards.csv")}
    found = []
    for row in rows("private_statement.csv", ";"):
        found.append(
            {
                "id": row["posting_id"],
                "card": row["card"],
                "day": datetime.strptime(row["transaction_date"], "%d.%m.%Y").date(),
                "amount": Decimal(row["amount"].replace(",", ".")),
                "settled": Decimal(row["settled_eur"].replace(",", ".")),
                "what": (holder[row["card"]], merchant_key(row["text"]), row["currency"]),
                "status": "unexplained",
            }
        )
    return found


def reverse_refunds(found):
    purchases = [p for p in found if p["amount"] >= 0]
    for refund in sorted((p for p in found if p["amount"] < 0), key=lambda p: (p["day"], p["id"])):
        fits = [
            p
            for p in purchases
            if p["status"] != "refunded"
            and (p["card"], p["what"], p["amount"]) == (refund["card"], refund["what"], -refund["amount"])
            and p["day"] <= refund["day"]
        ]
        if fits:
            max(fits, key=lambda p: (p["day"], p["id"]))["status"] = "refunded"
            refund["status"] = "refund"


def match_claims(found):
    pairs = []
    for claim in rows("private_claims.csv"):
        what = (claim["employee"], merchant_key(claim["merchant"]), claim["currency"])
        for posting in found:
            if posting["status"] == "refunded" or posting["amount"] != Decimal(claim["amount"]) or posting["what"] != what:
                continue
            days = abs((posting["day"] - date.fromisoformat(claim["date"])).days)
            if days <= 3:
                pairs.append((days, posting["id"], claim["claim_id"]))
    by_id, matched = {p["id"]: p for p in found}, {}
    for days, posting_id, claim_id in sorted(pairs):
        if by_id[posting_id]["status"] != "matched" and claim_id not in matched:
            by_id[posting_id]["status"] = "matched"
            matched[claim_id] = (posting_id, str(days))
    return matched


def table(name, header):
    """Parse a delivered CSV into {first column: other columns}; None when it is not what was asked for."""
    text = delivered_text(f"/app/out/{name}")
    if text is None:
        return None
    found = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if row]
    if not found or found[0] != header or any(len(row) != len(header) for row in found):
        return None
    parsed = {row[0]: tuple(row[1:]) for row in found[1:]}
    return parsed if len(parsed) == len(found) - 1 else None


def grade():
    found = postings()
    reverse_refunds(found)
    matched = match_claims(found)
    status = {p["id"]: p["status"] for p in found}
    scores = dict.fromkeys(METRICS, 0)

    claims = table("claims.csv", ["claim_id", "posting_id", "days"])
    expected = {row["claim_id"]: matched.get(row["claim_id"], ("", "")) for row in rows("private_claims.csv")}
    scores["matches"] = int(claims == expected)

    delivered = table("postings.csv", ["posting_id", "status"])
    if delivered is not None and set(delivered) == set(status):
        told = {key: value[0] for key, value in delivered.items()}
        refunds = {"refund", "refunded"}
        scores["refunds"] = int(
            all((told[i] == s) if s in refunds else told[i] not in refunds for i, s in status.items())
        )
        scores["statuses"] = int(all(told[i] == s for i, s in status.items() if s not in refunds))

    cards = table("cards.csv", ["card", "unexplained", "settled_eur"])
    sums = {}
    for posting in found:
        count, total = sums.setdefault(posting["card"], (0, Decimal("0.00")))
        if posting["status"] == "unexplained":
            sums[posting["card"]] = (count + 1, total + posting["settled"])
    scores["card_totals"] = int(cards == {card: (str(count), f"{total:.2f}") for card, (count, total) in sums.items()})
    return scores


run(METRICS, grade)
