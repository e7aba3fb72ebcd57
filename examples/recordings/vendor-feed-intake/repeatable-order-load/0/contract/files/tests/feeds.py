"""Seeded feeds that exercise the contract, and the tables that it asks for. Knows nothing about deliveries."""

import csv
import hashlib
import io
import random
import re
from datetime import datetime

COLUMNS = ["order_id", "sku", "customer", "qty", "unit_price", "currency", "updated_at"]
BAD = {
    "order_id": ["AB100001", "ab-100001", "AB-10001", "ABC-100001", "AB-1000012", "", "AB-1O0001"],
    "sku": ["", "   "],
    "qty": ["0", "1000", "-3", "2.0", "1e2", "", "twelve", "+4", "1_0"],
    "unit_price": ["", "-1.00", "1.234", "1,50", "free", ".50", "3.", "1e3", "NaN", "1_0.00"],
    "currency": ["", "CHF", "EURO", "E UR"],
    "updated_at": ["", "2026-02-30T10:00:00Z", "2026-03-01 10:00:00", "2026-03-01T10:00:00", "2026-03-01T24:10:00Z",
                   "2026-3-1T10:00:00Z", "2026-03-01T10:00:00+00:00", "2026-03-01T10:00:60Z"],
}
REASONS = {
    "order_id": "bad_order_id", "sku": "bad_sku", "qty": "bad_qty",
    "unit_price": "bad_price", "currency": "bad_currency", "updated_at": "bad_updated_at",
}


def _good(rng):
    customers = ["Meyer & Sons", "Okoro Ltd", "Dupont, Fils", 'The "Old" Mill', "Rossi\nFiliale Nord", "Žižka s.r.o.", "", "東京 KK"]
    price = rng.choice(["19.99", "0.29", "1.1", "7", "1234.56", "0.07", "4.35", "0", "2.67"])
    return {
        "order_id": f"{rng.choice(['AB', 'CD', 'XY'])}-{rng.randint(100001, 100012)}",
        "sku": rng.choice(["K-20", "K-21", "M 7", "n/a"]),
        "customer": rng.choice(customers),
        "qty": str(rng.choice([1, 2, 5, 999, 37, 10])),
        "unit_price": price,
        "currency": rng.choice(["EUR", "usd", "Gbp", "GBP"]),
        "updated_at": f"2026-03-{rng.randint(1, 3):02d}T{rng.choice([0, 8, 23]):02d}:{rng.choice([0, 30]):02d}:{rng.choice([0, 59]):02d}Z",
    }


def make_file(rng, rows=24, header_fault=False, shared=()):
    """Text bytes of one feed file with good, padded, short, long and damaged records.

    Each of ``shared`` also comes, in sound form: other values below the same key and the same moment.
    """
    columns = list(COLUMNS) + rng.sample(["channel", "note", "unit"], rng.randint(0, 2))
    rng.shuffle(columns)
    if header_fault:
        columns.remove(rng.choice(COLUMNS))
    out = io.StringIO(newline="")
    end = rng.choice(["\n", "\r\n"])
    writer = csv.writer(out, lineterminator=end)
    writer.writerow([f" {c} " if rng.random() < 0.2 else c for c in columns])
    for _ in range(rows):
        record = _good(rng)
        if rng.random() < 0.35:
            for column in rng.sample(list(BAD), rng.choice([1, 1, 2])):
                record[column] = rng.choice(BAD[column])
        if rng.random() < 0.15:
            record = {key: f"  {value} " for key, value in record.items()}
        cells = [record.get(c, "x\ny" if rng.random() < 0.1 else "x") for c in columns]
        if rng.random() < 0.06:
            cells = cells[: rng.randint(2, len(cells) - 1)]
        elif rng.random() < 0.06:
            cells.append("surplus")
        writer.writerow(cells)
        if rng.random() < 0.05:
            out.write(end)
    for same in shared:
        record = {**_good(rng), **same}
        writer.writerow([record.get(c, "x") for c in columns])
    text = out.getvalue()
    return (b"\xef\xbb\xbf" if rng.random() < 0.4 else b"") + text.encode()


