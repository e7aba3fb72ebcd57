"""Parquet files, through the optional library that can read them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from skill2env.errors import UserError

_BATCH = 1024


def parquet_rows(path: Path, columns: tuple[str, ...] = ()) -> Iterator[Mapping[str, Any]]:
    """Rows of a Parquet file, a batch at a time.

    Args:
        path: the file.
        columns: those wanted that exist; all when empty.

    Raises:
        UserError: the library is not installed, or the file is no Parquet.
    """
    try:
        from pyarrow import parquet
    except ImportError:
        raise UserError("reading Parquet needs pyarrow", hint="pip install 'skill2env[parquet]'") from None
    library: Any = parquet
    try:
        with library.ParquetFile(path) as file:
            wanted = [name for name in columns if name in file.schema_arrow.names] or None
            for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
                yield from batch.to_pylist()
    except (OSError, ValueError) as error:  # what is no Parquet raises a kind of ValueError
        raise UserError(f"cannot read {path}: {str(error)[:200]}", hint="give a Parquet file") from None
