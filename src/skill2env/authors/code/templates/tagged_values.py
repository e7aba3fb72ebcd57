"""How values cross between the grader, the project's code and disk: one tagged JSON form, and its comparison.

Used three times with the same bytes: by the tracer that watches a project's own tests, by the child process that
runs a project's code, and by the grader that compares. Standard library only, Python 3.9 or newer.

Plain JSON values stand for themselves, except floats and objects; everything else is ``{"$": TAG, ...}``:

    float v          repr text, so that nan, inf and every digit survive
    tuple/set/frozenset/iterator v    list of values (sets in canonical order)
    dict v           list of [key, value]
    bytes v          base64
    path v           text; ``<root>`` and ``<work>`` stand for the project and the case's own folder
    decimal/fraction/datetime/date/time/timedelta v
    object file class v    a dataclass or named tuple of the project, by field
    enum file class v      member name
    namespace v      argparse.Namespace or types.SimpleNamespace
    array v          a numpy array as nested lists; numpy's single numbers are plain ones
    frame v          a pandas data frame as [[column, values], ...]; a series as a list
    file name text as      inputs only: a file to be written into the case's folder, passed as "path" or "str"
    folder name files as   inputs only: a folder with text files
    fresh name as          inputs only: a path that does not exist yet
    root v as              inputs only: a path below the project
"""

import base64
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import math
import types
from argparse import Namespace
from collections.abc import Mapping
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, Callable

MAX_DEPTH = 14
MAX_NODES = 6000
MAX_TEXT = 48_000
RELATIVE_TOLERANCE = 1e-9
PLAIN_TYPES = {
    "decimal": decimal.Decimal,
    "fraction": fractions.Fraction,
    "datetime": datetime.datetime,
    "date": datetime.date,
    "time": datetime.time,
}


class Unsupported(Exception):
    """The value has no faithful form: the call that holds it is not recorded."""


