import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skill2env.authors import registry
from skill2env.authors.protocol import Author
from skill2env.authors.record import RecordingAuthor
from skill2env.authors.recorded import RecordedAuthor
from skill2env.authors.registry import AuthorSettings, make_author, names
from skill2env.authors.scripted import ScriptedAuthor
from skill2env.errors import UserError


def test_names_and_unknown_author() -> None:
    assert {"code", "recorded", "scripted"} <= set(names())
    with pytest.raises(UserError, match="no author is called 'codex'") as caught:
        make_author("codex", AuthorSettings())
    assert all(name in caught.value.hint for name in names())


def test_recorded_needs_recordings(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs a folder of recordings"):
        make_author("recorded", AuthorSettings())
    author = make_author("", AuthorSettings(recordings=tmp_path, accept_stale=True))
    assert isinstance(author, RecordedAuthor)
    assert author.accept_stale


def test_recording_wraps_any_author(tmp_path: Path) -> None:
    author = make_author("scripted", AuthorSettings(record_to=tmp_path / "rec"))
    assert isinstance(author, RecordingAuthor)
    assert isinstance(author.inner, ScriptedAuthor)
    assert not (tmp_path / "rec").exists(), "nothing is made before there is something to store"


def test_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package's author is found by name and gets the settings."""
    given: list[AuthorSettings] = []

    def factory(settings: AuthorSettings) -> Author:
        given.append(settings)
        return ScriptedAuthor(label="from outside")

    def points(group: str) -> list[Any]:
        assert group == "skill2env.authors"
        return [SimpleNamespace(name="outside", load=lambda: factory)]

    monkeypatch.setattr(registry, "entry_points", points)
    settings = AuthorSettings(model="m")
    assert make_author("outside", settings).identity == ScriptedAuthor(label="from outside").identity
    assert given == [settings]
    assert "outside" in names()


def test_a_missing_key_is_told_before_any_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    with pytest.raises(UserError, match="OPENAI_API_KEY is not set") as caught:
        make_author("harbor:terminus-2", AuthorSettings(model="openai/m"))
    assert "--api-base" in caught.value.hint
    make_author("harbor:terminus-2", AuthorSettings(model="elsewhere/m"))
    make_author("harbor:terminus-2", AuthorSettings(model="openai/m", options={"api_key": "k" * 20}))
    make_author("harbor:codex", AuthorSettings(model="openai/m"))  # it may have a login of its own
    assert os.environ["OPENAI_API_KEY"] == ""
    make_author("harbor:terminus-2", AuthorSettings(model="openai/m", api_base="http://127.0.0.1:9/v1"))
    assert os.environ["OPENAI_API_KEY"] == "none", (
        "libraries want one, and a server of one's own asks for none"
    )
