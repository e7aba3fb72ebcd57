"""Where skill2env keeps what can be made again: base images, layers, caches.

Root cannot use a folder below a 0700 home, because sandboxes run under a subordinate uid that could not walk into
it; so root uses ``/var/cache/skill2env`` and everybody else the cache folder of the platform.
``SKILL2ENV_CACHE`` overrides both.
"""

import os
from pathlib import Path

from platformdirs import user_cache_path

CACHE_VARIABLE = "SKILL2ENV_CACHE"


def cache_home() -> Path:
    """Folder for everything that can be rebuilt or downloaded again. Not created here."""
    override = os.environ.get(CACHE_VARIABLE)
    if override:
        return Path(override).expanduser().absolute()
    if os.geteuid() == 0:
        return Path("/var/cache/skill2env")
    return user_cache_path("skill2env")


def verdicts_home() -> Path:
    """Folder for verdicts of earlier verifications, below the cache. Not created here."""
    return cache_home() / "verdicts"


def judgements_home() -> Path:
    """Folder for judgements of earlier runs, below the cache. Not created here."""
    return cache_home() / "judgements"
