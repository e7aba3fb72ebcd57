"""A whole compilation whose world holds a public file, in a real sandbox."""

import json
import os
import signal
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from skill2env import wiring
from skill2env.authors import demo
from skill2env.authors.protocol import CreateRequest
from skill2env.authors.scripted import Files, ScriptedAuthor
from skill2env.batch import BatchOutcome, BatchStatus, compile_batch
from skill2env.config import load_config
from skill2env.records import Phase
from skill2env.store.files import TEMPORARY_PREFIX

pytestmark = pytest.mark.sandbox
SKILL = """---
name: cafe
description: Use this when a ledger has to be added up by hand.
license: MIT
---
# Cafe
Add up every account of the ledger and leave out the lines that were voided. Check the total against the month before.
"""


def asking_for(web: Any, request: CreateRequest, what: str, address: str) -> Files:
    """The contract session's files, which name an asset of the local server."""
    files = dict(demo.files(request))
    asset = {
        "what": what, "url": web.url(address), "licence": "MIT",
        "licence_url": web.url("/LICENSE"), "paths": ["environment/app/in/months.csv"],
    }  # fmt: skip
    told = json.loads(str(files["contract.json"])) | {"assets": [asset]}
    return files | {"contract.json": json.dumps(told)}


def test_a_world_with_a_public_file(
    web: Any, base_image: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del base_image

    def contract(request: CreateRequest) -> Files:
        files = asking_for(web, request, "monthly totals", "/data/table.csv")
        return files | {"environment/app/in/logo.bin": b"\0\1\2"}

    author = ScriptedAuthor(
        steps={(Phase.CONTRACT, 0): contract, (Phase.SOLUTION, 0): demo.files}, label=web.host
    )
    monkeypatch.setattr(wiring, "_make_author", lambda *_: author)
    monkeypatch.setattr("skill2env.grounding.settings.cache_home", lambda: tmp_path / "cache")
    (tmp_path / "skills/cafe").mkdir(parents=True)
    (tmp_path / "skills/cafe/SKILL.md").write_text(SKILL)

    def made(name: str, **flags: Any) -> BatchOutcome:
        flags |= {"assets.private_hosts": [web.host], "sandbox.allow_degraded": True}
        return compile_batch(
            [tmp_path / "skills"],
            out=tmp_path / name,
            run=tmp_path / f"{name}-run",
            config=load_config(None, flags),
        )

    assert made("one").document()["counts"]["published"] == 1
    (entry,) = map(json.loads, (tmp_path / "one/manifest.jsonl").read_text().splitlines())
    assert entry["findings"] == ["origin-undeclared"]
    assert "assets" in entry["gates"]
    task = tmp_path / "one" / entry["folder"]
    assert (task / "environment/app/in/months.csv").read_bytes() == b"month,total\n2024-01,10\n"
    facts = tomllib.loads((task / "task.toml").read_text())["metadata"]["skill2env"]
    assert facts["assets"][0]["licence_used"] == "MIT"
    assert (
        (tmp_path / "one/LICENSES" / entry["assets"][0] / "LICENSE.txt").read_text().startswith("MIT License")
    )
    asked = len(web.asked)
    assert made("two", **{"assets.download": False}).document()["counts"]["published"] == 1
    assert len(web.asked) == asked, "a rerun elsewhere needs no network"
    for path in ("manifest.jsonl", f"{entry['folder']}/task.toml"):
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes()


def test_an_interrupt_does_not_wait_for_a_download(
    web: Any, base_image: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del base_image

    def contract(request: CreateRequest) -> Files:
        return asking_for(web, request, "totals that take ten minutes", "/endless")

    author = ScriptedAuthor(steps={(Phase.CONTRACT, 0): contract}, label=web.host)
    monkeypatch.setattr(wiring, "_make_author", lambda *_: author)
    monkeypatch.setattr("skill2env.grounding.settings.cache_home", lambda: tmp_path / "cache")
    (tmp_path / "skills/cafe").mkdir(parents=True)
    (tmp_path / "skills/cafe/SKILL.md").write_text(SKILL)
    flags = {"assets.private_hosts": [web.host], "sandbox.allow_degraded": True, "assets.timeout_sec": 600}
    sent: list[float] = []

    def interrupt() -> None:
        while "/endless" not in web.asked:
            time.sleep(0.05)
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt, daemon=True)
    watcher.start()
    ended = compile_batch(
        [tmp_path / "skills"], out=tmp_path / "one", run=tmp_path / "run", config=load_config(None, flags)
    )
    took = time.monotonic() - sent[0]
    watcher.join()
    assert ended.status is BatchStatus.INTERRUPTED
    assert took < 1.5
    assert [path for path in (tmp_path / "cache").rglob("*") if path.name.startswith(TEMPORARY_PREFIX)] == []
    assert not (tmp_path / "one").exists()
