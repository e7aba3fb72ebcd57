"""Which model is called, where, and in which format; and the client for it."""

import os
from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import SplitResult, urlsplit

from pydantic import Field

from skill2env.errors import UserError
from skill2env.llm.dialogue import ChatModel
from skill2env.records import Record


class ApiFormat(StrEnum):
    """Wire formats."""

    OPENAI_CHAT = "openai-chat"
    """OpenAI's chat completions: what nearly every local server speaks."""
    OPENAI_RESPONSES = "openai-responses"
    """OpenAI's responses."""
    ANTHROPIC = "anthropic"
    """Anthropic's messages."""


KEY_VARIABLES = {
    ApiFormat.OPENAI_CHAT: "OPENAI_API_KEY",
    ApiFormat.OPENAI_RESPONSES: "OPENAI_API_KEY",
    ApiFormat.ANTHROPIC: "ANTHROPIC_API_KEY",
}
"""Environment variable that holds the key, unless the settings name another one."""

NO_KEY = "none"
"""What is sent to a server of one's own when no key is set."""


class ModelSettings(Record):
    """One model and how it is called. Never holds a key, only the name of the variable that does."""

    name: str
    """As the endpoint knows it."""
    api: ApiFormat = ApiFormat.OPENAI_CHAT
    base_url: str = ""
    """Empty for the public endpoint of the format."""
    key_variable: str = ""
    """Environment variable with the key; empty for the usual one of the format."""
    max_output_tokens: int = Field(default=16_384, ge=16)
    """Limit of one reply, hidden reasoning included."""
    context_tokens: int = Field(default=0, ge=0)
    """What the model can read; 0 to look it up in the price table, else 128,000."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """None to leave it to the endpoint."""
    reasoning_effort: str = ""
    """``low``, ``medium``, ``high`` ... where the model takes it; empty to leave it to the endpoint."""
    stream: bool = True
    """Receive replies piece by piece, so that a stall or a cut is noticed at once."""
    stall_sec: float = Field(default=180, gt=0)
    """Longest silence of the endpoint, seconds."""
    attempts: int = Field(default=6, ge=1)
    """How often one request is sent before a transient fault counts."""

    @property
    def endpoint(self) -> str:
        """Who is asked: requests of all models of one endpoint share its limits."""
        return self.base_url or f"public {self.api.value}"

    @property
    def key_name(self) -> str:
        """The environment variable that is read."""
        return self.key_variable or KEY_VARIABLES[self.api]


def model_settings(
    model: str, *, api: str = "", base_url: str = "", key_variable: str = "", **others: object
) -> ModelSettings:
    """Settings from what a user writes: ``NAME``, or ``PROVIDER/NAME`` for ``openai`` and ``anthropic``.

    Args:
        model: the model; a prefix of another kind (``org/name``) is part of the name.
        api: one of `ApiFormat`; empty to choose by prefix and name.
        base_url: address of a server that speaks the format.
        key_variable: see `ModelSettings.key_variable`.
        others: further fields of `ModelSettings`.

    Raises:
        UserError: no name, an unknown format, or an address that is none.
    """
    provider, slash, rest = model.partition("/")
    name = rest if slash and provider in {"openai", "anthropic"} else model
    if not name.strip():
        raise UserError("the model has no name", hint="give one with --model NAME")
    if api and api not in {item.value for item in ApiFormat}:
        raise UserError(
            f"there is no API format {api!r}",
            hint=f"there are: {', '.join(item.value for item in ApiFormat)}",
        )
    if base_url:
        parts = urlsplit(base_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise UserError(f"{base_url!r} is no address of a server", hint="write it as http://HOST:PORT/v1")
    claude = provider == "anthropic" or (not base_url and name.startswith("claude"))
    chosen = ApiFormat(api) if api else ApiFormat.ANTHROPIC if claude else ApiFormat.OPENAI_CHAT
    return ModelSettings.model_validate(
        {"name": name, "api": chosen, "base_url": base_url, "key_variable": key_variable, **others}
    )


def check_address(base_url: str) -> SplitResult:
    """The parts of an endpoint's address.

    Raises:
        UserError: it is none.
    """
    try:
        parts = urlsplit(base_url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good, parts = False, urlsplit("")
    if not good:
        raise UserError(f"{base_url!r} is no address of a server", hint="write it as http://HOST:PORT/v1")
    return parts


def read_key(settings: ModelSettings, environment: Mapping[str, str] | None = None) -> str:
    """The key, from the environment of this process.

    Raises:
        UserError: there is none and the endpoint is a public one.
    """
    key = (environment if environment is not None else os.environ).get(settings.key_name, "").strip()
    if key:
        return key
    if settings.base_url:
        return NO_KEY
    raise UserError(
        f"no key for {settings.name}: {settings.key_name} is not set",
        hint=f"set {settings.key_name}, or give the address of a server of your own with --api-base",
    )


def make_model(settings: ModelSettings) -> ChatModel:
    """A client for `settings`; libraries are imported only now.

    Raises:
        UserError: the key is missing.
    """
    key = read_key(settings)
    match settings.api:
        case ApiFormat.OPENAI_CHAT:
            from skill2env.llm.openai_chat import OpenAIChat

            return OpenAIChat(settings, key)
        case ApiFormat.OPENAI_RESPONSES:
            from skill2env.llm.openai_responses import OpenAIResponses

            return OpenAIResponses(settings, key)
        case ApiFormat.ANTHROPIC:
            from skill2env.llm.anthropic_messages import AnthropicMessages

            return AnthropicMessages(settings, key)
