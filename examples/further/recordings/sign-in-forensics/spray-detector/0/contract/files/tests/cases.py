"""Logs with attacks and their look-alikes, and what the standard says about them. Knows nothing about deliveries."""

import gzip
import json
import random
import re
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address, ip_network

EPOCH = datetime(2026, 2, 3, 5, 0, 0, tzinfo=timezone.utc)
POLICY = {"min_users": 5, "window_seconds": 600, "max_tries": 2, "grace_seconds": 60, "exempt": ["203.0.113.128/27", "2001:db8:10::/48"]}
FIELDS = ("id", "at", "user", "ip", "outcome")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT([01]\d|2[0-3]):\d\d:\d\d(\.\d{1,3})?(Z|[+-]\d\d:\d\d)", re.ASCII)


class Log:
    """Records of one log; each case lives in a network of its own."""

    def __init__(self, seed):
        self.random = random.Random(seed).random
        self.records, self.networks = [], 0

    def pick(self, items):
        return items[int(self.random() * len(items))]

    def network(self):
        """A new IPv4 network: a function from host number to address."""
        self.networks += 1
        prefix = f"198.{18 + self.networks // 250}.{self.networks % 250}."
        return lambda host: prefix + str(host)

    def add(self, seconds, user, ip, outcome="failure"):
        zone = self.pick([0, 0, 60, -300, 330, 765])
        moment = (EPOCH + timedelta(milliseconds=round(seconds * 1000))).astimezone(timezone(timedelta(minutes=zone)))
        text = moment.strftime("%Y-%m-%dT%H:%M:%S")
        thousandths = moment.microsecond // 1000
        if thousandths or self.random() < 0.2:
            text += f".{thousandths:03d}" if thousandths % 100 or self.random() < 0.5 else f".{thousandths // 100}"
        sign = "-" if zone < 0 else "+"
        text += f"{sign}{abs(zone) // 60:02d}:{abs(zone) % 60:02d}" if zone or self.random() < 0.2 else "Z"
        self.records.append({"id": f"r{len(self.records):05d}", "at": text, "user": user, "ip": ip, "outcome": outcome})

    def burst(self, users, ips, start=0.0, step=30.0, tries=1):
        """Each user fails `tries` times, one after the other."""
        host = ips if callable(ips) else None
        for n in range(users * tries):
            ip = host(10 + n % 40) if host else ips[n % len(ips)]
            self.add(start + n * step, f"user{n % users}", ip)

    def text(self):
        """Lines in an order that says nothing."""
        lines = [json.dumps(record) for record in self.records]
        return "\n".join(sorted(lines, key=lambda _: self.random())) + "\n"


def limits():
    log = Log(41)
    for users in (4, 5, 6):
        log.burst(users, log.network(), step=20)
    for last in (599.999, 600.0, 600.001, 599.0):
        log.burst(4, ip := log.network(), step=100)
        log.add(last, "user4", ip(1))
    for extra in (5, 6):  # eleven failures of five users are more than two each
        ip = log.network()
        log.burst(5, ip, step=10)
        for n in range(extra):
            log.add(20 + n * 2.5, "user0", ip(3))
    log.burst(5, log.network(), start=2000, step=0)
    log.burst(5, log.network(), start=3300, step=145)
    log.burst(5, log.network(), start=3300, step=150)
    log.burst(1, log.network(), step=1, tries=60)
    return [(POLICY, log), ({**POLICY, "max_tries": 2.4, "window_seconds": 599.5}, log), ({**POLICY, "min_users": 6, "max_tries": 1}, log)]


