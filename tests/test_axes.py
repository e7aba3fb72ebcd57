import itertools

from skill2env.axes import (
    AXIS_NAMES,
    CATALOGS,
    MAX_VALUE_CHARS,
    TURNS,
    Complexity,
    axis_meaning,
    axis_values,
    is_axis_value,
)
from skill2env.records import Axes


def test_catalogs_cover_the_record_and_have_meanings() -> None:
    assert tuple(CATALOGS) == tuple(Axes.model_fields) == AXIS_NAMES
    texts = [axis_meaning(axis, value) for axis in AXIS_NAMES for value in axis_values(axis)]
    assert len(set(texts)) == len(texts)
    assert all(len(text) > 20 and not text.startswith("As the words say") for text in texts)
    assert all(is_axis_value(value) for axis in AXIS_NAMES for value in axis_values(axis))


def test_sizes() -> None:
    sizes = {axis: len(axis_values(axis)) for axis in AXIS_NAMES}
    assert sizes["archetype"] >= 8
    assert sizes["verifier_pattern"] >= 6
    assert sizes["persona"] >= 10
    assert sizes["tone"] >= 6
    assert sizes["complexity"] == sizes["expertise"] == 4


def test_complexity_bands_join_without_gap() -> None:
    bands = [TURNS[value] for value in Complexity]
    assert all(low <= high for low, high in bands)
    assert all(after[0] == before[1] + 1 for before, after in itertools.pairwise(bands))
    assert all(value == f"turns-{TURNS[value][0]:02}-{TURNS[value][1]:02}" for value in Complexity)


def test_open_vocabulary() -> None:
    assert is_axis_value("tune a model")
    assert axis_meaning("archetype", "tune-a-model") == "As the words say: tune a model."
    for bad in ("", "Upper", "a\nb", "-x", "x" * (MAX_VALUE_CHARS + 1), "a;b", "ünï"):
        assert not is_axis_value(bad)