def canonical(value: Any) -> str:
    """Compact JSON with sorted keys: equal forms give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class Encoder:
    """Encodes Python values. `locate` names the project file that defines a class (None: not the project's);
    `path` may replace a path or a string by a tagged input (None: keep it); `clean` rewrites every text."""

    def __init__(
        self,
        locate: Callable[[type], "str | None"],
        path: "Callable[[str, str], Any] | None" = None,
        clean: Callable[[str], str] = str,
    ) -> None:
        self._locate = locate
        self._path = path
        self._clean = clean
        self._nodes = 0

    def encode(self, value: Any, depth: int = 0) -> Any:
        """Tagged form of `value`.

        Raises:
            Unsupported: too deep, too large, or of a type without a faithful form.
        """
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise Unsupported("too large")
        if value is None or type(value) in (bool, int):
            return value
        if type(value) is str:
            return self._text(value)
        return self._tagged(value, depth)

    def _text(self, value: str) -> Any:
        if len(value) > MAX_TEXT:
            raise Unsupported("text too long")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise Unsupported("lone surrogate") from error
        if self._path is not None:
            found = self._path(value, "str")
            if found is not None:
                return found
        return self._clean(value)

    def _tagged(self, value: Any, depth: int) -> Any:
        if type(value) is float:
            return {"$": "float", "v": repr(value)}
        if type(value) is list:
            return [self.encode(item, depth + 1) for item in value]
        if isinstance(value, enum.Enum):
            return {
                "$": "enum",
                "file": self._file(type(value)),
                "class": type(value).__qualname__,
                "v": value.name,
            }
        if isinstance(value, PurePath):
            found = None if self._path is None else self._path(str(value), "path")
            return found if found is not None else {"$": "path", "v": self._clean(str(value))}
        if isinstance(value, (bytes, bytearray)):
            return {"$": "bytes", "v": base64.b64encode(bytes(value)).decode()}
        if isinstance(value, datetime.timedelta):
            return {"$": "timedelta", "v": [value.days, value.seconds, value.microseconds]}
        for tag, kind in PLAIN_TYPES.items():
            if type(value) is kind:
                return {"$": tag, "v": value.isoformat() if hasattr(value, "isoformat") else str(value)}
        return self._container(value, depth)

    def _container(self, value: Any, depth: int) -> Any:
        if type(value) is tuple:
            return {"$": "tuple", "v": [self.encode(item, depth + 1) for item in value]}
        if isinstance(value, (set, frozenset)):
            items = sorted((self.encode(item, depth + 1) for item in value), key=canonical)
            return {"$": "frozenset" if isinstance(value, frozenset) else "set", "v": items}
        if isinstance(value, Mapping) and type(value).__module__ in (
            "builtins",
            "collections",
            "mappingproxy",
        ):
            pairs = [[self.encode(k, depth + 1), self.encode(v, depth + 1)] for k, v in value.items()]
            return {"$": "dict", "v": pairs}
        if isinstance(value, (Namespace, types.SimpleNamespace)):
            pairs = [[k, self.encode(v, depth + 1)] for k, v in sorted(vars(value).items())]
            return {"$": "namespace", "v": pairs}
        if isinstance(value, (types.GeneratorType, map, filter, zip, range)):
            return {"$": "iterator", "v": [self.encode(item, depth + 1) for item in islice(value, MAX_NODES)]}
        return self._instance(value, depth)

    def _instance(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind.__module__.split(".")[0] in ("numpy", "pandas"):
            return self._science(value, depth)
        if dataclasses.is_dataclass(kind):
            names = [field.name for field in dataclasses.fields(kind) if field.init]
        elif isinstance(value, tuple) and hasattr(kind, "_fields"):
            names = list(kind._fields)
        else:
            raise Unsupported(f"{kind.__module__}.{kind.__qualname__}")
        pairs = [[name, self.encode(getattr(value, name), depth + 1)] for name in names]
        return {"$": "object", "file": self._file(kind), "class": kind.__qualname__, "v": pairs}

    def _science(self, value: Any, depth: int) -> Any:
        """Values of numpy and pandas, without importing either."""
        if hasattr(value, "columns") and hasattr(value, "to_dict"):
            if len(value) * len(value.columns) > MAX_NODES or not all(
                type(name) is str for name in value.columns
            ):
                raise Unsupported("too large")
            pairs = [[name, self.encode(value[name].tolist(), depth + 1)] for name in value.columns]
            return {"$": "frame", "v": pairs}
        if type(value).__name__ in ("ndarray", "Series") and value.size <= MAX_NODES:
            return {"$": "array", "v": self.encode(value.tolist(), depth + 1)}
        if hasattr(value, "item") and getattr(value, "shape", None) == ():
            return self.encode(value.item(), depth + 1)
        raise Unsupported(type(value).__name__)

    def _file(self, kind: type) -> str:
        found = self._locate(kind)
        if found is None or "<locals>" in kind.__qualname__:
            raise Unsupported(f"{kind.__module__}.{kind.__qualname__} is not the project's")
        return found


class Decoder:
    """Builds Python values. `load` returns the project's class for (file, qualified name)."""

    def __init__(self, root: Path, work: Path, load: Callable[[str, str], Any]) -> None:
        self._root = root
        self._work = work
        self._load = load

    def decode(self, value: Any) -> Any:
        """The Python value of a tagged form; writes files that inputs ask for."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        tag, inner = value["$"], value.get("v")
        if tag in ("file", "folder", "fresh", "root"):
            return self._place(tag, value)
        if tag in ("tuple", "set", "frozenset", "iterator"):
            items = [self.decode(item) for item in inner]
            return {"tuple": tuple, "set": set, "frozenset": frozenset, "iterator": iter}[tag](items)
        if tag == "dict":
            return {self.decode(k): self.decode(v) for k, v in inner}
        if tag in ("array", "frame"):
            return self._science(tag, inner)
        if tag == "namespace":
            return Namespace(**{k: self.decode(v) for k, v in inner})
        if tag == "enum":
            return self._load(value["file"], value["class"])[inner]
        if tag == "object":
            return self._load(value["file"], value["class"])(**{k: self.decode(v) for k, v in inner})
        return self._scalar(tag, inner)

    def _science(self, tag: str, inner: Any) -> Any:
        if tag == "array":
            import numpy

            return numpy.array(self.decode(inner))
        import pandas

        return pandas.DataFrame({name: self.decode(values) for name, values in inner})

    def _scalar(self, tag: str, inner: Any) -> Any:
        if tag == "float":
            return float(inner)
        if tag == "bytes":
            return base64.b64decode(inner)
        if tag == "path":
            return Path(inner.replace("<root>", str(self._root)).replace("<work>", str(self._work)))
        if tag == "timedelta":
            return datetime.timedelta(*inner)
        kind = PLAIN_TYPES[tag]
        return kind(inner) if tag in ("decimal", "fraction") else kind.fromisoformat(inner)  # type: ignore[attr-defined]

    def _place(self, tag: str, value: Any) -> Any:
        base = self._root if tag == "root" else self._work
        path = base / (value["v"] if tag == "root" else value["name"])
        if tag == "file":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(value["text"].encode())
        if tag == "folder":
            path.mkdir(parents=True, exist_ok=True)
            for name, text in sorted(value["files"].items()):
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_bytes(text.encode())
        return path if value["as"] == "path" else str(path)


def _same_number(left: Any, right: Any) -> bool:
    a, b = float(left), float(right)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-12)


def same(left: Any, right: Any) -> bool:
    """True when two tagged forms mean the same: floats within 1e-9, dicts in any order, the rest exactly."""
    if isinstance(left, list) or isinstance(right, list):
        if not (isinstance(left, list) and isinstance(right, list)) or len(left) != len(right):
            return False
        return all(same(a, b) for a, b in zip(left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        if left.get("$") != right.get("$") or left.keys() != right.keys():
            return False
        if left.get("$") == "float":
            return _same_number(left["v"], right["v"])
        if left.get("$") == "dict":
            return _same_pairs(left["v"], right["v"])
        return all(same(left[key], right[key]) for key in left)
    return type(left) is type(right) and left == right


def _same_pairs(left: Any, right: Any) -> bool:
    if len(left) != len(right):
        return False
    ours = {canonical(key): value for key, value in left}
    theirs = {canonical(key): value for key, value in right}
    return ours.keys() == theirs.keys() and all(same(value, theirs[key]) for key, value in ours.items())