def identities():
    log = Log(42)
    spellings = ["CORP\\Anna", " anna", "anna@corp.example", "ANNA", "x\\y\\anna@a@b"]
    ip = log.network()
    for n, user in enumerate([*spellings, "berta", "carl", "dora"]):
        log.add(n * 20, user, ip(n))
    ip = log.network()
    for n, user in enumerate([*spellings, "berta", "carl", "dora", "emil"]):
        log.add(n * 20, user, ip(n))
    for group in (["2001:db8:0:7::1", "2001:DB8:0:7:ffff::2", "2001:0db8:0000:0007::3"], ["2001:db8:0:8::1", "2001:db8:0:9::1"]):
        log.burst(5, group, step=15)
    log.burst(6, ["::ffff:198.51.100.7", "198.51.100.200", "::FFFF:c633:6409"], step=15)
    log.burst(4, ["::ffff:192.0.2.7"], step=15)
    log.add(70, "user4", "192.0.3.7")
    log.burst(9, ["203.0.113.129", "::ffff:203.0.113.140"], step=15)
    log.burst(4, ["203.0.113.5"], start=2000, step=15)  # the same /24: exempt addresses do not fill it up
    log.add(2030, "userx", "203.0.113.130")
    log.burst(5, ["203.0.113.127", "203.0.113.160"], start=5000, step=15)
    log.burst(7, ["2001:db8:10:1::5"], step=15)
    log.burst(7, ["2001:db8:11:1::5"], step=15)
    return [(POLICY, log), ({**POLICY, "exempt": []}, log), ({**POLICY, "exempt": ["198.51.100.0/25", "2001:db8:0:7::/64"]}, log)]


def excuses():
    log = Log(43)
    for delay in (60.0, 60.001, 0.0, 0.001, -1.0, 59.0):
        ip = log.network()
        log.burst(5, ip, step=20)
        log.add(40 + delay, "User2@corp.example", ip(200), "success")
    for ip_of, user in ((lambda ip, other: other(1), "user2"), (lambda ip, other: ip(1), "user9"), (lambda ip, other: ip(1), "user2")):
        ip, other = log.network(), log.network()
        log.burst(5, ip, step=20)
        log.add(50, user, ip_of(ip, other), "success")
    ip = log.network()
    for n in range(3):  # three tries of one person before it works: all excused
        log.add(10 + n * 5, "user1", ip(1))
    log.add(30, "user1", ip(1), "success")
    log.burst(5, ip, start=100, step=20)
    ip = log.network()
    log.burst(5, ip, step=20, tries=2)
    log.add(20.5, "user0", ip(2))
    log.add(81, "user1", ip(2), "success")
    ip = log.network()
    log.burst(5, ip, step=20)
    log.add(45, "user2", ip(2), "challenge")
    return [(POLICY, log), ({**POLICY, "grace_seconds": 0}, log), ({**POLICY, "grace_seconds": 20.001}, log)]


BROKEN = [
    "not json", "[1, 2]", '"text"', "{", '{"id": "z1"}',
    '{"id": "z2", "at": "2026-02-03T05:00:00", "user": "a", "ip": "198.18.1.1", "outcome": "failure"}',
    '{"id": "z3", "at": "2026-02-30T05:00:00Z", "user": "a", "ip": "198.18.1.1", "outcome": "failure"}',
    '{"id": "z4", "at": "2026-02-03T05:00:10.1234Z", "user": "user4", "ip": "198.18.1.9", "outcome": "failure"}',
    '{"id": "z5", "at": "2026-02-03T05:00:11Z", "user": "user4", "ip": "198.18.1.999", "outcome": "failure"}',
    '{"id": "z6", "at": "2026-02-03T05:00:12Z", "user": " @corp.example", "ip": "198.18.1.9", "outcome": "failure"}',
    '{"id": "z7", "at": "2026-02-03T05:00:13Z", "user": 7, "ip": "198.18.1.9", "outcome": "failure"}',
    '{"id": "", "at": "2026-02-03T05:00:14Z", "user": "user4", "ip": "198.18.1.9", "outcome": "failure"}',
    '{"id": "z9", "at": "2026-02-03 05:00:15Z", "user": "user4", "ip": "198.18.1.9", "outcome": "failure"}',
    '{"id": "z10", "at": "2026-02-03T05:00:16+0100", "user": "user4", "ip": "198.18.1.9", "outcome": "failure"}',
    '{"id": "z11", "at": "2026-02-03T05:00:17Z", "user": "user4", "ip": null, "outcome": "failure"}',
    '{"id": "z12", "at": "2026-02-03T05:00:18Z", "user": "user4", "ip": "198.18.1.9"}',
    '{"id": "z13", "at": "2026-02-03T05:00:19Z", "user": "corp\\\\", "ip": "198.18.1.9", "outcome": "failure"}',
    '{"id": "z14", "at": "2026-02-03T24:00:00Z", "user": "user4", "ip": "198.18.1.9", "outcome": "failure"}',
]
NOT_BROKEN = [
    "", "   ", '{"id": "y1", "at": "2026-02-03T05:00:20Z", "user": "user4", "ip": "198.18.1.9", "outcome": "locked"}',
    '{"id": "y2", "at": "2026-02-03T05:00:21Z", "user": "user0", "ip": "198.18.1.9", "outcome": "failure", "note": {"deep": [1]}}',
]


