"""What SPDX expressions are made of and what kinds of terms there are.

Ids come from the SPDX list and families from the ScanCode list, both inside the library `license_expression`.
"""

import functools
import re
from enum import StrEnum
from typing import Any

from skill2env.ingest.spdx import PROPRIETARY


class LicenceFamily(StrEnum):
    """Kinds of terms. A policy may name a family where it could name a licence."""

    PERMISSIVE = "permissive"
    """Allows everything but asks for notices at most, or gives the work to the public domain."""
    COPYLEFT = "copyleft"
    """Derived works must be given under the same terms, wholly or file by file; share-alike included."""
    NON_COMMERCIAL = "non-commercial"
    """Excludes use for profit."""
    NO_DERIVATIVES = "no-derivatives"
    """Forbids changed versions, and a task is one."""
    RESTRICTED = "restricted"
    """Source can be read, but some use is excluded or costs money."""
    PROPRIETARY = "proprietary"
    """Grants nothing that a task could rest on."""
    UNKNOWN = "unknown"
    """No SPDX licence; what it says is not known."""


_OF_CATEGORY = {
    "Permissive": LicenceFamily.PERMISSIVE,
    "Public Domain": LicenceFamily.PERMISSIVE,
    "Copyleft": LicenceFamily.COPYLEFT,
    "Copyleft Limited": LicenceFamily.COPYLEFT,
    "Source-available": LicenceFamily.RESTRICTED,
    "Free Restricted": LicenceFamily.RESTRICTED,
    "Proprietary Free": LicenceFamily.PROPRIETARY,
    "Commercial": LicenceFamily.PROPRIETARY,
}
_BY_NAME = (
    (re.compile(r"(?:^|-)ND(?:-|$)", re.IGNORECASE), LicenceFamily.NO_DERIVATIVES),
    (re.compile(r"(?:^|-)(?:NC|Non-?commercial)(?:-|$)", re.IGNORECASE), LicenceFamily.NON_COMMERCIAL),
    (re.compile(r"proprietary|all-rights-reserved", re.IGNORECASE), LicenceFamily.PROPRIETARY),
    (re.compile(r"polyform|business-source|commons-clause", re.IGNORECASE), LicenceFamily.RESTRICTED),
)


@functools.cache
def families_of(spdx: str) -> tuple[LicenceFamily, ...]:
    """Every family of one SPDX id, most telling first: ``CC-BY-NC-SA-4.0`` is non-commercial and copyleft."""
    if spdx == PROPRIETARY:
        return (LicenceFamily.PROPRIETARY,)
    named = [family for pattern, family in _BY_NAME if pattern.search(spdx)]
    if re.search(r"-SA(?:-|$)", spdx):
        named.append(LicenceFamily.COPYLEFT)
    if named:
        return tuple(named)
    return (_OF_CATEGORY.get(_categories().get(spdx.lower(), ""), LicenceFamily.UNKNOWN),)


@functools.cache
def _categories() -> dict[str, str]:
    """SPDX id in lower case -> ScanCode's category; retired ids (``GPL-3.0``) included."""
    from license_expression import get_license_index

    found: dict[str, str] = {}
    index: list[dict[str, Any]] = get_license_index()
    for item in index:
        for name in (item.get("spdx_license_key"), *item.get("other_spdx_license_keys", ())):
            if name:
                found.setdefault(str(name).lower(), str(item.get("category", "")))
    return found


@functools.cache
def exceptions() -> frozenset[str]:
    """SPDX ids of exceptions, in lower case."""
    from license_expression import get_license_index

    index: list[dict[str, Any]] = get_license_index()
    return frozenset(str(item.get("spdx_license_key")).lower() for item in index if item.get("is_exception"))


@functools.cache
def _licensing() -> Any:
    from license_expression import get_spdx_licensing

    return get_spdx_licensing()


def parse_expression(expression: str) -> Any:
    """The expression as a tree with canonical ids, None when it is none. Unknown ids stay as they are."""
    try:
        return _licensing().parse(expression, validate=False, strict=False)
    except Exception:
        # The library raises errors of several trees on odd input; all mean the same here.
        return None


def unknown_ids(parsed: Any) -> list[str]:
    """Ids in a parsed expression that SPDX does not know."""
    known: Any = _licensing().unknown_license_keys(parsed)
    return [str(item) for item in known if str(item) != PROPRIETARY]
