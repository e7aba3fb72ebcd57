"""What clients of all formats share: settings, time limits, and giving connections back."""

from collections.abc import Sequence
from typing import Any, Protocol

from skill2env.llm.dialogue import Lost, ToolSpec, Turn, estimate_request
from skill2env.llm.failures import Began
from skill2env.llm.settings import ModelSettings

CONNECT_SEC = 20.0


class Closable(Protocol):
    """A client of a provider's library."""

    async def close(self) -> None:
        """Give connections back."""
        ...


class Endpoint:
    """Base of the clients."""

    def __init__(self, settings: ModelSettings, client: Closable) -> None:
        self._settings = settings
        self._library = client
        self._lost: list[Lost] = []

    @property
    def lost(self) -> list[Lost]:
        """See `ChatModel.lost`."""
        return self._lost

    def _begin(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Began:
        """Watch over one request."""
        return Began(lambda: estimate_request(turns, tools), self._lost)

    @property
    def name(self) -> str:
        """The model's name as the endpoint knows it."""
        return self._settings.name

    async def close(self) -> None:
        """Give connections back."""
        await self._library.close()


def client_options(settings: ModelSettings, key: str, timeout: Any) -> dict[str, Any]:
    """Arguments of a client of either library; `timeout` is its own class for time limits."""
    return {
        "api_key": key,
        "base_url": settings.base_url or None,
        "max_retries": 0,  # ours are bounded, counted and shown
        "timeout": timeout(settings.stall_sec, connect=min(CONNECT_SEC, settings.stall_sec)),
    }
