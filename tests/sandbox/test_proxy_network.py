"""What a command of a build gets of the network, and that nothing stays when it is over."""

from pathlib import Path

import pytest

from skill2env.sandbox import mirrors, network


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "corporate.crt"
    path.write_text("certificates")
    return path


def test_package_sources_and_nothing_else(bundle: Path) -> None:
    with network.build_network("bookworm") as made:
        files = {bind.target: bind.source.read_text() for bind in made.binds}
        folder = made.binds[0].source.parent
        for host in mirrors.debian_mirror().hosts:
            name, _, port = host.partition(":")
            assert made.proxy.allows(name, int(port or 80))
        assert not made.proxy.allows("example.org", 443)
        assert all(not bind.writable for bind in made.binds)
    assert sorted(files) == ["/run/skill2env/apt.conf", "/run/skill2env/sources.list"]
    assert files["/run/skill2env/sources.list"] == mirrors.debian_mirror().sources("bookworm")
    assert 'Acquire::http::Proxy "http://127.0.0.1:' in files["/run/skill2env/apt.conf"]
    assert made.package_env["APT_CONFIG"] == "/run/skill2env/apt.conf"
    assert "SSL_CERT_FILE" not in made.env
    assert not folder.exists()
    assert not made.proxy.socket_path.exists()


def test_more_hosts_by_setting(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(network.HOSTS_VARIABLE, "files.example.org, *.data.example:8443,")
    with network.build_network("bookworm") as made:
        assert made.proxy.allows("files.example.org", 443)
        assert made.proxy.allows("a.data.example", 8443)
        assert not made.proxy.allows("a.data.example", 443)


def test_certificates_of_networks_that_sign_again(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CERT", str(bundle))
    with network.build_network("bookworm") as made:
        inside = "/run/skill2env/certificates.crt"
        (bind,) = [bind for bind in made.binds if bind.target == inside]
        assert bind.source.read_text() == "certificates"
        assert made.env["SSL_CERT_FILE"] == made.env["PIP_CERT"] == inside
