"""One file over HTTP into a folder: streamed, bounded in size and time, with its digest; and kept for later syncs."""

import hashlib
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.hub.records import SourceSpec
from skill2env.hub.sources.archive_file import file_sha256
from skill2env.store.files import move_into_place, storage, write_text

FILE_LIMIT_BYTES = 1 * 2**30
"""Largest file that is downloaded."""
_ANSWER_SEC = 60.0
"""Longest silence of a server."""
_WHOLE_SEC = 1800.0
"""Longest download."""
_MOST_REDIRECTS = 5
DIGEST_NAME = "SHA256"
"""File beside a kept download that holds its digest."""
_AGAIN = "what is stored is kept; run the same command again"


@contextmanager
def client(spec: SourceSpec, what: str, accept: str = "*/*") -> Generator[httpx.Client]:
    """A client for one source, whose failures are told without addresses, which may hold a key.

    Args:
        spec: the source.
        what: what is downloaded, for messages.
        accept: kinds of content that are wanted.

    Raises:
        InfraError: boundary ``network``; the network failed inside.
    """
    try:
        with httpx.Client(
            timeout=_ANSWER_SEC,
            follow_redirects=True,
            max_redirects=_MOST_REDIRECTS,
            # Archives are wanted as they are: packing them for the way would change the digest and hide their size.
            headers={"Accept": accept, "Accept-Encoding": "identity"},
        ) as made:
            yield made
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise InfraError(
            Boundary.NETWORK,
            f"source {spec.id}: downloading {what} failed: {_told(error)}",
            hint=_AGAIN,
        ) from None


def _told(error: Exception) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return f"the server says {error.response.status_code} {error.response.reason_phrase}".rstrip()
    return {
        "RemoteProtocolError": "the server broke off in the middle",
        "ReadError": "the connection broke in the middle",
        "ConnectError": "no connection to the server",
        "ConnectTimeout": "no connection to the server in time",
        "ReadTimeout": f"the server was silent for {_ANSWER_SEC:.0f} s",
        "TooManyRedirects": f"more than {_MOST_REDIRECTS} redirects",
    }.get(type(error).__name__, type(error).__name__)


def save(http: httpx.Client, url: str, path: Path, spec: SourceSpec, *, limit: int = FILE_LIMIT_BYTES) -> str:
    """Download one file.

    Args:
        http: see `client`.
        url: where it is.
        path: where it goes.
        spec: the source, for messages.
        limit: bytes at most.

    Returns:
        Its sha256 as hex.

    Raises:
        UserError: it is not there, not for everybody, too large, or a redirect leaves https.
        InfraError: boundary ``network`` or ``storage``.
    """
    digest, size, begun = hashlib.sha256(), 0, time.monotonic()
    with http.stream("GET", url) as response:
        _check_answer(response, url, spec)
        stated = response.headers.get("Content-Length", "")
        if stated.isascii() and stated.isdigit() and len(stated) < 20 and int(stated) > limit:
            raise _too_large(spec, path, limit)
        with storage("writing", path), path.open("wb") as out:
            for piece in response.iter_raw(1 << 20):
                size += len(piece)
                if size > limit:
                    raise _too_large(spec, path, limit)
                if time.monotonic() - begun > _WHOLE_SEC:
                    raise httpx.ReadTimeout("slow")
                digest.update(piece)
                out.write(piece)
    return digest.hexdigest()


def _check_answer(response: httpx.Response, url: str, spec: SourceSpec) -> None:
    if url.startswith("https:") and response.url.scheme != "https":
        raise UserError(
            f"source {spec.id}: the server sends us on to an address without https",
            hint="find the address that the file really has",
        )
    if response.status_code in (404, 410):
        raise UserError(
            f"source {spec.id}: the server has no such file ({response.status_code})",
            hint="check the address",
        )
    if response.status_code in (401, 403):
        raise UserError(
            f"source {spec.id}: the server does not give this file to everybody ({response.status_code})",
            hint="download it yourself and add the file",
        )
    response.raise_for_status()


def _too_large(spec: SourceSpec, path: Path, limit: int) -> UserError:
    return UserError(f"source {spec.id}: {path.name} has more than {limit:,} bytes")


def held(folder: Path, sha256: str = "") -> Path | None:
    """What an earlier sync kept in a folder, when it is still what it was.

    Args:
        folder: see `keep`.
        sha256: digest that it must have; empty when any will do.
    """
    try:
        noted = (folder / DIGEST_NAME).read_text(encoding="utf-8").strip()
        (archive,) = (path for path in sorted(folder.iterdir()) if path.name != DIGEST_NAME)
    except (OSError, ValueError):
        return None
    if (sha256 and noted != sha256) or file_sha256(archive) != noted:
        return None
    return archive


def keep(staged: Path, folder: Path, sha256: str) -> None:
    """Keep a folder with one downloaded file for later syncs, with its digest.

    Raises:
        InfraError: boundary ``storage``.
    """
    write_text(staged / DIGEST_NAME, sha256 + "\n")
    move_into_place(staged, folder)


def not_held(spec: SourceSpec, what: str) -> InfraError:
    """What is wrong when something is needed that was not downloaded, and nobody may be asked."""
    return InfraError(
        Boundary.NETWORK,
        f"source {spec.id}: {what} was not downloaded before, and --offline forbids it now",
        hint="run the same command without --offline once",
        transient=False,
    )
