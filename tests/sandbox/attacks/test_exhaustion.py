"""Using up what the host has: each attack ends with the limit that holds it, and the host goes on.

With control groups the kernel refuses; elsewhere everything inside is killed soon after. Both are tested where root
runs the tests: `watched` sandboxes are made as on a machine without control groups.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skill2env.sandbox import limits as limits_module
from skill2env.sandbox.cgroups import Group
from skill2env.sandbox.command import ExecOutcome
from skill2env.sandbox.session import ResourceLimits, Sandbox

pytestmark = pytest.mark.sandbox
MEMORY = ResourceLimits(memory_mb=200, pids=100)


@pytest.fixture(params=["as here", "watched"])
def confined(
    request: pytest.FixtureRequest, fresh: Callable[..., Sandbox], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Sandbox]:
    """Starts a sandbox with limits: as this machine holds them, and without control groups."""
    if request.param == "watched":
        monkeypatch.setattr(limits_module, "make_group", no_group)
    return fresh


def no_group(wanted: object) -> Group:
    """As where control groups cannot be written."""
    assert wanted is not None
    return Group()


def gone(pid: int) -> bool:
    """A process that ended and was collected, within a moment: its parent outside is whoever collects orphans."""
    end = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.02)
    return not Path(f"/proc/{pid}").exists()


def available_mb() -> int:
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) // 1024


MEMORY_BOMBS = {
    "one process": "x = []\nwhile True: x.append(b'x' * 2**20)",
    "many processes": (
        "for _ in range(20):\n  if os.fork() == 0:\n    x = b'x' * (50 * 2**20); time.sleep(3); os._exit(0)\n"
        "time.sleep(4); sys.exit(9)"
    ),
    "shared anonymous memory": (
        "import mmap\nkept = []\nwhile True:\n  m = mmap.mmap(-1, 32 * 2**20); m.write(b'x' * len(m)); kept.append(m)\n"
        "  time.sleep(0.02)\n  if len(kept) > 60: print('BROKEN'); break"
    ),
    "memory files": (
        "kept = []\ntry:\n  for _ in range(60):\n    f = os.memfd_create('x'); os.write(f, b'x' * (32 * 2**20))\n"
        "    kept.append(f)\n"
        "except OSError: sys.exit(9)\nprint('BROKEN')"
    ),
    "System V segments": (
        "shmget = libc.shmget\nkept = 0\nlibc.shmat.restype = ctypes.c_void_p\nfor n in range(60):\n"
        "  i = shmget(0, ctypes.c_size_t(32 * 2**20), 0o1600)\n  if i < 0: sys.exit(9)\n"
        "  p = libc.shmat(i, None, 0); ctypes.memset(p, 1, 32 * 2**20); libc.shmdt(ctypes.c_void_p(p))\nprint('BROKEN')"
    ),
    "files in memory": (
        "n = 0\nfor folder in ('/dev/shm', '/run', '/tmp'):\n  try:\n    with open(folder + '/fill', 'wb') as f:\n"
        "      while n < 2000: f.write(b'x' * 2**20); n += 1\n  except OSError: pass\n"
        "  if folder == '/run' and n > 900: print('BROKEN')\n  if folder == '/run': break\nsys.exit(9)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MEMORY_BOMBS)
def test_memory(confined: Callable[..., Sandbox], in_fresh: Callable[..., ExecOutcome], name: str) -> None:
    box = confined(limits=MEMORY)
    before = available_mb()
    done = in_fresh(box, MEMORY_BOMBS[name], timeout_sec=25)
    assert b"BROKEN" not in done.stdout
    assert done.return_code in (1, 9, 137, 124), done
    if done.return_code == 137 and "memory_mb" in box.enforced.watched:
        assert "MiB of memory" in done.breach
    assert box.exec(["echo", "alive"], timeout_sec=20).stdout == b"alive\n"
    assert before - available_mb() < 1500


PROCESS_BOMBS = {
    "fork bomb": "while True:\n  try: os.fork()\n  except OSError: time.sleep(0.01)",
    "forks that end at once": (
        "end = time.time() + 3\nwhile time.time() < end:\n  try:\n    if os.fork() == 0: os._exit(0)\n"
        "  except OSError: pass"
    ),
    "threads": (
        "n = 0\ntry:\n  while n < 3000:\n    threading.Thread(target=time.sleep, args=(20,), daemon=True).start()\n"
        "    n += 1\n"
        "except RuntimeError: pass\nprint('BROKEN' if n >= 3000 else 'held', n); sys.stdout.flush(); os._exit(0)"
    ),
    "daemons that ignore every signal": (
        "for _ in range(30):\n  if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "      for n in set(range(1, 65)) - {9, 19, 32, 33}: signal.signal(n, signal.SIG_IGN)\n"
        "      time.sleep(600)\n    os._exit(0)\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROCESS_BOMBS)
def test_processes(
    confined: Callable[..., Sandbox], in_fresh: Callable[..., ExecOutcome], who: str | None, name: str
) -> None:
    box = confined(limits=ResourceLimits(pids=100))
    done = in_fresh(box, PROCESS_BOMBS[name], timeout_sec=5, user=who)
    assert b"BROKEN" not in done.stdout
    pid = box._launched.init_pid  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
    began = time.monotonic()
    box.stop()
    assert time.monotonic() - began < 20
    assert gone(pid)


def test_open_files(
    fresh: Callable[..., Sandbox], in_fresh: Callable[..., ExecOutcome], who: str | None
) -> None:
    box = fresh()
    program = "n = 0\ntry:\n  while n < 200000: os.open('/dev/null', 0); n += 1\nexcept OSError as e: print(e.errno, n)"
    done = in_fresh(box, program, user=who)
    assert done.stdout.split()[0] == b"24"
    assert box.exec(["true"]).return_code == 0


def test_handles_of_the_kernel(
    fresh: Callable[..., Sandbox], in_fresh: Callable[..., ExecOutcome], who: str | None
) -> None:
    """Timers, queues, watches, pipes and pseudo-terminals run out inside before they do outside."""
    program = (
        "def until(step):\n  kept = []\n  try:\n    for n in range(30000): kept.append(step())\n"
        "  except OSError: pass\n"
        "  [os.close(f) for f in kept if isinstance(f, int) and f > 2]\n  return len(kept)\n"
        "def watch():\n  f = libc.inotify_init()\n  if f < 0: raise OSError\n  return f\n"
        "def terminal():\n  return os.open('/dev/ptmx', os.O_RDWR)\n"
        "def queue():\n  f = libc.mq_open(b'/q%d' % time.monotonic_ns(), 0o102, 0o600, None)\n"
        "  if f < 0: raise OSError\n  return f\n"
        "print(until(watch), until(terminal), until(queue))"
    )
    box = fresh()
    done = in_fresh(box, program, user=who)
    assert done.return_code == 0, done.stderr
    assert Path("/dev/ptmx").exists()
    assert box.exec(["true"]).return_code == 0


@pytest.mark.slow
def test_gigabytes_of_output(
    fresh: Callable[..., Sandbox], in_fresh: Callable[..., ExecOutcome], who: str | None
) -> None:
    before = int(Path("/proc/self/statm").read_text().split()[1])
    box = fresh()
    program = "b = b'x' * 2**20\nfor _ in range(4096): os.write(1, b); os.write(2, b[:4096])"
    done = in_fresh(box, program, timeout_sec=120, user=who)
    assert (done.return_code, done.truncated, len(done.stdout)) == (0, True, 16 * 2**20)
    del done
    assert int(Path("/proc/self/statm").read_text().split()[1]) - before < 20_000


DISK_BOMBS = {
    "one file": "with open('/var/tmp/fill', 'wb') as f:\n  while True: f.write(b'x' * 2**20)",
    "many files": (
        "n = 0\nwhile True:\n  with open(f'/var/tmp/fill{n}', 'wb') as f: f.write(b'x' * (10 * 2**20))\n  n += 1"
    ),
    "a deleted file that stays open": (
        "f = open('/var/tmp/gone', 'wb'); os.unlink('/var/tmp/gone')\nwhile True: f.write(b'x' * 2**20); f.flush()"
    ),
    "sparse files": "f = os.open('/var/tmp/s', 66)\nos.ftruncate(f, 2**50)",
    "preallocated files": "f = os.open('/var/tmp/s', 66)\nos.posix_fallocate(f, 0, 2**42)",
}  # fmt: skip


@pytest.mark.parametrize("name", DISK_BOMBS)
def test_disk(
    fresh: Callable[..., Sandbox], in_fresh: Callable[..., ExecOutcome], who: str | None, name: str
) -> None:
    box = fresh(limits=ResourceLimits(storage_mb=60))
    done = in_fresh(box, DISK_BOMBS[name], timeout_sec=30, user=who)
    assert done.return_code != 0
    assert not done.timed_out
    assert box.exec(["echo", "alive"], timeout_sec=20).stdout == b"alive\n"


def test_inodes(fresh: Callable[..., Sandbox], in_fresh: Callable[..., ExecOutcome], who: str | None) -> None:
    box = fresh(limits=ResourceLimits(storage_mb=1000))
    assert box._watched is not None  # pyright: ignore[reportPrivateUsage]
    assert box._watched.files <= 2_000_000  # pyright: ignore[reportPrivateUsage]
    box._watched.files = 3000  # pyright: ignore[reportPrivateUsage]
    program = "n = 0\nwhile n < 1_000_000:\n  open(f'/var/tmp/i{n}', 'w').close(); n += 1"
    done = in_fresh(box, program, timeout_sec=60, user=who)
    assert done.return_code == 137
    assert "more than 3000 files" in done.breach


@pytest.mark.parametrize(
    "name", ["ignores signals", "stops itself", "double fork", "writes for ever", "closes its output"]
)
def test_time(
    fresh: Callable[..., Sandbox], in_fresh: Callable[..., ExecOutcome], who: str | None, name: str
) -> None:
    program = {
        "ignores signals": (
            "[signal.signal(n, signal.SIG_IGN) for n in set(range(1, 65)) - {9, 19, 32, 33}]\ntime.sleep(600)"
        ),
        "stops itself": "os.kill(os.getpid(), 19)\ntime.sleep(600)",
        "double fork": (
            "if os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: time.sleep(601)\n  os._exit(0)\ntime.sleep(600)"
        ),
        "writes for ever": "while True: os.write(1, b'x' * 65536)",
        "closes its output": "os.close(1); os.close(2); time.sleep(600)",
    }[name]
    box = fresh()
    began = time.monotonic()
    done = in_fresh(box, program, timeout_sec=1, user=who)
    assert (done.return_code, done.timed_out) == (124, True)
    assert time.monotonic() - began < 8
    left = box.exec(["pgrep", "-f", "time.sleep"]).stdout.split()
    assert len(left) == (
        1 if name == "double fork" else 0
    )  # who detached himself lives until the sandbox ends
    pid = box._launched.init_pid  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
    box.stop()
    assert gone(pid)


def test_what_no_limit_holds_is_said(fresh: Callable[..., Sandbox], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "make_group", no_group)
    box = fresh(limits=ResourceLimits(cpus=0.5, memory_mb=500, pids=50, storage_mb=100))
    assert box.enforced.absent == ("cpus",)
    assert set(box.enforced.watched) >= {"memory_mb", "storage_mb"}
