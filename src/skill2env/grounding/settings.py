"""A grounder from the settings of a run."""

import threading
from pathlib import Path

from skill2env.config import AssetConfig
from skill2env.errors import UserError
from skill2env.grounding.cache import AssetCache
from skill2env.grounding.download import DownloadLimits
from skill2env.grounding.ground import Grounder
from skill2env.hub.policy import LicencePolicy
from skill2env.sandbox.egress import Egress
from skill2env.store.folders import cache_home
from skill2env.verify.rules import rule_of


def make_grounder(
    config: AssetConfig, *, policy: LicencePolicy, notices: Path, stop: threading.Event
) -> Grounder:
    """What puts public files into the tasks of a run.

    Raises:
        UserError: a host in the settings is none.
    """
    try:
        rules = (
            Egress.allowlist((*config.hosts, *_names(config.private_hosts)), config.private_hosts)
            if config.hosts
            else Egress.public(config.private_hosts)
        )
    except ValueError as error:
        raise UserError(f"assets.hosts: {error}", hint="write names, *.suffix, or addresses") from None
    return Grounder(
        cache=AssetCache(cache_home() / "assets"),
        notices=notices,
        rules=rules,
        limits=DownloadLimits(max_bytes=config.max_file_mb * 2**20, timeout_sec=config.timeout_sec),
        max_total_bytes=config.max_total_mb * 2**20,
        policy=policy,
        offline=not config.download,
        stop=stop,
        mend=lambda code: rule_of(code).mend,
    )


def _names(hosts: tuple[str, ...]) -> list[str]:
    return [host.rpartition(":")[0] or host for host in hosts]
