import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.train.advantages import Advantage, advantages
from skill2env.train.filtering import Drop, fill_batch, reason_to_drop, spread

GROUP = [0, 0, 0.5, 0.5, 1, 1, 0.25, 0.75]
SHAPE = [-2, -2, 0, 0, 2, 2, -1, 1]


@pytest.mark.parametrize(
    ("kind", "ddof", "step"),
    [
        (Advantage.CENTERED, 1, 0.25),
        (Advantage.STANDARDISED, 1, 0.623608),
        (Advantage.STANDARDISED, 0, 0.666665),
        (Advantage.LEAVE_ONE_OUT, 1, 0.285714),
    ],
)
def test_the_worked_group(kind: Advantage, ddof: int, step: float) -> None:
    found = advantages(GROUP, kind, ddof=ddof)
    assert found == pytest.approx([step * item for item in SHAPE], abs=2e-6)


def test_the_judges_term_makes_a_signal_in_a_group_that_passed() -> None:
    rewards = [1 + 0.2 * score / 5 for score in (5, 3, 3, 4, 5, 2, 4, 3)]
    found = advantages(rewards)
    assert (found[0], found[5]) == pytest.approx((0.055, -0.065), abs=1e-9)
    assert reason_to_drop(rewards) is None
    assert reason_to_drop([1.0] * 8) is Drop.ALL_HIGH


def test_rollouts_that_take_no_part() -> None:
    assert advantages([1.0, None, 0.0]) == (0.5, None, -0.5)
    assert advantages([None, 1.0]) == (None, 0.0)
    assert advantages([]) == ()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_rewards_that_are_no_numbers(bad: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        advantages([1.0, bad])


rewards = st.lists(st.one_of(st.none(), st.floats(-2, 2)), max_size=9)


@given(rewards, st.sampled_from(list(Advantage)), st.floats(-1, 1))
def test_what_holds_for_every_group(group: list[float | None], kind: Advantage, shift: float) -> None:
    found = advantages(group, kind)
    live = [item for item in found if item is not None]
    assert [item is None for item in found] == [item is None for item in group]
    assert abs(math.fsum(live)) < 1e-6 * max(1.0, *(abs(item) for item in live), 1.0)
    moved = advantages([None if item is None else item + shift for item in group], kind)
    if spread(group) > 1e-3:
        assert [item for item in moved if item is not None] == pytest.approx(live, abs=1e-6)
        best = max(range(len(group)), key=lambda at: -math.inf if group[at] is None else group[at] or 0.0)
        assert found[best] == max(live)


@pytest.mark.parametrize(
    ("group", "reason"),
    [
        ([0.0] * 8, Drop.ALL_LOW),
        ([0.5] * 8, Drop.ALL_ALIKE),
        ([-0.2] * 8, Drop.ALL_LOW),
        ([1.2] * 8, Drop.ALL_HIGH),
        ([0.5, 0.5 + 1e-7], Drop.ALL_ALIKE),
        ([None, 1.0], Drop.UNUSABLE),
        ([], Drop.UNUSABLE),
        ([0.5, 0.51], None),
        ([None, 0.0, 1.0], None),
    ],
)
def test_why_a_group_is_left_out(group: list[float | None], reason: Drop | None) -> None:
    assert reason_to_drop(group) is reason


def test_refill_draws_no_further_than_needed() -> None:
    drawn: list[int] = []

    def source():
        for number in range(100):
            drawn.append(number)
            yield (number, [0.0, 1.0] if number % 3 == 0 else [0.5, 0.5])

    filled = fill_batch(source(), 4, rewards_of=lambda item: item[1])
    assert [item[0] for item in filled.groups] == [0, 3, 6, 9]
    assert (filled.full, filled.drawn, filled.kept_share) == (True, 10, 0.4)
    assert filled.dropped == {Drop.ALL_ALIKE: 6}
    assert drawn == list(range(10))


@pytest.mark.parametrize(
    ("wanted", "most", "drawn", "full"),
    [(3, 5, 5, False), (3, None, 8, False), (0, None, 0, True), (2, 0, 0, False)],
)
def test_a_batch_that_stays_short_says_so(wanted: int, most: int | None, drawn: int, full: bool) -> None:
    source = [[1.0, 0.0], *[[1.0, 1.0]] * 7]
    filled = fill_batch(source, wanted, rewards_of=lambda item: item, most_drawn=most)
    assert (filled.drawn, filled.full) == (drawn, full)