def _records(data):
    """Yield (start line, cells) of each non-blank record, the header first."""
    text = data.decode("utf-8-sig")
    reader = csv.reader(io.StringIO(text, newline=""))
    before = 0
    for cells in reader:
        start, before = before + 1, reader.line_num
        if cells:
            yield start, cells


def _verdict(record):
    if not re.fullmatch(r"[A-Z]{2}-[0-9]{6}", record["order_id"]):
        return "bad_order_id"
    if not record["sku"]:
        return "bad_sku"
    if not re.fullmatch(r"[0-9]+", record["qty"]) or not 1 <= int(record["qty"]) <= 999:
        return "bad_qty"
    if not re.fullmatch(r"[0-9]+(\.[0-9]{1,2})?", record["unit_price"]):
        return "bad_price"
    if record["currency"].upper() not in ("EUR", "USD", "GBP"):
        return "bad_currency"
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", record["updated_at"]):
        return "bad_updated_at"
    try:
        datetime.strptime(record["updated_at"], "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return "bad_updated_at"
    return "bad_updated_at" if record["updated_at"][17:19] > "59" else ""


class Expected:
    """The tables after any number of runs, kept by the letter of the contract."""

    def __init__(self):
        self.orders, self.quarantine, self.loads = {}, {}, {}
        self.exit_code = 0

    def run(self, files):
        """Apply one run over {file name: bytes}."""
        self.exit_code = 0
        for name in sorted(n for n in files if re.fullmatch(r"orders_[0-9]{8}\.csv", n)):
            digest = hashlib.sha256(files[name]).hexdigest()
            if self.loads.get(name, ("",))[0] == digest:
                continue
            self._file(name, digest, files[name])

    def _file(self, name, digest, data):
        records = list(_records(data))
        header = [cell.strip() for cell in records[0][1]]
        if not set(COLUMNS) <= set(header):
            self.quarantine[name], self.loads[name], self.exit_code = [(1, "bad_header")], (digest, 0, 0), 3
            return
        bad, ok = [], 0
        for line, cells in records[1:]:
            cells = cells + [""] * (len(header) - len(cells))
            record = {c: cells[header.index(c)].strip() for c in COLUMNS}
            reason = _verdict(record)
            if reason:
                bad.append((line, reason))
                continue
            ok += 1
            key = record["order_id"], record["sku"]
            if key not in self.orders or record["updated_at"] >= self.orders[key][-1]:
                euros, _, cents = record["unit_price"].partition(".")
                self.orders[key] = (
                    record["customer"], int(record["qty"]), int(euros) * 100 + int((cents + "00")[:2]),
                    record["currency"].upper(), record["updated_at"],
                )
        self.quarantine[name], self.loads[name] = bad, (digest, ok, len(bad))

    def tables(self):
        """{table: sorted list of rows} for comparison."""
        return {
            "orders": sorted((*key, *value) for key, value in self.orders.items()),
            "quarantine": sorted((name, *row) for name, rows in self.quarantine.items() for row in rows),
            "loads": sorted((name, *row) for name, row in self.loads.items()),
        }


def scenario(seed, files=4, header_fault=False):
    """A feed of several files: {name: bytes}."""
    rng = random.Random(seed)
    names = [f"orders_202603{day:02d}.csv" for day in sorted(rng.sample(range(1, 29), files))]
    faulty = rng.choice(names) if header_fault else None
    shared = [{c: row[c] for c in ("order_id", "sku", "updated_at")} for row in (_good(rng) for _ in range(4))]
    for same in shared:
        same["updated_at"] = "2026-03-04" + same["updated_at"][10:]  # the latest moment, so the order of loading decides
    feed = {name: make_file(rng, header_fault=name == faulty, shared=shared) for name in names}
    feed["orders_20260301.csv.bak"] = b"order_id\nAB-999999\n"
    feed["returns_20260301.csv"] = feed[names[0]]
    return feed
