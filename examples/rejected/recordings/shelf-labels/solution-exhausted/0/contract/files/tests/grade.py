"""Recompute the labels from the private articles."""
import csv
import json
import os
from decimal import ROUND_HALF_UP, Decimal

HERE = os.path.dirname(os.path.abspath(__file__))
BASE = {"g": ("kg", 1000), "ml": ("l", 1000), "piece": ("piece", 1)}


def write(scores):
    os.makedirs("/logs/verifier", exist_ok=True)
    reward = sum(scores.values()) / len(scores)
    for name, text in (("reward.json", json.dumps({**scores, "reward": reward})), ("reward.txt", str(reward))):
        with open(f"/logs/verifier/.{name}", "w") as file:
            file.write(text + "\n")
        os.replace(f"/logs/verifier/.{name}", f"/logs/verifier/{name}")


write({"rows": 0, "prices": 0})
truth = {}
with open(f"{HERE}/articles.csv", newline="") as handle:
    for row in csv.DictReader(handle):
        base, factor = BASE[row["unit"]]
        cents = Decimal(row["cents"]) * factor / Decimal(row["size"])
        truth[row["article"]] = (base, str(cents.quantize(Decimal(1), ROUND_HALF_UP)))
try:
    with open("/app/out/labels.csv", newline="") as handle:
        found = [tuple(row) for row in csv.reader(handle)][:1000]
except (OSError, UnicodeDecodeError, csv.Error):
    found = []
labels = {row[0]: row[1:] for row in found[1:] if len(row) == 3}
rows = len(labels) == len(found) - 1 and {a: b[0] for a, b in labels.items()} == {a: b[0] for a, b in truth.items()}
write({"rows": int(rows), "prices": int({a: b[-1] for a, b in labels.items()} == {a: b[1] for a, b in truth.items()})})
