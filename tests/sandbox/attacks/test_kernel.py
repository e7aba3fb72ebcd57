"""System calls that lead out, asked for directly: each as root inside and as an agent without rights."""

import json
import os
from collections.abc import Callable

import pytest

from skill2env.sandbox.command import ExecOutcome
from skill2env.sandbox.session import Sandbox

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls of x86_64"),
]

NO = ("EPERM",)
CALLS: dict[str, tuple[str, tuple[str, ...]]] = {
    # mounts, old and new interface
    "mount tmpfs": ("call(165, b'none', b'/mnt', b'tmpfs', 0, 0)", NO),
    "mount proc": ("call(165, b'none', b'/mnt', b'proc', 0, 0)", NO),
    "mount sysfs": ("call(165, b'none', b'/mnt', b'sysfs', 0, 0)", NO),
    "mount bind": ("call(165, b'/etc', b'/mnt', 0, 4096, 0)", NO),
    "remount writable": ("call(165, b'none', b'/proc/sys', 0, 4096 | 32, 0)", NO),
    "mount over our programs": ("call(165, b'/tmp', b'/run/skill2env/guest', 0, 4096, 0)", NO),
    "umount": ("call(166, b'/proc/sys', 2)", NO),
    "pivot_root": ("call(155, b'/tmp', b'/tmp')", NO),
    "chroot": ("call(161, b'/tmp')", NO),
    "fsopen": ("call(430, b'tmpfs', 0)", NO),
    "fsconfig": ("call(431, 0, 6, 0, 0, 0)", NO),
    "fsmount": ("call(432, 0, 0, 0)", NO),
    "fspick": ("call(433, -100, b'/', 0)", NO),
    "open_tree": ("call(428, -100, b'/', 1)", NO),
    "move_mount": ("call(429, -100, b'/tmp', -100, b'/mnt', 0)", NO),
    "mount_setattr": ("call(442, -100, b'/proc/sys', 0, struct.pack('QQQQ', 0, 1, 0, 0), 32)", NO),
    "open_tree_attr": ("call(467, -100, b'/', 1, 0, 0)", ("ENOSYS",)),
    "quotactl": ("call(179, 0x80000200, b'/dev/vda', 0, 0)", NO),
    "swapon": ("call(167, b'/tmp/swap', 0)", NO),
    "acct": ("call(163, b'/tmp/acct')", NO),
    # namespaces
    **{
        f"unshare {name}": (f"call(272, {flag})", NO)
        for name, flag in {
            "user": 0x10000000, "mount": 0x20000, "net": 0x40000000, "pid": 0x20000000, "ipc": 0x8000000,
            "uts": 0x4000000, "cgroup": 0x2000000, "time": 0x80,
        }.items()
    },
    **{
        f"clone {name}": (f"call(56, {flag} | 17, 0, 0, 0, 0)", NO)
        for name, flag in {"user": 0x10000000, "mount": 0x20000, "net": 0x40000000, "pid": 0x20000000}.items()
    },
    "clone with high bits": ("call(56, (1 << 32) | 0x10000000 | 17, 0, 0, 0, 0)", NO),
    "clone3": ("call(435, struct.pack('8Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64)", ("ENOSYS",)),
    "setns by pidfd": ("call(308, os.pidfd_open(1), 0x20000)", NO),
    "setns by file": ("call(308, os.open('/proc/self/ns/user', 0), 0)", NO),
    # other processes
    "ptrace attach to 1": ("call(101, 16, 1, 0, 0)", NO),
    "ptrace seize of 1": ("call(101, 0x4206, 1, 0, 0)", NO),
    "process_vm_readv of 1": ("call(310, 1, 0, 0, 0, 0, 0)", NO),
    "process_vm_writev to 1": ("call(311, 1, 0, 0, 0, 0, 0)", NO),
    "kcmp": ("call(312, 1, 1, 0, 0, 0)", NO),
    "pidfd_getfd of 1": ("call(438, os.pidfd_open(1), 3, 0)", NO),
    "process_madvise": ("call(440, os.pidfd_open(1), 0, 0, 20, 0)", NO),
    "move_pages of 1": ("call(279, 1, 0, 0, 0, 0, 0)", NO),
    "migrate_pages of 1": ("call(256, 1, 0, 0, 0)", NO),
    # kernel subsystems
    "bpf": ("call(321, 0, 0, 0)", NO),
    "perf_event_open": ("call(298, b'\\0' * 128, 0, -1, -1, 0)", NO),
    "userfaultfd": ("call(323, 1)", NO),
    "io_uring_setup": ("call(425, 8, b'\\0' * 120)", NO),
    "io_uring_enter": ("call(426, 0, 0, 0, 0, 0)", NO),
    "io_uring_register": ("call(427, 0, 0, 0, 0)", NO),
    "keyctl session": ("call(250, 0, -3, 1)", NO),
    "add_key": ("call(248, b'user', b'x', b'y', 1, -3)", NO),
    "request_key": ("call(249, b'user', b'x', 0, -3)", NO),
    "init_module": ("call(175, 0, 0, b'')", NO),
    "finit_module": ("call(313, 0, b'', 0)", NO),
    "delete_module": ("call(176, b'x', 0)", NO),
    "kexec_load": ("call(246, 0, 0, 0, 0)", NO),
    "kexec_file_load": ("call(320, 0, 0, 0, 0, 0)", NO),
    "reboot": ("call(169, 0xfee1dead, 672274793, 0x1234567, 0)", NO),
    "syslog": ("call(103, 3, 0, 0)", NO),
    "fanotify_init": ("call(300, 0, 0)", NO),
    "name_to_handle_at": ("call(303, -100, b'/', b'\\x80' + b'\\0' * 200, b'\\0' * 8, 0)", NO),
    "open_by_handle_at": ("call(304, -100, b'\\0' * 64, 0)", NO),
    "memfd_secret": ("call(447, 0)", NO),
    "iopl": ("call(172, 3)", NO),
    "ioperm": ("call(173, 0x70, 2, 1)", NO),
    "modify_ldt": ("call(154, 0, 0, 0)", NO),
    "vhangup": ("call(153)", NO),
    "a call of next year": ("call(500, 0)", ("ENOSYS",)),
    "lease on a program": ("call(72, os.open('/bin/bash', 0), 1024, 1)", NO),
    # clocks, names, priorities, rights
    "settimeofday": ("call(164, struct.pack('qq', 1, 0), 0)", NO),
    "clock_settime": ("call(227, 0, struct.pack('qq', 1, 0))", NO),
    "clock_adjtime": ("call(305, 0, b'\\1' + b'\\0' * 300)", NO),
    "adjtimex": ("call(159, struct.pack('I', 1) + b'\\0' * 300)", NO),
    "sethostname": ("call(170, b'evil', 4)", NO),
    "setdomainname": ("call(171, b'evil', 4)", NO),
    "realtime scheduling": ("call(144, 0, 1, struct.pack('i', 50))", NO),
    "higher priority": ("call(141, 0, 0, -20)", ("EACCES", "EPERM")),
    "realtime disk priority": ("call(251, 1, 0, (1 << 13))", NO),
    "raise the limit of open files": ("call(160, 7, struct.pack('QQ', 1 << 20, 1 << 20))", NO),
    "raise the limit of memory locks": ("call(160, 8, struct.pack('QQ', 1 << 40, 1 << 40))", NO),
    "lock all memory": ("(call(9, 0, 1 << 30, 3, 0x2022, -1, 0), call(151, 3))[1]", ("EPERM", "ENOMEM", "EAGAIN")),
    "give up no-new-privileges": ("call(157, 38, 0, 0, 0, 0)", ("EINVAL",)),
    "raise an ambient capability": ("call(157, 47, 2, 21, 0, 0)", NO),
    "capset": ("call(126, struct.pack('Ii', 0x20080522, 0), struct.pack('6I', *[0xffffffff] * 6))", NO),
    "leave the filter": ("call(317, 0, 0, 0)", ("EINVAL", "EFAULT", "EACCES")),
    "secure bits": ("call(157, 28, 0x3f, 0, 0, 0)", NO),
    "change the program's file": ("call(157, 35, 13, 0, 0, 0)", NO),
    # devices and sockets
    "mknod block": ("call(133, b'/tmp/disk', 0o60666, 0x800)", NO),
    "mknod char": ("call(133, b'/tmp/mem', 0o20666, 0x101)", NO),
    "mknodat": ("call(259, -100, b'/tmp/kmsg', 0o20666, 0x10b)", NO),
    "raw socket": ("call(41, 2, 3, 1)", NO),
    "raw IPv6 socket": ("call(41, 10, 3, 58)", NO),
    "packet socket": ("call(41, 17, 3, 768)", ("EAFNOSUPPORT",)),
    "vsock": ("call(41, 40, 1, 0)", ("EAFNOSUPPORT",)),
    "crypto socket": ("call(41, 38, 5, 0)", ("EAFNOSUPPORT",)),
    "bluetooth": ("call(41, 31, 3, 0)", ("EAFNOSUPPORT",)),
    "xdp": ("call(41, 44, 3, 0)", ("EAFNOSUPPORT",)),
    "family 2^32 + 17": ("call(41, (1 << 32) | 17, 3, 768)", ("EAFNOSUPPORT",)),
    "sctp": ("call(41, 2, 1, 132)", ("EPROTONOSUPPORT",)),
    "mptcp": ("call(41, 2, 1, 262)", ("EPROTONOSUPPORT",)),
    "dccp": ("call(41, 2, 6, 33)", ("EPROTONOSUPPORT",)),
    "netfilter over netlink": ("call(41, 16, 3, 12)", ("EPROTONOSUPPORT",)),
    "audit over netlink": ("call(41, 16, 3, 9)", ("EPROTONOSUPPORT",)),
    "generic netlink": ("call(41, 16, 3, 16)", ("EPROTONOSUPPORT",)),
    "crypto over netlink": ("call(41, 16, 3, 21)", ("EPROTONOSUPPORT",)),
}  # fmt: skip


