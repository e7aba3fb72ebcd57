"""What a user writes about a model, and what comes of it."""

import pytest

from skill2env.errors import UserError
from skill2env.llm.settings import NO_KEY, ApiFormat, ModelSettings, make_model, model_settings, read_key


@pytest.mark.parametrize(
    ("model", "api", "base_url", "name", "chosen"),
    [
        ("gpt-5", "", "", "gpt-5", ApiFormat.OPENAI_CHAT),
        ("openai/gpt-5", "openai-responses", "", "gpt-5", ApiFormat.OPENAI_RESPONSES),
        ("anthropic/claude-x", "", "", "claude-x", ApiFormat.ANTHROPIC),
        ("claude-x", "", "", "claude-x", ApiFormat.ANTHROPIC),
        ("claude-x", "", "http://127.0.0.1:1/v1", "claude-x", ApiFormat.OPENAI_CHAT),
        ("Qwen/Qwen3-8B", "", "http://127.0.0.1:1/v1", "Qwen/Qwen3-8B", ApiFormat.OPENAI_CHAT),
    ],
)
def test_formats_are_chosen(model: str, api: str, base_url: str, name: str, chosen: ApiFormat) -> None:
    settings = model_settings(model, api=api, base_url=base_url)
    assert (settings.name, settings.api, settings.base_url) == (name, chosen, base_url)


@pytest.mark.parametrize(
    ("model", "others", "says"),
    [
        ("openai/", {}, "no name"),
        ("m", {"api": "soap"}, "no API format"),
        ("m", {"base_url": "localhost:8000"}, "no address"),
        ("m", {"base_url": "ftp://x/v1"}, "no address"),
    ],
)
def test_mistakes(model: str, others: dict[str, str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        model_settings(model, **others)


def test_keys_come_from_the_environment() -> None:
    public = ModelSettings(name="m")
    assert read_key(public, {"OPENAI_API_KEY": " k "}) == "k"
    with pytest.raises(UserError, match="OPENAI_API_KEY is not set"):
        read_key(public, {})
    own = ModelSettings(name="m", base_url="http://127.0.0.1:1/v1")
    assert read_key(own, {}) == NO_KEY
    other = ModelSettings(name="m", key_variable="MY_KEY")
    assert read_key(other, {"MY_KEY": "x", "OPENAI_API_KEY": "y"}) == "x"


def test_no_key_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UserError, match="ANTHROPIC_API_KEY"):
        make_model(ModelSettings(name="m", api=ApiFormat.ANTHROPIC))
