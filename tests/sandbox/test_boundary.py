"""The boundary, attacked from inside: by root inside where that is stronger, in whatever tier the tests run."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skill2env.errors import InfraError
from skill2env.sandbox.identity import Tier
from skill2env.sandbox.session import Sandbox

pytestmark = pytest.mark.sandbox

KEPT = 0xFB
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID."""


def python(box: Sandbox, script: str, **settings: object) -> str:
    done = box.exec(["python3", "-c", script], timeout_sec=30, **settings)  # pyright: ignore[reportArgumentType]
    return (done.stdout + done.stderr).decode()


def status(box: Sandbox, **settings: object) -> dict[str, str]:
    done = box.exec(["cat", "/proc/self/status"], **settings)  # pyright: ignore[reportArgumentType]
    return dict(line.split(":\t") for line in done.stdout.decode().splitlines() if ":\t" in line)


def test_every_command_is_confined(box: Sandbox) -> None:
    found = status(box)
    assert found["Seccomp"] == "2"
    assert found["NoNewPrivs"] == "1"
    assert int(found["CapBnd"], 16) == KEPT
    assert int(found["CapEff"], 16) & ~KEPT == 0


def test_another_user_has_no_capability(box: Sandbox) -> None:
    if not box.identity.several_users:
        pytest.skip("one uid")
    found = status(box, user="nobody")
    assert found["Seccomp"] == "2"
    assert int(found["CapEff"], 16) == int(found["CapPrm"], 16) == int(found["CapAmb"], 16) == 0
    # A set-id program gives nothing back either.
    script = "cp /usr/bin/id /tmp/rootid && chmod 4755 /tmp/rootid"
    assert box.exec(["sh", "-c", script]).return_code == 0
    assert box.exec(["/tmp/rootid", "-u"], user="nobody").stdout == b"65534\n"


def test_host_root_is_never_inside(box: Sandbox) -> None:
    rows = [line.split() for line in box.exec(["cat", "/proc/self/uid_map"]).stdout.decode().splitlines()]
    outside = [range(int(first), int(first) + int(count)) for _, first, count in rows]
    assert rows
    assert not any(0 in ids for ids in outside)
    if box.identity.tier is not Tier.SINGLE:
        assert sum(len(ids) for ids in outside) > 1000


def test_kernel_settings_cannot_be_written(box: Sandbox) -> None:
    script = (
        "import os\nfor top, _, names in os.walk('/proc/sys'):\n  for n in names:\n    p = os.path.join(top, n)\n"
        "    try: os.close(os.open(p, os.O_WRONLY))\n    except OSError: continue\n    print(p)"
    )
    assert python(box, script) == ""
    for path in ("/proc/sysrq-trigger", "/proc/kcore", "/proc/kmsg", "/proc/1/oom_score_adj"):
        done = box.exec(["sh", "-c", f"echo -500 > {path}"])
        assert done.return_code != 0, path


CALLS: list[tuple[str, str]] = [
    ("mount", "libc.mount(b'none', b'/mnt', b'tmpfs', 0, None)"),
    ("umount", "libc.umount2(b'/run', 2)"),
    ("unshare user", "libc.unshare(0x10000000)"),
    ("unshare mount", "libc.unshare(0x00020000)"),
    ("unshare network", "libc.unshare(0x40000000)"),
    ("unshare time", "libc.unshare(0x00000080)"),
    ("clone user", "libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)"),
    ("setns", "libc.setns(0, 0)"),
    ("ptrace", "libc.ptrace(16, 1, 0, 0)"),
    ("keyctl", "libc.syscall(250, 0, 0)"),
    ("bpf", "libc.syscall(321, 0, 0, 0)"),
    ("perf", "libc.syscall(298, 0, 0, -1, -1, 0)"),
    ("userfaultfd", "libc.syscall(323, 0)"),
    ("io_uring", "libc.syscall(425, 1, 0)"),
    ("reboot", "libc.reboot(0)"),
    ("swapon", "libc.swapon(b'/x', 0)"),
    ("open_by_handle_at", "libc.open_by_handle_at(0, 0, 0)"),
    ("pivot_root", "libc.syscall(155, b'/', b'/')"),
    ("process_vm_readv", "libc.process_vm_readv(1, 0, 0, 0, 0, 0)"),
    ("settimeofday", "libc.settimeofday(b'\\0' * 16, None)"),
]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls of x86_64")
@pytest.mark.parametrize(("name", "call"), CALLS)
def test_forbidden_system_calls(box: Sandbox, name: str, call: str) -> None:
    script = f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint({call}, ctypes.get_errno())"
    assert python(box, script) == "-1 1\n", name


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls of x86_64")
def test_clone3_does_not_exist(box: Sandbox) -> None:
    script = (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.syscall(435, 0, 0), ctypes.get_errno())"
    )
    assert python(box, script) == "-1 38\n"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="another ABI of the same processor")
