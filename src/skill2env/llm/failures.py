"""How a model endpoint can fail, told apart by what the failure is and never by words in an agent's output."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from skill2env.errors import Boundary, InfraError
from skill2env.llm.dialogue import CHARS_PER_TOKEN, Lost, TokenUsage


class ProviderFault(StrEnum):
    """What an endpoint did instead of answering."""

    RATE_LIMIT = "rate_limit"
    """Too many requests or tokens a minute; trying again later helps."""
    USAGE_LIMIT = "usage_limit"
    """The account's quota or credit is used up."""
    OVERLOADED = "overloaded"
    """Temporarily out of capacity (HTTP 503, 529)."""
    SERVER = "server"
    """Another error on its side (HTTP 5xx)."""
    NETWORK = "network"
    """It could not be reached."""
    CUT = "cut"
    """The connection ended in the middle of a reply."""
    STALLED = "stalled"
    """Nothing arrived for longer than the limit."""
    BAD_REPLY = "bad_reply"
    """What arrived is not what the protocol says: broken JSON, a web page, no choices."""
    AUTHENTICATION = "authentication"
    """The key is missing, wrong, or may not use this model."""
    NO_MODEL = "no_model"
    """It knows no such model or address."""
    BAD_REQUEST = "bad_request"
    """It rejects the request itself."""
    CONTEXT = "context"
    """The dialogue is longer than the model can read."""
    REFUSED = "refused"
    """A policy of the endpoint blocked the request."""


TRANSIENT = frozenset(
    {
        ProviderFault.RATE_LIMIT,
        ProviderFault.OVERLOADED,
        ProviderFault.SERVER,
        ProviderFault.NETWORK,
        ProviderFault.CUT,
        ProviderFault.STALLED,
        ProviderFault.BAD_REPLY,
    }
)
"""Faults that may be gone when the same request is sent again."""

_HINTS = {
    ProviderFault.AUTHENTICATION: "check the key in the environment variable that the settings name",
    ProviderFault.NO_MODEL: "check the model's name and the base address (--model, --api-base)",
    ProviderFault.NETWORK: "check the base address and the network (--api-base)",
    ProviderFault.USAGE_LIMIT: "top up the account, or choose another model; the run can be resumed",
    ProviderFault.BAD_REQUEST: "check the API format (--api) and the model's parameters",
    ProviderFault.RATE_LIMIT: "run fewer workers, or resume later",
}
_QUOTA = ("insufficient_quota", "billing", "credit balance", "usage limit", "quota exceeded")
_CONTEXT = (
    "context_length",
    "context length",
    "context window",
    "maximum context",
    "prompt is too long",
    "too many tokens",
    "exceed_context_size",
    "context size",
    "input is too long",
)
_POLICY = ("content_policy", "content policy", "content_filter", "content management policy", "safety")
_MESSAGE_CHARS = 500


class ProviderError(InfraError):
    """A model endpoint failed. `fault` says how; `retry_after` is what it asked for, in seconds, or None."""

    def __init__(self, fault: ProviderFault, message: str, *, retry_after: float | None = None) -> None:
        text = " ".join(message.split())[:_MESSAGE_CHARS]
        super().__init__(
            Boundary.PROVIDER,
            f"the model endpoint failed ({fault.value}): {text}",
            hint=_HINTS.get(fault, ""),
            transient=fault in TRANSIENT,
        )
        self.fault = fault
        self.retry_after = retry_after


@contextmanager
def provider_failures(*, began: "Began | None" = None) -> Generator[None]:
    """Turn whatever a client library raises inside into a `ProviderError`.

    Args:
        began: tells whether a reply had begun to arrive; a broken connection is `CUT` then and `NETWORK` otherwise.

    Raises:
        ProviderError: for every exception but cancellation and errors of our own.
    """
    try:
        yield
    except InfraError:
        _lose(began)
        raise
    except Exception as error:
        failure = classify(error, began=bool(began and began.value))
        _lose(began, cut=failure.fault is ProviderFault.CUT)
        raise failure from error
    except BaseException:  # a time limit ends the session amid a reply
        _lose(began)
        raise


