"""Which limits are reported as what, and what falls back to what."""

import os
from collections.abc import Callable

import pytest

from skill2env.sandbox import limits, watch
from skill2env.sandbox.cgroups import Group
from skill2env.sandbox.identity import Identity, Tier
from skill2env.sandbox.limits import Confinement, Enforced, ResourceLimits
from skill2env.sandbox.session import Sandbox

SINGLE = Identity(Tier.SINGLE, 1000, 1000, 1000, 1000, 1)
ALWAYS = {"CORE": 0, "NOFILE": 65536, "MEMLOCK": 64 * 2**20, "NICE": 0, "RTPRIO": 0}
SUBUID = Identity(Tier.SUBUID, 1000, 1000, 300000, 300000, 65536)


@pytest.fixture
def no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine where control groups cannot be written."""
    monkeypatch.setattr(limits, "make_group", lambda _: Group())
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})


@pytest.mark.usefixtures("no_groups")
def test_without_control_groups() -> None:
    everything = ResourceLimits(cpus=2, memory_mb=100, pids=50, storage_mb=10)
    one = Confinement(everything, SINGLE)
    assert one.enforced == Enforced(("cpus", "pids"), ("memory_mb", "storage_mb"), ())
    assert one.pins == 2
    several = Confinement(everything, SUBUID)  # a bound per user is no bound for all
    assert several.enforced == Enforced(("cpus",), ("memory_mb", "pids", "storage_mb"), ())
    assert several.per_process == {
        **ALWAYS,
        "NPROC": 50,
        "DATA": (2 * 100 + 1024) * 2**20,
        "FSIZE": 10 * 2**20,
    }


@pytest.mark.usefixtures("no_groups")
def test_a_fraction_of_a_processor_needs_control_groups() -> None:
    found = Confinement(ResourceLimits(cpus=0.5, pids=None), SINGLE)
    assert found.enforced == Enforced((), (), ("cpus",))
    assert found.pins == 1
    assert Confinement(ResourceLimits(cpus=1.5, pids=None), SINGLE).pins == 2
    assert Confinement(ResourceLimits(cpus=4, pids=None), SINGLE).pins == 0  # the whole machine
    assert Confinement(ResourceLimits(cpus=64, pids=None), SINGLE).enforced.hard == ("cpus",)


@pytest.mark.usefixtures("no_groups")
def test_no_limits() -> None:
    found = Confinement(ResourceLimits(pids=None), SUBUID)
    assert found.enforced == Enforced()
    assert found.per_process == ALWAYS


def test_with_control_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "members_can_move", lambda _: True)
    monkeypatch.setattr(limits, "make_group", lambda _: Group([], {"cpus", "memory_mb", "pids"}))
    found = Confinement(ResourceLimits(cpus=0.5, memory_mb=100, pids=50, storage_mb=10), SUBUID)
    assert found.enforced == Enforced(("cpus", "memory_mb", "pids"), ("storage_mb",), ())
    assert found.pins == 0
    assert "DATA" not in found.per_process


@pytest.fixture
def watched_box(monkeypatch: pytest.MonkeyPatch, new_box: Callable[..., Sandbox]) -> Callable[..., Sandbox]:
    """Sandboxes as on a machine without control groups."""
    monkeypatch.setattr(limits, "make_group", lambda _: Group())
    return new_box


@pytest.mark.sandbox
def test_watched_memory_of_several_processes(watched_box: Callable[..., Sandbox]) -> None:
    box = watched_box(limits=ResourceLimits(memory_mb=150))
    assert "memory_mb" in box.enforced.watched
    script = "for n in 1 2 3 4; do python3 -c 'import time; x = b\"x\" * (60 * 2**20); time.sleep(60)' & done; wait"
    done = box.exec(["bash", "-c", script], timeout_sec=30)
    assert done.return_code == 137
    assert done.breach == "the sandbox used more than 150 MiB of memory"
    assert box.exec(["echo", "alive"]).stdout == b"alive\n"


@pytest.mark.sandbox
def test_watched_memory_lets_honest_work_pass(watched_box: Callable[..., Sandbox]) -> None:
    box = watched_box(limits=ResourceLimits(memory_mb=150))
    script = "import time; x = b'x' * (80 * 2**20); time.sleep(1.5); print(len(x))"
    assert box.exec(["python3", "-c", script]).stdout == b"83886080\n"
    assert box.breach == ""


@pytest.mark.sandbox
def test_watched_processes_of_several_users(watched_box: Callable[..., Sandbox]) -> None:
    box = watched_box(limits=ResourceLimits(pids=40))
    if "pids" not in box.enforced.watched:
        pytest.skip("one uid: the bound per user is the bound for all")
    script = (
        "import os, time\n"
        "for uid in range(1000, 1010):\n"
        "    if os.fork() == 0:\n"
        "        os.setuid(uid)\n"
        "        for _ in range(30):\n"
        "            if os.fork() == 0: time.sleep(60)\n"
        "        time.sleep(60)\n"
        "time.sleep(60)\n"
    )
    done = box.exec(["python3", "-c", script], timeout_sec=30)
    assert done.return_code == 137
    assert "more than 80 processes" in done.breach


@pytest.mark.sandbox
def test_pinned_processors_cannot_be_left(watched_box: Callable[..., Sandbox]) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor")
    box = watched_box(limits=ResourceLimits(cpus=1))
    script = (
        "import os\nprint(len(os.sched_getaffinity(0)))\n"
        "try: os.sched_setaffinity(0, range(64))\nexcept PermissionError: print('refused')"
    )
    assert box.exec(["python3", "-c", script]).stdout == b"1\nrefused\n"
    assert box.exec(["nproc"]).stdout == b"1\n"


@pytest.mark.sandbox
def test_disk_usage_sees_closed_folders(new_box: Callable[..., Sandbox]) -> None:
    box = new_box()
    user = 1234 if box.identity.several_users else None
    box.exec(["sh", "-c", "mkdir /tmp/c && head -c 3M /dev/zero > /tmp/c/f && chmod 0 /tmp/c"], user=user)
    launched, folders = box._launched, box._scratch  # pyright: ignore[reportPrivateUsage]
    assert launched is not None
    assert folders is not None
    used, files = watch.disk_usage(folders.upper, box.identity, launched.init_pid)
    assert 3 * 2**20 <= used < 4 * 2**20
    assert files >= 3