def test_other_abis_are_no_way_round(box: Sandbox) -> None:
    # x32: the same calls with bit 30 set.
    script = (
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.syscall(0x40000000 | 272, 0x10000000)\nprint('passed')"
    )
    assert "passed" not in python(box, script)


def test_only_local_socket_families(box: Sandbox) -> None:
    script = (
        "import socket\nfound = []\n"
        "for family in range(64):\n"
        "  for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):\n"
        "    try: socket.socket(family, kind).close()\n    except OSError: continue\n"
        "    found.append(family)\n"
        "print(sorted(set(found)))"
    )
    assert python(box, script) == "[1, 2, 10, 16]\n"


def test_nested_sandboxes_fail(box: Sandbox) -> None:
    assert box.exec(["unshare", "--user", "--map-root-user", "true"]).return_code != 0
    assert box.exec(["unshare", "--net", "true"]).return_code != 0
    assert box.exec(["mount", "-t", "tmpfs", "none", "/mnt"]).return_code != 0
    assert box.exec(["mknod", "/tmp/disk", "b", "8", "0"]).return_code != 0


def test_no_network_but_its_own_loopback(box: Sandbox) -> None:
    names = python(box, "import socket; print([n for _, n in socket.if_nameindex()])")
    assert names == "['lo']\n"
    reach = (
        "import socket, sys\n"
        "for target in (('192.0.2.1', 80), ('127.0.0.1', int(sys.argv[1]))):\n"
        "  try: socket.create_connection(target, 2); print('connected')\n"
        "  except OSError as e: print('refused')\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "try: s.sendto(b'x', ('192.0.2.1', 53)); print('sent')\n"
        "except OSError: print('refused')"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:  # a service of the host
        done = box.exec(["python3", "-c", reach, str(server.getsockname()[1])], timeout_sec=30)
    assert done.stdout == b"refused\nrefused\nrefused\n"


def test_abstract_sockets_of_the_host_are_out_of_reach(box: Sandbox) -> None:
    name = f"\0skill2env-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        script = (
            f"import socket\ns = socket.socket(socket.AF_UNIX)\ntry: s.connect({name!r}); print('connected')\n"
            "except OSError as e: print(type(e).__name__)"
        )
        assert python(box, script) == "ConnectionRefusedError\n"


def test_no_process_of_the_host_is_seen(box: Sandbox) -> None:
    done = box.exec(
        ["sh", "-c", "ls /proc | grep -c '^[0-9]'; cat /proc/1/comm; kill -0 -- -1; kill -9 1; echo here"]
    )
    lines = done.stdout.decode().split()
    assert int(lines[0]) < 8
    assert lines[1:] == ["python3", "here"]
    assert box.exec(["test", "-e", f"/proc/{os.getpid()}/root/work"]).return_code != 0


def test_system_v_memory_is_private(box: Sandbox) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    key = 0x5EED0000 | os.getpid() & 0xFFFF
    number = libc.shmget(key, 4096, 0o1666)
    assert number >= 0
    try:
        script = f"import ctypes\nprint(ctypes.CDLL(None).shmget({key}, 4096, 0))"
        assert python(box, script) == "-1\n"
    finally:
        libc.shmctl(number, 0, None)


@pytest.fixture
def host_file(tmp_path: Path) -> Iterator[Path]:
    tmp_path.chmod(0o755)
    path = tmp_path / "precious"
    path.write_text("precious")
    path.chmod(0o666)
    yield path
    assert path.read_text() == "precious"


