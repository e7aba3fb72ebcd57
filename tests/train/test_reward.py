import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from skill2env.train.reward import (
    Graded,
    MissingPolicy,
    RewardConfig,
    RubricPolicy,
    group_rewards,
    has_passed,
    outcome_reward,
    sweep,
)

P = RubricPolicy
ADDITIVE = RewardConfig(policy=P.ADDITIVE)


def graded(value: float, score: float | None = 0.0) -> Graded:
    return Graded({"a": value, "b": value, "reward": value}, score)


@pytest.mark.parametrize(
    ("metrics", "outcome", "passed"),
    [
        ({"a": 1.0, "b": 0.5, "c": 0.75, "reward": 0.1}, 0.75, False),
        ({"a": 1.0, "b": 1.0, "reward": 0.0}, 1.0, True),
        ({"reward": 1.0}, 1.0, True),
        ({"reward": 0.25}, 0.25, False),
        ({"a": 1.0, "b": 0.9999999}, 0.99999995, False),
    ],
)
def test_outcome_and_pass_ignore_the_total_where_there_are_parts(
    metrics: dict[str, float], outcome: float, passed: bool
) -> None:
    assert outcome_reward(metrics) == pytest.approx(outcome, abs=1e-12)
    assert has_passed(metrics) is passed


@pytest.mark.parametrize(
    ("value", "score", "reward"), [(0.75, 3, 0.87), (1.0, 5, 1.2), (0.0, -5, -0.2), (0.5, 0, 0.5)]
)
def test_the_additive_form_at_two_tenths(value: float, score: float, reward: float) -> None:
    result = group_rewards([graded(value, score)] * 2, ADDITIVE)
    assert result.rewards == pytest.approx((reward, reward), abs=1e-12)
    assert result.rubric
    assert not result.diagnostics


@pytest.mark.parametrize(
    ("policy", "rewards"),
    [
        (P.NONE, (1.0, 0.5, 0.0)),
        (P.ADDITIVE, (0.8, 0.7, 0.2)),
        (P.GATED, (0.8, 0.5, 0.0)),
        (P.SCALED, (0.8, 0.6, 0.0)),
        (P.SHAPED, (1.0, 0.5, 0.0)),
    ],
)
def test_each_policy_on_a_judge_that_prefers_failures(
    policy: RubricPolicy, rewards: tuple[float, ...]
) -> None:
    group = [graded(1.0, -5), graded(0.5, 5), graded(0.0, 5)]
    assert group_rewards(group, RewardConfig(policy=policy)).rewards == pytest.approx(rewards, abs=1e-12)


def test_shaped_decides_where_all_passed() -> None:
    result = group_rewards([graded(1.0, 5), graded(1.0, -2.5)], RewardConfig(policy=P.SHAPED))
    assert result.rewards == pytest.approx((1.2, 0.9), abs=1e-12)
    assert result.rubric


@pytest.mark.parametrize("bad", [None, math.nan, 5.1, -6.0, math.inf])
def test_one_unusable_score_drops_the_term_for_the_whole_group(bad: float | None) -> None:
    result = group_rewards([graded(1.0, 5), graded(0.5, bad), graded(0.0, -5)], ADDITIVE)
    assert result.rewards == (1.0, 0.5, 0.0)
    assert not result.rubric
    assert [(item.code, item.severity.value) for item in result.diagnostics] == [("rubric-dropped", "warn")]
    assert "rollout 1" in result.diagnostics[0].message


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (Graded(None), "rollout-missing"),
        (Graded({}), "metrics-empty"),
        (Graded({"a": math.nan, "b": 1.0}), "metric-not-finite"),
        (Graded({"a": math.inf, "b": 1.0}), "metric-not-finite"),
        (Graded({"a": -0.1, "b": 1.0}), "metric-out-of-range"),
    ],
)
def test_a_broken_rollout_is_never_worth_nothing(broken: Graded, code: str) -> None:
    group = [graded(1.0), broken, graded(0.0)]
    dropped = group_rewards(group)
    assert dropped.rewards == (None, None, None)
    assert not dropped.usable
    assert [(item.code, item.where) for item in dropped.diagnostics] == [(code, "rollout 1")]
    kept = group_rewards(group, RewardConfig(missing=MissingPolicy.KEEP_REST))
    assert kept.rewards == (1.0, None, 0.0)
    assert kept.usable
    assert [item.code for item in kept.diagnostics] == [code]


