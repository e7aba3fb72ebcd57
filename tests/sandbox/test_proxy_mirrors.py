"""What is taken from the machine's package settings, and what never leaves the host."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from skill2env.sandbox import mirrors


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "PIP_TRUSTED_HOST",
        "PIP_CONFIG_FILE",
        "npm_config_registry",
        "NPM_CONFIG_REGISTRY",
        mirrors.MIRROR_VARIABLE,
    ):
        monkeypatch.delenv(name, raising=False)
    for cached in (mirrors.debian_mirror, mirrors.python_index, mirrors.node_registry):
        cached.cache_clear()
    yield
    for cached in (mirrors.debian_mirror, mirrors.python_index, mirrors.node_registry):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("targets", "archive", "security"),
    [
        (
            [
                ("http://m.example/debian/", "bookworm"),
                ("http://m.example/debian-security/", "bookworm-security"),
            ],
            "http://m.example/debian",
            "http://m.example/debian-security",
        ),
        (
            [
                ("http://old.example/security/", "bullseye/updates"),
                ("http://m.example/d/", "bullseye-updates"),
            ],
            "http://m.example/d",
            "http://old.example/security",
        ),
        (
            [("https://deb.node.example/", "nodistro"), ("http://m.example/debian", "trixie")],
            "http://m.example/debian",
            None,
        ),
        (
            [("cdrom:[Debian]/", "bookworm"), ("http://u:p@m.example:8080/d/", "stable")],
            "http://m.example:8080/d",
            None,
        ),
    ],
)
def test_mirrors_are_told_from_other_sources(
    targets: list[tuple[str, str]], archive: str, security: str | None
) -> None:
    assert mirrors.choose_mirrors(targets) == mirrors.DebianMirror(archive, security)


def test_no_debian_source_at_all() -> None:
    assert (
        mirrors.choose_mirrors([("http://archive.example/ubuntu", "noble"), ("file:/srv/d", "bookworm")])
        is None
    )


def test_a_mirror_list_gives_its_first_address(tmp_path: Path) -> None:
    listed = tmp_path / "debian.list"
    listed.write_text("# mirrors\nhttps://first.example/debian/ priority:1\nhttps://second.example/debian\n")
    assert mirrors.choose_mirrors([(f"mirror+file:{listed}", "bookworm")]) == mirrors.DebianMirror(
        "https://first.example/debian", None
    )
    assert mirrors.choose_mirrors([("mirror+file:/nowhere", "bookworm")]) is None


def test_sources_name_the_suite_of_the_base() -> None:
    text = mirrors.DebianMirror("http://a/d", "http://a/s").sources("bookworm", signed_by="/k.gpg")
    assert text.splitlines() == [
        "deb [signed-by=/k.gpg] http://a/d bookworm main",
        "deb [signed-by=/k.gpg] http://a/d bookworm-updates main",
        "deb [signed-by=/k.gpg] http://a/s bookworm-security main",
    ]


def test_a_named_mirror_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(mirrors.MIRROR_VARIABLE, "http://mine.example:81/debian/, http://mine.example:81/sec")
    found = mirrors.debian_mirror()
    assert found == mirrors.DebianMirror("http://mine.example:81/debian", "http://mine.example:81/sec")
    assert found.hosts == ("mine.example:81",)


def test_pip_settings_without_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://me:secret@index.example/simple\ntimeout = 3\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "file:///opt/simple http://x:y@extra.example:8081/simple")
    found = mirrors.python_index()
    assert found.settings["PIP_INDEX_URL"] == "https://index.example/simple"
    assert found.settings["PIP_EXTRA_INDEX_URL"] == "http://extra.example:8081/simple"
    assert {"index.example", "extra.example:8081"} < set(found.hosts)
    assert "secret" not in repr(found)


def test_environment_beats_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".pip").mkdir()
    (tmp_path / ".pip/pip.conf").write_text("[global]\nindex-url = https://file.example/simple\n")
    monkeypatch.setenv("PIP_INDEX_URL", "https://env.example/simple")
    assert mirrors.python_index().settings["PIP_INDEX_URL"] == "https://env.example/simple"


def test_the_registry_of_npm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".npmrc").write_text("fund=false\nregistry=https://me:secret@npm.example:4873/path/\n")
    found = mirrors.node_registry()
    assert found.settings == {"NPM_CONFIG_REGISTRY": "https://npm.example:4873/path/"}
    assert "npm.example:4873" in found.hosts
    assert len(found.hosts) == 2, "npm's own registry stays: lock files name it"
    mirrors.node_registry.cache_clear()
    monkeypatch.setenv("npm_config_registry", "file:///somewhere")
    assert mirrors.node_registry().settings == {}


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="no apt on this machine")
def test_apt_settings_of_a_machine_that_never_updated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in ("state/lists/partial", "parts", "sources"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "sources/debian.sources").write_text(
        "Types: deb\nURIs: http://me:pw@mirror.example:8000/debian\n"
        "Suites: bookworm bookworm-updates\nComponents: main\n"
    )
    (tmp_path / "apt.conf").write_text(
        f'Dir::Etc::parts "{tmp_path}/parts"; Dir::Etc::main "/dev/null"; Dir::Etc::sourcelist "/dev/null";\n'
        f'Dir::Etc::sourceparts "{tmp_path}/sources"; Dir::State "{tmp_path}/state";\n'
        'Acquire::http::Proxy "http://proxy.example:3142"; Acquire::Check-Date "false"; APT::Get::Assume-Yes "true";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    mirrors._apt_configuration.cache_clear()  # pyright: ignore[reportPrivateUsage]
    try:
        assert mirrors.debian_mirror() == mirrors.DebianMirror("http://mirror.example:8000/debian", None)
        assert mirrors.apt_proxies() == {"mirror.example": "http://proxy.example:3142"}
        kept = mirrors.apt_settings().splitlines()
        assert 'Acquire::http::Proxy "http://proxy.example:3142";' in kept
        assert 'Acquire::Check-Date "false";' in kept
        assert not [line for line in kept if not line.startswith("Acquire::")]
        assert mirrors.apt_date_settings().splitlines() == ['Acquire::Check-Date "false";']
    finally:
        mirrors._apt_configuration.cache_clear()