@pytest.fixture(scope="module")
def answers(
    box: Sandbox, in_calls: Callable[[str | None], dict[str, str]]
) -> dict[str | None, dict[str, str]]:
    """What every call answered, by user."""
    users = [None, "nobody"] if box.several_users else [None]
    return {user: in_calls(user) for user in users}


@pytest.fixture(scope="module")
def in_calls(box: Sandbox, prelude: str) -> Callable[[str | None], dict[str, str]]:
    def ask(user: str | None) -> dict[str, str]:
        body = "".join(f"found[{name!r}] = {code}\n" for name, (code, _) in CALLS.items())
        program = f"{prelude}\nimport json\nfound = {{}}\n{body}print(json.dumps(found))"
        done = box.exec(["python3", "-c", program], user=user, timeout_sec=60)
        assert done.return_code == 0, done.stderr.decode()
        return json.loads(done.stdout)

    return ask


@pytest.mark.parametrize("name", CALLS)
def test_call(answers: dict[str | None, dict[str, str]], who: str | None, name: str) -> None:
    assert answers[who][name] in CALLS[name][1]


ABIS = {
    "x32 unshare": "libc.syscall(0x40000000 | 272, 0x10000000)",
    "x32 mount": "libc.syscall(0x40000000 | 165, 0, 0, 0, 0, 0)",
    # mov eax, NUMBER; mov ebx, CLONE_NEWUSER; int 0x80; ret - the calls of 32-bit programs
    "i386 unshare": (
        "import mmap; page = mmap.mmap(-1, 4096, prot=7); "
        "page.write(bytes.fromhex('b836010000bb00000010cd80c3')); "
        "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()"
    ),
}


@pytest.mark.parametrize("name", ABIS)
def test_calls_of_other_architectures_end_the_caller(
    attack: Callable[..., ExecOutcome], who: str | None, name: str
) -> None:
    done = attack(ABIS[name] + "\nprint('went on')", user=who)
    assert (done.return_code, done.stdout) == (128 + 31, b""), done.stderr  # SIGSYS