def test_a_group_of_one_survivor_cannot_be_compared() -> None:
    config = RewardConfig(missing=MissingPolicy.KEEP_REST)
    assert not group_rewards([graded(1.0), Graded(None)], config).usable


@pytest.mark.parametrize("missing", list(MissingPolicy))
def test_metrics_that_differ_make_a_group_useless(missing: MissingPolicy) -> None:
    group = [Graded({"a": 1.0, "b": 0.0}), Graded({"a": 1.0, "c": 0.0})]
    result = group_rewards(group, RewardConfig(missing=missing))
    assert not result.usable
    assert result.diagnostics[0].code == "metrics-differ"
    assert result.diagnostics[0].message.endswith("a, b against a, c")
    assert result.outcomes == (0.5, 0.5)


def test_groups_that_are_too_small() -> None:
    assert [item.code for item in group_rewards([]).diagnostics] == ["group-empty"]
    short = group_rewards([graded(1.0), graded(0.0)], size=8)
    assert not short.usable
    assert short.diagnostics[0].message == "the group has 2 rollouts instead of 8"
    assert group_rewards([graded(1.0)] * 3, RewardConfig(missing=MissingPolicy.KEEP_REST), size=8).usable


def test_a_sweep_names_each_configuration_once() -> None:
    found = [(item.policy, item.rubric_weight) for item in sweep([P.NONE, P.ADDITIVE, P.GATED], [0.1, 0.2])]
    assert found == [
        (P.NONE, 0.1),
        (P.ADDITIVE, 0.1),
        (P.ADDITIVE, 0.2),
        (P.GATED, 0.1),
        (P.GATED, 0.2),
    ]


@pytest.mark.parametrize("weight", [-0.1, math.nan, math.inf, 11])
def test_weights_that_are_none(weight: float) -> None:
    with pytest.raises(ValidationError):
        RewardConfig(rubric_weight=weight)


rollouts = st.lists(
    st.builds(
        lambda a, b, s: Graded({"a": a, "b": b}, s),
        st.sampled_from([0.0, 0.25, 0.5, 1.0]),
        st.sampled_from([0.0, 0.5, 1.0]),
        st.floats(-5, 5),
    ),
    min_size=2,
    max_size=8,
)


@given(rollouts, st.floats(0, 1))
def test_what_holds_for_every_group(group: list[Graded], weight: float) -> None:
    by_policy = {
        policy: group_rewards(group, RewardConfig(policy=policy, rubric_weight=weight)) for policy in P
    }
    outcomes = by_policy[P.NONE].rewards
    for policy, result in by_policy.items():
        for item, outcome, reward, passed in zip(group, outcomes, result.rewards, result.passed, strict=True):
            assert item.score is not None
            assert outcome is not None
            assert reward is not None
            assert abs(reward - outcome) <= weight + 1e-12
            if policy is P.SCALED and outcome == 0:
                assert reward == 0
            if policy is P.GATED and not passed:
                assert reward == outcome
            if policy is not P.NONE and passed:
                assert (reward >= outcome) or item.score < 0
    assert by_policy[P.SHAPED].rubric is all(by_policy[P.SHAPED].passed)


@given(rollouts, st.sampled_from(list(P)), st.randoms(use_true_random=False))
def test_the_order_of_the_rollouts_does_not_matter(
    group: list[Graded], policy: RubricPolicy, random: "object"
) -> None:
    order = list(range(len(group)))
    random.shuffle(order)  # type: ignore[attr-defined]
    config = RewardConfig(policy=policy)
    straight = group_rewards(group, config).rewards
    turned = group_rewards([group[index] for index in order], config).rewards
    assert turned == tuple(straight[index] for index in order)


@given(rollouts, st.floats(0, 1))
def test_shaped_never_contradicts_the_verifier(group: list[Graded], weight: float) -> None:
    result = group_rewards(group, RewardConfig(policy=P.SHAPED, rubric_weight=weight))
    pairs = list(zip(result.outcomes, result.rewards, strict=True))
    for better, high in pairs:
        for worse, low in pairs:
            if None not in (better, worse, high, low) and better > worse:  # type: ignore[operator]
                assert high > low  # type: ignore[operator]
