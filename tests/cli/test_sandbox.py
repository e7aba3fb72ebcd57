"""``skill2env sandbox``: what each verb prints and how it ends."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.cli.main import run
from skill2env.sandbox import catalog
from skill2env.sandbox.images import BaseImage
from skill2env.sandbox.logins import CONFIG_VARIABLE
from skill2env.store.folders import CACHE_VARIABLE


@pytest.fixture(autouse=True)
def no_logins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "docker"))


def test_the_catalog_is_listed_without_building_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    assert run(["sandbox", "bases", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["bases"]
    assert [record["name"] for record in listed] == list(catalog.CATALOG)
    assert {record["digest"] for record in listed} == {None}
    assert run(["sandbox", "bases", "list"]) == 0
    assert "not built" in capsys.readouterr().out
    assert not (tmp_path / "cache").exists()


@pytest.mark.sandbox
def test_ref_and_build_print_what_goes_after_from(
    base_image: BaseImage, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["ref", "debian-bookworm"], ["build"], ["build", "debian-bookworm", "debian-bookworm"]):
        assert run(["sandbox", "bases", *words]) == 0
        assert capsys.readouterr().out == f"{base_image.reference}\n"
    assert run(["sandbox", "bases", "ref", "debian-bookworm", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"name": "debian-bookworm", "reference": base_image.reference}
    assert run(["sandbox", "bases", "build", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bases"][0]["digest"] == base_image.digest


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ref", "debian-buzz"], "no base image 'debian-buzz'"),
        (["build", "debian-bookworm", "nope"], "no base image 'nope'"),
        (["build", "--all", "debian-bookworm"], "--all goes without names"),
        (["push", "nope"], "no base image 'nope'"),
        (["push", "debian-bookworm", "--user", "me"], "--user and --password-stdin go together"),
        (["resolve", "A B"], "no image reference"),
        (["resolve", "x", "--password-stdin"], "go together"),
    ],
)
def test_mistakes_are_said(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sandbox", "bases", *words]) == 2
    assert message in capsys.readouterr().err
    assert run(["sandbox", "bases", *words, "--json"]) == 2
    told = json.loads(capsys.readouterr().err)["error"]
    assert (told["kind"], message in told["message"]) == ("usage", True)


def test_a_registry_that_is_not_there_is_infrastructure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sandbox", "bases", "resolve", "127.0.0.1:9/x", "--json"]) == 3
    assert json.loads(capsys.readouterr().err)["error"]["boundary"] == "network"


@pytest.mark.sandbox
def test_push_and_resolve_with_a_login(
    base_image: BaseImage,
    registry_server: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    host = registry_server(login=True)
    login = ["--user", "ali", "--password-stdin"]

    def call(*words: str, password: str = "open sesame\n") -> int:
        monkeypatch.setattr("sys.stdin", io.StringIO(password))
        return run(["sandbox", "bases", *words])

    monkeypatch.setenv(catalog.REGISTRY_VARIABLE, f"{host}/mine")
    assert call("push", "debian-bookworm", *login) == 0
    reference = f"{host}/mine/debian-bookworm@{base_image.digest}"
    assert capsys.readouterr().out == f"{reference}\n"
    assert call("push", "debian-bookworm", f"{host}/mine", "--tag", "t", "--json", *login) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"name": "debian-bookworm", "reference": reference, "tag": "t", "bytes": 0}
    assert call("resolve", f"{host}/mine/debian-bookworm:t", *login) == 0
    assert capsys.readouterr().out == f"{reference}\n"
    assert call("resolve", f"{host}/mine/debian-bookworm:t", *login, password="wrong") == 2
    assert "this login may not use" in capsys.readouterr().err
    assert call("resolve", f"{host}/mine/x:t", *login, password="") == 2
    assert "no password on standard input" in capsys.readouterr().err


@pytest.mark.sandbox
def test_rewrite_says_what_came_of_it(
    base: BaseImage, builder: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    public = f"debian:bookworm-slim@sha256:{'b' * 64}"
    task = str(builder.build_task(tmp_path / "task", reference=public))
    call = ["sandbox", "bases", "rewrite", task, "--sandbox", "namespace"]
    assert run([*call, "--to", "ours", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["written"], told["stood_in"]) == ("accepted", task, False)
    assert told["references"] == {public: base.reference}
    assert run([*call, "--to", "ours"]) == 0
    assert "unchanged" in capsys.readouterr().out
    assert run([*call, "--to", public]) == 0
    printed = capsys.readouterr()
    assert f"{base.reference} -> {public}\naccepted\n" in printed.out
    assert "ran on our base in its place" in printed.out
    assert "task: gate oracle" in printed.err
    (tmp_path / "task/solution/solve.sh").write_text("#!/bin/bash\nexit 1\n")
    assert run([*call, "--to", "ours"]) == 1
    assert f"{task} is as it was" in capsys.readouterr().out
    assert run(["sandbox", "bases", "rewrite", str(tmp_path), "--to", "ours", "--json"]) == 2
    assert "no task with a Dockerfile" in json.loads(capsys.readouterr().err)["error"]["message"]


def layer(cache: Path, name: str) -> Path:
    folder = cache / "layers/root-100000" / name
    (folder / "fs").mkdir(parents=True)
    (folder / "fs/file").write_bytes(b"x" * 9000)
    (folder / "layer.json").write_text(
        json.dumps({"key": name, "steps": ["line 2: RUN one", "line 3: RUN two"]})
    )
    return folder


def test_layers_are_listed_and_pruned_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    made = layer(tmp_path, "abc")
    (tmp_path / "bases/debian-bookworm-amd64/old/rootfs").mkdir(parents=True)
    assert run(["sandbox", "layers", "list", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["layers"]
    assert (told["name"], told["steps"]) == ("root-100000/abc", ["line 2: RUN one", "line 3: RUN two"])
    assert told["bytes"] >= 9000
    assert run(["sandbox", "layers", "list"]) == 0
    assert "line 3: RUN two" in capsys.readouterr().out
    assert run(["sandbox", "layers", "prune"]) == 0
    assert "0 layers removed" in capsys.readouterr().out
    assert made.exists()
    assert run(["sandbox", "layers", "prune", "--idle-days", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == ["root-100000/abc"]
    assert not made.exists()
    assert (tmp_path / "bases/debian-bookworm-amd64/old").exists(), "bases are `cache prune`'s"


def test_a_layer_that_says_nothing_is_listed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    for name, text in (("a", "{"), ("b", "[]"), ("c", '{"steps": 3}')):
        (layer(tmp_path, name) / "layer.json").write_text(text)
    assert run(["sandbox", "layers", "list", "--json"]) == 0
    assert [item["steps"] for item in json.loads(capsys.readouterr().out)["layers"]] == [[], [], []]


def test_status_counts_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    layer(tmp_path, "abc")
    assert run(["sandbox", "status", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kept"]["layer"]["count"] == 1
    assert told["running"] == []
    assert told["folder"] == str(tmp_path)
    assert run(["sandbox", "status"]) == 0
    assert f"tier {told['tier']}" in capsys.readouterr().out
