"""Work out what may pass from private copies of the tables, and compare the delivered list with it packet by packet."""

import csv
import ipaddress
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # python runs isolated, so the helpers beside us must be named

from filters import PORTS, PROTOCOLS, addresses, dead, different_zones, ports, rules, without  # noqa: E402
from reward import delivered_text, run  # noqa: E402

METRICS = ("servers", "plant", "elsewhere", "short")
DAY = "2026-04-01"
LIMIT = 120


def table(name):
    with open(HERE / f"private_{name}.csv", newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def in_force(row):
    return (row["from"] or "0000") <= DAY <= (row["until"] or "9999")


class Truth:
    """Names resolved as of the day, and the ordered list that the policy describes."""

    def __init__(self):
        self.inventory, self.services = table("inventory"), table("services")
        every = table("requests")
        approved = [r for r in every if r["state"] == "approved"]
        replaced = {r["replaces"] for r in approved if r["from"] <= DAY}
        self.requests = {r["id"]: self.boxes(r) for r in approved if in_force(r) and r["id"] not in replaced}
        self.prohibitions = [(self.boxes(row), row["exceptions"].split()) for row in table("prohibitions")]

    def where(self, name):
        """Intervals of addresses behind a name."""
        found = []
        for row in self.inventory:
            if row["name"] == name and in_force(row):
                if row["kind"] == "range":
                    low, high = row["value"].split("-")
                    found.append((int(ipaddress.ip_address(low)), int(ipaddress.ip_address(high))))
                    continue
                for word in row["value"].split():
                    found += self.where(word) if row["kind"] == "group" else [addresses(word)]
        return found

    def what(self, service):
        """(protocol, ports) behind a service."""
        found = []
        for row in self.services:
            if row["service"] == service and row["protocol"] == "group":
                found += [pair for word in row["ports"].split() for pair in self.what(word)]
            elif row["service"] == service:
                names = PROTOCOLS if row["protocol"] == "any" else (row["protocol"],)
                found += [(name, ports(row["ports"]) if row["ports"] else PORTS) for name in names]
        return found

    def boxes(self, row):
        """(protocol, box) of everything that a request or a prohibition speaks of."""
        sources, destinations = self.where(row["source"]), self.where(row["destination"])
        return [(name, (s, d, p)) for s in sources for d in destinations for name, p in self.what(row["service"])]

    def listed(self):
        permits, denials = [], []
        for name, boxes in self.requests.items():
            for protocol, box in boxes:
                holes = [b for refused, exceptions in self.prohibitions if name not in exceptions for p, b in refused if p == protocol]
                permits += [("permit", (protocol,), piece) for piece in without([box], holes)]
        for refused, _ in self.prohibitions:
            denials += [("deny log", (protocol,), box) for protocol, box in refused]
        return permits + denials


def grade():
    scores = dict.fromkeys(METRICS, 0)
    text = delivered_text("/app/out/edge.rules")
    if text is None:
        return scores
    mine = rules(text)
    at = {word: addresses(word)[0] for word in ("10.40.0.0", "10.41.0.0", "10.50.0.0", "10.51.0.0")}
    zones = {"low": 0, "servers": at["10.40.0.0"], "between": at["10.41.0.0"], "plant": at["10.50.0.0"], "high": at["10.51.0.0"]}
    wrong = different_zones(Truth().listed(), mine, zones)
    scores["servers"], scores["plant"] = int("servers" not in wrong), int("plant" not in wrong)
    scores["elsewhere"] = int(not wrong & {"low", "between", "high"})
    scores["short"] = int(not wrong and len(mine) <= LIMIT and not dead(mine))
    return scores


if __name__ == "__main__":
    run(METRICS, grade)
