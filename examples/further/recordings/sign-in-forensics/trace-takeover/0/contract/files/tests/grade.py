"""Work the case again from private copies of the logs and compare with the four tables, each by itself."""

import csv
import io
import ipaddress
import json
import re
import sys
import time
from calendar import timegm
from datetime import datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # python runs isolated, so the helpers beside us must be named

from reward import delivered_text, run  # noqa: E402
from world import files  # noqa: E402

METRICS = ("clock", "sources", "accounts", "actions")
FAILURES = ("bad_password", "locked", "unknown_user")
SPRAY_NAMES, SPRAY_MS = 6, 3_600_000
LOGIN = re.compile(r"(V-\d+) login user=(\S+) src=(\S+) result=(\S+)$")
FETCH = re.compile(r"(V-\d+) fetch ")


def address(text):
    """One spelling for each address."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].split("]")[0]
    elif text.count(":") == 1:
        text = text.split(":")[0]
    found = ipaddress.ip_address(text)
    return getattr(found, "ipv4_mapped", None) or found


class Review:
    """All evidence, read once."""

    def __init__(self):
        given = files()
        self.known = {}
        for row in csv.DictReader(io.StringIO(given["directory.csv"])):
            for word in (row["account"], *row["aliases"].split(";")):
                self.known[word] = row["account"]
        networks = list(csv.DictReader(io.StringIO(given["networks.csv"])))
        self.own = [ipaddress.ip_network(row["network"]) for row in networks]
        self.proxies = [ipaddress.ip_network(row["network"]) for row in networks if row["role"] == "proxy"]
        self.idp = sorted((json.loads(line) for line in given["idp.jsonl"].splitlines()), key=lambda record: record["t"])
        self.mail = list(csv.DictReader(io.StringIO(given["mail.csv"], newline=""), delimiter=";"))
        self.read_gateway(given["vpn.log"].splitlines())
        self.signins = [record for record in self.idp if record["event"] == "signin"]
        for record in self.signins:
            record["client"] = self.client(record)

    def account(self, name):
        name = name.lower().removeprefix("corp\\").removesuffix("@lindau.example")
        return self.known.get(name, name)

    def read_gateway(self, lines):
        """Stretches with their offsets, and the gateway's line of each record of the identity provider."""
        begins = [1] + [n for n, line in enumerate(lines, 1) if line.endswith("Time has been changed")]
        self.stretches = [[first, last - 1, None] for first, last in zip(begins, [*begins[1:], len(lines) + 1])]
        asked = [record for record in self.idp if "ref" in record]
        self.source, self.fetches, login = {}, [], {}
        for number, line in enumerate(lines, 1):
            stretch = next(s for s in self.stretches if s[0] <= number <= s[1])
            shown = timegm(time.strptime("2026 " + line[:15], "%Y %b %d %H:%M:%S"))
            if (found := LOGIN.search(line)) and found[4] != "local_deny":
                record = asked[len(self.source)]  # both logs have these in one order
                if record["ref"] != found[1]:
                    raise ValueError("the logs do not pair")
                offset = record["t"] // 1000 - shown
                if stretch[2] not in (None, offset):
                    raise ValueError("the offset of a stretch is not constant")
                stretch[2] = offset
                self.source[record["id"]] = address(found[3])
                login[found[1]] = record
            elif found := FETCH.search(line):
                self.fetches.append((number, shown + stretch[2], login[found[1]]))

    def client(self, record):
        if "ref" in record:
            return self.source[record["id"]]
        peer = address(record["peer"])
        hops = record["xff"].split(",") if self.is_in(peer, self.proxies) else []
        for hop in reversed(hops):
            if not self.is_in(address(hop), self.proxies):
                return address(hop)
        return peer

    @staticmethod
    def is_in(client, networks):
        return any(client in network for network in networks)

    def attack_sources(self):
        """{client: its failures} of every attack source."""
        failed = {}
        for record in self.signins:
            if record["result"] in FAILURES:
                failed.setdefault(record["client"], []).append((record["t"], self.account(record["user"])))
        found = {}
        for client, failures in failed.items():
            widest = max(len({name for t, name in failures if 0 <= t - start <= SPRAY_MS}) for start, _ in failures)
            if widest >= SPRAY_NAMES and not self.is_in(client, self.own):
                found[client] = failures
        return found

    def concerned(self, sources):
        """({account: (status, record)}, intruder's sessions)"""
        status, sessions = {}, set()
        for result, word in (("ok", "entered"), ("mfa_denied", "password_known")):
            for record in self.signins:
                since = sources.get(record["client"], [(float("inf"), "")])[0][0]
                if record["result"] == result and record["t"] >= since:
                    status.setdefault(self.account(record["user"]), (word, record))
                    sessions.add(record.get("session", "").lower())
        children = [r for r in self.idp if r["event"] == "exchange"]
        for _ in children:
            sessions |= {r["session"].lower() for r in children if r["parent"].lower() in sessions}
        return status, sessions - {""}

    def actions(self, sessions):
        found = []
        for row in self.mail:
            if row["session"].lower() in sessions:
                moment = int(datetime.fromisoformat(row["time"].replace("Z", "+00:00")).timestamp())
                found.append((utc(moment), self.account(row["mailbox"]), row["operation"], "mail:" + row["id"]))
        for record in self.idp:
            if record["event"] in ("consent", "mfa_added") and record["session"].lower() in sessions:
                found.append((utc(record["t"] // 1000), self.account(record["user"]), record["event"], "idp:" + record["id"]))
        for line, moment, login in self.fetches:
            if login.get("session", "").lower() in sessions:
                found.append((utc(moment), self.account(login["user"]), "fetch", f"vpn:{line}"))
        return found


def utc(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def table(name, header):
    """Sorted rows of a delivered CSV below exactly this header, or None."""
    text = delivered_text(f"/app/out/{name}")
    if text is None:
        return None
    found = [tuple(cell.strip() for cell in row) for row in csv.reader(io.StringIO(text)) if row]
    if not found or found[0] != tuple(header.split(",")):
        return None
    return sorted(found[1:])


def grade():
    review = Review()
    sources = review.attack_sources()
    status, sessions = review.concerned(sources)
    truth = {
        "clock": ("clock.csv", "first_line,last_line,offset_seconds", [tuple(map(str, s)) for s in review.stretches]),
        "sources": (
            "sources.csv",
            "address,names,failures,first_failure,last_failure",
            [
                (str(client), str(len({name for _, name in f})), str(len(f)), utc(f[0][0] // 1000), utc(f[-1][0] // 1000))
                for client, f in sources.items()
            ],
        ),
        "accounts": (
            "accounts.csv",
            "account,status,first_time,evidence",
            [(account, word, utc(r["t"] // 1000), "idp:" + r["id"]) for account, (word, r) in status.items()],
        ),
        "actions": ("actions.csv", "time,account,operation,evidence", review.actions(sessions)),
    }
    return {metric: int(table(name, header) == sorted(rows)) for metric, (name, header, rows) in truth.items()}


if __name__ == "__main__":
    run(METRICS, grade)
