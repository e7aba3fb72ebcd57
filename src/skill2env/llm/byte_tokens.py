"""Token ids and log-probabilities for the scripted server, where a request asks for them as vLLM's clients do.

A token is a byte of UTF-8, and a dialogue is rendered with marks that grow only at the end: the prompt of the next turn
begins with everything so far, as with an append-only chat template. Log-probabilities are made up from the byte.
"""

from collections.abc import Sequence
from typing import Any

from skill2env.llm.formats import text_of

REQUESTED = "return_token_ids"
"""Field of the request."""


def render_prompt(messages: Sequence[dict[str, Any]]) -> str:
    """A dialogue as text, open for the model's next turn."""
    return (
        "".join(f"<{item['role']}>{text_of(item.get('content'))}</>\n" for item in messages) + "<assistant>"
    )


def log_prob(token: int) -> float:
    """The made-up log-probability of a byte: one of eight values between -1 and -0.125."""
    return -(1 + token % 8) / 8


def with_token_ids(document: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """A chat completion with ``prompt_token_ids``, ``token_ids`` and log-probabilities, if they are asked for."""
    if not body.get(REQUESTED) or not document.get("choices"):
        return document
    choice = document["choices"][0]
    tokens = list(text_of(choice["message"].get("content")).encode())
    listed = [{"token": chr(token), "bytes": [token], "logprob": log_prob(token)} for token in tokens]
    choices = [{**choice, "token_ids": tokens, "logprobs": {"content": listed}}]
    return {
        **document,
        "prompt_token_ids": list(render_prompt(body["messages"]).encode()),
        "choices": choices,
    }
