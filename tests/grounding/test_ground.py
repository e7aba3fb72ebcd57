import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skill2env.errors import InfraError
from skill2env.grounding.cache import AssetCache
from skill2env.grounding.download import DownloadLimits
from skill2env.grounding.faults import AssetFault
from skill2env.grounding.ground import Grounder, reason_of
from skill2env.grounding.licences import belongs
from skill2env.hub.policy import LicencePolicy
from skill2env.records import (
    Asset,
    FileKind,
    Generated,
    Metric,
    Reason,
    Severity,
    Skill,
    SkillFile,
    TaskContract,
    VerdictStatus,
    digest_bytes,
)
from skill2env.sandbox.egress import Egress
from skill2env.store.files import TEMPORARY_PREFIX
from skill2env.verify.rules import rule_of

TABLE = b"month,total\n2024-01,10\n"
PLACE = "environment/app/table.csv"


@pytest.fixture
def grounder(web: Any, tmp_path: Path) -> Grounder:
    return Grounder(
        cache=AssetCache(tmp_path / "cache"),
        notices=tmp_path / "notices",
        rules=Egress.public([web.host]),
        limits=DownloadLimits(max_bytes=2000, timeout_sec=5, pause_sec=0.01),
        mend=lambda code: rule_of(code).mend,
    )


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "task"
    (folder / "environment").mkdir(parents=True)
    (folder / "tests").mkdir()
    return folder


def skill(*contents: bytes) -> Skill:
    files = tuple(
        SkillFile(path=f"f{n}", kind=FileKind.BINARY, size=len(data), sha256=digest_bytes(data))
        for n, data in enumerate(contents)
    )
    return Skill(name="s", slug="s", description="", body="", digest="sha256:1", files=files)


def contract(*assets: Asset, generated: tuple[Generated, ...] = ()) -> TaskContract:
    metrics = (Metric(name="a", sentence="A."), Metric(name="b", sentence="B."))
    return TaskContract(
        title="Title", metrics=metrics, artifacts=("/app/out",), assets=assets, generated=generated
    )


def table(web: Any, **changes: Any) -> Asset:
    told = {
        "what": "monthly totals",
        "url": web.url("/data/table.csv"),
        "revision": "v1",
        "licence": "MIT",
        "licence_url": web.url("/LICENSE"),
        "attribution": "The table office",
        "paths": (PLACE, "tests/table.csv"),
    }
    return Asset.model_validate(told | changes)


def test_an_asset_is_staged_with_its_notice_and_a_rerun_needs_no_network(
    web: Any, grounder: Grounder, task: Path
) -> None:
    done = grounder.ground(task, contract(table(web)), skill())
    assert done.verdict.status is VerdictStatus.ACCEPTED
    (staged,) = done.assets
    assert (staged.sha256, staged.size, staged.licence) == (digest_bytes(TABLE), len(TABLE), "MIT")
    for path in (PLACE, "tests/table.csv"):
        assert (task / path).read_bytes() == TABLE
        assert (task / path).stat().st_mode & 0o777 == 0o644
    assert (grounder.notices / staged.notice.removeprefix("sha256:")).read_bytes().startswith(b"MIT License")
    asked = len(web.asked)
    again = replace(grounder, offline=True).ground(task, contract(table(web)), skill())
    assert again.assets == done.assets
    assert again.verdict == done.verdict
    assert len(web.asked) == asked == 2
    (grounder.cache.path(staged.sha256)).write_bytes(b"damaged")
    assert replace(grounder, offline=True).ground(task, contract(table(web)), skill()).assets == ()
    assert grounder.ground(task, contract(table(web)), skill()).assets == done.assets
    assert len(web.asked) == asked + 1, "a damaged entry counts as none"


def test_a_model_for_what_the_author_wrote_is_not_downloaded(
    web: Any, grounder: Grounder, task: Path
) -> None:
    done = grounder.ground(task, contract(table(web, paths=(), licence="")), skill())
    assert (done.verdict.status, done.assets, web.asked) == (VerdictStatus.ACCEPTED, (), [])


