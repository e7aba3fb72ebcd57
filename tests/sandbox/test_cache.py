import json
import os
from pathlib import Path

import pytest

from skill2env.cli import main as cli
from skill2env.errors import UserError
from skill2env.sandbox import cache


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with a current and an old base, a used and an idle layer, and a leftover of a dead process."""
    home = tmp_path / "cache"
    monkeypatch.setenv("SKILL2ENV_CACHE", str(home))
    for digest in ("new", "old"):
        (home / f"bases/debian-amd64/{digest}/rootfs").mkdir(parents=True)
        (home / f"bases/debian-amd64/{digest}/rootfs/file").write_bytes(b"x" * 5000)
    (home / "bases/debian-amd64/root-100000.json").write_text(json.dumps({"digest": "d", "folder": "new"}))
    for key, age in (("fresh", 0), ("idle", 40)):
        layer = home / "layers/root-100000" / key
        (layer / "fs").mkdir(parents=True)
        (layer / "layer.json").write_text("{}")
        when = layer.stat().st_mtime - age * 86_400
        os.utime(layer / "layer.json", (when, when))
    (home / "run/4194999-1-1").mkdir(parents=True)
    (home / "runtime").mkdir()
    return home


def names() -> set[str]:
    return {f"{item.kind} {item.name}" for item in cache.cache_items()}


def test_show_names_sizes_and_needs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["cache", "show", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    items = {f"{item['kind']} {item['name']}": item for item in document["items"]}
    assert items["base debian-amd64/new"]["needed"]
    assert not items["base debian-amd64/old"]["needed"]
    assert items["base debian-amd64/new"]["bytes"] >= 5000
    assert items["layer root-100000/idle"]["idle_days"] == pytest.approx(40, abs=0.1)
    assert document["folder"] == str(home)
    assert cli.run(["cache", "show"]) == 0
    assert "not needed any more" in capsys.readouterr().out


def test_prune_keeps_what_is_needed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["cache", "prune"]) == 0
    assert "removed layer root-100000/idle" in capsys.readouterr().out
    assert names() == {"base debian-amd64/new", "layer root-100000/fresh", "other runtime"}
    assert (home / "bases/debian-amd64/root-100000.json").is_file()
    assert cli.run(["cache", "prune", "--idle-days", "0"]) == 0
    assert names() == {"base debian-amd64/new", "other runtime"}


@pytest.mark.parametrize("kind", ["verdict", "judgement"])
def test_prune_takes_answers_that_nobody_asked_for(
    kind: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, age in (("new", 1), ("old", 40), ("older", 50)):
        file = home / f"{kind}s/{name[:2]}/{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
        when = file.stat().st_mtime - age * 86_400
        os.utime(file, (when, when))
    assert f"{kind} {kind}s" in names()
    assert cli.run(["cache", "prune"]) == 0
    assert f"removed {kind} 2 of 3" in capsys.readouterr().out
    assert [path.name for path in (home / f"{kind}s").rglob("*.json")] == ["new.json"]


def test_clear_removes_everything_but_not_under_a_running_sandbox(home: Path) -> None:
    running = home / f"run/{os.getpid()}-1-1"
    running.mkdir()
    with pytest.raises(UserError, match=f"process {os.getpid()} are running"):
        cache.clear()
    assert (home / "bases").is_dir()
    running.rmdir()
    assert cache.clear() >= 10_000
    assert not home.exists()
    assert cache.clear() == 0


@pytest.mark.parametrize("verb", [["cache", "clear"], ["uninstall"]])
def test_removal_needs_a_yes(home: Path, verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(verb) == 2
    assert "--yes" in capsys.readouterr().err
    assert home.is_dir()
    assert cli.run([*verb, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] > 0
    assert not home.exists()


def test_foreign_files_and_what_links_lead_to_stay(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine"
    for name in ("photos/one", "photos/two", "9-9-9/x"):
        (mine / name).mkdir(parents=True)
    (home / "precious").write_text("x")
    (home / "run/notes").mkdir()
    (home / "bases/mine").symlink_to(mine)
    (home / "bases/photos/raw").mkdir(parents=True)
    (home / "kept").symlink_to(mine)
    assert "foreign precious" in names()
    assert cli.run(["cache", "prune", "--idle-days", "0"]) == 0
    assert (home / "run/notes").is_dir()
    assert (home / "bases/photos/raw").is_dir()
    assert cli.run(["uninstall", "--yes"]) == 0
    assert "what else lies there stays" in capsys.readouterr().out
    assert [path.name for path in home.iterdir()] == ["precious"]
    assert sorted(path.name for path in mine.rglob("*")) == ["9-9-9", "one", "photos", "two", "x"]


def test_parts_that_are_links_are_not_followed(home: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "debian-amd64/folder/rootfs").mkdir(parents=True)
    (home / "bases").rename(tmp_path / "elsewhere")
    (home / "bases").symlink_to(mine)
    cache.prune(idle_days=0)
    cache.clear()
    assert not home.exists()
    assert (mine / "debian-amd64/folder/rootfs").is_dir()
