"""What a command sees of the network while a layer is built: the machine's package sources behind the build proxy.

Everything is supplied through ``/run`` (a temporary file system) and the environment of that one command, so no
mirror, proxy or certificate of this machine ends up in a layer.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from skill2env.sandbox import mirrors
from skill2env.sandbox.proxy import Access, BuildProxy
from skill2env.sandbox.session import PROXY_PORT, Bind

HOSTS_VARIABLE = "SKILL2ENV_BUILD_HOSTS"
"""More hosts that commands of a build may reach: names or patterns, separated by commas."""
_INSIDE = "/run/skill2env"
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE")


@dataclass(frozen=True, slots=True)
class BuildNetwork:
    """A running proxy, and what a sandbox needs to use it."""

    proxy: BuildProxy
    binds: tuple[Bind, ...]
    env: Mapping[str, str]

    def failures(self) -> list[Access]:
        """Allowed requests that the network did not carry."""
        return [access for access in self.proxy.log if access.verdict == "failed"]

    def refused_hosts(self) -> list[str]:
        """Hosts that were asked for and are not on the list."""
        return sorted({access.host for access in self.proxy.log if access.verdict == "refused"})


def _apt_settings() -> str:
    proxy = f"http://127.0.0.1:{PROXY_PORT}"
    return (
        f'Dir::Etc::sourcelist "{_INSIDE}/sources.list";\n'
        f'Acquire::http::Proxy "{proxy}";\nAcquire::https::Proxy "{proxy}";\n'
        # Without it an update that fetched nothing succeeds, and a layer without package lists would be kept.
        'APT::Update::Error-Mode "any";\n'
        'Acquire::http::Pipeline-Depth "0";\nAcquire::Retries "2";\nAcquire::Languages "none";\n'
        'APT::Sandbox::User "root";\n' + mirrors.apt_date_settings()
    )


def _certificates() -> Path | None:
    """A certificate bundle that this machine's settings name, for networks that re-sign TLS."""
    for name in _CERTIFICATE_VARIABLES:
        path = Path(os.environ.get(name, ""))
        if path.is_file():
            return path
    return None


def _environment(*, certificates: bool) -> dict[str, str]:
    proxy = f"http://127.0.0.1:{PROXY_PORT}"
    env = {
        "APT_CONFIG": f"{_INSIDE}/apt.conf",
        "no_proxy": "localhost,127.0.0.1",
        "NO_PROXY": "localhost,127.0.0.1",
    }
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        env[name] = proxy
    env |= {**mirrors.python_index().settings, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if certificates:
        env |= dict.fromkeys((*_CERTIFICATE_VARIABLES, "GIT_SSL_CAINFO"), f"{_INSIDE}/certificates.crt")
    return env


@contextmanager
def build_network(suite: str) -> Generator[BuildNetwork]:
    """Start a proxy for one layer of a base of that Debian suite.

    Raises:
        OSError: the socket cannot be made.
    """
    debian, index = mirrors.debian_mirror(), mirrors.python_index()
    extra = [host.strip() for host in os.environ.get(HOSTS_VARIABLE, "").split(",") if host.strip()]
    trusted = {*debian.hosts, *index.hosts}
    with (
        TemporaryDirectory(prefix="skill2env-build-") as name,
        BuildProxy([*trusted, *extra], trusted=trusted, via=mirrors.apt_proxies()) as proxy,
    ):
        folder = Path(name)
        folder.chmod(0o755)  # the mapped user reads what is bound from here
        texts = {"sources.list": debian.sources(suite), "apt.conf": _apt_settings()}
        bundle = _certificates()
        if bundle is not None:
            texts["certificates.crt"] = bundle.read_text(errors="replace")
        for file, text in texts.items():
            (folder / file).write_text(text)
            (folder / file).chmod(0o644)
        binds = tuple(Bind(folder / file, f"{_INSIDE}/{file}") for file in texts)
        yield BuildNetwork(proxy, binds, _environment(certificates=bundle is not None))
