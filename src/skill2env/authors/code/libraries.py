"""Libraries that a skill's code imports beyond Python's own, and the Debian packages that bring them.

Every task stands on the plain base. What its code needs is installed by the Dockerfile from Debian's own packages, in one of
a few sets, so that many tasks share an image and versions are those of the release.
"""

from collections.abc import Iterable
from dataclasses import dataclass

DATA: dict[str, str] = {
    "dateutil": "python3-dateutil",
    "jinja2": "python3-jinja2",
    "markdown": "python3-markdown",
    "numpy": "python3-numpy",
    "pandas": "python3-pandas",
    "pytz": "python3-tz",
    "requests": "python3-requests",
    "tabulate": "python3-tabulate",
    "tqdm": "python3-tqdm",
    "yaml": "python3-yaml",
}
"""Import name -> Debian package."""
SCIENCE: dict[str, str] = {
    **DATA,
    "Bio": "python3-biopython",
    "matplotlib": "python3-matplotlib",
    "networkx": "python3-networkx",
    "scipy": "python3-scipy",
    "sklearn": "python3-sklearn",
    "sympy": "python3-sympy",
}
DOCUMENTS: dict[str, str] = {
    **DATA,
    "PIL": "python3-pil",
    "bs4": "python3-bs4",
    "docx": "python3-docx",
    "httpx": "python3-httpx",
    "lxml": "python3-lxml",
    "openpyxl": "python3-openpyxl",
    "pydantic": "python3-pydantic",
    "rich": "python3-rich",
}


@dataclass(frozen=True, slots=True)
class Libraries:
    """One set of packages."""

    name: str
    provides: frozenset[str]
    """Names that can be imported."""
    packages: tuple[str, ...]
    """Debian packages, sorted."""

    @property
    def install(self) -> str:
        """Line of a Dockerfile; empty for the plain set."""
        if not self.packages:
            return ""
        names = " ".join(self.packages)
        return f"RUN apt-get update && apt-get install -y --no-install-recommends {names} && rm -rf /var/lib/apt/lists/*\n"

    def told(self, used: Iterable[str]) -> str:
        """What an instruction says of the libraries that the code uses."""
        names = sorted(self.provides & set(used))
        return f"its standard library and {', '.join(names)}" if names else "its standard library only"


def _set(name: str, table: dict[str, str]) -> Libraries:
    return Libraries(name, frozenset(table), tuple(sorted(table.values())))


SETS: tuple[Libraries, ...] = (
    _set("plain", {}),
    _set("data", DATA),
    _set("science", SCIENCE),
    _set("documents", DOCUMENTS),
    _set("all", {**SCIENCE, **DOCUMENTS}),
)
"""Smallest first."""


def choose(wanted: Iterable[str]) -> Libraries:
    """The smallest set that provides as many of the wanted names as any does."""
    names = set(wanted)
    most = max(len(item.provides & names) for item in SETS)
    return next(item for item in SETS if len(item.provides & names) == most)
