"""Load the evidence into SQLite and let queries answer."""

import csv
import ipaddress
import json
import re
import sqlite3

HOME, OUT = "/app/evidence/", "/app/out/"
db = sqlite3.connect(":memory:")
db.executescript("""
create table alias (word primary key, account);
create table net (first, last, role);
create table idp (id, t, event, user, client, result, session, parent, ref);
create table vpn (line, stretch, shown, number, kind, user, src, result);
create table mail (id, t, mailbox, operation, session);
""")


def number(text):
    """An address as 32 hexadecimal digits, IPv4 as the mapped IPv6."""
    text = re.sub(r"^\[(.*)\].*$", r"\1", text.strip())
    text = re.sub(r"^(\d+\.\d+\.\d+\.\d+):\d+$", r"\1", text)
    found = ipaddress.ip_address(text)
    if found.version == 4:
        found = ipaddress.IPv6Address("::ffff:" + str(found))
    return f"{int(found):032x}"


def written(hexadecimal):
    found = ipaddress.IPv6Address(int(hexadecimal, 16))
    return str(found.ipv4_mapped or found)


def name(text):
    word = re.sub(r"^corp\\|@lindau\.example$", "", text.lower())
    found = db.execute("select account from alias where word = ?", (word,)).fetchone()
    return found[0] if found else word


with open(HOME + "directory.csv", newline="", encoding="utf-8") as handle:
    for row in csv.DictReader(handle):
        words = {row["account"], *row["aliases"].split(";")} - {""}
        db.executemany("insert into alias values (?, ?)", [(word, row["account"]) for word in sorted(words)])
with open(HOME + "networks.csv", newline="", encoding="utf-8") as handle:
    for row in csv.DictReader(handle):
        network = ipaddress.ip_network(row["network"])
        db.execute("insert into net values (?, ?, ?)", (number(str(network[0])), number(str(network[-1])), row["role"]))


def is_role(address, *roles):
    marks = ",".join("?" * len(roles))
    query = f"select count(*) from net where ? between first and last and role in ({marks})"
    return db.execute(query, (address, *roles)).fetchone()[0] > 0


def client(record):
    peer = number(record["peer"])
    if not is_role(peer, "proxy"):
        return peer
    hops = record["xff"].split(",")
    while is_role(number(hops[-1]), "proxy"):
        hops.pop()
    return number(hops[-1])


with open(HOME + "idp.jsonl", encoding="utf-8") as handle:
    for record in map(json.loads, handle):
        db.execute(
            "insert into idp values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (record["id"], record["t"], record["event"], name(record["user"]), client({"xff": "", **record}), record["result"],
             record.get("session", "").lower(), record.get("parent", "").lower(), record.get("ref")),
        )
with open(HOME + "mail.csv", newline="", encoding="utf-8") as handle:
    for row in csv.DictReader(handle, delimiter=";"):
        (seconds,) = db.execute("select unixepoch(?)", (row["time"],)).fetchone()
        db.execute("insert into mail values (?, ?, ?, ?, ?)", (row["id"], seconds, name(row["mailbox"]), row["operation"], row["session"].lower()))
months = {"Mar": 3}
stretch = 0
with open(HOME + "vpn.log", encoding="utf-8") as handle:
    for line_number, line in enumerate(handle, 1):
        stretch += line_number == 1 or "Time has been changed" in line
        shown = f"2026-{months[line[:3]]:02d}-{int(line[4:6]):02d} {line[7:15]}"
        (seconds,) = db.execute("select unixepoch(?)", (shown,)).fetchone()
        found = re.search(r"(V-\d+) (login|fetch)(?: user=(\S+) src=(\S+) result=(\S+))?", line)
        number_, kind, user, src, result = found.groups() if found else (None, "", None, None, None)
        db.execute("insert into vpn values (?, ?, ?, ?, ?, ?, ?, ?)", (line_number, stretch, seconds, number_, kind, user, src, result))

db.executescript("""
create table pair as
  select v.line, v.stretch, v.number, v.src, i.id, i.t / 1000 - v.shown as offset
  from (select *, row_number() over (order by line) as n from vpn where kind = 'login' and result <> 'local_deny') v
  join (select *, row_number() over (order by t) as n from idp where ref is not null) i using (n);
create table clock as select stretch, min(offset) as offset from pair group by stretch;
""")
assert db.execute("select count(*) from pair join clock using (stretch) where pair.offset <> clock.offset").fetchone() == (0,)
for identifier, src in db.execute("select id, src from pair").fetchall():
    db.execute("update idp set client = ? where id = ?", (number(src), identifier))
db.create_function("own", 1, lambda address: is_role(address, "own", "proxy"))
db.executescript("""
create table failure as select client, t, user from idp where event = 'signin' and result in ('bad_password', 'locked', 'unknown_user');
create table source as
  select distinct a.client from failure a join failure b on b.client = a.client and b.t between a.t and a.t + 3600000
  where not own(a.client) group by a.rowid having count(distinct b.user) >= 6;
create table extent as
  select client, count(distinct user) as names, count(*) as failures, min(t) as first, max(t) as last from failure where client in source group by client;
create table hit as select idp.* from idp join extent using (client) where event = 'signin' and t >= first;
create table intruder as
  with recursive chain(session) as (
    select session from hit where result = 'ok'
    union select idp.session from idp join chain on idp.parent = chain.session where idp.event = 'exchange')
  select session from chain;
""")


def deliver(file, header, query):
    with open(OUT + file, "w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(header.split(","))
        writer.writerows(db.execute(query))


iso = "strftime('%Y-%m-%dT%H:%M:%SZ', {}, 'unixepoch')".format
db.create_function("written", 1, written)
db.create_function("name", 1, name)
deliver("clock.csv", "first_line,last_line,offset_seconds", "select min(line), max(line), offset from vpn join clock using (stretch) group by stretch")
deliver("sources.csv", "address,names,failures,first_failure,last_failure",
        f"select written(client), names, failures, {iso('first / 1000')}, {iso('last / 1000')} from extent")
deliver("accounts.csv", "account,status,first_time,evidence", f"""
  select user, case result when 'ok' then 'entered' else 'password_known' end, {iso('t / 1000')}, 'idp:' || id from (
    select *, row_number() over (partition by user order by result = 'ok' desc, t) as n from hit where result in ('ok', 'mfa_denied')) where n = 1""")
deliver("actions.csv", "time,account,operation,evidence", f"""
  select {iso('t')}, mailbox, operation, 'mail:' || id from mail where session in intruder
  union all select {iso('t / 1000')}, user, event, 'idp:' || id from idp where event in ('consent', 'mfa_added') and session in intruder
  union all select {iso('f.shown + clock.offset')}, idp.user, 'fetch', 'vpn:' || f.line
    from vpn f join clock using (stretch) join pair p on p.stretch = f.stretch and p.number = f.number join idp on idp.id = p.id
    where f.kind = 'fetch' and idp.session in intruder""")
