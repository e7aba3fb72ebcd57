"""The machine's own package settings: Debian mirrors, PyPI index, npm registry, proxies. No image ever holds them.

Credentials in these settings stay on the host: URLs are handed to a build without user name and password.
"""

import configparser
import contextlib
import functools
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

MIRROR_VARIABLE = "SKILL2ENV_DEBIAN_MIRROR"
"""Archive URL, after a comma that of security updates, for machines whose apt names no Debian mirror."""
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Where the distributions publish, for machines without settings of their own. In parts: files name no host.
_FALLBACK_HOST = ".".join(("deb", "debian", "org"))
_INDEX_HOST = ".".join(("pypi", "org"))
_FILES_HOST = ".".join(("files", "pythonhosted", "org"))
_NODE_HOST = ".".join(("registry", "npmjs", "org"))
_CODENAMES = (
    "bullseye", "bookworm", "trixie", "forky", "duke", "sid", "oldoldstable", "oldstable", "stable", "testing",
    "unstable",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DebianMirror:
    """Archive roots: packages and security updates (None where the machine does not use them)."""

    archive: str
    security: str | None

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts of both, with the port where it is not the usual one."""
        return hosts_of([self.archive, *([self.security] if self.security else [])])

    def sources(self, suite: str, *, signed_by: str = "") -> str:
        """Text of a sources.list for a suite."""
        options = f"[signed-by={signed_by}] " if signed_by else ""
        lines = [
            f"deb {options}{self.archive} {suite} main",
            f"deb {options}{self.archive} {suite}-updates main",
        ]
        if self.security:
            lines.append(f"deb {options}{self.security} {suite}-security main")
        return "\n".join(lines) + "\n"


def hosts_of(urls: Iterable[str]) -> tuple[str, ...]:
    """Sorted ``host`` or ``host:port`` of URLs."""
    found: set[str] = set()
    for url in urls:
        parts = urlsplit(url)
        if parts.hostname:
            usual = parts.port in (None, 80, 443)
            found.add(parts.hostname if usual else f"{parts.hostname}:{parts.port}")
    return tuple(sorted(found))


def without_login(url: str) -> str:
    """The URL without user name and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _apt(*arguments: str) -> list[str]:
    with contextlib.suppress(OSError):
        done = subprocess.run(
            arguments,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
            timeout=60,
        )
        return done.stdout.splitlines() if done.returncode == 0 else []
    return []


@functools.cache
def _apt_configuration() -> tuple[str, ...]:
    return tuple(_apt("apt-config", "dump"))


def _plain_url(uri: str) -> str:
    """The http(s) URL behind an apt URI; of a mirror list the first one; empty when there is none."""
    method, _, rest = uri.partition(":")
    if method == "mirror+file":
        with contextlib.suppress(OSError, UnicodeDecodeError):
            for line in Path("/" + rest.lstrip("/")).read_text().splitlines():
                word = [*line.split(), ""][0]
                if word.startswith(("http://", "https://")):
                    return word.rstrip("/")
        return ""
    return uri.rstrip("/") if method in ("http", "https") else ""


def choose_mirrors(targets: Iterable[tuple[str, str]]) -> DebianMirror | None:
    """The Debian mirrors among (repository URI, release) pairs of apt's index targets; None when there is none."""
    archive = security = None
    for uri, release in targets:
        codename, _, pocket = release.replace("/", "-").partition("-")
        url = without_login(_plain_url(uri))
        if codename not in _CODENAMES or not url:
            continue
        if pocket in ("security", "updates") and "security" in f"{uri} {pocket}":
            security = security or url
        else:
            archive = archive or url
    return DebianMirror(archive, security) if archive else None


@functools.cache
def debian_mirror() -> DebianMirror:
    """The mirrors that this machine's apt uses; the distribution's own where it has none."""
    named = [
        part.strip().rstrip("/") for part in os.environ.get(MIRROR_VARIABLE, "").split(",") if part.strip()
    ]
    if named:
        return DebianMirror(named[0], named[1] if len(named) > 1 else None)
    # Without release info targets are listed even where `apt-get update` has never run, as in a fresh container.
    form = "$(CREATED_BY)|$(REPO_URI)|$(RELEASE)"
    lines = _apt("apt-get", "indextargets", "--no-release-info", "--format", form)
    rows = [line.split("|") for line in lines if line.startswith("Packages|") and line.count("|") == 2]
    found = choose_mirrors((row[1], row[2]) for row in rows)
    return found or DebianMirror(
        f"http://{_FALLBACK_HOST}/debian", f"http://{_FALLBACK_HOST}/debian-security"
    )


def apt_proxies() -> dict[str, str]:
    """Host -> HTTP proxy that the machine's apt uses for the Debian mirrors; empty when it uses none."""
    general, special = "", dict[str, str]()
    for line in _apt_configuration():
        match = re.fullmatch(r'Acquire::https?::Proxy(?:::(?P<host>[^ ]+))? "(?P<url>[^"]*)";', line)
        if match and match["host"]:
            special[match["host"].lower()] = match["url"]
        elif match and match["url"]:
            general = match["url"]
    hosts = [host.partition(":")[0] for host in debian_mirror().hosts]
    return {host: url for host in hosts if (url := special.get(host, general))}


def apt_settings() -> str:
    """What of this machine's apt settings a private apt needs: proxies, time-outs, and how old lists may be."""
    wanted = re.compile(r"Acquire::(https?::|Retries|Check-Valid-Until|Check-Date|ForceIPv)")
    return "".join(f"{line}\n" for line in _apt_configuration() if wanted.match(line))


def apt_date_settings() -> str:
    """Whether this machine's apt checks the age of package lists (a frozen mirror cannot pass), as apt settings."""
    wanted = ("Acquire::Check-Valid-Until ", "Acquire::Check-Date ")
    return "".join(f"{line}\n" for line in _apt_configuration() if line.startswith(wanted))


@dataclass(frozen=True, slots=True)
class PackageIndex:
    """Where a package manager finds packages on this machine."""

    settings: dict[str, str]
    """Environment for commands inside a build (pip's index, extra index, trusted hosts), without credentials."""
    hosts: tuple[str, ...]


def _pip_files() -> list[Path]:
    home = Path.home()
    files = [
        Path("/etc/pip.conf"),
        Path("/etc/xdg/pip/pip.conf"),
        home / ".config/pip/pip.conf",
        home / ".pip/pip.conf",
    ]
    named = os.environ.get("PIP_CONFIG_FILE")
    return [*files, Path(named)] if named else files


@functools.cache
def python_index() -> PackageIndex:
    """The index settings of the environment and of pip's configuration files; only those reached over HTTP."""
    wanted = ("index-url", "extra-index-url", "trusted-host")
    found: dict[str, str] = {}
    for path in _pip_files():
        parser = configparser.ConfigParser(interpolation=None)
        with contextlib.suppress(OSError, configparser.Error, UnicodeDecodeError):
            parser.read_string(path.read_text())
            found |= {
                name: parser.get("global", name) for name in wanted if parser.has_option("global", name)
            }
    for name in wanted:
        value = os.environ.get(_pip_variable(name))
        if value:
            found[name] = value
    settings: dict[str, str] = {}
    hosts = {_INDEX_HOST, _FILES_HOST}
    for name, value in found.items():
        words = value.split()
        if name != "trusted-host":
            words = [without_login(word) for word in words if urlsplit(word).scheme in ("http", "https")]
            hosts |= set(hosts_of(words))
        if words:
            settings[_pip_variable(name)] = " ".join(words)
    return PackageIndex(settings, tuple(sorted(hosts)))


def python_index_url() -> str:
    """Address of the package index, as pip would take it: the machine's setting, else the public one."""
    settings = python_index().settings
    configured = settings.get("PIP_INDEX_URL") or os.environ.get("UV_DEFAULT_INDEX", "")
    return configured.rstrip("/") or f"https://{_INDEX_HOST}/simple"


def _pip_variable(name: str) -> str:
    return f"PIP_{name.upper().replace('-', '_')}"


@functools.cache
def node_registry() -> PackageIndex:
    """The registry of npm's environment and configuration files; scopes with registries of their own are not read."""
    named = ""
    for path in (
        Path("/etc/npmrc"),
        Path("/usr/local/etc/npmrc"),
        Path("/usr/etc/npmrc"),
        Path.home() / ".npmrc",
    ):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            for line in path.read_text().splitlines():
                name, _, value = line.partition("=")
                named = value.strip().strip("\"'") if name.strip() == "registry" else named
    settings = [value for name, value in os.environ.items() if name.lower() == "npm_config_registry"]
    named = next((value for value in settings if value), named)
    url = without_login(named) if urlsplit(named).scheme in ("http", "https") else ""
    inside = {"NPM_CONFIG_REGISTRY": url} if url else {}
    return PackageIndex(inside, tuple(sorted({_NODE_HOST, *hosts_of([url])})))
