"""A case: one call of a function or one run of a script, with its inputs in the tagged form of `templates.tagged_values`."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# The values here are tagged JSON of any shape; `cases.well_formed` checks them where they come in.

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from skill2env.records import digest_of

MAX_CASE_BYTES = 60_000


@dataclass(frozen=True, slots=True)
class Case:
    """What is run. Equal inputs have equal ids."""

    kind: str
    """``function`` or ``command``."""
    file: str
    """Module that holds the function, or the script."""
    name: str = ""
    """Qualified name of the function; empty for commands."""
    args: tuple[Any, ...] = ()
    """Positional arguments, or the command's arguments."""
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    test: str = ""
    """Test that made the call; empty for derived cases. Not part of the identity."""
    origin: str = ""
    """Id of the case that this one was derived from; empty for observed ones. Not part of the identity."""

    @property
    def id(self) -> str:
        """Twelve hex digits of the digest of the inputs."""
        return digest_of([self.kind, self.file, self.name, list(self.args), dict(self.kwargs)])[7:19]

    @property
    def target(self) -> str:
        """``file:function`` or ``file`` for a command."""
        return f"{self.file}:{self.name}" if self.kind == "function" else self.file

    def to_json(self) -> dict[str, Any]:
        """Form in which the child process reads it."""
        if self.kind == "command":
            return {"id": self.id, "kind": self.kind, "file": self.file, "argv": list(self.args)}
        shared = {"id": self.id, "kind": self.kind, "file": self.file, "name": self.name}
        return {**shared, "args": list(self.args), "kwargs": dict(self.kwargs)}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self | None:
        """Take a case from untrusted data; None when it is malformed or too large."""
        kind, file, name = data.get("kind"), data.get("file"), data.get("name", "")
        args, kwargs = data.get("argv" if kind == "command" else "args"), data.get("kwargs", {})
        good = kind in ("function", "command") and isinstance(file, str) and isinstance(name, str)
        if (
            not good
            or not isinstance(args, list)
            or not isinstance(kwargs, dict)
            or not well_formed([args, kwargs])
        ):
            return None
        if len(json.dumps([args, kwargs])) > MAX_CASE_BYTES:
            return None
        return cls(str(kind), str(file), str(name), tuple(args), dict(kwargs), str(data.get("test", "")))  # pyright: ignore[reportUnknownArgumentType]

    def derived(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Self:
        """The same target with other inputs."""
        return replace(self, args=args, kwargs=kwargs, test="", origin=self.origin or self.id)


PLACED = {"file": ("name", "text"), "folder": ("name", "files"), "fresh": ("name",), "root": ("v",)}
LISTED = ("tuple", "set", "frozenset", "iterator")
PAIRED = ("dict", "namespace", "object")


def well_formed(value: Any, depth: int = 0) -> bool:
    """True when `value` is a tagged form that the decoder can read and that names no path outside its folders."""
    if depth > 24:
        return False
    if value is None or isinstance(value, bool | int | str):
        return True
    if isinstance(value, list):
        return all(well_formed(item, depth + 1) for item in value)  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return False
    tag, inner = value.get("$"), value.get("v")  # pyright: ignore[reportUnknownVariableType,reportUnknownMemberType]
    if tag is None:
        return all(isinstance(key, str) and well_formed(item, depth + 1) for key, item in value.items())  # pyright: ignore[reportUnknownVariableType]
    if tag in PLACED:
        return _placed(value, str(tag))  # pyright: ignore[reportUnknownArgumentType]
    if tag in LISTED:
        return isinstance(inner, list) and well_formed(inner, depth + 1)
    if tag in PAIRED:
        pairs: list[Any] = inner if isinstance(inner, list) else [None]
        return all(
            isinstance(pair, list) and len(pair) == 2 and well_formed(pair, depth + 1) for pair in pairs
        )  # pyright: ignore[reportUnknownArgumentType]
    if tag == "array":
        return isinstance(inner, list) and well_formed(inner, depth + 1)
    if tag == "frame":
        pairs = inner if isinstance(inner, list) else [None]
        return all(
            isinstance(p, list) and len(p) == 2 and isinstance(p[0], str) and well_formed(p[1], depth + 1)
            for p in pairs
        )
    return isinstance(inner, str) or (tag == "timedelta" and isinstance(inner, list))


def _placed(value: Mapping[str, Any], tag: str) -> bool:
    names = [value.get(PLACED[tag][0])]
    files = value.get("files", {})
    if tag == "folder":
        if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):  # pyright: ignore[reportUnknownVariableType]
            return False
        names += list(files)  # pyright: ignore[reportUnknownArgumentType]
    if tag == "file" and not isinstance(value.get("text"), str):
        return False
    safe = all(
        isinstance(name, str) and not name.startswith("/") and ".." not in name.split("/") for name in names
    )
    return safe and value.get("as") in ("path", "str")


def input_names(value: Any) -> list[str]:
    """Names of the files and folders that a tagged form writes."""
    if isinstance(value, list):
        return [name for item in value for name in input_names(item)]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return []
    tag, inner = value.get("$"), value.get("v")  # pyright: ignore[reportUnknownVariableType,reportUnknownMemberType]
    if tag in ("file", "folder"):
        return [str(value["name"]), *value.get("files", {})]  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType]
    return input_names(inner)
