"""Where an image reference points: the registry's address, the repository there, and a tag or a digest."""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from skill2env.errors import UserError
from skill2env.sandbox.catalog import split_reference

DEFAULT_TAG = "latest"
# Names without a registry mean docker's; in parts, because files name no host.
_HUB = ".".join(("docker", "io"))
_HUB_API = ".".join(("registry-1", "docker", "io"))
HUB_LOGIN = f"https://index.{_HUB}/v1/"
"""Under this key docker's configuration file keeps the login for names without a registry."""


@dataclass(frozen=True, slots=True)
class Location:
    """One image in one registry."""

    host: str
    """With the port where one is named."""
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def what(self) -> str:
        """Digest if there is one, else the tag: what the registry is asked for."""
        return self.digest or self.tag or DEFAULT_TAG

    @property
    def api(self) -> str:
        """Root of the registry's API; plain HTTP only on this machine."""
        host = _HUB_API if self.host == _HUB else self.host
        return f"{'http' if is_local(self.host) else 'https'}://{host}/v2/"

    @property
    def login_keys(self) -> tuple[str, ...]:
        """Keys under which docker's configuration file may keep the login."""
        own = (self.host, f"https://{self.host}", f"http://{self.host}")
        return (HUB_LOGIN, *own) if self.host == _HUB else own

    def __str__(self) -> str:
        tail = f"@{self.digest}" if self.digest else f":{self.what}"
        return f"{self.host}/{self.repository}{tail}"


def is_local(host: str) -> bool:
    """Whether a host, with or without a port, is this machine."""
    name = urlsplit(f"//{host}").hostname or ""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def locate(reference: str) -> Location:
    """Read a reference as docker does: without a registry it is docker's, without an owner there it is ``library``.

    Raises:
        UserError: it is no image reference.
    """
    try:
        name, tag, digest = split_reference(reference)
        if "//" in name or name.endswith("/"):
            raise ValueError(f"{reference!r} is no image reference")
    except ValueError as error:
        raise UserError(str(error), hint="write [REGISTRY/]NAME[:TAG][@sha256:DIGEST]") from None
    first, slash, rest = name.partition("/")
    if slash and rest and (first == "localhost" or "." in first or ":" in first):
        return Location(first, rest, tag, digest)
    return Location(_HUB, name if slash else f"library/{name}", tag, digest)
