"""What commands see of a network: the proxy on the host, and what makes programs find it.

While a layer is built: the machine's package sources. In a trial: what the task's network mode allows. Everything is
supplied through ``/run`` (a temporary file system) and the environment of the commands, so no mirror, proxy or
certificate of this machine ends up in a layer.
"""

import json
import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from skill2env.sandbox import mirrors
from skill2env.sandbox.egress import Egress
from skill2env.sandbox.proxy import Access, EgressProxy
from skill2env.sandbox.session import PROXY_PORT, Bind

HOSTS_VARIABLE = "SKILL2ENV_BUILD_HOSTS"
"""More hosts that commands of a build may reach: names or patterns, separated by commas."""
_INSIDE = "/run/skill2env"
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE")
_MORE_CERTIFICATE_VARIABLES = ("GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS")
TRIAL_IDLE_SEC = 900.0
"""A connection of a trial on which nothing moves for so long is ended: models may think for minutes."""


@dataclass(frozen=True, slots=True)
class Network:
    """A running proxy, and what a sandbox needs to use it."""

    proxy: EgressProxy
    binds: tuple[Bind, ...]
    env: Mapping[str, str]
    """So that programs use the proxy."""
    package_env: Mapping[str, str]
    """So that apt, pip and npm use the machine's package sources."""
    forwards: Mapping[int, Path]
    """Port of 127.0.0.1 inside -> socket that leads to the same port of this machine."""

    def failures(self) -> list[Access]:
        """Allowed requests that the network did not carry."""
        return [access for access in self.proxy.log if access.verdict == "failed"]

    def refused_hosts(self) -> list[str]:
        """Hosts that were asked for and are not on the list."""
        return sorted({access.host for access in self.proxy.log if access.verdict == "refused"})

    def log_lines(self) -> str:
        """Every request as a line of JSON; empty when there was none."""
        return "".join(
            json.dumps({"host": a.host, "port": a.port, "verdict": a.verdict, "detail": a.detail}) + "\n"
            for a in self.proxy.log
        ) + (json.dumps({"unlogged": self.proxy.unlogged}) + "\n" if self.proxy.unlogged else "")


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


def _proxy_environment(*, certificates: bool) -> dict[str, str]:
    proxy, direct = f"http://127.0.0.1:{PROXY_PORT}", "localhost,127.0.0.1,::1"
    env = {"no_proxy": direct, "NO_PROXY": direct, "NODE_USE_ENV_PROXY": "1"}
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        env[name] = proxy
    if certificates:
        env |= dict.fromkeys(
            (*_CERTIFICATE_VARIABLES, *_MORE_CERTIFICATE_VARIABLES), f"{_INSIDE}/certificates.crt"
        )
    return env


def _package_environment() -> dict[str, str]:
    env = {"APT_CONFIG": f"{_INSIDE}/apt.conf", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return {**env, **mirrors.python_index().settings, **mirrors.node_registry().settings}


@contextmanager
def _serve(proxy: EgressProxy, suite: str, ports: Iterable[int] = ()) -> Generator[Network]:
    with proxy:
        folder = proxy.folder
        texts = {"sources.list": mirrors.debian_mirror().sources(suite), "apt.conf": _apt_settings()}
        bundle = _certificates()
        if bundle is not None:
            texts["certificates.crt"] = bundle.read_text(errors="replace")
        for file, text in texts.items():
            (folder / file).write_text(text)
            (folder / file).chmod(0o644)
        yield Network(
            proxy,
            tuple(Bind(folder / file, f"{_INSIDE}/{file}") for file in texts),
            _proxy_environment(certificates=bundle is not None),
            _package_environment(),
            {port: proxy.forward(port) for port in ports},
        )


@contextmanager
def build_network(suite: str) -> Generator[Network]:
    """Start a proxy for one layer of a base of that Debian suite.

    Raises:
        OSError: the socket cannot be made.
    """
    trusted = trusted_sources()
    extra = [host.strip() for host in os.environ.get(HOSTS_VARIABLE, "").split(",") if host.strip()]
    rules = Egress.package_sources([*trusted, *extra], trusted)
    with _serve(EgressProxy(rules, via=mirrors.apt_proxies()), suite) as network:
        yield network


@contextmanager
def trial_network(rules: Egress, suite: str, ports: Iterable[int] = ()) -> Generator[Network]:
    """Start a proxy for one trial on a base of that Debian suite; `EgressProxy.switch` follows the phases.

    Args:
        rules: of the first phase.
        suite: for the package sources.
        ports: of this machine's 127.0.0.1 that the same port inside leads to, while the rules allow it.

    Raises:
        OSError: the socket cannot be made.
    """
    proxy = EgressProxy(rules, via=mirrors.apt_proxies(), idle_sec=TRIAL_IDLE_SEC)
    with _serve(proxy, suite, ports) as network:
        yield network


def trusted_sources() -> frozenset[str]:
    """Hosts of this machine's own package settings, which may have private addresses."""
    indexes = (mirrors.python_index(), mirrors.node_registry())
    return frozenset({*mirrors.debian_mirror().hosts, *(host for index in indexes for host in index.hosts)})
