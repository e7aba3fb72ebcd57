"""Run the delivered loader on seeded feeds and compare its tables with those of the contract."""

import os
import shutil
import sqlite3
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # python runs isolated, so the helpers beside us must be named

from feeds import Expected, scenario  # noqa: E402
from reward import delivered_text, run  # noqa: E402
from untrusted import Workplace  # noqa: E402

METRICS = ("orders_table", "quarantine", "repeatable", "corrections")
COLUMNS = {
    "orders": "order_id, sku, customer, qty, unit_price_cents, currency, updated_at",
    "quarantine": "file, line, reason",
    "loads": "file, sha256, rows_ok, rows_bad",
}
TRIGGERS = "select name, tbl_name, sql from sqlite_master where type = 'trigger' order by name"


class Loader:
    """The delivered program in a workplace of its own, with one database that lives over several runs."""

    def __init__(self, place, source, seed=0):
        self.place, self.database = place, os.path.join(place.work, "orders.db")
        self.program = os.path.join(place.path, "load.py")
        Path(self.program).write_text(source, encoding="utf-8")
        self.runs = seed  # decides in which order the feed files are created

    def run(self, files):
        """Exit code of one run over {name: bytes}; the feed folder is new each time."""
        self.runs += 1
        feed = os.path.join(self.place.path, f"feed{self.runs}")
        os.mkdir(feed, 0o755)
        for name in sorted(files, reverse=bool(self.runs % 2)):
            Path(feed, name).write_bytes(files[name])
        return self.place.python(self.program, self.database, feed)

    def _connect(self):
        if os.path.islink(self.database) or not os.path.isfile(self.database):
            raise ValueError("no database file")
        copy = os.path.join(self.place.path, "copy.db")
        shutil.copyfile(self.database, copy)
        return sqlite3.connect(copy)

    def tables(self):
        """{table: sorted rows}, or None for a table that is missing or holds other columns."""
        found = {}
        try:
            connection = self._connect()
        except (OSError, ValueError):
            return dict.fromkeys(COLUMNS)
        for table, columns in COLUMNS.items():
            try:
                rows = connection.execute(f"select {columns} from {table} limit 20000").fetchall()
                found[table] = sorted(rows)
            except (sqlite3.Error, TypeError):
                found[table] = None
        connection.close()
        return found

    def watch(self):
        """Add triggers that note every write to a table, those of the loader's own included."""
        connection = sqlite3.connect(self.database)
        tables = [name for (name,) in connection.execute(
            "select name from sqlite_master where type = 'table' and name not like 'sqlite!_%' escape '!'"
        )]
        connection.execute("create table graders_notes (what)")
        for number, table in enumerate(tables):
            quoted = '"' + table.replace('"', '""') + '"'
            for what in ("insert", "update", "delete"):
                connection.execute(
                    f"create trigger graders_{what}_{number} before {what} on {quoted} "
                    f"begin insert into graders_notes values ('{what} {number}'); end"
                )
        self.triggers = connection.execute(TRIGGERS).fetchall()
        connection.commit()
        connection.close()

    def untouched(self):
        """True when the triggers are as they were and none has fired."""
        connection = self._connect()
        try:
            notes = connection.execute("select count(*) from graders_notes").fetchone()[0]
            return notes == 0 and connection.execute(TRIGGERS).fetchall() == self.triggers
        except sqlite3.Error:
            return False
        finally:
            connection.close()


def fresh_loads(source):
    """(orders right, quarantine and loads and exit codes right) over several new databases."""
    orders = quarantine = True
    for seed, header_fault in ((11, False), (12, True), (13, False), (14, True)):
        feed, expected = scenario(seed, header_fault=header_fault), Expected()
        expected.run(feed)
        with Workplace() as place:
            loader = Loader(place, source, seed)
            code = loader.run(feed)
            found, truth = loader.tables(), expected.tables()
        orders = orders and found["orders"] == truth["orders"]
        quarantine = quarantine and code == expected.exit_code
        quarantine = quarantine and (found["quarantine"], found["loads"]) == (truth["quarantine"], truth["loads"])
    return orders, quarantine


def repeated(source):
    """True when a second run writes nothing and leaves the right tables."""
    for seed in (21, 22):
        feed, expected = scenario(seed, files=3, header_fault=seed == 22), Expected()
        expected.run(feed)
        with Workplace() as place:
            loader = Loader(place, source, seed)
            loader.run(feed)
            if loader.tables() != expected.tables():
                return False
            loader.watch()
            if loader.run(feed) != 0 or not loader.untouched() or loader.tables() != expected.tables():
                return False
    return True


def corrected(source):
    """True when late, early and corrected files lead to the right tables after every run."""
    for seed in (31, 32, 33):
        feed, other = scenario(seed, files=5, header_fault=seed == 32), scenario(seed + 100, files=5)
        names = sorted(name for name in feed if name.startswith("orders_") and name.endswith(".csv"))
        replacement = dict(zip(names, (other[n] for n in sorted(other) if n.startswith("orders_") and n.endswith(".csv"))))
        deliveries = [
            {name: feed[name] for name in names[2:]},
            feed,
            {**feed, names[1]: replacement[names[1]], names[3]: replacement[names[3]]},
            {**feed, names[1]: replacement[names[1]], names[3]: feed[names[3]]},
            {**feed, "orders_20260401.csv": feed[names[1]]},  # known bytes under a new name, and an old file back
        ]
        expected = Expected()
        with Workplace() as place:
            loader = Loader(place, source, seed)
            for delivery in deliveries:
                expected.run(delivery)
                if loader.run(delivery) != expected.exit_code or loader.tables() != expected.tables():
                    return False
    return True


def grade():
    scores = dict.fromkeys(METRICS, 0)
    source = delivered_text("/app/load.py")
    if source is None:
        return scores
    orders, quarantine = fresh_loads(source)
    scores["orders_table"], scores["quarantine"] = int(orders), int(quarantine)
    scores["repeatable"] = int(orders and repeated(source))
    scores["corrections"] = int(orders and corrected(source))
    return scores


run(METRICS, grade)
