"""What is shown must be enough to know what is hidden."""

from hypothesis import given
from hypothesis import strategies as st

from skill2env.authors.code.shown import split

IDS = [f"c{n:02d}" for n in range(24)]


def test_a_wrong_version_that_no_shown_case_faults_is_excused() -> None:
    found = split(
        IDS, set(IDS[:4]), {"seen": {"c01", "c09"}, "unseen": {"c10", "c11"}}, least=2, most=3, hidden=99
    )
    assert found is not None
    assert "c01" in found.shown
    assert not {"c10", "c11"} & set(found.hidden)
    assert "c09" in found.hidden


def test_too_little_to_show() -> None:
    assert split(IDS, {"c01"}, {}, least=2, most=4, hidden=9) is None


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.sets(st.sampled_from(IDS))),
    st.sets(st.sampled_from(IDS)),
    st.integers(1, 5),
)
def test_every_version_that_hidden_cases_fault_is_faulted_by_a_shown_one(
    wrong: dict[str, set[str]], showable: set[str], least: int
) -> None:
    found = split(IDS, showable, wrong, least=least, most=8, hidden=40)
    if found is None:
        assert len(showable) < least
        return
    assert set(found.shown) <= showable
    assert not set(found.shown) & set(found.hidden)
    for cases in wrong.values():
        assert not cases & set(found.hidden) or cases & set(found.shown)
