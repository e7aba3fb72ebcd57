"""Which tier a user gets, from the files and programs of the machine."""

import os
from pathlib import Path

import pytest

from skill2env.errors import UserError
from skill2env.sandbox import identity
from skill2env.sandbox.identity import DEFAULT_BASE, RANGE, Identity, Tier, find_identity

FULL = 2**32 - 1


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A machine whose facts the test sets."""
    facts: dict[str, object] = {"euid": 1000, "subuid": None, "helpers": True, "ids": FULL}
    monkeypatch.setattr(os, "geteuid", lambda: facts["euid"])
    monkeypatch.setattr(os, "getegid", lambda: facts["euid"])
    monkeypatch.setattr(identity, "subordinate", lambda *_: facts["subuid"])
    monkeypatch.setattr(identity, "helpers_work", lambda: facts["helpers"])
    monkeypatch.setattr(identity, "mapped_ids", lambda _: facts["ids"])
    return facts


def test_an_ordinary_user(machine: dict[str, object]) -> None:
    assert find_identity() == Identity(Tier.SINGLE, 1000, 1000, 1000, 1000, 1)
    machine["subuid"] = (300000, 65536)
    assert find_identity() == Identity(Tier.SUBUID, 1000, 1000, 300000, 300000, RANGE)
    assert find_identity("single-uid").tier is Tier.SINGLE
    machine["helpers"] = False
    assert find_identity().tier is Tier.SINGLE
    with pytest.raises(UserError, match="newuidmap") as caught:
        find_identity("subuid")
    assert "usermod --add-subuids" in caught.value.hint


def test_too_small_a_range_is_not_used(machine: dict[str, object]) -> None:
    machine["subuid"] = (300000, 500)
    assert find_identity().tier is Tier.SINGLE


def test_root(machine: dict[str, object]) -> None:
    machine["euid"] = 0
    assert find_identity() == Identity(
        Tier.ROOT, DEFAULT_BASE, DEFAULT_BASE, DEFAULT_BASE + 1, DEFAULT_BASE + 1, RANGE
    )
    machine["subuid"] = (500000, RANGE)
    assert find_identity("root").root_uid == 500000
    for tier in ("subuid", "single-uid"):
        with pytest.raises(UserError, match="cannot be used by root"):
            find_identity(tier)


def test_root_of_a_container(machine: dict[str, object]) -> None:
    machine |= {"euid": 0, "ids": 65536}
    found = find_identity()
    assert found.tier is Tier.ROOT
    assert found.root_uid >= 1000
    assert found.root_uid + found.count <= 65536
    machine["ids"] = 1  # `unshare --map-root-user`: that root is an ordinary user outside
    assert find_identity() == Identity(Tier.SINGLE, 0, 0, 0, 0, 1)
    machine["ids"] = 600
    with pytest.raises(UserError, match="too few ids"):
        find_identity()


def test_unknown_and_impossible_tiers(machine: dict[str, object]) -> None:
    with pytest.raises(UserError, match="no sandbox tier"):
        find_identity("strongest")
    with pytest.raises(UserError, match="needs root"):
        find_identity("root")


def test_outside() -> None:
    ranged = Identity(Tier.SUBUID, 1000, 1000, 300000, 300000, RANGE)
    assert [ranged.outside(uid) for uid in (0, 1, 1000)] == [1000, 300000, 300999]
    root = Identity(Tier.ROOT, 100000, 100000, 100001, 100001, RANGE)
    assert [root.outside(uid) for uid in (0, 1, 1000)] == [100000, 100001, 101000]
    assert Identity(Tier.SINGLE, 7, 7, 7, 7, 1).outside(1000) == 7


def test_subordinate_files(tmp_path: Path) -> None:
    path = tmp_path / "subuid"
    path.write_text("# note\nother:1:2\nbad:x:y\nme:100:200\nme:900:10\n1234:5:6\n")
    assert identity.subordinate(str(path), "me", 1000) == (100, 200)
    assert identity.subordinate(str(path), "nobody", 1234) == (5, 6)
    assert identity.subordinate(str(path), "bad", 7) is None
    assert identity.subordinate(str(tmp_path / "missing"), "me", 1000) is None


def test_mapped_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "_PROC", tmp_path)
    for text, wanted in (
        ("         0          0 4294967295\n", 4294967295),
        ("0 1000 1\n1 100000 65536\n", 65537),
        ("1 100000 65536\n0 1000 1\n", 65537),
        ("0 1000 1\n", 1),
        ("0 0 10\n20 20 10\n", 10),
    ):
        (tmp_path / "uid_map").write_text(text)
        assert identity.mapped_ids("uid") == wanted
    assert identity.mapped_ids("gid") == FULL


def test_a_range_that_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"/etc/subuid": "a:100000:65536\nb:165536:65536\n", "/etc/subgid": "a:100000:65536\n"}
    monkeypatch.setattr(Path, "read_text", lambda path: texts[str(path)])
    fix = identity.subuid_fix()
    assert "--add-subuids 231072-296607 --add-subgids 231072-296607" in fix
