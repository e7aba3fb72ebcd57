"""Which commands process 1 does by itself; that they end as the programs would is in the conformance suite."""

import pytest

from skill2env.sandbox.chores import read_chore


def test_what_is_a_chore() -> None:
    assert read_chore("chmod +x /tests/test.sh") == ("C", ["/tests/test.sh"])
    assert read_chore("rm -f -- /a/b.txt /a/b.json") == ("R", ["/a/b.txt", "/a/b.json"])


@pytest.mark.parametrize(
    "command",
    [
        "chmod +x tests/test.sh",
        "chmod +x /tests/test.sh; id",
        "chmod +x /a /b",
        "chmod +x '/a b'",
        "chmod +x /a\n",
        "chmod 755 /a",
        "rm -f -- ",
        "rm -f -- /a/*",
        "rm -f -- /a/$HOME",
        "rm -f /a",
        "rm -rf -- /a",
    ],
)
def test_what_is_none(command: str) -> None:
    assert read_chore(command) is None