def test_no_file_of_the_host_is_reached(box: Sandbox, host_file: Path) -> None:
    ways = [
        str(host_file),
        f"/proc/1/root{host_file}",
        f"/oldroot{host_file}",
        f"/newroot{host_file}",
        f"/../..{host_file}",
    ]
    for way in ways:
        assert box.exec(["sh", "-c", 'echo x > "$1"', "sh", way]).return_code != 0, way
    # Descriptors that process 1 inherited lead nowhere either.
    script = (
        "import os\nfor pid in ('1', 'self'):\n  for fd in os.listdir(f'/proc/{pid}/fd'):\n"
        "    p = f'/proc/{pid}/fd/{fd}'\n"
        "    try: print(os.readlink(p))\n    except OSError: pass"
    )
    links = [link for link in python(box, script).split() if link.startswith("/")]
    assert {link for link in links if not link.startswith("/proc/")} <= {"/dev/null"}


def test_our_programs_inside_are_read_only(box: Sandbox) -> None:
    for script in (
        "echo x > /run/skill2env/guest/init.py",
        "rm /run/skill2env/guest/init.py",
        "mkdir /run/skill2env/guest/__pycache__ || echo x > /run/skill2env/guest/__pycache__/init.cpython-311.pyc",
        "mv /run/skill2env/guest /tmp",
    ):
        assert box.exec(["sh", "-c", script]).return_code != 0, script


def test_base_image_is_not_changed(new_box: Callable[..., Sandbox], rootfs: Path) -> None:
    before = (rootfs / "etc/passwd").read_bytes()
    script = "echo evil >> /etc/passwd; chmod 777 /etc; rm -rf /usr/share; echo $?"
    assert new_box().exec(["sh", "-c", script]).stdout == b"0\n"
    assert (rootfs / "etc/passwd").read_bytes() == before
    assert (rootfs / "usr/share").is_dir()


def test_process_1_cannot_be_rewritten(box: Sandbox) -> None:
    # Root inside has its uid, and system calls for tracing are not the only way into another process.
    for path in ("/proc/1/mem", "/proc/1/task/1/mem", "/proc/1/task/../mem"):
        for mode in ("rb", "r+b"):
            told = python(box, f"open({path!r}, {mode!r})")
            assert "PermissionError" in told, (path, mode, told)
    # Where a link of proc leads out of the masked name, it leads to another process.
    assert python(box, "import os; print(os.readlink('/proc/self'))") != "1\n"
    for number in (9, 19, 15, 2):
        assert box.exec(["kill", f"-{number}", "1"]).return_code in (0, 1)
    assert box.exec(["echo", "alive"]).stdout == b"alive\n"


def test_a_process_1_that_does_not_answer_is_given_up(new_box: Callable[..., Sandbox]) -> None:
    box = new_box()
    launched = box._launched  # pyright: ignore[reportPrivateUsage]
    assert launched is not None
    os.kill(launched.init_pid, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(InfraError, match="does not answer"):
        box.exec(["true"], timeout_sec=0.5)
    assert time.monotonic() - began < 10
    while box.running:  # it was told to end; on a busy machine that takes a moment
        assert time.monotonic() - began < 20
        time.sleep(0.02)


def test_endings_of_the_host_process(rootfs: Path) -> None:
    """However the host process ends, nothing of the sandbox stays (kill -9 is in test_lifetime)."""
    script = (
        "import sys\nfrom pathlib import Path\nfrom skill2env.sandbox.session import Sandbox, SandboxSpec\n"
        f"box = Sandbox(SandboxSpec(layers=(Path({str(rootfs)!r}),)))\nbox.start()\n"
        "box.start_command(['sleep', '86123'])\nprint('up', flush=True)\n"
    )
    for ending in (
        "sys.exit(3)",
        "raise RuntimeError('x')",
        "import os; os._exit(1)",
        "import os; os.abort()",
    ):
        done = subprocess.run(
            [sys.executable, "-c", script + ending], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.stdout == "up\n", done.stderr
        assert done.returncode != 0
    left = subprocess.run(["pgrep", "-f", "sleep 86123"], capture_output=True, text=True, check=False)
    assert left.stdout == ""
