"""Load order feeds by the contract. Usage: python3 load.py DATABASE FEED_DIR"""

import csv
import hashlib
import io
import re
import sqlite3
import sys
from datetime import datetime
from pathlib import Path

REQUIRED = ("order_id", "sku", "customer", "qty", "unit_price", "currency", "updated_at")
SCHEMA = """
create table if not exists orders (
  order_id text, sku text, customer text, qty integer, unit_price_cents integer, currency text, updated_at text,
  primary key (order_id, sku));
create table if not exists quarantine (file text, line integer, reason text);
create table if not exists loads (file text primary key, sha256 text, rows_ok integer, rows_bad integer);
"""
UPSERT = """
insert into orders values (?, ?, ?, ?, ?, ?, ?)
on conflict (order_id, sku) do update set customer = excluded.customer, qty = excluded.qty,
  unit_price_cents = excluded.unit_price_cents, currency = excluded.currency, updated_at = excluded.updated_at
where excluded.updated_at >= orders.updated_at
"""


def moment(text):
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text, re.ASCII):
        return False
    try:
        datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return False
    return int(text[17:19]) < 60


CHECKS = (
    ("bad_order_id", lambda r: re.fullmatch(r"[A-Z]{2}-[0-9]{6}", r["order_id"])),
    ("bad_sku", lambda r: r["sku"]),
    ("bad_qty", lambda r: re.fullmatch(r"[0-9]+", r["qty"]) and 1 <= int(r["qty"]) <= 999),
    ("bad_price", lambda r: re.fullmatch(r"[0-9]+(\.[0-9]{1,2})?", r["unit_price"])),
    ("bad_currency", lambda r: r["currency"].upper() in ("EUR", "USD", "GBP")),
    ("bad_updated_at", lambda r: moment(r["updated_at"])),
)


def records(data):
    """Yield (line where the record starts, cells); the header is the first."""
    reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    end = 0
    for cells in reader:
        line, end = end + 1, reader.line_num
        if cells:
            yield line, cells


def cents(text):
    whole, _, part = text.partition(".")
    return int(whole) * 100 + int(part.ljust(2, "0"))


def load_file(db, name, data, digest):
    """Load one file in one transaction; returns False when it is refused."""
    rows = list(records(data))
    header = [cell.strip() for cell in rows[0][1]] if rows else []
    with db:
        db.execute("delete from quarantine where file = ?", (name,))
        if any(column not in header for column in REQUIRED):
            db.execute("insert into quarantine values (?, 1, 'bad_header')", (name,))
            db.execute("insert or replace into loads values (?, ?, 0, 0)", (name, digest))
            return False
        place = {column: header.index(column) for column in REQUIRED}
        good = bad = 0
        for line, cells in rows[1:]:
            row = {c: cells[i].strip() if i < len(cells) else "" for c, i in place.items()}
            reason = next((reason for reason, holds in CHECKS if not holds(row)), None)
            if reason:
                bad += 1
                db.execute("insert into quarantine values (?, ?, ?)", (name, line, reason))
            else:
                good += 1
                row["qty"], row["unit_price"] = int(row["qty"]), cents(row["unit_price"])
                row["currency"] = row["currency"].upper()
                db.execute(UPSERT, [row[column] for column in REQUIRED])
        db.execute("insert or replace into loads values (?, ?, ?, ?)", (name, digest, good, bad))
    return True


def main(database, feed):
    db = sqlite3.connect(database)
    db.executescript(SCHEMA)
    refused = False
    for path in sorted(Path(feed).iterdir()):
        if not re.fullmatch(r"orders_[0-9]{8}\.csv", path.name):
            continue
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        if db.execute("select 1 from loads where file = ? and sha256 = ?", (path.name, digest)).fetchone():
            continue
        refused |= not load_file(db, path.name, data, digest)
    db.close()
    return 3 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
