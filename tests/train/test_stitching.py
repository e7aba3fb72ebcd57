import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.train.stitching import SampledTurn, stitch


def turn(prompt: list[int], completion: list[int], log_prob: float = -0.5) -> SampledTurn:
    return SampledTurn(tuple(prompt), tuple(completion), (log_prob,) * len(completion))


def test_turns_that_continue_become_one_sequence_and_tool_tokens_are_masked() -> None:
    done = stitch([turn([1, 2], [3, 4], -0.1), turn([1, 2, 3, 4, 90, 91], [5], -0.2)])
    (segment,) = done.segments
    assert segment.tokens == [1, 2, 3, 4, 90, 91, 5]
    assert segment.mask == [False, False, True, True, False, False, True]
    assert segment.log_probs == [0, 0, -0.1, -0.1, 0, 0, -0.2]
    assert (segment.turns, segment.sampled, done.breaks, done.diagnostics) == ([0, 1], 3, 0, ())


@pytest.mark.parametrize(
    "prompt",
    [
        [1, 2, 90],  # what was sampled is gone, as after templates that drop hidden reasoning
        [1, 2, 3, 44, 90],  # tokenised anew into another id
        [7, 8],  # history shortened
        [1, 2, 3],  # a prefix of what there was
    ],
)
def test_a_prompt_that_does_not_continue_begins_a_segment(prompt: list[int]) -> None:
    done = stitch([turn([1, 2], [3, 4]), turn(prompt, [5])])
    assert [segment.tokens for segment in done.segments] == [[1, 2, 3, 4], [*prompt, 5]]
    assert done.segments[1].mask == [False] * len(prompt) + [True]
    assert done.breaks == 1


@pytest.mark.parametrize(
    ("bad", "code", "severity"),
    [
        (SampledTurn((1,), (2, 3), (-0.1,)), "log-probs-length", "error"),
        (SampledTurn((1,), (2,), (math.nan,)), "log-probs-value", "error"),
        (SampledTurn((1,), (2,), (0.5,)), "log-probs-value", "error"),
        (SampledTurn((1,), (2,), (-math.inf,)), "log-probs-value", "error"),
        (SampledTurn((1,), (), ()), "completion-empty", "warn"),
        (SampledTurn((), (2,), (-0.1,)), "prompt-empty", "error"),
    ],
)
def test_turns_that_cannot_be_used(bad: SampledTurn, code: str, severity: str) -> None:
    done = stitch([bad, turn([1, 2], [3])])
    assert [(item.code, item.severity.value, item.where) for item in done.diagnostics] == [
        (code, severity, "turn 0")
    ]
    assert [segment.turns for segment in done.segments] == [[1]]


def test_nothing_to_stitch() -> None:
    assert stitch([]).segments == ()
    assert stitch([]).breaks == 0


ids = st.lists(st.integers(0, 5), min_size=1, max_size=5)


@given(st.lists(st.tuples(ids, ids, st.booleans()), max_size=8))
def test_every_sampled_token_is_learned_from_once_after_its_own_prompt(
    plan: list[tuple[list[int], list[int], bool]],
) -> None:
    turns: list[SampledTurn] = []
    history: list[int] = []
    for new, completion, forgets in plan:
        prompt = new if forgets else history + new
        turns.append(
            SampledTurn(
                tuple(prompt), tuple(completion), tuple(-0.1 * (at + 1) for at in range(len(completion)))
            )
        )
        history = prompt + completion
    done = stitch(turns)
    assert sorted(index for segment in done.segments for index in segment.turns) == list(range(len(turns)))
    for segment in done.segments:
        assert len(segment.tokens) == len(segment.mask) == len(segment.log_probs)
        at = 0
        for index in segment.turns:
            given_turn = turns[index]
            assert tuple(segment.tokens[: len(given_turn.prompt)]) == given_turn.prompt
            here = slice(len(given_turn.prompt), len(given_turn.prompt) + len(given_turn.completion))
            assert tuple(segment.tokens[here]) == given_turn.completion
            assert all(segment.mask[here])
            assert tuple(segment.log_probs[here]) == given_turn.log_probs
            at += len(given_turn.completion)
        assert segment.sampled == at