class Began:
    """How far a reply has come.

    Args:
        sent: estimates the tokens of the request.
        lost: gets a note when the reply broke off after it had begun.
    """

    def __init__(self, sent: Callable[[], int], lost: list[Lost]) -> None:
        self._sent = sent
        self._lost = lost
        self.value = False
        """Something has arrived."""
        self.chars = 0
        """Characters of the reply that have arrived, hidden reasoning included where it is shown."""
        self.usage: TokenUsage | None = None
        """The endpoint's own counts, where it states them before the reply."""

    def note_lost(self) -> None:
        """The reply will not be finished."""
        written = -(-self.chars // CHARS_PER_TOKEN)
        if self.usage is None:
            self._lost.append(Lost(TokenUsage(self._sent(), written)))
            return
        output = max(written, self.usage.output)
        self._lost.append(
            Lost(TokenUsage(self.usage.input, output, self.usage.cached, self.usage.written), counted=True)
        )


def _lose(began: Began | None, *, cut: bool = False) -> None:
    if began is not None and (began.value or cut):
        began.note_lost()


def classify(error: Exception, *, began: bool = False) -> ProviderError:
    """What an exception of the OpenAI or Anthropic client, or of httpx below them, means.

    Both clients are generated by one tool and share names and attributes, so they are told apart by neither.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    told = str(error) or type(error).__name__
    status = getattr(error, "status_code", None)
    if names & {"APITimeoutError", "TimeoutException", "TimeoutError"}:
        return ProviderError(ProviderFault.STALLED, told)
    if isinstance(status, int) and "APIStatusError" in names:
        return _by_status(status, told, _body(error), _retry_after(error))
    if names & {"APIConnectionError", "TransportError", "ConnectionError"}:
        below = {kind.__name__ for kind in type(error.__cause__).__mro__} | names
        cut = began or bool(below & {"RemoteProtocolError", "ReadError"})
        return ProviderError(ProviderFault.CUT if cut else ProviderFault.NETWORK, told)
    if names & {"APIResponseValidationError", "JSONDecodeError", "ValidationError", "UnicodeDecodeError"}:
        return ProviderError(ProviderFault.BAD_REPLY, told)
    if "APIError" in names:  # an error event inside a stream carries no status
        return _in_stream(told, _body(error))
    if isinstance(error, AttributeError | TypeError | KeyError | IndexError | ValueError):
        return ProviderError(ProviderFault.BAD_REPLY, f"{type(error).__name__}: {told}")
    return ProviderError(ProviderFault.NETWORK, f"{type(error).__name__}: {told}")


def _by_status(status: int, told: str, body: str, retry_after: float | None) -> ProviderError:
    words = f"{told} {body}".lower()
    if status == 429:
        quota = any(word in words for word in _QUOTA)
        fault = ProviderFault.USAGE_LIMIT if quota else ProviderFault.RATE_LIMIT
    elif status in {401, 403}:
        fault = ProviderFault.AUTHENTICATION
    elif status == 402:
        fault = ProviderFault.USAGE_LIMIT
    elif status == 404:
        fault = ProviderFault.NO_MODEL
    elif status in {503, 529}:
        fault = ProviderFault.OVERLOADED
    elif status in {408, 409} or status >= 500:
        fault = ProviderFault.SERVER
    elif status == 413 or any(word in words for word in _CONTEXT):
        fault = ProviderFault.CONTEXT
    elif any(word in words for word in _POLICY):
        fault = ProviderFault.REFUSED
    elif any(word in words for word in _QUOTA):
        fault = ProviderFault.USAGE_LIMIT
    else:
        fault = ProviderFault.BAD_REQUEST
    return ProviderError(fault, f"HTTP {status}: {told}", retry_after=retry_after)


def _in_stream(told: str, body: str) -> ProviderError:
    words = f"{told} {body}".lower()
    for fault, signs in (
        (ProviderFault.OVERLOADED, ("overloaded",)),
        (ProviderFault.RATE_LIMIT, ("rate_limit", "rate limit")),
        (ProviderFault.CONTEXT, _CONTEXT),
        (ProviderFault.USAGE_LIMIT, _QUOTA),
        (ProviderFault.REFUSED, _POLICY),
    ):
        if any(sign in words for sign in signs):
            return ProviderError(fault, told)
    return ProviderError(ProviderFault.SERVER, told)


def _body(error: Exception) -> str:
    body: Any = getattr(error, "body", None)
    if body is None:
        return ""
    try:
        return body if isinstance(body, str) else json.dumps(body)
    except (TypeError, ValueError):
        return ""


def _retry_after(error: Exception) -> float | None:
    response: Any = getattr(error, "response", None)
    value = response.headers.get("retry-after", "") if response is not None else ""
    try:
        return max(0.0, float(value))
    except ValueError:  # a date is allowed too; backing off by our own schedule serves as well
        return None
