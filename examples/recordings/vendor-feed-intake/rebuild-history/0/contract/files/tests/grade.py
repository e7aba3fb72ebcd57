"""Rebuild the history from the private events and compare with what was delivered, group by group."""

import csv
import io
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # python runs isolated, so the helper beside us must be named

from reward import delivered_text, run  # noqa: E402

METRICS = ("plain_history", "corrected_history", "deleted_history", "as_of")
ATTRIBUTES = ("tier", "region", "manager")


def events():
    """{customer: list of events}, oldest record first."""
    found = {}
    with open(HERE / "private_events.jsonl", encoding="utf-8") as handle:
        for line in handle:
            event = json.loads(line)
            found.setdefault(event["customer"], []).append(event)
    return {customer: sorted(mine, key=lambda e: e["recorded"]) for customer, mine in found.items()}


def resolved(mine):
    """The set and delete events that remain after voids and corrections."""
    cancelled = set()
    for event in reversed(mine):  # a void is younger than what it names, so its own fate is known first
        if event["kind"] == "void" and event["event_id"] not in cancelled:
            cancelled.add(event["ref"])
    alive = [event for event in mine if event["event_id"] not in cancelled]
    amended = {e["event_id"]: {**e, "attrs": dict(e.get("attrs") or {})} for e in alive if e["kind"] in ("set", "delete")}
    for event in alive:
        if event["kind"] == "correct" and event["ref"] in amended:
            target = amended[event["ref"]]
            target["attrs"].update({k: v for k, v in event["attrs"].items() if v is not None})
            target["effective"] = event.get("effective") or target["effective"]
    return list(amended.values())


def versions(mine):
    """Rows (tier, region, manager, valid_from, valid_to) of one customer."""
    by_day = {}
    for event in sorted(resolved(mine), key=lambda e: e["recorded"]):
        by_day[event["effective"]] = event
    rows, open_row = [], None
    for day in sorted(by_day):
        event = by_day[day]
        if event["kind"] == "delete":
            if open_row:
                rows.append((*open_row, day))
            open_row = None
            continue
        before = open_row[:3] if open_row else ("", "", "")
        now = tuple(event["attrs"].get(name) or old for name, old in zip(ATTRIBUTES, before))
        if open_row and now == before:
            continue
        if open_row:
            rows.append((*open_row, day))
        open_row = (*now, day)
    if open_row:
        rows.append((*open_row, ""))
    return rows


def table(name, header):
    """Rows of a delivered CSV below exactly this header, or None."""
    text = delivered_text(f"/app/out/{name}")
    if text is None:
        return None
    found = [tuple(cell.strip() for cell in row) for row in csv.reader(io.StringIO(text)) if row]
    if not found or found[0] != tuple(header) or any(len(row) != len(header) for row in found):
        return None
    return found[1:]


def grade():
    received = events()
    truth = {customer: versions(mine) for customer, mine in received.items()}
    scores = dict.fromkeys(METRICS, 0)
    delivered = table("history.csv", ["customer", *ATTRIBUTES, "valid_from", "valid_to"])
    if delivered is not None and {row[0] for row in delivered} <= set(truth):
        mine = {customer: sorted(row[1:] for row in delivered if row[0] == customer) for customer in truth}
        right = {customer for customer in truth if mine[customer] == sorted(truth[customer])}
        kinds = {customer: {event["kind"] for event in received[customer]} for customer in received}
        groups = {
            "plain_history": {c for c, k in kinds.items() if k == {"set"}},
            "corrected_history": {c for c, k in kinds.items() if k & {"correct", "void"}},
            "deleted_history": {c for c, k in kinds.items() if "delete" in k},
        }
        for metric, members in groups.items():
            scores[metric] = int(members <= right)
    answers = table("as_of.csv", ["query_id", *ATTRIBUTES])
    if answers is not None:
        expected = []
        with open(HERE / "private_queries.csv", newline="", encoding="utf-8") as handle:
            for query in csv.DictReader(handle):
                held = [v for v in truth[query["customer"]] if v[3] <= query["day"] and (not v[4] or query["day"] < v[4])]
                expected.append((query["query_id"], *(held[0][:3] if held else ("", "", ""))))
        scores["as_of"] = int(sorted(answers) == sorted(expected))
    return scores


run(METRICS, grade)