def damaged():
    """Four and five users in one log that is cut into files, with repeated, broken and compressed parts."""
    found = []
    for seed, users in ((44, 4), (45, 5)):
        log = Log(seed)
        log.burst(users, log.network(), step=20)
        log.burst(6, log.network(), step=20)
        log.burst(5, log.network(), step=125)
        lines = log.text().encode().splitlines()
        broken = [text.encode() for text in BROKEN + NOT_BROKEN] + [b'{"id": "z15", "user": "\xff\xfe"}', b"\xff\xff"]
        forged = {**json.loads(lines[0]), "user": "somebody", "ip": "198.18.2.77"}
        parts = [lines[:7] + broken[:9] + lines[7:9], lines[4:12] + [json.dumps(forged).encode()] + broken[9:], lines[11:]]
        logs = {f"{name}.log": b"\n".join(part) + end for name, part, end in zip(("b", "a", "c"), parts, (b"\n", b"", b"\r\n"))}
        logs["a.log.gz"] = gzip.compress(logs.pop("a.log"), mtime=0)
        order = ["b.log", "a.log.gz", "c.log"]
        found += [(POLICY, [(name, logs[name]) for name in order]), (POLICY, [(name, logs[name]) for name in reversed(order)])]
    return found


def mixed(seed):
    """Dense traffic in which every limit is met by chance, with several episodes in each network."""
    log = Log(seed)
    policy = {**POLICY, "min_users": 3 + seed % 3, "window_seconds": (40, 60, 90)[seed % 3], "max_tries": (1.5, 2, 1.75)[seed % 3], "grace_seconds": (5, 8, 12)[seed % 3]}
    networks = [log.network() for _ in range(4)] + [lambda host: f"2001:db8:{seed}:1::{host}", lambda host: f"203.0.113.{host}"]
    for ip in networks:
        at = 0.0
        for _ in range(70):
            at += log.pick([0, 1, 4, 5, 8, 10, 20, 20, 30, 45, 0.5, 95])
            who = log.pick(["ada", "Bo", "CORP\\cy", "di@corp.example", "ed ", "flo", "gus"])
            log.add(at, who, ip(1 + int(log.random() * 200)), log.pick(["failure"] * 5 + ["success"]))
    return policy, log


def long_day():
    """Twenty thousand records, most of them one crowded network and many quiet ones."""
    log = Log(77)
    busy = log.network()
    for n in range(1500):
        log.add(n * 7, f"user{int(log.random() * 400)}", busy(n % 200), log.pick(["failure", "failure", "success"]))
    for n in range(18_500):
        ip = f"10.{n % 90}.{n % 70}.9"
        log.add(n * 2, f"user{n % 900}", ip, log.pick(["failure", "success", "success"]))
    return POLICY, log


def families():
    """{metric: list of (policy, [(name, bytes)], whole alerts matter)}"""
    plain = {"limits": limits(), "identities": identities(), "excuses": excuses(), "alerts": [*(mixed(seed) for seed in range(6)), long_day()]}
    found = {name: [(policy, [("day.log", log.text().encode())], name == "alerts") for policy, log in cases] for name, cases in plain.items()}
    found["damaged_logs"] = [(policy, logs, True) for policy, logs in damaged()]
    return found


