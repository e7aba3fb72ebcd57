import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.harbor.rewards import READ_LIMIT, RewardProblem, mean, read_reward

P = RewardProblem


@pytest.mark.parametrize(
    ("reward_json", "reward_txt", "problems"),
    [
        (b'{"a": 1, "b": 0, "reward": 0.5}', b"0.5\n", set()),
        (None, b"1", set()),
        (b'{"only": 1}', None, set()),
        (None, None, {P.MISSING}),
        (b"", None, {P.EMPTY}),
        (None, b" \n", {P.EMPTY}),
        (b"{}", None, {P.NO_METRICS}),
        (b"1", None, {P.NOT_OBJECT}),
        (b"[1, 0]", None, {P.NOT_OBJECT}),
        (b'{"a": NaN}', None, {P.NOT_FINITE}),
        (b'{"a": 1e999}', None, {P.NOT_FINITE}),
        (b'{"a": ' + b"9" * 400 + b"}", None, {P.NOT_FINITE}),
        (b'{"a": 1.5}', None, {P.OUT_OF_RANGE}),
        (b'{"a": -0.1}', None, {P.OUT_OF_RANGE}),
        (b'{"a": "1.0"}', None, {P.NOT_NUMBER}),
        (b'{"a": null}', None, {P.NOT_NUMBER}),
        (b'{"a": {"b": 1}}', None, {P.NOT_NUMBER}),
        (b'{"a": true}', None, {P.BOOLEAN}),
        (b'{"a": 1, "a": 0}', None, {P.DUPLICATE}),
        (b'{"a": 1', None, {P.NOT_JSON}),
        (b'{"a": 1}\xff', None, {P.NOT_JSON}),
        (b'{"\\ud800": 1}', None, {P.NOT_JSON}),
        (b"[" * 50_000, None, {P.NOT_JSON}),
        (b" " * (READ_LIMIT + 1), None, {P.TOO_LARGE}),
        (b'{"a": 1, "reward": 1}', b"0", {P.TEXT_DISAGREES}),
        (b'{"a": 1, "b": 0}', b"1", {P.TEXT_DISAGREES}),
        (b'{"a": 1, "b": 0}', b"0.5", set()),
        (b'{"a": 1}', b"nan", {P.TEXT_UNREADABLE}),
        (b'{"a": 1}', b"one", {P.TEXT_UNREADABLE}),
        (b'{"a": 1}', b"1.5", {P.TEXT_UNREADABLE}),
    ],
)
def test_problems(reward_json: bytes | None, reward_txt: bytes | None, problems: set[RewardProblem]) -> None:
    assert set(read_reward(reward_json, reward_txt).problems) == problems


def test_text_alone_is_the_total() -> None:
    assert read_reward(None, b"0.25").metrics == {"reward": 0.25}


def test_partial_object_keeps_what_can_be_read() -> None:
    reward = read_reward(b'{"good": 1, "bad": "x", "flag": true}', None)
    assert reward.metrics == {"good": 1.0, "flag": 1.0}
    assert set(reward.problems) == {P.NOT_NUMBER, P.BOOLEAN}


def test_mean_leaves_the_total_out() -> None:
    assert mean({"a": 1.0, "b": 0.0, "reward": 0.9}) == 0.5
    assert mean({"reward": 0.9}) == 0.9


@given(st.binary(max_size=300) | st.none(), st.binary(max_size=60) | st.none())
def test_any_bytes_give_a_reward_or_problems(reward_json: bytes | None, reward_txt: bytes | None) -> None:
    reward = read_reward(reward_json, reward_txt)
    assert reward.metrics or reward.problems
    assert all(isinstance(value, float) for value in reward.metrics.values())


@given(st.dictionaries(st.text(max_size=20), st.floats(0, 1), min_size=1, max_size=6))
def test_sound_objects_have_no_problems(metrics: dict[str, float]) -> None:
    reward = read_reward(json.dumps(metrics).encode(), None)
    assert reward.metrics == metrics
    assert not reward.problems
