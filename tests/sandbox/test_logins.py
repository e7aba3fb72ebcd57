"""Logins from docker's configuration file."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from skill2env.sandbox.logins import CONFIG_VARIABLE, Login, known_login
from skill2env.sandbox.references import HUB_LOGIN, locate

PLACE = locate("registry.example:444/a/b")


def auth(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path))
    return tmp_path / "config.json"


def test_the_login_of_a_registry_is_found(config: Path) -> None:
    kept = {
        "registry.example:444": {"auth": auth("me:pass:word")},
        "other.example": {"auth": auth("x:y")},
        HUB_LOGIN: {"auth": auth("hub:secret")},
    }
    config.write_text(json.dumps({"auths": kept}))
    assert known_login(PLACE) == Login("me", "pass:word")
    assert known_login(locate("debian")) == Login("hub", "secret")
    assert known_login(locate("nobody.example/x")) is None


@pytest.mark.parametrize(
    "content",
    [
        None,
        "{",
        "[]",
        json.dumps({"auths": []}),
        json.dumps({"auths": {"registry.example:444": {}}}),
        json.dumps({"auths": {"registry.example:444": "x"}}),
        json.dumps({"auths": {"registry.example:444": {"auth": "not base64!"}}}),
        json.dumps({"auths": {"registry.example:444": {"auth": auth("no colon")}}}),
        json.dumps({"credsStore": "desktop"}),
    ],
)
def test_a_file_without_a_usable_login_gives_none(config: Path, content: Any) -> None:
    if content is not None:
        config.write_text(content)
    assert known_login(PLACE) is None


def test_a_password_is_never_shown() -> None:
    assert "hidden" not in repr(Login("me", "hidden"))
    assert Login("a", "b").basic() == "Basic YTpi"
