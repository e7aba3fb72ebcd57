"""Connections of the proxy to the outside: to a host itself, or to the proxy that the machine needs for it.

Covers: names that lead to this machine, to private networks or to a cloud's metadata service are refused, whatever the
rules say, unless whoever runs the sandbox opened them (`Egress.private`). Does not cover: where the machine's own
proxy, which asks name services of its own, ends up with a public-looking name.
"""

import ipaddress
import socket
from urllib.parse import SplitResult

from skill2env.sandbox.egress import Egress, address_of, is_public, looks_private

CONNECT_TIMEOUT_SEC = 30.0


class Refused(Exception):
    """The request asks for what is not on the list."""


def dial(
    rules: Egress, host: str, port: int, *, via: SplitResult | None
) -> tuple[socket.socket, SplitResult | None]:
    """Connect to what a request names.

    Args:
        rules: what may be reached.
        host: as it is written.
        port: of the host.
        via: the machine's own proxy for that host; None when there is none.

    Returns:
        The connection, and `via` when it goes there and not to the host itself.

    Raises:
        Refused: the rules do not allow it.
        OSError: it cannot be reached.
    """
    named = bool(host) and rules.allows(host, port)
    if not named and (not host or not rules.has_ranges or address_of(host) is not None):
        raise Refused(f"{host or 'no host'}:{port} is not on the list")
    # Before any name service is asked, and whoever connects: another proxy has a neighbourhood of its own.
    if looks_private(host) and not rules.may_be_private(host, port):
        raise Refused(f"{host} has a private address")
    if named and via is not None:
        return socket.create_connection((via.hostname, via.port or 3128), CONNECT_TIMEOUT_SEC), via
    last: OSError | None = None
    for family, kind, protocol, _, where in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        address = ipaddress.ip_address(where[0].partition("%")[0] if isinstance(where[0], str) else "::")
        if not named and not rules.allows_address(address, port):
            raise Refused(f"{host}:{port} is not on the list")
        if not is_public(address) and not rules.may_be_private(host, port):
            raise Refused(f"{host} has a private address")
        connection = socket.socket(family, kind, protocol)
        connection.settimeout(CONNECT_TIMEOUT_SEC)
        try:
            connection.connect(where)
        except OSError as error:
            connection.close()
            last = error
            continue
        if _is_this_machine(connection) and not rules.may_be_private(host, port):
            connection.close()
            raise Refused(f"{host} is this machine")
        return connection, None
    raise last or OSError(f"{host} has no address")


def authority(host: str, port: int) -> str:
    """A host and a port, when it is not 0, as they are written in requests."""
    name = f"[{host}]" if ":" in host else host
    return f"{name}:{port}" if port else name


def _is_this_machine(connection: socket.socket) -> bool:
    """True when the other end has the same address as this one."""
    return connection.getpeername()[0] == connection.getsockname()[0]
