"""Which hosts a sandbox may reach: the rules that the proxy asks, for builds and for each network mode of a trial.

That a rule names a host never opens an address of this machine or of a private network: DNS belongs to others, and a
task is other people's text. Only who runs the sandbox can open single ones (`Egress.private`).
"""

import fnmatch
import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

WEB_PORTS = frozenset({80, 443})
_CLOUD_METADATA = frozenset({ipaddress.ip_address("168.63.129.16")})
"""Public by its number, but answered by the machine's own hypervisor."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_PRIVATE_SUFFIXES = ("localhost", ".localhost", ".local", ".internal", ".home.arpa")


def is_public(address: Address) -> bool:
    """True for an address of the public internet; one that carries another inside counts as that one."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.is_site_local:
            return False
    odd = address.is_multicast or address.is_reserved or address.is_unspecified or address.is_link_local
    return address.is_global and not odd and address not in _CLOUD_METADATA


def looks_private(host: str) -> bool:
    """True when a host, as it is written, is of this machine or a private network; asks no name service."""
    host = host.lower().rstrip(".")
    written = address_of(host)
    if written is None:
        try:
            written = ipaddress.IPv4Address(socket.inet_aton(host))  # 127.1, 0x7f000001, 2130706433
        except (OSError, ValueError):
            return host.endswith(_PRIVATE_SUFFIXES)
    return not is_public(written)


def address_of(host: str) -> Address | None:
    """The address that a host is written as; None for a name."""
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def split_rule(entry: str) -> tuple[str, int]:
    """(host or pattern in lower case, port) of ``host`` or ``host:port``; port 0 when it names none."""
    text = entry.lower().strip()
    host, _, port = text.rpartition(":")
    if host and port.isdigit() and (":" not in host or host.endswith("]")):
        return host.strip("[]"), int(port)
    return text.strip("[]").rstrip("."), 0


@dataclass(frozen=True, slots=True)
class Egress:
    """Rules for host names and addresses; an empty one lets nothing through."""

    names: tuple[tuple[str, int], ...] = ()
    """(name or shell pattern, port); port 0 stands for `ports`."""
    networks: tuple[Network, ...] = ()
    """Address ranges, whatever name led to them."""
    everything: bool = False
    """Any host of the public internet."""
    ports: frozenset[int] | None = None
    """Ports of rules that name none; None for all."""
    private: frozenset[tuple[str, int]] = frozenset()
    """(host, port) that may have a private address; port 0 stands for all ports."""

    @classmethod
    def package_sources(cls, hosts: Iterable[str], trusted: Iterable[str]) -> "Egress":
        """Rules of a build.

        Args:
            hosts: ``host`` (ports 80 and 443) or ``host:port``; the host may be a shell pattern (``*.example.org``).
            trusted: of these, the ones that may have private addresses: mirrors of the machine's own settings.
        """
        names = tuple(sorted({split_rule(entry) for entry in hosts}))
        private = frozenset((split_rule(entry)[0], 0) for entry in trusted)
        return cls(names=names, ports=WEB_PORTS, private=private)

    @classmethod
    def allowlist(cls, entries: Iterable[str], private: Iterable[str] = ()) -> "Egress":
        """Rules of a task's allowlist, on all ports.

        Args:
            entries: exact host names, ``*.suffix`` patterns (any depth below, not the suffix itself), addresses, and
                ranges in CIDR notation.
            private: ``host`` or ``host:port`` that may be private where an entry names it.
        """
        names: list[tuple[str, int]] = []
        networks: list[Network] = []
        for entry in entries:
            text = entry.strip().lower()
            if "/" in text or address_of(text) is not None:
                networks.append(ipaddress.ip_network(text.strip("[]")))
            else:
                names.append((text.rstrip("."), 0))
        return cls(tuple(names), tuple(networks), private=frozenset(map(split_rule, private)))

    @classmethod
    def public(cls, private: Iterable[str] = ()) -> "Egress":
        """Any public address, and what `private` names."""
        return cls(everything=True, private=frozenset(map(split_rule, private)))

    def allows(self, host: str, port: int) -> bool:
        """True when the rules name a host, as it is written; a range counts for addresses only."""
        host = host.lower().rstrip(".")
        if self.everything:
            return True
        written = address_of(host)
        if written is not None and any(written in network for network in self.networks):
            return self._usual(port)
        return any(
            fnmatch.fnmatchcase(host, pattern) and (port == only if only else self._usual(port))
            for pattern, only in self.names
        )

    @property
    def has_ranges(self) -> bool:
        """Whether a name has to be looked up before it can be judged.

        A single address counts as it is written only: questions to name services leave the machine, whatever the
        answer, and a name can carry data.
        """
        return any(network.num_addresses > 1 for network in self.networks)

    def allows_address(self, address: Address, port: int) -> bool:
        """True when a range of the rules has an address, so that a name which led to it is allowed, too."""
        return self._usual(port) and any(address in network for network in self.networks)

    def may_be_private(self, host: str, port: int) -> bool:
        """True when a host may have an address of this machine or of a private network."""
        host = host.lower().rstrip(".")
        return (host, 0) in self.private or (host, port) in self.private

    def _usual(self, port: int) -> bool:
        return self.ports is None or port in self.ports
