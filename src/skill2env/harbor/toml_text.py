"""Plain data -> TOML that reads back as the same data, whatever the texts hold.

The writer that Harbor uses breaks on control characters and on some backslashes, and these texts come from strangers.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(data: Mapping[str, Any]) -> str:
    """TOML text of nested mappings, in their order: values first, then tables, then arrays of tables.

    Args:
        data: strings, booleans, integers, finite floats, lists and mappings; empty lists and mappings and None are
            left out at any depth.

    Raises:
        ValueError: a value has no TOML form, or a text holds lone surrogates.
    """
    lines = list(_table(data, ()))
    while lines and not lines[0]:
        lines.pop(0)
    text = "\n".join(lines) + "\n"
    text.encode()  # refuses lone surrogates here, where the message is about the data
    return text


def _table(data: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    kept = {key: value for key, value in data.items() if not _is_empty(value)}
    for key, value in kept.items():
        if not isinstance(value, Mapping) and not _is_tables(value):
            yield f"{_key(key)} = {_value(value)}"
    for key, value in kept.items():
        here = (*path, _key(key))
        if isinstance(value, Mapping):
            inner = list(_table(cast("Mapping[str, Any]", value), here))
            if inner and inner[0]:  # a table that holds only tables needs no line of its own
                yield ""
                yield f"[{'.'.join(here)}]"
            yield from inner
        elif _is_tables(value):
            for item in value:
                yield ""
                yield f"[[{'.'.join(here)}]]"
                yield from _table(item, here)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, Mapping) for item in cast("list[Any]", value))


def _is_empty(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_is_empty(item) for item in cast("Mapping[str, Any]", value).values())
    return value is None or value == []


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case str():
            return _string(value)
        case list():
            return f"[{', '.join(_value(item) for item in cast('list[Any]', value))}]"
        case _:
            raise ValueError(f"no TOML form: {value!r:.80}")


def _string(text: str) -> str:
    # JSON's escapes are a subset of TOML's; only DEL is legal in JSON and not in TOML.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
