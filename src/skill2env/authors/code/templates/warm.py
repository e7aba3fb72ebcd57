"""What is done once, before any code of a project runs, so that no case has to: libraries imported, modules compiled.

Nothing of the project is executed here. Standard library only, Python 3.9 or newer.
"""

import importlib
import os
import re
import types
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

MAX_FILES = 80
MAX_FILE_BYTES = 512 * 1024
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*)", re.M)


def preload(names: "list[str]") -> None:
    """Import libraries: processes that are forked from this one find them there."""
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:  # the code that wants it will say so itself
            continue


class Compiled:
    """Code objects of project files by path; what cannot be compiled is left to whoever imports it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._codes: dict[str, "types.CodeType | None"] = {}

    def add(self, file: str) -> None:
        """Compile a file, its packages, and the project's own modules that they import, and so on."""
        waiting = [self._root / file]
        inner = [folder / "__init__.py" for folder in waiting[0].parents if self._root in folder.parents]
        waiting += [path for path in inner if path.is_file()]
        while waiting and len(self._codes) < MAX_FILES:
            path = waiting.pop()
            if str(path) in self._codes:
                continue
            self._codes[str(path)] = None
            try:
                if path.stat().st_size > MAX_FILE_BYTES:
                    continue
                data = path.read_bytes()
                self._codes[str(path)] = compile(data, str(path), "exec", dont_inherit=True)
            except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            for names in _IMPORT.findall(data.decode("utf-8", "replace")):
                for name in re.split(r"[ \t]*,[ \t]*", names):
                    waiting += self._places(path.parent, name)

    def _places(self, folder: Path, name: str) -> "list[Path]":
        """Files of the project that an import can mean."""
        parts = [part for part in name.split(".") if part]
        found = []
        for base in dict.fromkeys((folder, folder.parent, self._root)):
            if base != self._root and self._root not in base.parents:
                continue
            for count in range(1, len(parts) + 1):
                place = base.joinpath(*parts[:count])
                found += [
                    path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()
                ]
        return found

    def code(self, path: Path) -> "types.CodeType | None":
        """Code of a file; None when it was not compiled."""
        return self._codes.get(str(path))

    def install(self) -> None:
        """Let imports in this process, and in those forked from it, take code from here."""
        usual, codes = SourceFileLoader.get_code, self._codes

        def get_code(loader: Any, fullname: str) -> Any:
            found = codes.get(os.fspath(loader.path))
            return usual(loader, fullname) if found is None else found

        SourceFileLoader.get_code = get_code  # type: ignore[assignment,method-assign]
