"""Repositories made here, with the tricks that repositories play."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.hub.conftest import make_skill
from tests.hub.test_sync import left_out, places

from skill2env.errors import InfraError, UserError
from skill2env.hub.explain import explain
from skill2env.hub.folder import Hub, register
from skill2env.hub.safe_tree import UnpackLimits
from skill2env.hub.sources import spec_of
from skill2env.hub.sources.git import GitSource
from skill2env.hub.store import Store

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
LICENCE = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy"


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    command = ["git", "-c", "protocol.file.allow=always", "-C", str(folder), *arguments]
    return (
        subprocess.run(command, env=env, input=stdin, capture_output=True, check=True).stdout.decode().strip()
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    make_skill(folder / "skills/sums", licence="", scripts__run_sh="#!/bin/sh\n")
    (folder / "LICENSE").write_text(LICENCE)
    git(tmp_path, "init", "-q", "-b", "main", "repo")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    return folder


def test_a_commit_is_read_without_a_checkout(repository: Path, hub: Hub, synced) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    register(hub, [spec_of(hub, f"file://{repository}#{commit}")])
    done = synced()
    assert done.sources[0].error == ""
    (known,) = explain(hub, "sums")
    (place,) = known["places"]
    assert place["origin"] == f"git:file://{repository}@{commit}"
    assert (place["revision"], known["licence"]["evidence"], place["notices"]) == (
        commit,
        "repository",
        ["LICENSE"],
    )
    assert os.access(Store(hub.store).skill(known["digest"]) / "scripts/run.sh", os.X_OK)
    assert not list(hub.path.rglob("*.git"))


def test_head_is_followed_and_a_pin_is_not_moved(repository: Path, hub: Hub, synced) -> None:
    first = git(repository, "rev-parse", "HEAD")
    register(hub, [
        spec_of(hub, f"file://{repository}", name="head"),
        spec_of(hub, f"file://{repository}", name="branch", revision="main"),
        spec_of(hub, f"file://{repository}#{first}", name="pin"),
    ])  # fmt: skip
    synced()
    make_skill(repository / "skills/new", "new")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "two")
    done = synced()
    assert [(s.id, s.unchanged) for s in done.sources] == [("head", False), ("branch", False), ("pin", True)]
    assert {name for name in places(hub) if name.endswith("new")} == {"head:skills/new", "branch:skills/new"}


def test_offline_uses_what_was_fetched(repository: Path, hub: Hub, synced) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    register(hub, [spec_of(hub, f"file://{repository}#{commit}")])
    assert "--offline forbids it" in synced(offline=True).sources[0].error
    synced()
    repository.rename(repository.with_name("gone"))
    assert not synced(offline=True, again=True).failed


def test_tricks_of_repositories(repository: Path, tmp_path: Path, hub: Hub, synced) -> None:
    """Hooks, filters, monitors, submodules, LFS pointers, links and names that collide."""
    trap = tmp_path / "trapped"
    (repository / ".gitattributes").write_text("* filter=lfs export-subst\nskills/sums/** export-ignore\n")
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9\n"
    (repository / "skills/sums/model.bin").write_text(pointer)
    (repository / "skills/out").symlink_to("/etc")
    (repository / "skills/again").symlink_to("sums")
    (repository / "skills/entry").mkdir()
    (repository / "skills/entry/SKILL.md").symlink_to("../sums/SKILL.md")
    git(repository, "add", "-A")
    blob = git(repository, "hash-object", "-w", "--stdin", stdin=b"two")
    commit = git(repository, "rev-parse", "HEAD")
    for mode, what, path in (
        ("100644", blob, "skills/sums/skill.md"),
        ("160000", commit, "vendor/module"),
        ("100644", blob, "skills/sums/README"),
        ("100644", blob, "skills/sums/readme"),
    ):
        git(repository, "update-index", "--add", "--cacheinfo", f"{mode},{what},{path}")
    git(repository, "commit", "-qm", "tricks")
    for name in ("post-checkout", "post-merge", "pre-fetch", "reference-transaction"):
        hook = repository / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
        hook.chmod(0o755)
    git(repository, "config", "core.fsmonitor", f"touch {trap}; false")
    git(repository, "config", "filter.lfs.smudge", f"touch {trap}; cat")
    git(repository, "config", "core.sshCommand", f"touch {trap}")
    git(repository, "config", "uploadpack.packObjectsHook", f"touch {trap}; exec")
    register(hub, [spec_of(hub, str(repository), kind="git", name="tricks")])
    done = synced()
    assert done.sources[0].error == ""
    assert not trap.exists()
    told = left_out(hub, "tricks")
    assert ("submodule", "vendor/module") in told
    assert ("refused-member", "skills/out") in told
    assert {where for code, where in told if code == "colliding-member"} == {
        "skills/sums/skill.md", "skills/sums/readme"
    }  # fmt: skip
    assert ("symlinked-folder", "skills/again") in told
    assert ("entry-is-no-file", "skills/entry/SKILL.md") in told
    (known,) = explain(hub, "sums")
    assert "lfs-pointer" in {item["code"] for item in known["diagnostics"]}
    assert (Store(hub.store).skill(known["digest"]) / "model.bin").read_text() == pointer


@pytest.mark.parametrize(
    "location",
    ["ext::sh -c touch% /tmp/x", "--upload-pack=touch", "fd::17", "http::https://x"],
)
def test_transports_that_are_commands_are_refused(location: str, hub: Hub, synced) -> None:
    register(
        hub,
        [spec_of(hub, "https://example.invalid/x.git", name="x").model_copy(update={"location": location})],
    )
    (outcome,) = synced().sources
    assert "no repository" in outcome.error


def test_failures_name_the_source(hub: Hub, tmp_path: Path, repository: Path, synced) -> None:
    register(hub, [
        spec_of(hub, "http://127.0.0.1:9/x.git", name="refused"),
        spec_of(hub, f"file://{tmp_path}/nowhere", name="nowhere"),
        spec_of(hub, f"file://{repository}#{'0' * 40}", name="no-commit"),
        spec_of(hub, f"file://{repository}", name="no-branch", revision="nope"),
        spec_of(hub, f"file://{repository}", name="odd", revision="--upload-pack=x"),
        spec_of(hub, f"file://{repository}", name="good"),
    ])  # fmt: skip
    done = synced()
    assert [s.status.value for s in done.sources] == ["failed"] * 5 + ["fresh"]
    assert all(f"source {s.id}" in s.error for s in done.sources[:5])


@pytest.mark.parametrize(
    "url",
    [
        "https://me:hunter22@host.invalid/x.git",
        "https://hunter22@host.invalid/x.git",
        "ssh://me:hunter22@host.invalid/x.git",
        "http://me:hunt@hunter22@host.invalid/x.git#" + "0" * 40,
    ],
)
def test_urls_with_a_login_are_refused_everywhere(url: str, hub: Hub, synced) -> None:
    with pytest.raises(UserError, match="must not hold a login") as caught:
        spec_of(hub, url, name="x")
    assert "hunter22" not in caught.value.message
    assert "git credential" in caught.value.hint
    good = spec_of(hub, "https://host.invalid/x.git", name="x")
    register(hub, [good])
    location = url.partition("#")[0]
    hub.config_file.write_text(hub.config_file.read_text().replace(good.location, location))
    with pytest.raises(UserError, match="must not hold a login") as caught:
        synced()
    assert "hunter22" not in caught.value.message
    with pytest.raises(InfraError) as failed:
        GitSource(hub, good.model_copy(update={"location": "http://me:hunter22@127.0.0.1:9/x.git"})).state()
    assert "hunter22" not in failed.value.message


def test_users_without_a_password_are_no_logins(hub: Hub) -> None:
    for url in (
        "ssh://git@host.invalid/x.git",
        "git@host.invalid:x.git",
        "https://host.invalid/@scope/x.git",
    ):
        assert spec_of(hub, url).location == url


def test_offline_asks_nobody_for_the_newest_commit(repository: Path, hub: Hub, synced) -> None:
    register(hub, [spec_of(hub, f"file://{repository}", name="head")])
    assert "--offline forbids it" in synced(offline=True).sources[0].error
    synced()
    before = places(hub)
    repository.rename(repository.with_name("gone"))
    assert synced(offline=True).sources[0].unchanged
    assert not synced(offline=True, again=True).failed
    assert places(hub) == before
    hub.config_file.write_text(hub.config_file.read_text() + 'revision = "other"\n')
    assert "other was not downloaded before" in synced(offline=True).sources[0].error


def _bomb(repository: Path, leaf: bytes) -> str:
    """A commit of ten trees, each holding the one before ten times; they unfold to 10**10."""
    tree = git(repository, "mktree", stdin=leaf)
    for _ in range(10):
        entries = "".join(f"040000 tree {tree}\t{number}\n" for number in range(10))
        tree = git(repository, "mktree", stdin=entries.encode())
    return git(repository, "commit-tree", "-m", "bomb", tree)


@pytest.mark.parametrize("leaf", ["file", "empty"])
def test_trees_that_unfold_without_end_are_refused(leaf: str, repository: Path, hub: Hub, synced) -> None:
    blob = git(repository, "hash-object", "-w", "--stdin", stdin=b"x")
    commit = _bomb(repository, f"100644 blob {blob}\tf\n".encode() if leaf == "file" else b"")
    git(repository, "branch", "bomb", commit)
    register(hub, [spec_of(hub, f"file://{repository}#{commit}", name="bomb")])
    (outcome,) = synced().sources
    assert "the repository is refused: it holds more than 400,000 files and folders" in outcome.error


def test_contents_behind_refused_names_count(repository: Path, hub: Hub, synced, monkeypatch) -> None:
    (repository / "a\x01").write_bytes(bytes(200_000))
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "odd")
    monkeypatch.setattr(
        "skill2env.hub.sources.git.UnpackLimits", lambda: UnpackLimits(total_bytes=100_000, members=20)
    )
    register(hub, [spec_of(hub, f"file://{repository}", name="odd")])
    assert "bytes and their headers" in synced().sources[0].error
