"""One suite for `Sandbox`, the same in every identity tier: what callers may count on."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skill2env.errors import InfraError, UserError
from skill2env.sandbox.session import ExecOutcome, ResourceLimits, Sandbox, SandboxSpec, kill_started_by

pytestmark = pytest.mark.sandbox


def sh(box: Sandbox, script: str, **settings: object) -> ExecOutcome:
    return box.exec(["/bin/bash", "-c", script], **settings)  # pyright: ignore[reportArgumentType]


# ---------------------------------------------------------------------------------------- plain commands


def test_streams_and_exit_code(box: Sandbox) -> None:
    done = sh(box, "echo out; echo err >&2; exit 7")
    assert (done.return_code, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
    assert not done.timed_out
    assert not done.truncated


def test_stderr_can_join_stdout_in_order(box: Sandbox) -> None:
    done = sh(box, "echo 1; echo 2 >&2; echo 3", merge_stderr=True)
    assert (done.stdout, done.stderr) == (b"1\n2\n3\n", b"")


def test_killed_by_a_signal_is_128_and_more(box: Sandbox) -> None:
    assert sh(box, "kill -TERM $$").return_code == 128 + 15


@pytest.mark.parametrize(
    ("argv", "settings", "told"),
    [
        (["no-such-program"], {}, b"No such file or directory: no-such-program"),
        (["/etc/passwd"], {}, b"Permission denied: /etc/passwd"),
        (["true"], {"cwd": "/no/such/folder"}, b"No such file or directory: /no/such/folder"),
    ],
)
def test_what_cannot_start_is_an_outcome(
    box: Sandbox, argv: list[str], settings: dict[str, str], told: bytes
) -> None:
    done = box.exec(argv, **settings)  # pyright: ignore[reportArgumentType]
    assert (done.return_code, done.stderr) == (127, told)


def test_environment_is_clean(box: Sandbox) -> None:
    done = box.exec(["env"], env={"NAME": "a b=c\nd", "LEER": ""})
    lines = set(done.stdout.decode().splitlines())
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert lines == {f"PATH={path}", "HOME=/root", "NAME=a b=c", "d", "LEER="}


def test_working_directory(box: Sandbox) -> None:
    assert box.exec(["pwd"], cwd="/usr/share").stdout == b"/usr/share\n"


def test_input(box: Sandbox) -> None:
    data = os.urandom(3_000_000)
    assert box.exec(["cat"], stdin=data).stdout == data
    assert box.exec(["cat"]).stdout == b""
    assert box.exec(["true"], stdin=data).return_code == 0  # nobody reads it


def test_unicode_and_any_bytes(box: Sandbox) -> None:
    name = "grüße-\U0001f600 ' \" $x"
    assert box.exec(["printf", "%s", name]).stdout.decode() == name
    assert box.exec(["printf", r"\xff\x00\xfe"]).stdout == b"\xff\x00\xfe"
    odd = os.fsdecode(b"\xff\xfe")
    assert box.exec(["printf", "%s", odd]).stdout == b"\xff\xfe"


def test_arguments_longer_than_a_packet(box: Sandbox) -> None:
    long = ["x" * 100_000] * 5
    assert len(box.exec(["echo", *long]).stdout) == 500_005


def test_nul_is_refused(box: Sandbox) -> None:
    with pytest.raises(ValueError, match="NUL"):
        box.exec(["echo", "a\0b"])


# ---------------------------------------------------------------------------------------- users


def test_root_by_default(box: Sandbox) -> None:
    assert box.exec(["id", "-u"]).stdout == b"0\n"
    for user in ("root", 0, "0"):
        assert box.exec(["id", "-un"], user=user).stdout == b"root\n"


def test_other_users(box: Sandbox) -> None:
    if not box.identity.several_users:
        with pytest.raises(UserError, match="single-uid") as caught:
            box.exec(["id"], user="nobody")
        assert "--add-subuids" in caught.value.hint
        return
    assert sh(box, "id -un; echo $HOME", user="nobody").stdout == b"nobody\n/nonexistent\n"
    assert box.exec(["id", "-u"], user=4321).stdout == b"4321\n"
    assert sh(box, "id -u; id -g; id -G", user="4321:9").stdout == b"4321\n9\n9\n"
    assert sh(box, "groups", user="_apt").stdout == b"nogroup\n"
    missing = box.exec(["id"], user="nobody-of-that-name")
    assert missing.return_code == 127
    assert b"no user nobody-of-that-name" in missing.stderr


def test_a_user_has_no_power_over_root(box: Sandbox) -> None:
    if not box.identity.several_users:
        pytest.skip("one uid")
    sh(box, "umask 077; echo secret > /root/secret; sleep 60 & echo $! > /tmp/victim")
    tried = sh(
        box, "cat /root/secret; kill $(cat /tmp/victim); chmod 777 /root; echo x > /etc/passwd", user="nobody"
    )
    assert tried.return_code != 0
    assert tried.stdout == b""
    assert sh(box, "kill $(cat /tmp/victim)").return_code == 0


# ---------------------------------------------------------------------------------------- time


def test_time_out_kills_the_whole_family(box: Sandbox) -> None:
    script = "sleep 71 & (setsid sleep 71 &) ; bash -c 'trap \"\" TERM; sleep 71' & echo started; wait"
    began = time.monotonic()
    done = sh(box, script, timeout_sec=1)
    assert time.monotonic() - began < 4
    assert (done.return_code, done.timed_out, done.stdout) == (124, True, b"started\n")
    # A daemon that left the family is the sandbox's to end; everything else is gone.
    left = sh(box, "ps -eo pid,ppid,args | grep '[s]leep 71'").stdout.decode().split("\n")
    assert all(line.split()[1] == "1" for line in left if line)
    sh(box, "pkill -KILL sleep")


def test_fast_commands_do_not_wait(box: Sandbox) -> None:
    began = time.monotonic()
    for number in range(50):
        assert box.exec(["/bin/echo", str(number)]).stdout == f"{number}\n".encode()
    assert time.monotonic() - began < 50 * 0.05  # a few milliseconds each where nothing else runs


def test_a_background_child_does_not_hold_the_command(box: Sandbox) -> None:
    began = time.monotonic()
    done = sh(box, "sleep 30 & echo $!")
    assert time.monotonic() - began < 3
    # It lives on, as in a container.
    assert box.exec(["kill", done.stdout.decode().strip()]).return_code == 0


def test_late_output_of_a_helper_is_kept(box: Sandbox) -> None:
    assert sh(box, "(sleep 0.1; echo late) & echo early").stdout == b"early\nlate\n"


def test_kill_from_another_thread(box: Sandbox) -> None:
    command = box.start_command(["sleep", "30"])
    threading.Timer(0.2, command.kill).start()
    began = time.monotonic()
    assert command.wait().return_code == 137
    assert time.monotonic() - began < 5


# ---------------------------------------------------------------------------------------- floods and bombs


def test_flood_is_cut(box: Sandbox) -> None:
    done = sh(box, "yes | head -c 50000000; echo end >&2", output_limit=1000)
    assert (len(done.stdout), done.stderr, done.truncated, done.return_code) == (1000, b"end\n", True, 0)


def test_endless_flood_ends_with_the_time(box: Sandbox) -> None:
    began = time.monotonic()
    done = box.exec(["yes"], timeout_sec=1, output_limit=10)
    assert time.monotonic() - began < 5
    assert done.timed_out
    assert done.stdout == b"y\ny\ny\ny\ny\n"


def test_fork_bomb(new_box: Callable[..., Sandbox]) -> None:
    box = new_box(limits=ResourceLimits(pids=100))
    assert {"pids"} <= set(box.enforced.hard) | set(box.enforced.watched)
    before = len(list(Path("/proc").glob("[0-9]*")))
    done = sh(box, "b() { b | b & }; b; sleep 60", timeout_sec=2)
    assert done.return_code in (124, 254, 1)
    assert len(list(Path("/proc").glob("[0-9]*"))) < before + 150
    # The sandbox is usable again.
    for _ in range(100):
        if box.exec(["true"]).return_code == 0:
            break
        time.sleep(0.05)
    assert box.exec(["echo", "alive"]).stdout == b"alive\n"


def test_threads_count_as_processes(new_box: Callable[..., Sandbox]) -> None:
    box = new_box(limits=ResourceLimits(pids=40))
    script = (
        "import threading, time\n"
        "[threading.Thread(target=time.sleep, args=(9,), daemon=True).start() for _ in range(60)]"
    )
    done = box.exec(["python3", "-c", script], timeout_sec=20)
    assert done.return_code == 1
    assert b"can't start new thread" in done.stderr


def test_memory_hog(new_box: Callable[..., Sandbox]) -> None:
    box = new_box(limits=ResourceLimits(memory_mb=200))
    hog = (
        "import time\nx = []\n"
        "for _ in range(100):\n    x.append(bytearray(b'x') * 10**7)\n    time.sleep(0.02)\n"
        "print('fits')"
    )
    done = box.exec(["python3", "-c", hog], timeout_sec=30)
    assert (done.return_code, done.stdout) == (137, b"")
    if "memory_mb" in box.enforced.watched:
        assert "200 MiB of memory" in done.breach
        assert b"200 MiB of memory" in done.stderr
    # Only the hog died.
    assert box.exec(["echo", "alive"]).stdout == b"alive\n"


def test_one_huge_allocation(new_box: Callable[..., Sandbox]) -> None:
    box = new_box(limits=ResourceLimits(memory_mb=200))
    done = box.exec(["python3", "-c", "x = b'x' * (8 * 2**30); print(len(x))"], timeout_sec=30)
    assert done.return_code in (1, 137)
    assert done.stdout == b""


def test_memory_file_systems_are_bounded(box: Sandbox) -> None:
    for folder in ("/dev/shm", "/run"):
        done = sh(box, f"head -c 2G /dev/zero > {folder}/big; echo $?; rm {folder}/big")
        assert done.stdout == b"1\n", folder
        assert b"No space left" in done.stderr
    assert sh(box, "echo > /dev/big").return_code != 0


def test_disk_limit(new_box: Callable[..., Sandbox]) -> None:
    box = new_box(limits=ResourceLimits(storage_mb=50))
    assert "storage_mb" in box.enforced.watched
    one = sh(box, "head -c 60M /dev/zero > /big")
    assert one.return_code == 128 + 25  # SIGXFSZ: no single file may be larger
    many = sh(
        box,
        "mkdir -m 0 /closed; for n in 1 2 3; do head -c 40M /dev/zero > /closed/$n; done; sleep 60",
        timeout_sec=50,
    )
    assert many.return_code == 137
    assert "wrote more than 50 MiB" in many.breach
    assert sh(box, "echo x > /more").return_code != 0
    assert sh(box, "head -c 1 /closed/1 | wc -c").stdout == b"1\n"


def test_processors(new_box: Callable[..., Sandbox]) -> None:
    box = new_box(limits=ResourceLimits(cpus=1))
    assert "cpus" in box.enforced.hard
    spin = (
        "import os, time\nos.fork()\nbegin, end = time.process_time(), time.monotonic() + 1\n"
        "while time.monotonic() < end: pass\nprint(time.process_time() - begin)"
    )
    used = [float(line) for line in box.exec(["python3", "-c", spin], timeout_sec=20).stdout.split()]
    assert sum(used) < 1.5


# ---------------------------------------------------------------------------------------- life


def test_what_is_there(box: Sandbox) -> None:
    script = "stat -c '%a %F' /tmp /dev/shm /run; test -c /dev/null && test -e /dev/ptmx && ls -d /dev/pts && hostname"
    assert sh(box, script).stdout == b"1777 directory\n1777 directory\n755 directory\n/dev/pts\nsandbox\n"
    assert sh(box, "python3 -c 'import pty; print(len(pty.openpty()))'").stdout == b"2\n"
    assert sh(box, "getent hosts localhost && getent hosts $(hostname)").return_code == 0
    loopback = (
        "import socket, threading\nl = socket.create_server(('localhost', 0))\n"
        "c = socket.create_connection(l.getsockname()); print('linked')"
    )
    assert box.exec(["python3", "-c", loopback]).stdout == b"linked\n"


def test_sandboxes_do_not_share_anything(new_box: Callable[..., Sandbox]) -> None:
    first, second = new_box(), new_box()
    sh(first, "echo x > /left; echo x > /tmp/left; echo x > /dev/shm/left; rm /etc/passwd; sleep 50 &")
    assert sh(second, "ls /left /tmp/left /dev/shm/left; test -s /etc/passwd; pgrep sleep").stdout == b""
    assert sh(second, "wc -l < /etc/passwd").stdout != b"0\n"


def test_stop_is_idempotent_and_final(rootfs: Path) -> None:
    box = Sandbox(SandboxSpec(layers=(rootfs,)))
    box.stop()
    with pytest.raises(InfraError, match="before it started"):
        box.start()
    with Sandbox(SandboxSpec(layers=(rootfs,))) as other:
        assert other.running
        other.stop()
        other.stop()
        assert not other.running
        with pytest.raises(InfraError, match="not running"):
            other.exec(["true"])


def test_stop_under_a_running_command(new_box: Callable[..., Sandbox]) -> None:
    box = new_box()
    command = box.start_command(["sleep", "60"])
    threading.Timer(0.3, box.stop).start()
    with pytest.raises(InfraError, match="ended while a command was running"):
        command.wait()


def test_killing_what_a_thread_started(new_box: Callable[..., Sandbox], box: Sandbox) -> None:
    caught: list[InfraError] = []
    started = threading.Event()

    def work() -> None:
        command = new_box().start_command(["sleep", "60"])
        started.set()
        try:
            command.wait()
        except InfraError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    started.wait(10)
    assert thread.ident is not None
    kill_started_by(thread.ident)
    thread.join(10)
    assert len(caught) == 1
    assert box.exec(["true"]).return_code == 0  # of another thread


def test_survives_the_thread_that_started_it(rootfs: Path) -> None:
    box = Sandbox(SandboxSpec(layers=(rootfs,)))
    thread = threading.Thread(target=box.start)
    thread.start()
    thread.join()
    try:
        time.sleep(0.3)
        assert box.exec(["echo", "alive"]).stdout == b"alive\n"
    finally:
        box.stop()


def test_many_threads_one_sandbox(box: Sandbox) -> None:
    def one(number: int) -> bytes:
        return sh(box, f"echo {number}; head -c 200000 /dev/zero | tr '\\0' x").stdout

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(one, range(64)))
    assert found == [f"{n}\n".encode() + b"x" * 200_000 for n in range(64)]


def test_descriptors_are_given_back(rootfs: Path) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    with Sandbox(SandboxSpec(layers=(rootfs,))) as box:
        box.exec(["true"])
        before = count()
        for _ in range(20):
            box.exec(["cat"], stdin=b"x")
            box.exec(["sleep", "5"], timeout_sec=0.05)
            box.exec(["no-such-program"])
        assert count() <= before
    outside = count()
    for _ in range(3):
        with Sandbox(SandboxSpec(layers=(rootfs,))):
            pass
    assert count() == outside


def test_image_without_python(rootfs: Path) -> None:
    with Sandbox(SandboxSpec(layers=(rootfs,))) as box:
        upper = box._scratch.upper  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
        sh(box, "rm /usr/bin/python3")
        with pytest.raises(InfraError, match="no /usr/bin/python3") as caught:
            Sandbox(SandboxSpec(layers=(rootfs, upper))).start()
    assert "Keep the python3" in caught.value.hint
    assert not caught.value.transient


def test_a_layer_holds_nothing_of_ours(rootfs: Path) -> None:
    for extra in ("", "rm /etc/hosts"):
        with Sandbox(SandboxSpec(layers=(rootfs,), build=True)) as box:
            sh(box, extra or "true")
            upper = box._scratch.upper  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
            made = {path.relative_to(upper).as_posix() for path in upper.rglob("*")}
            assert made <= {"etc", "etc/hosts"}
            assert not (upper / "etc/hosts").is_file()
        # Without the file, names of the machine resolve all the same.
    with Sandbox(SandboxSpec(layers=(rootfs,))) as box:
        assert sh(box, "tail -n 1 /etc/hosts").stdout == b"127.0.1.1\tsandbox\n"


def test_layers_and_kept_upper(rootfs: Path) -> None:
    with Sandbox(SandboxSpec(layers=(rootfs,))) as first:
        sh(first, "mkdir /data; echo one > /data/a; echo one > /data/b; rm /etc/issue")
        upper = first._scratch.upper  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
        with Sandbox(SandboxSpec(layers=(rootfs, upper))) as second:
            sh(second, "echo two > /data/b; rm /data/a")
            assert sh(second, "ls /data; cat /data/b; ls /etc/issue").stdout == b"b\ntwo\n"
        assert sh(first, "cat /data/a /data/b").stdout == b"one\none\n"
