"""One file from the web to a stream, with limits on everything.

Covers: https only, redirects checked one by one, every address that a name leads to is checked before anything is sent
to it (so no name can be turned against this machine or its network), size, silence and total time bounded, an end
within a second of a wish to stop, no decoding on the way (the bytes are those of the server), broken downloads tried
again. Does not cover: where the machine's own proxy ends up with a public-looking name.
"""

import errno
import ipaddress
import socket
import ssl
import threading
import time
import urllib.request
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import BinaryIO
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

import httpcore
import httpx

from skill2env import __version__
from skill2env.errors import Boundary, InfraError
from skill2env.grounding.faults import AssetFault, NotHad
from skill2env.grounding.watched import Watch, WatchedBackend
from skill2env.records import SHA256_PREFIX
from skill2env.sandbox.egress import Egress, is_public, looks_private

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_AGENT = f"skill2env/{__version__}"
_NO_NETWORK = frozenset({errno.ENETUNREACH, errno.ENETDOWN, errno.ENONET})
_NO_SUCH_NAME = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
_AGAIN = frozenset({AssetFault.SERVER, AssetFault.TRUNCATED, AssetFault.UNREACHABLE})


@dataclass(frozen=True, slots=True)
class DownloadLimits:
    """Bounds of one download."""

    max_bytes: int = 16 * 2**20
    timeout_sec: float = 120.0
    """Longest download, with redirects, further tries and the pauses before them."""
    idle_sec: float = 30.0
    """Longest silence of the server."""
    redirects: int = 5
    attempts: int = 3
    pause_sec: float = 1.0
    """Before the second try; doubles."""


@dataclass(frozen=True, slots=True)
class Got:
    """A finished download."""

    sha256: str
    """With prefix."""
    size: int
    address: str
    """After redirects."""


class Downloader:
    """Downloads under the rules of one run.

    Args:
        rules: which hosts may be asked; what it calls private may also be asked without TLS.
        limits: bounds of each download.
        stop: once it is set, downloads end within a second; None for never.
    """

    def __init__(self, rules: Egress, limits: DownloadLimits, stop: threading.Event | None = None) -> None:
        self._rules = rules
        self._limits = limits
        self._stop = stop or threading.Event()

    def fetch(self, url: str, target: BinaryIO, *, max_bytes: int = 0) -> Got:
        """Download into an empty, seekable stream.

        Args:
            url: of the file.
            target: receives it.
            max_bytes: 0 for the usual limit.

        Raises:
            NotHad: it cannot be had, and trying again would not change that.
            InfraError: boundary ``network``; this machine has no network, no working name service, or the wish is to
                stop.
        """
        watch = Watch(url, time.monotonic() + self._limits.timeout_sec, self._stop)
        attempt = 0
        while True:
            target.seek(0)
            target.truncate()
            try:
                return self._once(url, target, max_bytes or self._limits.max_bytes, watch)
            except NotHad as failed:
                attempt += 1
                if failed.fault not in _AGAIN or attempt >= self._limits.attempts:
                    raise
                watch.pause(self._limits.pause_sec * 2 ** (attempt - 1))

    def _once(self, url: str, target: BinaryIO, limit: int, watch: Watch) -> Got:
        address = url
        for _ in range(self._limits.redirects + 1):
            parts = self._checked(address)
            following = self._ask(address, parts, target, limit, watch)
            if isinstance(following, Got):
                return following
            address = urljoin(address, following)
        raise NotHad(AssetFault.REDIRECTS, f"{url} redirects more than {self._limits.redirects} times")

    def _checked(self, address: str) -> SplitResult:
        """The parts of an address that may be asked."""
        try:
            parts = urlsplit(address)
            sent = _ascii(parts)  # some characters mean others in a name: what is sent is what is checked
            host, port = sent.host, sent.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            raise NotHad(AssetFault.ADDRESS, f"{address[:200]} is no address") from None
        opened = self._rules.may_be_private(host, port)
        if parts.scheme != "https" and not (parts.scheme == "http" and opened):
            raise NotHad(AssetFault.ADDRESS, f"{address[:200]} is no https address")
        if not host or parts.username or parts.password:
            raise NotHad(AssetFault.ADDRESS, f"{address[:200]} has no host, or a login")
        if not self._rules.allows(host, port):
            raise NotHad(AssetFault.ADDRESS, f"{host}:{port} is not among the hosts that the settings allow")
        if looks_private(host) and not opened:
            raise NotHad(AssetFault.ADDRESS, f"{host} is of this machine or a private network")
        return parts

    def _ask(
        self, address: str, parts: SplitResult, target: BinaryIO, limit: int, watch: Watch
    ) -> "Got | str":
        """Send one request; what came, or where it leads."""
        idle = self._limits.idle_sec
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), idle)
        where = _ascii(parts)
        headers = [("Host", where.netloc), ("User-Agent", _AGENT), ("Accept-Encoding", "identity")]
        try:
            with (
                self._pool(parts, watch) as pool,
                pool.stream("GET", str(where), headers=headers, extensions={"timeout": timeout}) as answer,
            ):
                if answer.status in _REDIRECTS:
                    return _aim(answer, address)
                _check_status(answer, address)
                return _receive(answer, address, target, limit, watch)
        except httpcore.TimeoutException:
            raise NotHad(AssetFault.SLOW, f"{address} was silent for {idle:g} s") from None
        except (httpcore.ConnectError, httpcore.ProxyError) as error:
            if _proxy_of(parts):  # whatever it is, it is not the asset's
                raise InfraError(Boundary.NETWORK, f"this machine's proxy does not serve: {error}") from None
            raise _unreachable(parts.hostname or "", error) from None
        except (httpcore.RemoteProtocolError, httpcore.ReadError) as error:
            raise NotHad(AssetFault.TRUNCATED, f"{address} ended too early: {error}") from None
        except (httpcore.ProtocolError, httpcore.NetworkError, ValueError) as error:
            raise NotHad(AssetFault.UNREACHABLE, f"{address} cannot be downloaded: {error}") from None

    def _pool(self, parts: SplitResult, watch: Watch) -> httpcore.ConnectionPool:
        tls = _trust() if parts.scheme == "https" else None
        via = _proxy_of(parts)
        if via:
            where = urlsplit(via)
            login = (unquote(where.username), unquote(where.password or "")) if where.username else None
            backend = WatchedBackend(watch, httpcore.SyncBackend().connect_tcp)
            return httpcore.HTTPProxy(via, ssl_context=tls, proxy_auth=login, network_backend=backend)
        return httpcore.ConnectionPool(
            ssl_context=tls, network_backend=WatchedBackend(watch, self._connected)
        )

    def _connected(self, host: str, port: int, timeout: float | None) -> httpcore.NetworkStream:
        """Connect to checked addresses only: a name is looked up once, and what was checked is what is used."""
        opened = self._rules.may_be_private(host, port)
        addresses = _addresses(host, port)
        hidden = [address for address in addresses if not is_public(ipaddress.ip_address(address))]
        if hidden and not opened:
            raise NotHad(AssetFault.ADDRESS, f"{host} leads to a private address ({hidden[0]})")
        failure: httpcore.NetworkError | httpcore.TimeoutException | None = None
        for address in addresses:
            try:
                stream = httpcore.SyncBackend().connect_tcp(address, port, timeout)
            except (httpcore.NetworkError, httpcore.TimeoutException) as error:
                failure = error
                continue
            own, other = stream.get_extra_info("client_addr"), stream.get_extra_info("server_addr")
            if own[0] == other[0] and not opened:
                stream.close()
                raise NotHad(AssetFault.ADDRESS, f"{host} is this machine")
            return stream
        raise failure or httpcore.ConnectError(f"{host} has no address")


