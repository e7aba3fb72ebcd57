"""Nightly order load. Usage: python3 load.py DATABASE FEED_DIR"""

import os
import sqlite3
import sys

db = sqlite3.connect(sys.argv[1])
db.execute("create table if not exists orders (order_id, sku, customer, qty, unit_price_cents, currency, updated_at)")
db.execute("create table if not exists quarantine (file, line, reason)")
db.execute("create table if not exists loads (file, sha256, rows_ok, rows_bad)")

for name in os.listdir(sys.argv[2]):
    if not name.endswith(".csv"):
        continue
    ok = 0
    for number, line in enumerate(open(os.path.join(sys.argv[2], name))):
        if number == 0:
            continue
        order_id, sku, customer, qty, unit_price, currency, updated_at = line.strip().split(",")
        db.execute(
            "insert into orders values (?, ?, ?, ?, ?, ?, ?)",
            (order_id, sku, customer, int(qty), int(float(unit_price) * 100), currency, updated_at),
        )
        ok += 1
    db.execute("insert into loads values (?, '', ?, 0)", (name, ok))
db.commit()
