"""The rules of what a sandbox may reach."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.sandbox import dial
from skill2env.sandbox.egress import Egress, address_of, split_rule


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ("Example.org", ("example.org", 0)),
        ("example.org.", ("example.org", 0)),
        ("example.org:8443", ("example.org", 8443)),
        ("*.example.org:80", ("*.example.org", 80)),
        ("127.0.0.1:9", ("127.0.0.1", 9)),
        ("[::1]:9", ("::1", 9)),
        ("::1", ("::1", 0)),
        ("[2001:db8::1]", ("2001:db8::1", 0)),
    ],
)
def test_rules_are_read(entry: str, rule: tuple[str, int]) -> None:
    assert split_rule(entry) == rule


def test_nothing_by_default() -> None:
    assert not Egress().allows("example.org", 443)
    assert not Egress().allows_address(ipaddress.ip_address("8.8.8.8"), 443)


def test_package_sources() -> None:
    rules = Egress.package_sources(["deb.example", "mirror.example:3142"], ["mirror.example:3142"])
    assert rules.allows("deb.example", 80)
    assert rules.allows("DEB.example.", 443)
    assert not rules.allows("deb.example", 22)
    assert rules.allows("mirror.example", 3142)
    assert not rules.allows("mirror.example", 443)
    assert rules.may_be_private("mirror.example", 3142)
    assert not rules.may_be_private("deb.example", 80)


def test_an_allowlist_of_each_kind() -> None:
    rules = Egress.allowlist(
        ["pypi.example", "*.files.example", "192.0.2.7", "198.51.100.0/24", "2001:db8::/32"]
    )
    for host in (
        "pypi.example",
        "a.files.example",
        "a.b.files.example",
        "192.0.2.7",
        "198.51.100.9",
        "2001:db8::5",
    ):
        assert rules.allows(host, 443), host
        assert rules.allows(host, 8080), f"{host}: on every port, as the entry names none"
    for host in (
        "files.example",
        "evilpypi.example",
        "pypi.example.evil",
        "192.0.2.8",
        "203.0.113.1",
        "2001:db9::1",
    ):
        assert not rules.allows(host, 443), host
    assert rules.allows_address(ipaddress.ip_address("198.51.100.200"), 443)
    assert not rules.allows_address(ipaddress.ip_address("192.0.2.8"), 443)


def test_private_hosts_are_open_only_where_the_rules_name_them() -> None:
    rules = Egress.allowlist(["llm.internal", "127.0.0.1"], private=["127.0.0.1:8000"])
    assert rules.may_be_private("127.0.0.1", 8000)
    assert not rules.may_be_private("127.0.0.1", 22)
    assert not rules.may_be_private("llm.internal", 8000)
    assert not Egress.allowlist(["other.example"], private=["127.0.0.1:8000"]).allows("127.0.0.1", 8000)


def test_public_allows_names_and_addresses_but_makes_nothing_private_reachable() -> None:
    rules = Egress.public()
    assert rules.allows("anything.example", 22)
    assert not rules.may_be_private("169.254.169.254", 80)


@given(st.ip_addresses())
def test_an_address_entry_allows_itself_and_no_neighbour(address: ipaddress.IPv4Address) -> None:
    rules = Egress.allowlist([str(address)])
    assert rules.allows(str(address), 443)
    neighbour = ipaddress.ip_address(int(address) ^ 1) if address.version == 4 else None
    if neighbour is not None:
        assert not rules.allows(str(neighbour), 443)


@given(st.text(max_size=80))
def test_any_text_is_a_host_that_is_not_on_an_empty_list(text: str) -> None:
    assert not Egress().allows(text, 443)
    assert address_of(text) is None or ipaddress.ip_address(text.strip("[]"))


def test_no_name_service_is_asked_for_the_sake_of_a_single_address(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look_up(host: str, *_: object, **__: object) -> list[object]:
        asked.append(host)
        return []

    monkeypatch.setattr(dial.socket, "getaddrinfo", look_up)
    single = Egress.allowlist(["127.0.0.1", "192.0.2.7", "2001:db8::1"])
    with pytest.raises(dial.Refused, match="is not on the list"):
        dial.dial(single, "secret.example", 443, via=None)
    assert asked == [], "a name can carry data out"
    with pytest.raises(OSError, match="has no address"):
        dial.dial(Egress.allowlist(["198.51.100.0/24"]), "in-range.example", 443, via=None)
    assert asked == ["in-range.example"]
