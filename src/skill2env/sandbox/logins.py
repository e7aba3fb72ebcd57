"""Logins of registries: given by the caller, or from docker's configuration file."""

import base64
import binascii
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from skill2env.sandbox.references import Location

CONFIG_VARIABLE = "DOCKER_CONFIG"


@dataclass(frozen=True, slots=True)
class Login:
    """Name and password; the password is in no representation."""

    user: str
    password: str = field(repr=False)

    def basic(self) -> str:
        """Value of an ``Authorization`` header."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


def known_login(location: Location) -> Login | None:
    """The login that docker's configuration file keeps for a registry; None when it keeps none that can be read.

    Logins that docker keeps in a credential helper are not looked up.
    """
    home = os.environ.get(CONFIG_VARIABLE)
    path = (Path(home) if home else Path.home() / ".docker") / "config.json"
    try:
        tree = cast("dict[str, Any]", json.loads(path.read_text(encoding="utf-8")))
        kept = cast("dict[str, Any]", tree["auths"])
        for key in location.login_keys:
            entry = kept.get(key)
            if entry and entry.get("auth"):
                user, colon, password = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
                if colon:
                    return Login(user, password.rstrip("\0"))
    except (OSError, ValueError, KeyError, AttributeError, TypeError, binascii.Error, RuntimeError):
        return None
    return None
