"""Which packages an image gets for what the code imports."""

import pytest

from skill2env.authors.code.libraries import SETS, choose


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ((), "plain"),
        (("nobody_has_this",), "plain"),
        (("numpy",), "data"),
        (("numpy", "nobody_has_this", "yaml"), "data"),
        (("numpy", "scipy"), "science"),
        (("lxml",), "documents"),
        (("lxml", "scipy"), "all"),
    ],
)
def test_the_smallest_set_that_provides_most(wanted: tuple[str, ...], name: str) -> None:
    assert choose(wanted).name == name


def test_sets_grow_and_install_what_they_provide() -> None:
    assert [item.install == "" for item in SETS] == [True, False, False, False, False]
    assert all(len(item.packages) == len(item.provides) for item in SETS)
    assert SETS[0].told({"numpy"}) == "its standard library only"
    assert SETS[1].told({"pandas", "numpy", "x"}) == "its standard library and numpy, pandas"
