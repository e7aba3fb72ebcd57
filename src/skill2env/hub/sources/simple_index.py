"""One file of one release straight from a Python package index ("simple" API, JSON or HTML), without any client.

For source archives, which pip cannot download without running their build script, and for machines without pip.
"""

import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, override
from urllib.parse import unquote, urldefrag, urljoin

from skill2env.errors import UserError
from skill2env.hub.records import SourceSpec
from skill2env.hub.sources.download import client, save
from skill2env.sandbox.mirrors import python_index_url

_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_PAGE_LIMIT_BYTES = 64 * 2**20
_ENDINGS = (".whl", ".tar.gz", ".zip", ".tar.bz2", ".tar.xz", ".tgz")


@dataclass(frozen=True, slots=True)
class Link:
    """One file of a project."""

    name: str
    url: str
    sha256: str
    """As the index states it; empty when it does not."""


def download(spec: SourceSpec, target: Path) -> None:
    """Download a release's file into a folder: the pinned one, else a universal wheel, else the source archive.

    Raises:
        UserError: the index has no such release, or the file is not what its digest says.
        InfraError: boundary ``network`` or ``storage``.
    """
    page = f"{python_index_url()}/{re.sub(r'[-_.]+', '-', spec.location).lower()}/"
    with client(spec, spec.location, _ACCEPT) as http:
        response = http.get(page)
        if response.status_code == 404:
            raise UserError(
                f"source {spec.id}: the package index has no {spec.location}", hint="check the name"
            )
        response.raise_for_status()
        chosen = choose(links(response.content[:_PAGE_LIMIT_BYTES], str(response.url)), spec)
        found = save(http, chosen.url, target / chosen.name, spec)
    if chosen.sha256 and found != chosen.sha256:
        raise UserError(
            f"source {spec.id}: {chosen.name} is not the file that the index describes",
            hint="run the same command again",
        )


def links(page: bytes, base: str) -> list[Link]:
    """The files that a project's page lists."""
    if page.lstrip().startswith(b"{"):
        return _from_json(page, base)
    parser = _Anchors()
    parser.feed(page.decode("utf-8", "replace"))
    found: list[Link] = []
    for href in parser.hrefs:
        address, fragment = urldefrag(urljoin(base, href))
        stated = re.fullmatch(r"sha256=([0-9a-f]{64})", fragment)
        found.append(Link(unquote(address.rpartition("/")[2]), address, stated[1] if stated else ""))
    return found


def _from_json(page: bytes, base: str) -> list[Link]:
    import json

    try:
        data: Any = json.loads(page)
        return [
            Link(
                str(item["filename"]),
                urljoin(base, str(item["url"])),
                str(item.get("hashes", {}).get("sha256", "")),
            )
            for item in data["files"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def choose(found: list[Link], spec: SourceSpec) -> Link:
    """The file of a release to take.

    Raises:
        UserError: there is none.
    """
    release = [
        link
        for link in found
        if link.name.endswith(_ENDINGS) and "/" not in link.name and _is_of(link.name, spec)
    ]
    if spec.sha256:
        release = [link for link in release if link.sha256 in ("", spec.sha256)]
    release.sort(key=lambda link: (not link.name.endswith("-any.whl"), link.name.endswith(".whl"), link.name))
    if not release:
        raise UserError(
            f"source {spec.id}: the package index has no file of {spec.location}=={spec.revision}"
            + (" with the pinned digest" if spec.sha256 else ""),
            hint="check name, version and sha256",
        )
    return release[0]


def _is_of(name: str, spec: SourceSpec) -> bool:
    """Whether a file's name says that it is of the release."""
    project = re.sub(r"[-_.]+", "[-_.]+", re.escape(spec.location).replace(r"\-", "-").replace(r"\.", "."))
    version = re.escape(spec.revision)
    return bool(re.match(rf"{project}-{version}(?:-|\.(?:tar|zip|tgz)\b)", name, re.IGNORECASE))


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hrefs += [value for name, value in attrs if tag == "a" and name == "href" and value]
