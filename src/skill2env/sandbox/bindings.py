"""A Dockerfile's base from one binding to another: our image, the public image with the same packages, or any other.

Every base of the catalog consists of Debian's packages, so the public binding of one is Debian's own image and one RUN
that installs them. Those lines carry a mark, and the way back gives the bytes of before.
"""

from collections.abc import Callable
from dataclasses import dataclass

from skill2env.errors import UserError
from skill2env.sandbox import catalog
from skill2env.sandbox.dockerfile import parse
from skill2env.sandbox.instructions import From

_IN_DEBIAN = frozenset({"apt", "bash", "usr-is-merged"})
"""What the public image has already."""
_MARK = "# skill2env base: "


@dataclass(frozen=True, slots=True)
class Named:
    """What one FROM names."""

    reference: str
    base: str
    """Entry of the catalog that it means; empty when it means none."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What it shall name."""

    reference: str
    base: str = ""
    """Install this entry's packages on top, as its public binding needs them."""


type Choose = Callable[[Named], Binding]


def rewrite(text: str, choose: Choose) -> str:
    """Give every FROM the binding that `choose` wants; stages of the same file and every other line stay.

    Raises:
        BuildFailed: the Dockerfile cannot be read.
        UserError: a FROM is not written on one line.
    """
    lines, marked = _without_marks(text.split("\n"))
    stages = {"scratch"}
    written = list(lines)
    for item in [item for item in parse("\n".join(lines)) if isinstance(item, From)]:
        if item.reference.lower() not in stages:
            at = item.place.line - 1
            if item.reference not in lines[at]:
                raise UserError(f"line {at + 1}: FROM stands on several lines", hint="write it on one line")
            name = marked.get(at) or catalog.catalog_name(item.reference) or ""
            binding = choose(Named(item.reference, name))
            # The reference is the first word that equals it: flags before it start with dashes.
            line = lines[at].replace(item.reference, binding.reference, 1)
            written[at] = line if not binding.base else _with_packages(line, binding.base)
        stages.add(item.name)
    return "\n".join(written)


def _with_packages(line: str, base: str) -> str:
    return f"{_MARK}{base}\n{line}\n{_install(base)}"


def _install(base: str) -> str:
    """The RUN that makes Debian's image what the base is."""
    packages = sorted(set(catalog.lookup(base).packages) - _IN_DEBIAN)
    return (
        "RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends"
        f" {' '.join(packages)} && rm -rf /var/lib/apt/lists/*"
    )


def _without_marks(lines: list[str]) -> tuple[list[str], dict[int, str]]:
    """(the lines as they were before the public binding was written, index of a FROM -> its base)."""
    kept: list[str] = []
    marked: dict[int, str] = {}
    at = 0
    while at < len(lines):
        base = lines[at].removeprefix(_MARK) if lines[at].startswith(_MARK) else ""
        if base in catalog.CATALOG and lines[at + 2 : at + 3] == [_install(base)]:
            marked[len(kept)] = base
            kept.append(lines[at + 1])
            at += 3
        else:
            kept.append(lines[at])
            at += 1
    return kept, marked
