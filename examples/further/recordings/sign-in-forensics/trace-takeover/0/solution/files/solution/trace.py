"""Clocks first, then names and addresses, then sources, accounts, sessions, actions."""

import csv
import json
import sys
from collections import Counter, defaultdict
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address, ip_network
from pathlib import Path

evidence, out = Path(sys.argv[1]), Path(sys.argv[2])
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def write(name, header, rows):
    out.mkdir(exist_ok=True)
    with open(out / name, "w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(header.split(","))
        writer.writerows(rows)


def read(name, delimiter=","):
    with open(evidence / name, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle, delimiter=delimiter))


# ---- names and addresses
ACCOUNT_OF = {}
for row in read("directory.csv"):
    ACCOUNT_OF[row["account"]] = row["account"]
    for alias in filter(None, row["aliases"].split(";")):
        ACCOUNT_OF[alias] = row["account"]
OWN = [ip_network(row["network"]) for row in read("networks.csv")]
PROXIES = [ip_network(row["network"]) for row in read("networks.csv") if row["role"] == "proxy"]


def account(text):
    name = text.lower()
    if name.startswith("corp\\"):
        name = name[5:]
    if name.endswith("@lindau.example"):
        name = name[: -len("@lindau.example")]
    return ACCOUNT_OF.get(name, name)


def clean(text):
    text = text.strip()
    if text.startswith("["):
        text = text[1 : text.index("]")]
    elif "." in text and text.count(":") == 1:
        text = text.partition(":")[0]
    address = ip_address(text)
    if address.version == 6 and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address


def within(address, networks):
    return any(address in network for network in networks)


# ---- the identity provider, and the gateway in its time
with open(evidence / "idp.jsonl", encoding="utf-8") as handle:
    records = sorted((json.loads(line) for line in handle), key=lambda record: record["t"])
by_ref = defaultdict(list)
for record in records:
    record["when"] = EPOCH + timedelta(seconds=record["t"] // 1000)
    if "ref" in record:
        by_ref[record["ref"]].append(record)

lines = (evidence / "vpn.log").read_text(encoding="utf-8").splitlines()
stretches, logins, fetches = [], {}, []
for number, line in enumerate(lines, 1):
    if number == 1 or line.endswith("Time has been changed"):
        stretches.append({"first": number, "offsets": Counter()})
    stretch = stretches[-1]
    stretch["last"] = number
    shown = datetime.strptime("2026 " + line[:15], "%Y %b %d %H:%M:%S").replace(tzinfo=timezone.utc)
    words = line[16:].split()
    if words[3:4] == ["login"] and words[-1] != "result=local_deny":
        record = by_ref[words[2]].pop(0)  # numbers come again after a restart: the oldest record that is left
        record["src"] = words[5].removeprefix("src=")
        stretch["offsets"][(record["when"] - shown).total_seconds()] += 1
        logins[len(stretches), words[2]] = record
    elif words[3:4] == ["fetch"]:
        fetches.append((number, stretch, shown, (len(stretches), words[2])))
for stretch in stretches:
    (stretch["offset"],) = stretch["offsets"]
write("clock.csv", "first_line,last_line,offset_seconds", [(s["first"], s["last"], int(s["offset"])) for s in stretches])


def client(record):
    if "src" in record:
        return clean(record["src"])
    peer = clean(record["peer"])
    if within(peer, PROXIES):
        for hop in record["xff"].split(",")[::-1]:
            if not within(clean(hop), PROXIES):
                return clean(hop)
    return peer


# ---- sources
signins = [record for record in records if record["event"] == "signin"]
failures = defaultdict(list)
for record in signins:
    record["client"], record["account"] = client(record), account(record["user"])
    if record["result"] in ("bad_password", "locked", "unknown_user"):
        failures[record["client"]].append(record)


def is_spray(failed):
    start, window = 0, Counter()
    for record in failed:
        window[record["account"]] += 1
        while record["t"] - failed[start]["t"] > 3_600_000:
            window[failed[start]["account"]] -= 1
            start += 1
        if len(+window) >= 6:
            return True
    return False


sources = {address: failed for address, failed in failures.items() if is_spray(failed) and not within(address, OWN)}
write(
    "sources.csv",
    "address,names,failures,first_failure,last_failure",
    [(a, len({r["account"] for r in f}), len(f), stamp(f[0]["when"]), stamp(f[-1]["when"])) for a, f in sources.items()],
)

# ---- accounts
entered, known, sessions = {}, {}, set()
for record in signins:
    if record["client"] not in sources or record["t"] < sources[record["client"]][0]["t"]:
        continue
    if record["result"] == "ok":
        entered.setdefault(record["account"], record)
        sessions.add(record["session"].lower())
    elif record["result"] == "mfa_denied":
        known.setdefault(record["account"], record)
rows = [(name, "entered", stamp(r["when"]), "idp:" + r["id"]) for name, r in entered.items()]
rows += [(name, "password_known", stamp(r["when"]), "idp:" + r["id"]) for name, r in known.items() if name not in entered]
write("accounts.csv", "account,status,first_time,evidence", rows)

# ---- sessions and what was done in them
children = defaultdict(list)
for record in records:
    if record["event"] == "exchange":
        children[record["parent"].lower()].append(record["session"].lower())
queue = list(sessions)
while queue:
    for child in children[queue.pop()]:
        if child not in sessions:
            sessions.add(child)
            queue.append(child)

actions = []
for row in read("mail.csv", ";"):
    if row["session"].lower() in sessions:
        when = datetime.fromisoformat(row["time"].replace("Z", "+00:00")).astimezone(timezone.utc)
        actions.append((stamp(when), account(row["mailbox"]), row["operation"], "mail:" + row["id"]))
for record in records:
    if record["event"] in ("consent", "mfa_added") and record["session"].lower() in sessions:
        actions.append((stamp(record["when"]), account(record["user"]), record["event"], "idp:" + record["id"]))
for number, stretch, shown, key in fetches:
    record = logins[key]
    if record.get("session", "").lower() in sessions:
        when = shown + timedelta(seconds=stretch["offset"])
        actions.append((stamp(when), account(record["user"]), "fetch", f"vpn:{number}"))
write("actions.csv", "time,account,operation,evidence", sorted(actions))
