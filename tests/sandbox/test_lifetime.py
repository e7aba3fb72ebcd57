"""What remains of sandboxes whose host process is killed: nothing, at the latest after the next start."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skill2env.sandbox import cgroups, scratch
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.session import ResourceLimits, Sandbox, SandboxSpec
from skill2env.store.folders import cache_home

pytestmark = pytest.mark.sandbox

CHILD = """
import sys, time
from pathlib import Path
from skill2env.sandbox.session import ResourceLimits, Sandbox, SandboxSpec
box = Sandbox(SandboxSpec(layers=(Path(sys.argv[1]),), limits=ResourceLimits(memory_mb=300)))
box.start()
box.exec(["sh", "-c", "mkdir -m 0 /closed; echo x > /closed/x; (setsid sleep 86321 &) ; sleep 86321 & exit 0"])
user = "nobody" if box.identity.several_users else None
box.exec(["sh", "-c", "mkdir -m 0 /tmp/foreign; umask 777; echo x > /tmp/file"], user=user)
command = box.start_command(["sh", "-c", "sleep 86321 & sleep 86321"])
print("up", flush=True)
time.sleep(60)
"""


def sleepers() -> list[str]:
    done = subprocess.run(["pgrep", "-f", "sleep 86321"], capture_output=True, text=True, check=False)
    return done.stdout.split()


def wait_until(holds: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_nothing_remains_after_kill_9(rootfs: Path) -> None:
    runs = scratch.runtime_folder(current_identity())
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(rootfs)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        assert wait_until(lambda: len(sleepers()) >= 3)
        own = f"{child.pid}-"
        assert any(path.name.startswith(own) for path in runs.iterdir())
        child.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not sleepers()), "processes of the sandbox outlived its host process"
    # Files go with the next process that starts a sandbox.
    script = CHILD.partition("box.exec")[0] + "box.stop()\n"
    subprocess.run([sys.executable, "-c", script, str(rootfs)], check=True, timeout=60)
    assert not any(path.name.startswith(own) for path in runs.iterdir())
    groups = [folder for root in cgroups.ROOT.glob("*") for folder in root.glob(f"{cgroups.PREFIX}{own}*")]
    assert groups == []


def test_sweep_leaves_what_lives(rootfs: Path) -> None:
    with Sandbox(SandboxSpec(layers=(rootfs,))) as box:
        script = "from skill2env.sandbox import scratch, identity; scratch.sweep(identity.current_identity())"
        subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
        assert box.exec(["sh", "-c", "echo x > /still && cat /still"]).stdout == b"x\n"


def test_foreign_and_closed_files_are_deleted(rootfs: Path) -> None:
    box = Sandbox(SandboxSpec(layers=(rootfs,)))
    box.start()
    folder = box._scratch.folder  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
    owner = ", 1234, 1234" if box.identity.several_users else ", -1, -1"
    script = (
        "import os\nos.makedirs('/x/y')\nopen('/x/y/f', 'w').close()\n"
        f"os.chown('/x/y/f'{owner})\nos.chown('/x/y'{owner})\nos.chmod('/x/y', 0)\nos.chmod('/x', 0)\n"
        "os.mkdir('/deep')\nos.chdir('/deep')\n"
        "for _ in range(1500):\n    os.mkdir('d' * 100)\n    os.chdir('d' * 100)\n"  # deeper than a path may be long
        "open('-rf *', 'w').close()\nopen('new\\nline', 'w').close()\n"
    )
    done = box.exec(["python3", "-c", script])
    assert done.return_code == 0, done.stderr
    box.stop()
    assert not folder.exists()


def test_kept_files(rootfs: Path) -> None:
    box = Sandbox(SandboxSpec(layers=(rootfs,)))
    box.start()
    box.exec(["sh", "-c", "echo x > /made"])
    kept = box.stop(keep="test/kept")
    assert kept == cache_home() / "kept" / "test_kept"
    assert (kept / "made").read_text() == "x\n"
    scratch.remove_tree(kept, box.identity)
    assert not kept.exists()


def test_a_callers_upper_stays(rootfs: Path) -> None:
    identity = current_identity()
    home = cache_home() / f"test-upper-{os.getpid()}"
    home.mkdir(mode=0o755)
    try:
        with Sandbox(SandboxSpec(layers=(rootfs,), upper=home / "fs")) as box:
            box.exec(["sh", "-c", "echo x > /made"])
        assert (home / "fs" / "made").read_text() == "x\n"
        assert [path.name for path in home.iterdir()] == ["fs"]
    finally:
        scratch.remove_tree(home, identity)


def test_sandboxes_of_a_forked_process(rootfs: Path) -> None:
    with Sandbox(SandboxSpec(layers=(rootfs,), limits=ResourceLimits(pids=50))):
        script = (
            "import multiprocessing, sys\nfrom pathlib import Path\n"
            "from skill2env.sandbox.session import Sandbox, SandboxSpec\n"
            "spec = SandboxSpec(layers=(Path(sys.argv[1]),))\n"
            "def work(queue):\n"
            "    with Sandbox(spec) as box: queue.put(box.exec(['echo', 'x']).stdout)\n"
            "with Sandbox(spec):\n"
            "    context = multiprocessing.get_context('fork')\n    queue = context.Queue()\n"
            "    child = context.Process(target=work, args=(queue,))\n    child.start()\n"
            "    print(queue.get(timeout=30))\n    child.join()\n"
        )
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script, str(rootfs)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stdout == "b'x\\n'\n", done.stderr


def test_an_unwritable_cache_is_a_message(
    rootfs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("mount") is None or os.geteuid() == 0:
        blocked = tmp_path / "file"
        blocked.write_text("not a folder")
    else:
        blocked = tmp_path / "closed"
        blocked.mkdir(mode=0o500)
    monkeypatch.setenv("SKILL2ENV_CACHE", str(blocked / "cache"))
    with pytest.raises(Exception, match="cannot make") as caught:
        Sandbox(SandboxSpec(layers=(rootfs,))).start()
    assert "SKILL2ENV_CACHE" in getattr(caught.value, "hint", "")


def test_sweep_ends_a_sandbox_that_was_never_released(rootfs: Path) -> None:
    """Its owner died between starting bubblewrap and letting it run, so nothing tells it to end."""
    del rootfs
    identity = current_identity()
    folder = scratch.runtime_folder(identity) / "4000000-1-1"
    folder.mkdir()
    waiting = subprocess.Popen(
        ["/gone/bwrap", "-c", "sleep 86322 & wait", "--overlay", f"{folder}/upper"], executable="/bin/sh"
    )
    other = subprocess.Popen(
        ["/gone/other", "-c", "sleep 86322 & wait", f"{folder}/upper"], executable="/bin/sh"
    )
    try:
        scratch.sweep(identity)
        assert waiting.wait(10) == -signal.SIGKILL
        assert other.poll() is None
        assert not folder.exists()
    finally:
        for process in (waiting, other):
            process.kill()
            process.wait()
        subprocess.run(["pkill", "-f", "sleep 86322"], check=False)
