import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.publish.version import FIRST, next_version


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (None, {}, {"a": "1"}, FIRST),
        ("odd", {"a": "1"}, {"a": "2"}, FIRST),
        ("1.2.3", {"a": "1"}, {"a": "1"}, "1.2.3"),
        ("1.2.3", {"a": "1"}, {"a": "1", "b": "1"}, "1.3.0"),
        ("1.2.3", {"a": "1"}, {"a": "2"}, "2.0.0"),
        ("1.2.3", {"a": "1"}, {}, "2.0.0"),
        ("1.2.3", {"a": "1"}, {"b": "1"}, "2.0.0"),
    ],
)
def test_table(before: str | None, old: dict[str, str], new: dict[str, str], after: str) -> None:
    assert next_version(before, old, new) == after


tasks = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"))


@given(tasks, tasks)
def test_the_version_changes_exactly_when_the_tasks_do(old: dict[str, str], new: dict[str, str]) -> None:
    assert (next_version("1.0.0", old, new) != "1.0.0") == (old != new)
