"""Where time goes: names, sums over threads, and failures."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from skill2env.spent import Spent


def test_seconds_add_up_by_name_over_threads() -> None:
    spent = Spent()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: spent.add("b" if number % 2 else "a", 0.25), range(400)))
    assert list(spent.seconds.items()) == [("a", 50.0), ("b", 50.0)]


def test_what_fails_counts_as_well() -> None:
    spent = Spent()
    with pytest.raises(ValueError, match="no"), spent.on("work"):
        raise ValueError("no")
    assert spent.seconds["work"] >= 0
