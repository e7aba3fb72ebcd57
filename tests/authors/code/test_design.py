"""Which faults go together, and what each level asks of them."""

from skill2env.authors.code.assess import Viable
from skill2env.authors.code.design import LEVELS, _meet, level_of  # pyright: ignore[reportPrivateUsage]
from skill2env.authors.code.faults.catalog import Kind
from skill2env.authors.code.faults.sites import Site
from skill2env.authors.code.faults.source import Edit
from skill2env.axes import Complexity


def viable(start: int, broken: str) -> Viable:
    return Viable(Site("m.py", f"f{start}", Kind.SIGN, Edit(start, start + 1, "-"), 1), tuple(broken), 20)


def test_one_to_four_faults_and_no_stack_trace_at_the_harder_levels() -> None:
    assert [level.faults for level in LEVELS.values()] == [1, 1, 2, 4]
    assert [level.silent for level in LEVELS.values()] == [False, True, True, True]
    assert level_of("whatever") == LEVELS[Complexity.SHORT]


def test_faults_that_meet_share_some_inputs_and_keep_most_of_their_own() -> None:
    assert _meet([viable(1, "abcd"), viable(2, "defg")])
    assert not _meet([viable(1, "abcd"), viable(2, "efgh")])
    assert not _meet([viable(1, "abcd"), viable(2, "abcd")])
