"""The machine's own package settings: Debian mirrors, PyPI index, proxies. Nothing of it ever enters an image."""

import configparser
import contextlib
import functools
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_APT = Path("/etc/apt")
# The names under which the distribution itself publishes its mirrors, used where a machine (not Debian, say) has no settings.
_FALLBACK_HOST = ".".join(("deb", "debian", "org"))
_INDEX_HOST = ".".join(("pypi", "org"))
_FILES_HOST = ".".join(("files", "pythonhosted", "org"))


@dataclass(frozen=True, slots=True)
class DebianMirror:
    """Archive roots: packages and security updates (None where the machine does not use them)."""

    archive: str
    security: str | None

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names of both."""
        urls = [self.archive, *([self.security] if self.security else [])]
        return tuple(sorted({urlsplit(u).hostname or "" for u in urls}))

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


def _deb822_uris(text: str) -> list[str]:
    found: list[str] = []
    for stanza in text.split("\n\n"):
        fields = dict(
            line.split(":", 1)
            for line in stanza.splitlines()
            if ":" in line and not line.startswith(("#", " "))
        )
        keyed = {k.strip().lower(): v.strip() for k, v in fields.items()}
        if "deb" in keyed.get("types", "").split() and "debian" in keyed.get("signed-by", "debian"):
            found += keyed.get("uris", "").split()
    return found


def _list_uris(text: str) -> list[str]:
    found: list[str] = []
    for line in text.splitlines():
        words = [w for w in line.partition("#")[0].split() if not w.startswith("[") and not w.endswith("]")]
        if len(words) >= 3 and words[0] == "deb":
            found.append(words[1])
    return found


@functools.cache
def debian_mirror() -> DebianMirror:
    """The mirrors that this machine's apt uses; the distribution's own where it has none."""
    uris: list[str] = []
    paths = [_APT / "sources.list", *sorted((_APT / "sources.list.d").glob("*"))]
    for path in paths:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if path.suffix == ".sources":
                uris += _deb822_uris(path.read_text())
            elif path.suffix == ".list":
                uris += _list_uris(path.read_text())
    debian = [u.rstrip("/") for u in uris if "debian" in u and urlsplit(u).scheme in ("http", "https")]
    security = next((u for u in debian if "security" in u), None)
    archive = next((u for u in debian if u.endswith("/debian")), None)
    if archive is None:
        return DebianMirror(f"http://{_FALLBACK_HOST}/debian", f"http://{_FALLBACK_HOST}/debian-security")
    return DebianMirror(archive, security)


@functools.cache
def apt_proxy() -> str:
    """HTTP proxy of the machine's apt settings, empty when there is none."""
    with contextlib.suppress(OSError):
        done = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            if line.startswith("Acquire::http::Proxy "):
                return line.split('"')[1]
    return ""


@functools.cache
def apt_date_settings() -> str:
    """Whether this machine's apt checks the age of package lists (a frozen mirror cannot pass), as apt settings."""
    with contextlib.suppress(OSError):
        done = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False)
        wanted = ("Acquire::Check-Valid-Until ", "Acquire::Check-Date ")
        lines = [line for line in done.stdout.splitlines() if line.startswith(wanted)]
        return "".join(f"{line}\n" for line in lines)
    return ""


@dataclass(frozen=True, slots=True)
class PythonIndex:
    """Where pip finds packages on this machine."""

    settings: dict[str, str]
    """PIP_* environment for commands inside a build (index, extra index, trusted hosts)."""
    hosts: tuple[str, ...]


@functools.cache
def python_index() -> PythonIndex:
    """The index settings of the environment and of pip's configuration files; only those reached over HTTP."""
    wanted = ("index-url", "extra-index-url", "trusted-host")
    found: dict[str, str] = {}
    files = [
        Path("/etc/pip.conf"),
        Path("/etc/xdg/pip/pip.conf"),
        Path.home() / ".config/pip/pip.conf",
        Path.home() / ".pip/pip.conf",
    ]
    if os.environ.get("PIP_CONFIG_FILE"):
        files.append(Path(os.environ["PIP_CONFIG_FILE"]))
    for path in files:
        parser = configparser.ConfigParser(interpolation=None)
        with contextlib.suppress(OSError, configparser.Error, UnicodeDecodeError):
            parser.read_string(path.read_text())
            for name in wanted:
                if parser.has_option("global", name):
                    found[name] = parser.get("global", name)
    for name in wanted:
        value = os.environ.get(f"PIP_{name.upper().replace('-', '_')}")
        if value:
            found[name] = value
    settings: dict[str, str] = {}
    hosts = {_INDEX_HOST, _FILES_HOST}
    for name, value in found.items():
        kept = [v for v in value.split() if name == "trusted-host" or urlsplit(v).scheme in ("http", "https")]
        if kept:
            settings[f"PIP_{name.upper().replace('-', '_')}"] = " ".join(kept)
            hosts |= {urlsplit(v).hostname or "" for v in kept if "://" in v}
    return PythonIndex(settings, tuple(sorted(h for h in hosts if h)))
