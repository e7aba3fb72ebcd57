"""The script of the scripted server: which reply belongs to a request, and which faults come before it.

A script is a JSON file::

    {"scenarios": [
        {"when": ["words of the task"],
         "replies": [{"text": "...", "calls": [{"name": "bash", "arguments": {"command": "ls"}}]}, ...],
         "faults": [{"reply": 2, "kind": "rate_limit", "times": 2}]}]}

The request itself says where the dialogue stands: the scenario is the first one whose words all occur in what the
user wrote first, the reply is the one whose number equals the turns that the model has already had. Nothing is kept
between requests but the counters of the faults, so any number of dialogues may run at once and be taken up again.
"""

import json
import threading
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from skill2env.errors import UserError
from skill2env.records import Record


class Fault(StrEnum):
    """What the server can do instead of answering properly."""

    RATE_LIMIT = "rate_limit"
    """HTTP 429, asking to wait a moment."""
    QUOTA = "quota"
    """HTTP 429 because the account is used up."""
    SERVER = "server"
    """HTTP 500."""
    OVERLOADED = "overloaded"
    """HTTP 503."""
    UNAUTHORISED = "unauthorised"
    """HTTP 401."""
    NO_MODEL = "no_model"
    """HTTP 404."""
    CONTEXT = "context"
    """HTTP 400: the dialogue is too long."""
    BLOCKED = "blocked"
    """HTTP 400: a policy forbids it."""
    CUT = "cut"
    """The connection ends in the middle of the reply."""
    HANG = "hang"
    """No answer at all until the client gives up."""
    SLOW = "slow"
    """The right answer, its pieces half a second apart."""
    BROKEN_JSON = "broken_json"
    """Half a JSON document."""
    WEB_PAGE = "web_page"
    """A page of a proxy, with status 200."""
    EMPTY = "empty"
    """A reply without choices or content."""
    REFUSAL = "refusal"
    """The model declines."""
    LENGTH = "length"
    """The reply stops at the output limit."""
    GARBAGE_CALL = "garbage_call"
    """A tool call whose arguments are no JSON."""


class ScriptedCall(Record):
    """One tool call."""

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict[str, Any])
    """An object, or text that is sent as it stands."""


class ScriptedReply(Record):
    """One turn of the model."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    input_tokens: int | None = None
    """None to count the request: a quarter of its characters."""
    output_tokens: int | None = None
    """None to count the reply."""


class ScriptedFault(Record):
    """A fault in front of a reply."""

    kind: Fault
    reply: int = 0
    """Number of the reply that it comes before, from 0."""
    times: int = Field(default=1, ge=1)
    """How often, before the reply is given."""


class Scenario(Record):
    """One dialogue."""

    when: tuple[str, ...] = ()
    """Words that must all occur in what the user wrote first; none fits every dialogue."""
    replies: tuple[ScriptedReply, ...] = Field(min_length=1)
    """The last one is repeated when the dialogue goes on."""
    faults: tuple[ScriptedFault, ...] = ()


class Script(Record):
    """All that a server says."""

    scenarios: tuple[Scenario, ...] = Field(min_length=1)

    @classmethod
    def load(cls, path: Path) -> "Script":
        """Read a script.

        Raises:
            UserError: it cannot be read, or is none.
        """
        try:
            return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, ValidationError) as error:
            raise UserError(f"the script {path} cannot be used: {error}") from error


def in_turn(*replies: ScriptedReply) -> Script:
    """A script of one dialogue, whatever it is about."""
    return Script(scenarios=(Scenario(replies=replies),))


class Reader:
    """Finds replies and counts faults. Thread-safe."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._done: Counter[tuple[int, int, int]] = Counter()
        self._lock = threading.Lock()

    def next(self, first: str, turns: int) -> tuple[ScriptedReply, Fault | None] | None:
        """The reply to a dialogue, and the fault that comes first.

        Args:
            first: what the user and the system wrote before the model's first turn.
            turns: how many turns the model has had.

        Returns:
            None when no scenario fits.
        """
        for number, scenario in enumerate(self._script.scenarios):
            if all(words in first for words in scenario.when):
                reply = scenario.replies[min(turns, len(scenario.replies) - 1)]
                return reply, self._fault(number, scenario, turns)
        return None

    def _fault(self, number: int, scenario: Scenario, turns: int) -> Fault | None:
        with self._lock:
            for position, fault in enumerate(scenario.faults):
                key = (number, turns, position)
                if fault.reply == turns and self._done[key] < fault.times:
                    self._done[key] += 1
                    return fault.kind
        return None
