"""Verdicts from earlier runs: what they depend on, and what is never kept."""

import dataclasses
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest

from skill2env.harbor.sandboxes import SandboxChoice
from skill2env.records import Reason, Verdict, VerdictStatus
from skill2env.verify import cache as caching
from skill2env.verify.cache import Kept, VerdictCache, content_of, gates_version
from skill2env.verify.gate import GateContext, Level
from skill2env.verify.many import verify_many
from skill2env.verify.rules import Profile

ACCEPTED = Kept(verdict=Verdict(status=VerdictStatus.ACCEPTED))
INFRA = Kept(verdict=Verdict(status=VerdictStatus.INFRA, boundary="network"))


@pytest.fixture
def task(make_task: Callable[..., Path]) -> Path:
    return make_task()


def test_content_is_every_byte_name_and_right(task: Path) -> None:
    seen = {content_of(task)}
    for change in (
        lambda: (task / "instruction.md").write_text("x"),
        lambda: (task / "tests/test.sh").chmod(0o755),
        lambda: (task / "tests/link").symlink_to("test.sh"),
        (task / "empty").mkdir,
        lambda: (task / "instruction.md").rename(task / "Instruction.md"),
    ):
        change()
        seen.add(content_of(task))
    assert len(seen) == 6
    assert content_of(task) == content_of(task)
    assert content_of(task / "absent") == ""


@pytest.mark.parametrize(
    "change",
    [
        {"network": False},
        {"oracle_repeats": 5},
        {"today": date(2026, 6, 1)},
        {"image_map": {"a": "debian-bookworm"}},
        {"sandbox": SandboxChoice("docker")},
        {"sandbox": SandboxChoice("namespace", kwargs={"allow_unlimited": True})},
    ],
)
def test_the_key_covers_how_gates_run(
    change: dict[str, object], context: GateContext, tmp_path: Path
) -> None:
    other = dataclasses.replace(context, **change)  # pyright: ignore[reportArgumentType]
    keys = {
        VerdictCache(tmp_path, where, Level.STANDARD, every=False).key("sha256:1", Profile.OURS)
        for where in (context, other)
    }
    assert len(keys) == 2


def test_the_key_covers_level_profile_gates_and_content(
    context: GateContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = VerdictCache(tmp_path, context, Level.STANDARD, every=False)
    keys = {
        one.key("sha256:1", Profile.OURS),
        one.key("sha256:2", Profile.OURS),
        one.key("sha256:1", Profile.FOREIGN),
        VerdictCache(tmp_path, context, Level.STRICT, every=False).key("sha256:1", Profile.OURS),
        VerdictCache(tmp_path, context, Level.STANDARD, every=True).key("sha256:1", Profile.OURS),
    }
    monkeypatch.setattr(caching, "gates_version", lambda: "other")
    keys.add(VerdictCache(tmp_path, context, Level.STANDARD, every=False).key("sha256:1", Profile.OURS))
    assert len(keys) == 6
    assert gates_version().startswith("sha256:")
    assert one.key("", Profile.OURS) == ""


def test_infra_and_damage_are_no_verdicts(context: GateContext, tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "v", context, Level.STANDARD, every=False)
    key = cache.key("sha256:1", Profile.OURS)
    cache.store(key, INFRA)
    assert cache.recall(key) is None
    cache.store("", ACCEPTED)
    assert not (tmp_path / "v").exists()
    cache.store(key, ACCEPTED)
    assert cache.recall(key) == ACCEPTED
    (file,) = (tmp_path / "v").rglob("*.json")
    file.write_text(file.read_text()[:-5])
    assert cache.recall(key) is None


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(context: GateContext, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = VerdictCache(tmp_path / "file", context, Level.STANDARD, every=False)
    key = cache.key("sha256:1", Profile.OURS)
    cache.store(key, ACCEPTED)
    assert cache.recall(key) is None


def test_two_runs_into_one_cache(context: GateContext, tmp_path: Path) -> None:
    caches = [VerdictCache(tmp_path, context, Level.STANDARD, every=False) for _ in range(2)]
    keys = [caches[0].key(f"sha256:{n}", Profile.OURS) for n in range(20)]
    rejected = Kept(verdict=Verdict(status=VerdictStatus.REJECTED, reason=Reason.LINT, message="x" * 9999))

    def work(cache: VerdictCache, kept: Kept) -> None:
        for _ in range(5):
            for key in keys:
                cache.store(key, kept)
                assert cache.recall(key) in (ACCEPTED, rejected)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, caches, (ACCEPTED, rejected)))
    assert all(cache.recall(key) for cache in caches for key in keys)


def test_a_second_run_is_told_from_the_cache(task: Path, context: GateContext, tmp_path: Path) -> None:
    """The task fails a gate that starts nothing, so this needs no sandbox."""
    (task / "instruction.md").write_text(" ")
    cache = VerdictCache(tmp_path / "v", context, Level.STANDARD, every=False)

    def judge(**more: object) -> tuple[bool, Verdict]:
        (item,) = verify_many([task], profile=None, context=context, cache=cache, **more)  # pyright: ignore[reportArgumentType]
        return item.cached, item.verdict

    first, again = judge(), judge()
    assert [first[0], again[0]] == [False, True]
    assert first[1] == again[1]
    assert judge(keep_evidence=True)[0] is False, "the evidence is wanted and was never kept"
    assert judge(keep_evidence=True)[0] is True
    kept = json.loads((context.evidence / task.name / "verdict.json").read_text())
    assert kept["verdict"]["reason"] == "malformed"
    (task / "instruction.md").write_text("\n")
    assert judge()[0] is False
