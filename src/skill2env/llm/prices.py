"""What tokens cost: the table that comes with Harbor's model library, and what the user says instead.

Prices are US dollars per million tokens; money is counted in micro-dollars (1e-6 USD), whole numbers, rounded up, so
that the sum over many requests is never less than what was spent.
"""

import importlib.util
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from skill2env.errors import UserError
from skill2env.llm.dialogue import TokenUsage

_TABLE = "model_prices_and_context_window_backup.json"
_LONG = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
_KEYS = frozenset({"input", "output", "cached", "written", "context_tokens"})
_LONG_KEYS = frozenset({"long_from", "long_input", "long_output"})
_LONG_MORE = frozenset({"long_cached", "long_written"})
DEFAULT_CONTEXT_TOKENS = 128_000
"""Assumed for models that no table knows."""


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens of one model, and what it can read."""

    input: float
    output: float
    cached: float | None = None
    """Input tokens from the endpoint's cache; None when they cost as much as the others."""
    written: float | None = None
    """Input tokens that go into the endpoint's cache; None when they cost as much as the others."""
    context_tokens: int = 0
    """0 when unknown."""
    long: "tuple[tuple[int, Price], ...]" = ()
    """(input tokens, price of requests with more than these), ascending: long requests cost more at some providers."""

    def micro_dollars(self, usage: TokenUsage) -> int:
        """Cost of one request, micro-dollars, rounded up."""
        return self.total((usage,))

    def total(self, requests: Iterable[TokenUsage]) -> int:
        """Cost of several requests, each priced by its own length; micro-dollars, rounded up once."""
        return math.ceil(math.fsum(self._for(usage.input)._exact(usage) for usage in requests) - 1e-9)

    def of_sum(self, usage: TokenUsage, requests: int) -> int:
        """Cost of tokens that are only known as a sum, as if all requests had been equally long; micro-dollars."""
        each = usage.input // max(1, requests) if requests else 0
        return math.ceil(self._for(each)._exact(usage) - 1e-9)

    def _for(self, length: int) -> "Price":
        return next((price for above, price in reversed(self.long) if length > above), self)

    def _exact(self, usage: TokenUsage) -> float:
        cached = self.cached if self.cached is not None else self.input
        written = self.written if self.written is not None else self.input
        fresh = max(0, usage.input - usage.cached - usage.written)
        # Dollars per million tokens are micro-dollars per token.
        kept = usage.cached * cached + usage.written * written
        return fresh * self.input + kept + usage.output * self.output


class PriceTable:
    """Prices by model name; the user's own first."""

    def __init__(self, own: dict[str, Price] | None = None) -> None:
        self._own = dict(own or {})

    def find(self, model: str) -> Price | None:
        """The price of a model, or None. ``PROVIDER/NAME`` is also looked up as ``NAME``."""
        for name in (model, model.partition("/")[2]):
            if name and name in self._own:
                return self._own[name]
        known = _known()
        return next((known[name] for name in (model, model.partition("/")[2]) if name in known), None)

    def context_tokens(self, model: str) -> int:
        """How many tokens a model can read."""
        price = self.find(model)
        return price.context_tokens if price and price.context_tokens else DEFAULT_CONTEXT_TOKENS

    @classmethod
    def of(cls, path: Path | None) -> "PriceTable":
        """One's own table where a file is given, else the known prices alone.

        Raises:
            UserError: as for `load`.
        """
        return cls.load(path) if path else cls()

    @classmethod
    def load(cls, path: Path) -> "PriceTable":
        """Read one's own table.

        Each ``[NAME]`` has ``input`` and ``output``, and if wanted ``cached``, ``written`` and ``context_tokens``.

        Requests of more than ``long_from`` input tokens may have prices of their own: ``long_input``, ``long_output``,
        and ``long_cached``, ``long_written`` if wanted.

        Raises:
            UserError: the file cannot be read or holds something else.
        """
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UserError(f"the price table {path} cannot be read: {error}") from error
        own = {name: _own_price(path, name, entry) for name, entry in document.items()}
        return cls(own)


def _own_price(path: Path, name: str, entry: Any) -> Price:
    hint = "write [NAME] with input and output, dollars per million tokens"
    if not isinstance(entry, dict):
        raise UserError(f"{path}: {name} is no table", hint=hint)
    given = cast("dict[str, Any]", entry)
    unknown = given.keys() - (_KEYS | _LONG_KEYS | _LONG_MORE)
    missing = {"input", "output"} - given.keys()
    if given.keys() & (_LONG_KEYS | _LONG_MORE):
        missing |= _LONG_KEYS - given.keys()
    if unknown or missing:
        raise UserError(
            f"{path}: [{name}] has unknown or missing keys: {', '.join(sorted(unknown | missing))}", hint=hint
        )
    numbers: dict[str, float] = {}
    for key, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            raise UserError(f"{path}: [{name}] {key} is no price: {value!r}", hint=hint)
        numbers[key] = value
    longer = ()
    if "long_from" in numbers:
        price = Price(
            numbers["long_input"],
            numbers["long_output"],
            numbers.get("long_cached"),
            numbers.get("long_written"),
        )
        longer = ((int(numbers["long_from"]), price),)
    window = int(numbers.get("context_tokens", 0))
    return Price(
        numbers["input"], numbers["output"], numbers.get("cached"), numbers.get("written"), window, longer
    )


@cache
def _known() -> dict[str, Price]:
    """The table inside litellm's package, read as a file: importing litellm takes seconds."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    try:
        entries: dict[str, Any] = json.loads((Path(spec.origin).parent / _TABLE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    found: dict[str, Price] = {}
    for name, entry in entries.items():
        price = _known_price(entry)
        if price is not None:
            found[name] = price
    return found


def _known_price(entry: Any) -> Price | None:
    if not isinstance(entry, dict):
        return None
    given = cast("dict[str, Any]", entry)
    numbers = {key: value for key, value in given.items() if isinstance(value, int | float)}
    if not {"input_cost_per_token", "output_cost_per_token"} <= numbers.keys():
        return None
    cached = numbers.get("cache_read_input_token_cost")
    written = numbers.get("cache_creation_input_token_cost")
    return Price(
        numbers["input_cost_per_token"] * 1e6,
        numbers["output_cost_per_token"] * 1e6,
        None if cached is None else cached * 1e6,
        None if written is None else written * 1e6,
        int(numbers.get("max_input_tokens", 0)),
        _known_long(numbers),
    )


def _known_long(numbers: Mapping[str, float]) -> tuple[tuple[int, Price], ...]:
    """Prices of long requests; what is not said for them costs as much as usual."""
    found: dict[int, Price] = {}
    for match in filter(None, map(_LONG.fullmatch, numbers)):
        thousands = match[1]

        def per_million(kind: str, above: str = thousands) -> float | None:
            value = numbers.get(f"{kind}_above_{above}k_tokens", numbers.get(kind))
            return None if value is None else value * 1e6

        given, said = per_million("input_cost_per_token"), per_million("output_cost_per_token")
        assert given is not None
        assert said is not None
        found[int(thousands) * 1000] = Price(
            given,
            said,
            per_million("cache_read_input_token_cost"),
            per_million("cache_creation_input_token_cost"),
        )
    return tuple(sorted(found.items()))