def quiet(day):
    """A sample log without any spray."""
    log = Log(900 + day)
    for n in range(160):
        user = f"{log.pick(['mara', 'jonas', 'ute', 'pavel', 'inga', 'rolf', 'nadia'])}.{log.pick(['krause', 'vogt', 'adler', 'horn'])}"
        ip = log.pick(["203.0.113.131", "203.0.113.140", f"192.0.2.{20 + n % 60}", "2001:db8:10:4::17"])
        if log.random() < 0.12:
            log.add(day * 86_400 + n * 300, user, ip)
        log.add(day * 86_400 + n * 300 + 20, log.pick([user, "CORP\\" + user, user.upper()]), ip, "success")
    return log.text()


# ---- the standard


def parsed(line):
    """A record with its moment in milliseconds, or None."""
    try:
        record = json.loads(line.decode("utf-8"))
    except ValueError:
        return None
    if not isinstance(record, dict) or any(not isinstance(record.get(field), str) for field in FIELDS):
        return None
    user = record["user"].strip().rpartition("\\")[2].partition("@")[0].strip().lower()
    try:
        address = ip_address(record["ip"])
        moment = datetime.fromisoformat(record["at"].replace("Z", "+00:00") if MOMENT.fullmatch(record["at"]) else "")
    except ValueError:
        return None
    if not user or not record["id"]:
        return None
    fraction = re.search(r"\.(\d+)", record["at"])
    whole = int((moment.replace(microsecond=0) - EPOCH).total_seconds())
    at = whole * 1000 + int((fraction[1] + "00")[:3] if fraction else 0)
    mapped = getattr(address, "ipv4_mapped", None) or address
    network = ip_network((mapped, 24 if mapped.version == 4 else 64), strict=False)
    return {"id": record["id"], "at": at, "user": user, "ip": mapped, "network": str(network), "outcome": record["outcome"]}


def expected(policy, logs):
    """What the program has to write."""
    seen, skipped, duplicates, kept = set(), 0, 0, []
    for name, data in logs:
        for line in (gzip.decompress(data) if name.endswith(".gz") else data).split(b"\n"):
            if not line.strip():
                continue
            record = parsed(line)
            if record is None:
                skipped += 1
            elif record["id"] in seen:
                duplicates += 1
            else:
                seen.add(record["id"])
                exempt = any(record["ip"] in ip_network(network) for network in policy["exempt"])
                if record["outcome"] in ("failure", "success") and not exempt:
                    kept.append(record)
    alerts = [alert for network in sorted({r["network"] for r in kept}) for alert in _alerts(policy, network, [r for r in kept if r["network"] == network])]
    return {"alerts": alerts, "skipped": skipped, "duplicates": duplicates}


def _alerts(policy, network, records):
    window_ms, grace_ms = policy["window_seconds"] * 1000, policy["grace_seconds"] * 1000
    good = [r for r in records if r["outcome"] == "success"]
    bad = [r for r in records if r["outcome"] == "failure" and not any(g["user"] == r["user"] and 0 < g["at"] - r["at"] <= grace_ms for g in good)]
    found = []
    for moment in sorted({r["at"] for r in bad}):
        window = [r for r in bad if moment - window_ms < r["at"] <= moment]
        users = {r["user"] for r in window}
        if len(users) < policy["min_users"] or len(window) > policy["max_tries"] * len(users):
            continue
        if found and moment - found[-1]["end"] <= window_ms:
            found[-1]["end"], found[-1]["users"] = moment, found[-1]["users"] | users
        else:
            found.append({"network": network, "start": min(r["at"] for r in window), "end": moment, "users": users})
    for alert in found:
        entered = {g["user"] for g in good if alert["start"] <= g["at"] <= alert["end"] + window_ms}
        alert.update(users=sorted(alert["users"]), entered=sorted(entered))
        alert.update(start=_shown(alert["start"]), end=_shown(alert["end"]))
    return found


def _shown(at):
    moment = EPOCH + timedelta(milliseconds=at)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03d}Z"


if __name__ == "__main__":
    import pathlib
    import sys

    for day in (0, 1):
        pathlib.Path(sys.argv[1], f"2026-02-0{day + 3}.log").write_text(quiet(day), encoding="utf-8")
