"""The policy's server: what clients see, and when a batch is made."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra `train`)")

from skill2env.train.local.policy import Policy
from skill2env.train.local.sampling import Answer, Ask, sample
from skill2env.train.local.serving import PolicyServer


def post(server: PolicyServer, body: bytes, path: str = "/chat/completions") -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(server.base_url + path, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def ask(server: PolicyServer, text: str, **settings: Any) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": 6, **settings}
    status, document = post(server, json.dumps(body).encode())
    assert status == 200
    return document


def test_a_completion_carries_tokens_and_log_probabilities(tiny: Path) -> None:
    policy = Policy.load(tiny)
    with PolicyServer(policy) as server:
        found = ask(server, "touch /tmp/one", seed=3, return_token_ids=True)
        assert ask(server, "touch /tmp/one", seed=3)["choices"] == found["choices"]
    choice = found["choices"][0]
    assert tuple(found["prompt_token_ids"]) == policy.encode([{"role": "user", "content": "touch /tmp/one"}])
    assert (
        len(choice["token_ids"]) == len(choice["logprobs"]["content"]) == found["usage"]["completion_tokens"]
    )
    assert choice["message"]["content"] == policy.decode(choice["token_ids"])
    assert (server.batches, server.seconds > 0) == (2, True)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "invalid_request_error"),
        (b"[]", 400, "invalid_request_error"),
        (b"{}", 400, "invalid_request_error"),
        (b'{"messages": [{"role": "user", "content": [1]}]}', 400, "invalid_request_error"),
        (b'{"messages": [{"role": "user", "content": "true"}], "max_tokens": "many"}', 400, "invalid_request_error"),
        (b'{"messages": [{"role": "user", "content": "true"}], "temperature": -1}', 400, "invalid_request_error"),
        (b'{"messages": [{"role": "user", "content": "true"}], "max_tokens": 99}', 400, "context_length_exceeded"),
    ],
)  # fmt: skip
def test_bad_requests(tiny: Path, body: bytes, status: int, code: str) -> None:
    with PolicyServer(Policy.load(tiny), context_tokens=64) as server:
        found, document = post(server, body)
        assert (found, document["error"]["code"]) == (status, code)
        assert document["error"]["message"]
        assert post(server, b"{}", "/embeddings")[0] == 404
        assert ask(server, "true")["choices"]  # it goes on


def test_a_batch_waits_for_those_that_were_announced(tiny: Path) -> None:
    sizes: list[int] = []

    def sampler(policy: Policy, asks: Sequence[Ask]) -> list[Answer]:
        sizes.append(len(asks))
        return sample(policy, asks)

    with PolicyServer(Policy.load(tiny), sampler=sampler) as server, ThreadPoolExecutor(4) as pool:
        server.expect(4)
        waiting = [pool.submit(ask, server, "touch", seed=seed) for seed in range(3)]
        assert not any(item.done() for item in waiting)
        threading.Event().wait(0.3)
        assert sizes == []
        server.ended()  # the fourth will not ask: the others are answered together
        assert all(item.result()["choices"] for item in waiting)
        assert sizes == [3]


def test_what_the_model_cannot_do_is_told(tiny: Path) -> None:
    def broken(policy: Policy, asks: Sequence[Ask]) -> list[Answer]:
        raise FloatingPointError("the policy gives probabilities that are no numbers")

    with PolicyServer(Policy.load(tiny), sampler=broken) as server:
        body = {"messages": [{"role": "user", "content": "true"}]}
        status, document = post(server, json.dumps(body).encode())
    assert status == 500
    assert "no numbers" in document["error"]["message"]
