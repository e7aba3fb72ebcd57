"""A client of image registries: which digest a tag has, and bringing an image there. OCI distribution 1.1, Docker v2.

with Registry(locate("debian:bookworm-slim")) as registry:
    digest = registry.digest()

Covers: anonymous use, basic and token login, proxies and certificates of the machine, plain HTTP on this machine only.
Does not cover: credential helpers, uploads in chunks (blobs go up in one request).
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast
from urllib.parse import urljoin

import httpx

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.records import digest_bytes
from skill2env.sandbox.logins import Login, known_login
from skill2env.sandbox.references import Location, is_local

_ACCEPT = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_TIMEOUT = httpx.Timeout(60.0, connect=15.0)
_CHUNK_BYTES = 1 << 20
_MANIFEST_LIMIT_BYTES = 4 << 20
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


class Registry:
    """One repository of a registry. Not safe for several threads."""

    def __init__(
        self, location: Location, *, login: Login | None = None, timeout: httpx.Timeout = _TIMEOUT
    ) -> None:
        """Prepare; nothing is asked yet.

        Args:
            location: the repository, and the image when one is meant.
            login: None looks into docker's configuration file.
            timeout: of each request's parts.
        """
        self._location = location
        self._login = login or known_login(location)
        self._token = ""
        self._client = httpx.Client(
            timeout=timeout,
            follow_redirects=True,
            trust_env=not is_local(location.host),
            headers={"User-Agent": "skill2env"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    # ------------------------------------------------------------------------------------------------ asking

    def digest(self) -> str:
        """Digest of the manifest (for several architectures: of their list) that the tag has now.

        Raises:
            UserError: there is no such image, or it may not be read.
            InfraError: the registry cannot be reached or does not do what registries do; boundary ``network``.
        """
        url = self._url(f"manifests/{self._location.what}")
        answer = self._ask("HEAD", url, headers={"Accept": _ACCEPT})
        if answer.status_code == 200 and answer.headers.get("Docker-Content-Digest"):
            return _checked(answer.headers["Docker-Content-Digest"])
        answer = self._ask("GET", url, headers={"Accept": _ACCEPT})  # not every registry answers HEAD in full
        self._require(answer, 200)
        if len(answer.content) > _MANIFEST_LIMIT_BYTES:
            raise _strange(f"{self._location} has a manifest of {len(answer.content)} bytes")
        return digest_bytes(answer.content)

    def has_blob(self, digest: str) -> bool:
        """Whether the repository holds the blob already."""
        return self._ask("HEAD", self._url(f"blobs/{digest}")).status_code == 200

    # ------------------------------------------------------------------------------------------------ bringing

    def put_blob(self, path: Path, digest: str) -> bool:
        """Bring a blob unless it is there; returns whether it was brought.

        Raises:
            UserError: this login may not.
            InfraError: the registry cannot be reached or refuses the bytes; boundary ``network``.
        """
        if self.has_blob(digest):
            return False
        begun = self._ask("POST", self._url("blobs/uploads/"), push=True)
        self._require(begun, 202)
        place = urljoin(str(begun.request.url), begun.headers.get("Location", ""))
        separator = "&" if "?" in place else "?"
        with path.open("rb") as file:
            done = self._ask(
                "PUT",
                f"{place}{separator}digest={digest}",
                push=True,
                body=file,
                headers={
                    "Content-Type": "application/octet-stream",
                    "Content-Length": str(path.stat().st_size),
                },
            )
        self._require(done, 201)
        return True

    def put_manifest(self, body: bytes, media_type: str, tag: str) -> str:
        """Bring a manifest under a tag or its digest; returns its digest, as the registry computes it.

        Raises:
            UserError: this login may not.
            InfraError: the registry cannot be reached or stored something else; boundary ``network``.
        """
        done = self._ask(
            "PUT", self._url(f"manifests/{tag}"), push=True, body=body, headers={"Content-Type": media_type}
        )
        self._require(done, 201)
        wanted = digest_bytes(body)
        if done.headers.get("Docker-Content-Digest", wanted) != wanted:
            raise _strange(
                f"{self._location.host} stored {done.headers['Docker-Content-Digest']}, not {wanted}"
            )
        return wanted

    # ------------------------------------------------------------------------------------------------ requests

    def _url(self, tail: str) -> str:
        return f"{self._location.api}{self._location.repository}/{tail}"

    def _ask(
        self,
        method: str,
        url: str,
        *,
        push: bool = False,
        headers: Mapping[str, str] | None = None,
        body: bytes | BinaryIO | None = None,
    ) -> httpx.Response:
        """One request; a second one when the registry asks for a login."""
        answer = self._send(method, url, headers, body)
        if answer.status_code == 401:
            self._log_in(answer.headers.get("WWW-Authenticate", ""), push=push)
            if body is not None and not isinstance(body, bytes):
                body.seek(0)
            answer = self._send(method, url, headers, body)
        return answer

    def _send(
        self, method: str, url: str, headers: Mapping[str, str] | None, body: bytes | BinaryIO | None
    ) -> httpx.Response:
        sent = dict(headers or {})
        if (
            self._token and httpx.URL(url).host == httpx.URL(self._location.api).host
        ):  # uploads may lead elsewhere
            sent["Authorization"] = self._token
        content = body if body is None or isinstance(body, bytes) else _chunks(body)
        try:
            return self._client.request(method, url, headers=sent, content=content)
        except httpx.HTTPError as error:
            raise InfraError(
                Boundary.NETWORK,
                f"the registry {self._location.host} cannot be used: {error or type(error).__name__}",
                hint="Check its address and the network, then run again.",
            ) from error
        except httpx.InvalidURL as error:
            raise UserError(f"{self._location.host!r} is no address of a registry: {error}") from None

    def _log_in(self, challenge: str, *, push: bool) -> None:
        """Do what the registry asks for: name and password in each request, or a token that they buy."""
        kind, _, rest = challenge.partition(" ")
        asked = dict(_CHALLENGE.findall(rest))
        if kind.lower() == "basic" and self._login is not None:
            self._token = self._login.basic()
        elif kind.lower() == "bearer" and asked.get("realm"):
            self._token = f"Bearer {self._fetch_token(asked, push=push)}"

    def _fetch_token(self, asked: Mapping[str, str], *, push: bool) -> str:
        scope = asked.get("scope") or f"repository:{self._location.repository}:pull{',push' if push else ''}"
        realm = asked["realm"]
        secure = realm.startswith("https://") or is_local(httpx.URL(realm).netloc.decode())
        query = {"service": asked.get("service", ""), "scope": scope}
        headers = {"Authorization": self._login.basic()} if self._login is not None and secure else {}
        try:
            answer = self._client.get(realm, params=query, headers=headers)
        except httpx.HTTPError as error:
            raise InfraError(
                Boundary.NETWORK, f"the login service of {self._location.host} cannot be used: {error}"
            ) from error
        self._require(answer, 200)
        try:
            tree = cast("dict[str, Any]", answer.json())
            return str(tree.get("token") or tree["access_token"])
        except (ValueError, KeyError, AttributeError):
            raise _strange(f"the login service of {self._location.host} gave no token") from None

    def _require(self, answer: httpx.Response, status: int) -> None:
        """Turn any other answer into an error that says whose fault it is."""
        if answer.status_code == status:
            return
        told = _told(answer)
        if answer.status_code in (401, 403):
            whose = "this login may not use" if self._login else "a login is needed for"
            raise UserError(
                f"{whose} {self._location.host}/{self._location.repository}{told}",
                hint="give --user NAME and the password on standard input with --password-stdin, or `docker login`",
            )
        if answer.status_code == 404:
            raise UserError(f"there is no image {self._location}{told}", hint="check name and tag")
        raise InfraError(
            Boundary.NETWORK,
            f"the registry {self._location.host} answered {answer.status_code}{told}",
            hint="Run again later, or ask who runs the registry.",
            transient=answer.status_code >= 500 or answer.status_code == 429,
        )


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while data := file.read(_CHUNK_BYTES):
        yield data


def _told(answer: httpx.Response) -> str:
    """What the registry says about an error, on one line; empty when it says nothing that can be read."""
    try:
        first = json.loads(answer.content)["errors"][0]
        return f" ({' '.join(str(first.get('message') or first['code']).split())[:200]})"
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return ""


def _checked(digest: str) -> str:
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise _strange(f"the registry names a digest of another kind: {digest[:80]!r}")
    return digest


def _strange(message: str) -> InfraError:
    return InfraError(Boundary.NETWORK, message, hint="Ask who runs the registry.", transient=False)
