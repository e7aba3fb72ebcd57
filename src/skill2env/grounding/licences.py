"""Under which terms a public file may be used: what the author says, proved by a text on the file's own host."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import SplitResult, unquote, urlsplit

from skill2env.grounding.faults import AssetFault, NotHad
from skill2env.hub.policy import LicencePolicy, decide
from skill2env.ingest.spdx import normalise, recognise
from skill2env.records import Asset, Licence, LicenceEvidence

MAX_TEXT_BYTES = 256 * 1024
_FORGES = frozenset({"github.com", "raw.githubusercontent.com", "codeload.github.com"})
"""Hosts of one house, where the first two folders name whose files these are."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Where two addresses led to in the end, after redirects."""

    text: str
    """The licence text; empty when there is none."""
    file: str


def judge(asset: Asset, text: bytes | None, policy: LicencePolicy, ends: Ends | None = None) -> str:
    """The expression under which an asset is used.

    Args:
        asset: as declared.
        text: what `Asset.licence_url` led to; None when there is none.
        policy: that of skills.
        ends: None while only the declared addresses are known. A text has to speak for the file where both are
            declared and where both are found: a redirect may lead to somebody else's.

    Raises:
        NotHad: with `AssetFault.LICENCE`.
    """
    declared = normalise(asset.licence)
    if not declared:
        said = f"{asset.licence!r} is no SPDX expression" if asset.licence else "it names no licence"
        raise NotHad(AssetFault.LICENCE, f"{asset.url}: {said}")
    evidence, hint = LicenceEvidence.NONE, _UNPROVED
    if text is not None:
        found = recognise(text.decode("utf-8", "replace"))
        if found and found not in declared.replace("(", " ").replace(")", " ").split():
            raise NotHad(
                AssetFault.LICENCE, f"{asset.licence_url} holds {found}, and the contract says {declared}"
            )
        if found and belongs(asset.licence_url, asset.url):
            if ends is None or belongs(ends.text, ends.file):
                evidence = LicenceEvidence.REPOSITORY
            else:
                hint = f" In the end it lies at {ends.file[:200]} and its licence text at {ends.text[:200]}."
    licence = Licence(spdx=declared, evidence=evidence, where=asset.licence_url)
    decision = decide(licence, policy)  # pyright: ignore[reportArgumentType]  # frozen records can be hashed
    if not decision.allowed:
        shown = "" if evidence is not LicenceEvidence.NONE else hint
        raise NotHad(AssetFault.LICENCE, f"{asset.url}: {decision.reason}{shown}")
    return decision.chosen or declared


_UNPROVED = " Give licence_url: a known licence text beside or above the file on the same host."


def belongs(licence_url: str, url: str) -> bool:
    """Whether a licence text lies where it speaks for a file: the same repository, or beside or above it."""
    one, other = urlsplit(licence_url), urlsplit(url)
    if _climbs(one) or _climbs(other) or (one.path == other.path and one.query != other.query):
        return False
    if one.hostname in _FORGES and other.hostname in _FORGES:
        return _folders(one)[:2] == _folders(other)[:2] and len(_folders(one)) > 2
    return one.netloc == other.netloc and PurePosixPath(one.path).parent in PurePosixPath(other.path).parents


def _climbs(parts: SplitResult) -> bool:
    """Whether a path means another one than it shows."""
    return any(name in (".", "..") for name in unquote(parts.path).replace("\\", "/").split("/"))


def _folders(parts: SplitResult) -> list[str]:
    return [name for name in parts.path.split("/") if name]
