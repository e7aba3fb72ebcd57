"""Convert an amount to EUR with the last rate published on or before a date.

Usage: python3 fx.py RATES.csv CURRENCY YYYY-MM-DD AMOUNT

RATES.csv has the columns date,currency,per_eur (units of the currency for one euro, business days only).
"""

import csv
import sys
from decimal import ROUND_HALF_UP, Decimal


def load_rates(path):
    """Return {currency: [(date, per_eur), ...]} with dates in ascending order."""
    table = {}
    with open(path, newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            table.setdefault(row["currency"], []).append((row["date"], Decimal(row["per_eur"])))
    return {currency: sorted(rows) for currency, rows in table.items()}


def to_eur(rates, currency, day, amount):
    """Convert one amount; ISO dates compare as text. Raises LookupError when no earlier rate exists."""
    if currency == "EUR":
        return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)
    earlier = [rate for when, rate in rates.get(currency, []) if when <= day]
    if not earlier:
        raise LookupError(f"no {currency} rate on or before {day}")
    return (amount / earlier[-1]).quantize(Decimal("0.01"), ROUND_HALF_UP)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    print(to_eur(load_rates(sys.argv[1]), sys.argv[2], sys.argv[3], Decimal(sys.argv[4])))
