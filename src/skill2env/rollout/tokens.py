"""Token ids and log-probabilities of the policy's calls, where agent and server gave them.

Harbor's own agents collect them with ``collect_rollout_details=true`` from servers that return token ids. Most servers
do not: then there is nothing, and a rollout can be judged and counted but not trained on by token.
"""

import json
from pathlib import Path
from typing import Any, cast

from skill2env.harbor.outcome import read_head

_LIMIT = 256 * 2**20


def token_record(folder: Path) -> list[dict[str, Any]] | None:
    """Histories of a trial, the main one first; None when no call carries token ids.

    Each is ``{"prompts": [[id]], "completions": [[id]], "log_probs": [[number]]}`` with one entry a call. Lengths are
    as the server gave them: whoever trains checks them (`train.stitching`).
    """
    data = read_head(folder / "result.json", _LIMIT)
    try:
        document = json.loads(data or b"null")
    except (ValueError, RecursionError):
        return None
    details = _table(_table(document).get("agent_result")).get("rollout_details")
    if not isinstance(details, list):
        return None
    found = [_history(_table(item)) for item in cast("list[Any]", details)]
    kept = [item for item in found if any(item["completions"])]
    return kept or None


def _history(detail: dict[str, Any]) -> dict[str, Any]:
    return {
        "prompts": detail.get("prompt_token_ids") or [],
        "completions": detail.get("completion_token_ids") or [],
        "log_probs": detail.get("logprobs") or [],
    }


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