@pytest.mark.parametrize(
    ("changes", "reason", "code", "words"),
    [
        ({"url": "/none"}, Reason.ASSET_UNAVAILABLE, "asset-missing", "404"),
        ({"url": "/cut"}, Reason.ASSET_UNAVAILABLE, "asset-truncated", "ended too early"),
        ({"url": "/broken"}, Reason.ASSET_UNAVAILABLE, "asset-server", "503"),
        ({"url": "/data/big.bin"}, Reason.ASSET_REFUSED, "asset-too-large", "more than"),
        ({"url": "/to/https://10.0.0.1/x"}, Reason.ASSET_REFUSED, "asset-address", "private"),
        ({"sha256": "0" * 64}, Reason.ASSET_CHANGED, "asset-digest", "has the digest"),
        ({"licence": ""}, Reason.ASSET_REFUSED, "asset-licence", "names no licence"),
        ({"licence": "as you like"}, Reason.ASSET_REFUSED, "asset-licence", "no SPDX expression"),
        ({"licence": "GPL-3.0-only"}, Reason.ASSET_REFUSED, "asset-licence", "holds MIT"),
        (
            {"licence": "GPL-3.0-only", "licence_url": "/data/GPL"},
            Reason.ASSET_REFUSED, "asset-licence", "copyleft",
        ),
        ({"licence_url": ""}, Reason.ASSET_REFUSED, "asset-licence", "Give licence_url"),
        ({"licence_url": "/data/odd"}, Reason.ASSET_REFUSED, "asset-licence", "Give licence_url"),
        ({"licence_url": "/data/other/LICENSE"}, Reason.ASSET_REFUSED, "asset-licence", "Give licence_url"),
    ],
)  # fmt: skip
def test_each_fault_has_a_reason_and_a_message(
    web: Any, grounder: Grounder, task: Path, changes: dict[str, str], reason: Reason, code: str, words: str
) -> None:
    told = {key: web.url(value) if value.startswith("/") else value for key, value in changes.items()}
    done = grounder.ground(task, contract(table(web, **told, fallback="write twelve rows")), skill())
    assert (done.verdict.status, done.verdict.reason, done.assets) == (VerdictStatus.REJECTED, reason, ())
    (gate,) = done.verdict.gates
    (finding,) = gate.findings
    assert finding.code == code
    assert words in finding.message
    assert "fallback: write twelve rows" in finding.message
    assert finding.mend == rule_of(code).mend
    assert words in done.verdict.message
    assert not (task / PLACE).exists()


def test_every_fault_has_a_rule_of_the_same_reason() -> None:
    assert all(rule_of(fault.value).reason is reason_of(fault) for fault in AssetFault)


def test_other_bytes_in_its_place_are_the_authors_mistake(web: Any, grounder: Grounder, task: Path) -> None:
    (task / "environment/app").mkdir()
    (task / PLACE).write_bytes(TABLE)
    assert grounder.ground(task, contract(table(web)), skill()).assets
    (task / PLACE).write_bytes(b"edited")
    done = grounder.ground(task, contract(table(web)), skill())
    assert done.verdict.reason is Reason.ASSET_CHANGED
    assert (task / PLACE).read_bytes() == b"edited", "evidence stays"


def test_all_assets_together_have_a_limit(web: Any, grounder: Grounder, task: Path) -> None:
    small = replace(grounder, max_total_bytes=2 * len(TABLE) - 1)
    assert small.ground(task, contract(table(web)), skill()).verdict.reason is Reason.ASSET_REFUSED


def test_a_policy_of_ones_own(web: Any, grounder: Grounder, task: Path) -> None:
    loose = replace(grounder, policy=LicencePolicy.model_validate({"minimum_evidence": "none"}))
    assert loose.ground(task, contract(table(web, licence_url="")), skill()).assets[0].notice == ""


@pytest.mark.parametrize(
    ("text", "file", "good"),
    [
        ("https://h.org/LICENSE", "https://h.org/a/b.csv", True),
        ("https://h.org/a/LICENSE", "https://h.org/a/b.csv", True),
        ("https://h.org/c/LICENSE", "https://h.org/a/b.csv", False),
        ("https://other.org/LICENSE", "https://h.org/a/b.csv", False),
        ("https://raw.githubusercontent.com/o/r/v1/LICENSE", "https://github.com/o/r/releases/x.zip", True),
        ("https://h.org/evil/LICENSE", "https://h.org/evil/../victim/b.csv", False),
        ("https://h.org/evil/LICENSE", "https://h.org/evil/%2e%2e/victim/b.csv", False),
        ("https://h.org/get?id=1", "https://h.org/get?id=2", False),
        (
            "https://raw.githubusercontent.com/evil/r/v1/LICENSE",
            "https://raw.githubusercontent.com/evil/r/../../victim/d/v1/b.csv",
            False,
        ),
        ("https://raw.githubusercontent.com/o/s/v1/LICENSE", "https://github.com/o/r/releases/x.zip", False),
    ],
)
def test_a_licence_speaks_for_what_lies_below_it(text: str, file: str, good: bool) -> None:
    assert belongs(text, file) is good


