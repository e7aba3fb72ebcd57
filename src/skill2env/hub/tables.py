"""The whole index as one table: JSON lines, or Parquet where `pyarrow` is installed."""

import json
from collections.abc import Iterator
from itertools import batched
from pathlib import Path
from typing import Any, cast

from skill2env.errors import UserError
from skill2env.hub.database import Database
from skill2env.hub.folder import Hub
from skill2env.hub.redaction import redact
from skill2env.records import canonical_json
from skill2env.store.files import storage

_TEXTS = (
    "digest name slug description body language entry verdict domain source path spdx evidence licence_reason"
    " representative likeness"
).split()
_NUMBERS = "files size scripts missing".split()
_SHARES = "confidence jaccard".split()
_TRUTHS = "allowed chosen".split()
_BATCH = 2_000


def export_table(hub: Hub, out: Path) -> int:
    """Write one record a content, by digest, whatever was decided about it, secrets redacted; returns how many.

    Args:
        hub: the hub.
        out: ends in ``.jsonl`` or ``.parquet``.

    Raises:
        UserError: nothing was synced yet, or Parquet is wanted and ``pyarrow`` is not installed.
        InfraError: boundary ``storage``; an earlier file at `out` is then as it was.
    """
    partial = out.with_name(f".tmp-{out.name}")
    try:
        with Database.read(hub.index) as database, storage("writing", out):
            write = _write_parquet if out.suffix == ".parquet" else _write_lines
            count = write(_records(database), partial)
            partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    return count


def _records(database: Database) -> Iterator[dict[str, Any]]:
    columns = ", ".join((*_TEXTS, *_NUMBERS, *_SHARES, *_TRUTHS))
    rows = database.rows(
        f"SELECT {columns}, diagnostics,"
        " (SELECT json_group_array(rule) FROM (SELECT DISTINCT rule FROM flags WHERE skill = skills.id ORDER BY rule))"
        " AS flags,"
        " (SELECT json_group_array(place) FROM (SELECT source || ':' || path AS place FROM origins"
        " WHERE origins.digest = skills.digest ORDER BY 1)) AS places"
        " FROM skills ORDER BY digest"
    )
    for row in rows:
        codes = sorted({item["code"] for item in json.loads(row.pop("diagnostics"))})
        lists = {"flags": json.loads(row["flags"]), "places": json.loads(row["places"]), "diagnostics": codes}
        record = {**row, **{name: bool(row[name]) for name in _TRUTHS}, **lists}
        yield {name: _clean(value) for name, value in record.items()}


def _clean(value: Any) -> Any:
    """A column as it may leave the hub: what looks like a working credential is replaced."""
    if isinstance(value, list):
        return [_clean(item) for item in cast("list[Any]", value)]
    return redact(value) if isinstance(value, str) else value


def _write_lines(records: Iterator[dict[str, Any]], path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8", errors="backslashreplace") as out:
        for count, record in enumerate(records, 1):  # noqa: B007
            out.write(canonical_json(record) + "\n")
    return count


def _write_parquet(records: Iterator[dict[str, Any]], path: Path) -> int:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError(
            "Parquet needs the package pyarrow, which is not installed",
            hint="install skill2env[parquet], or give a name that ends in .jsonl",
        ) from None
    arrow: Any = pyarrow
    texts = arrow.list_(arrow.string())
    schema = arrow.schema([
        *((name, arrow.string()) for name in _TEXTS),
        *((name, arrow.int64()) for name in _NUMBERS),
        *((name, arrow.float64()) for name in _SHARES),
        *((name, arrow.bool_()) for name in _TRUTHS),
        *((name, texts) for name in ("flags", "places", "diagnostics")),
    ])  # fmt: skip
    count = 0
    parquet: Any = pyarrow.parquet
    with parquet.ParquetWriter(path, schema, compression="zstd") as out:
        for batch in batched(records, _BATCH):
            out.write_table(arrow.Table.from_pylist(list(batch), schema=schema))
            count += len(batch)
    return count