@cache
def _trust() -> ssl.SSLContext:
    """Whose certificates count; reading them takes a second."""
    return httpx.create_ssl_context()


def _addresses(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno in _NO_SUCH_NAME:
            raise NotHad(AssetFault.UNREACHABLE, f"there is no host {host}") from None
        raise InfraError(Boundary.NETWORK, f"the name {host} cannot be looked up: {error}") from error
    except UnicodeError:
        raise NotHad(AssetFault.ADDRESS, f"{host[:200]} is no host name") from None
    return list(dict.fromkeys(str(where[0]).partition("%")[0] for *_, where in found))


def _unreachable(host: str, error: Exception) -> Exception:
    cause = error.__cause__ or error.__context__
    if isinstance(cause, OSError) and cause.errno in _NO_NETWORK:
        return InfraError(Boundary.NETWORK, f"{host} cannot be reached: {cause}")
    return NotHad(AssetFault.UNREACHABLE, f"{host} does not answer: {error}")


def _aim(answer: httpcore.Response, address: str) -> str:
    for name, value in answer.headers:
        if name.lower() == b"location" and value:
            return value.decode("latin-1")
    raise NotHad(AssetFault.REDIRECTS, f"{address} redirects without saying where to")


def _check_status(answer: httpcore.Response, address: str) -> None:
    status = answer.status
    if status >= 500 or status == 429:
        raise NotHad(AssetFault.SERVER, f"{address}: the server answers {status}")
    if status != 200:
        raise NotHad(AssetFault.MISSING, f"{address}: the server answers {status}")
    kinds = [value.lower() for name, value in answer.headers if name.lower() == b"content-type"]
    is_page = any(kind.startswith((b"text/html", b"application/xhtml")) for kind in kinds)
    path = urlsplit(address).path.lower()
    if is_page and not path.endswith((".html", ".htm", ".xhtml")):
        raise NotHad(AssetFault.WEB_PAGE, f"{address} shows a web page; name the address of the file itself")
    coded = [value.lower() for name, value in answer.headers if name.lower() == b"content-encoding"]
    if any(value != b"identity" for value in coded):
        raise NotHad(AssetFault.SERVER, f"{address} cannot be had without a content encoding")


def _receive(answer: httpcore.Response, address: str, target: BinaryIO, limit: int, watch: Watch) -> Got:
    large = NotHad(AssetFault.TOO_LARGE, f"{address} has more than {limit:,} bytes")
    told = next((int(v) for n, v in answer.headers if n.lower() == b"content-length" and v.isdigit()), 0)
    if told > limit:
        raise large
    digest, size = sha256(), 0
    for chunk in answer.iter_stream():
        size += len(chunk)
        if size > limit:
            raise large
        watch.left()
        digest.update(chunk)
        target.write(chunk)
    if size < told:
        raise NotHad(AssetFault.TRUNCATED, f"{address} ended after {size} of {told} bytes")
    return Got(SHA256_PREFIX + digest.hexdigest(), size, address)


def _proxy_of(parts: SplitResult) -> str:
    """The machine's own proxy for a host; empty when there is none."""
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return ""
    url = urllib.request.getproxies().get(parts.scheme, "")
    return url if not url or "://" in url else f"http://{url}"


def _ascii(parts: SplitResult) -> httpx.URL:
    """The address as it is sent: names by IDNA, other characters quoted, no fragment."""
    try:
        return httpx.URL(parts._replace(fragment="").geturl())
    except (httpx.InvalidURL, ValueError):
        raise NotHad(AssetFault.ADDRESS, f"{parts.geturl()[:200]!r} is no address") from None
