"""Retract, correct, sort, fill, collapse, close."""

import csv
import json
import sys
from collections import defaultdict
from pathlib import Path

app = Path(sys.argv[1])
NAMES = ["tier", "region", "manager"]

everything = [json.loads(line) for path in sorted((app / "events").glob("*.jsonl")) for line in open(path, encoding="utf-8")]
by_id = {event["event_id"]: event for event in everything}
voids_of = defaultdict(list)
for event in everything:
    if event["kind"] == "void":
        voids_of[event["ref"]].append(event["event_id"])


def cancelled(event_id):
    return any(not cancelled(void) for void in voids_of[event_id])


live = [event for event in everything if not cancelled(event["event_id"])]
for event in sorted((e for e in live if e["kind"] == "correct"), key=lambda e: e["recorded"]):
    target = by_id[event["ref"]]
    for name in NAMES:
        if event["attrs"].get(name) is not None:
            target["attrs"][name] = event["attrs"][name]
    if event.get("effective"):
        target["effective"] = event["effective"]

timeline = defaultdict(dict)
for event in sorted((e for e in live if e["kind"] in ("set", "delete")), key=lambda e: e["recorded"]):
    timeline[event["customer"]][event["effective"]] = event

history = []
for customer in sorted(timeline):
    current = None
    for day, event in sorted(timeline[customer].items()):
        if event["kind"] == "delete":
            if current:
                current["valid_to"] = day
            current = None
            continue
        values = {n: event["attrs"].get(n) or (current[n] if current else "") for n in NAMES}
        if current and all(current[n] == values[n] for n in NAMES):
            continue
        if current:
            current["valid_to"] = day
        current = {"customer": customer, **values, "valid_from": day, "valid_to": ""}
        history.append(current)

out = app / "out"
out.mkdir(exist_ok=True)
with open(out / "history.csv", "w", newline="", encoding="utf-8") as handle:
    writer = csv.DictWriter(handle, ["customer", *NAMES, "valid_from", "valid_to"])
    writer.writeheader()
    writer.writerows(history)
with open(app / "queries.csv", newline="", encoding="utf-8") as source, open(out / "as_of.csv", "w", newline="", encoding="utf-8") as handle:
    writer = csv.writer(handle)
    writer.writerow(["query_id", *NAMES])
    for query in csv.DictReader(source):
        row = next(
            (v for v in history if v["customer"] == query["customer"] and v["valid_from"] <= query["day"] and (v["valid_to"] or "9999") > query["day"]),
            dict.fromkeys(NAMES, ""),
        )
        writer.writerow([query["query_id"], *(row[n] for n in NAMES)])