def test_files_of_undeclared_origin_are_flagged(web: Any, grounder: Grounder, task: Path) -> None:
    world = task / "environment"
    picture, big = b"\x89PNG\0\1\2", b"row,1\n" * 60_000
    (world / "note.txt").write_text("ordinary text")
    (world / "own.bin").write_bytes(picture)
    (world / "photo.png").write_bytes(picture + b"x")
    (world / "rows.csv").write_bytes(big)
    (world / "made.csv").write_bytes(big + b"1")
    (world / "claimed.csv").write_bytes(big + b"2")
    (task / "tests" / "make.py").write_text("open('made.csv', 'w')")
    made = (
        Generated(path="environment/made.csv", script="tests/make.py"),
        Generated(path="environment/claimed.csv", script="tests/make.py"),
        Generated(path="environment/rows.csv", script="../make.py"),
    )
    done = grounder.ground(task, contract(table(web), generated=made), skill(picture))
    assert done.verdict.status is VerdictStatus.ACCEPTED, "a finding, no rejection"
    (gate,) = done.verdict.gates
    found = {item.where: item.message for item in gate.findings}
    assert set(found) == {f"environment/{name}" for name in ("photo.png", "rows.csv", "claimed.csv")}
    assert {item.severity for item in gate.findings} == {Severity.WARN}
    assert "binary" in found["environment/photo.png"]
    assert "not in the task" in found["environment/rows.csv"]
    assert "does not name it" in found["environment/claimed.csv"]


def test_all_downloads_of_a_task_have_one_time_limit(web: Any, grounder: Grounder, task: Path) -> None:
    hasty = replace(grounder, limits=replace(grounder.limits, timeout_sec=0.15))
    assets = tuple(
        table(web, url=web.url("/slow"), revision=str(n), what=f"n{n}", paths=(f"environment/{n}",))
        for n in range(12)
    )
    done = hasty.ground(task, contract(*assets), skill())
    assert done.verdict.reason is Reason.ASSET_UNAVAILABLE
    assert {item.code for item in done.verdict.gates[0].findings} == {"asset-slow"}
    assert "the time for all assets of one task is over" in done.verdict.gates[0].findings[-1].message
    assert web.asked.count("/slow") < 12


@pytest.mark.parametrize("path", ["environment", "environment/there.txt/table.csv"])
def test_what_lies_in_the_way_is_the_authors_mistake(
    web: Any, grounder: Grounder, task: Path, path: str
) -> None:
    (task / "environment/there.txt").write_text("x")
    found = grounder.ground(task, contract(table(web, paths=(path,))), skill())
    assert found.verdict.status is VerdictStatus.REJECTED
    assert [item.code for item in found.verdict.gates[0].findings] == [AssetFault.DIFFERS.value]


def test_a_licence_speaks_for_where_redirects_lead_too(web: Any, grounder: Grounder, task: Path) -> None:
    """``/moved/LICENSE`` would speak for ``/moved/table.csv``; the file lies elsewhere, and so may its text."""
    here = grounder.ground(task, contract(table(web, url=web.url("/moved/table.csv"))), skill())
    assert here.verdict.status is VerdictStatus.ACCEPTED, "the text lies above both places"
    assert here.assets[0].address == web.url("/data/table.csv")
    beside = table(web, url=web.url("/moved/table.csv"), licence_url=web.url("/moved/LICENSE"))
    found = grounder.ground(task, contract(beside), skill())
    assert found.verdict.reason is Reason.ASSET_REFUSED
    (finding,) = found.verdict.gates[0].findings
    assert finding.code == AssetFault.LICENCE.value
    assert f"In the end it lies at {web.url('/data/table.csv')}" in finding.message
    borrowed = table(web, licence_url=web.url("/TERMS"))
    found = grounder.ground(task, contract(borrowed), skill())
    assert found.verdict.reason is Reason.ASSET_REFUSED
    assert web.url("/data/other/LICENSE") in found.verdict.gates[0].findings[0].message


def test_a_stopped_download_leaves_nothing(web: Any, grounder: Grounder, task: Path) -> None:
    stop = threading.Event()
    stopped = replace(grounder, stop=stop, limits=replace(grounder.limits, timeout_sec=600))

    def stop_amid() -> None:
        while "/drip" not in web.asked:
            time.sleep(0.02)
        time.sleep(0.2)
        stop.set()

    timer = threading.Thread(target=stop_amid, daemon=True)
    timer.start()
    with pytest.raises(InfraError, match="was stopped"):
        stopped.ground(task, contract(table(web, url=web.url("/drip"))), skill())
    timer.join()
    assert web.asked == ["/LICENSE", "/drip"]
    assert not (task / PLACE).exists()
    assert [path for path in grounder.cache.root.rglob("*") if path.name.startswith(TEMPORARY_PREFIX)] == []
    assert len(list((grounder.cache.root / "blobs").iterdir())) == 1, "the licence text, which was whole"
