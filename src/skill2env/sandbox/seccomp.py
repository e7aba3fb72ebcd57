"""System-call filters for sandboxes, as BPF programs that bubblewrap loads.

Covers: nested namespaces, mounting, tracing, kernel keyrings, BPF, performance counters, userfaultfd, io_uring,
modules, clocks, input into terminals (TIOCSTI), file leases, limits of other processes, calls newer than this program,
and every socket family and protocol but the usual ones of unix, IPv4, IPv6 and netlink: the others are not confined by
a network namespace (vsock reaches the hypervisor) or need kernel code that no task wants. Does not cover: bugs of the
kernel in the system calls that every program needs.

The filter holds in every process inside, because all of them descend from the first one.
"""

import errno
import functools
import struct
import tempfile

import pyseccomp

NAMESPACE_FLAGS = (
    0x00000080 | 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
)
"""CLONE_NEW{TIME,NS,CGROUP,UTS,IPC,USER,PID,NET} of ``unshare(2)``."""
CLONE_NEWTIME = 0x00000080
"""In ``clone(2)`` this bit belongs to the exit signal; only ``unshare`` and ``clone3`` know the flag."""

# fmt: off
DENIED = (
    "acct", "add_key", "bpf", "clock_adjtime", "clock_adjtime64", "clock_settime", "clock_settime64",
    "delete_module", "fanotify_init", "fanotify_mark", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick",
    "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup", "ioperm", "iopl", "kcmp",
    "kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "memfd_secret", "migrate_pages", "modify_ldt",
    "mount", "mount_setattr", "move_mount", "move_pages", "name_to_handle_at", "nfsservctl", "open_by_handle_at",
    "open_tree", "perf_event_open", "pidfd_getfd", "pivot_root", "process_madvise", "process_vm_readv",
    "process_vm_writev", "ptrace", "quotactl", "quotactl_fd", "reboot", "request_key", "setns", "settimeofday",
    "swapoff", "swapon", "syslog", "umount", "umount2", "uselib", "userfaultfd", "vhangup",
)
# fmt: on

NEWEST = 466
"""The newest system call that was looked at (removexattrat); newer ones do not exist inside. Since 424, numbers are the
same on all architectures."""

IOCTLS = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: put input into a terminal, as if somebody had typed it."""
LEASE = 1024
"""F_SETLEASE of ``fcntl``: lets a program hold up whoever opens or runs a file."""
HIGHEST_IP_PROTOCOL = 58
"""TCP, UDP and both ICMPs lie below; above are SCTP, L2TP, MPTCP and others that load modules on demand."""
DCCP = 33
NETLINK_PROTOCOLS = (0, 4, 15)
"""ROUTE, SOCK_DIAG, KOBJECT_UEVENT."""
SMALL_SHARED_BYTES = 65536
"""Largest System V segment where memory is watched and not limited: nobody sees what lies in one unattached."""
UNSEEN_MEMORY = ("memfd_create",)
"""Memory that belongs to no process, where memory is watched and not limited."""

SOCKET_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK."""

FAKE_OWNERSHIP = ("chown", "fchown", "lchown", "fchownat", "setgroups")
"""Answered with success, without effect, while a layer is built in a namespace with one uid."""


@functools.cache
def program(*, fake_ownership: bool = False, pinned: bool = False, watched: bool = False) -> bytes:
    """The compiled filter for this machine's architecture.

    Args:
        fake_ownership: also answer success to changes of ownership (building with a single uid only, never in trials).
        pinned: also forbid choosing processors, where that is how their number is limited.
        watched: also forbid memory that no look at the processes shows, where that is how memory is limited.
    """
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    rules.set_attr(
        pyseccomp.Attr.CTL_NNP, 0
    )  # bubblewrap has set no-new-privileges before it loads the filter
    refuse = pyseccomp.ERRNO(errno.EPERM)
    for name in (*DENIED, *(("sched_setaffinity",) if pinned else ())):
        if _exists(name):
            rules.add_rule(refuse, name)
    for bit in (1 << n for n in range(32) if NAMESPACE_FLAGS >> n & 1):
        masked = pyseccomp.Arg(0, pyseccomp.MASKED_EQ, bit, bit)
        rules.add_rule(refuse, "unshare", masked)
        if bit != CLONE_NEWTIME:
            rules.add_rule(refuse, "clone", masked)
    # The flags of clone3 lie in memory that a filter cannot read; C libraries fall back to clone on ENOSYS.
    rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    _confine_sockets(rules)
    for request in IOCTLS:
        rules.add_rule(refuse, "ioctl", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, 0xFFFFFFFF, request))
    rules.add_rule(refuse, "fcntl", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, 0xFFFFFFFF, LEASE))
    # Not even root inside may cripple process 1.
    other, given = pyseccomp.Arg(0, pyseccomp.GT, 0), pyseccomp.Arg(2, pyseccomp.NE, 0)
    rules.add_rule(refuse, "prlimit64", other, given)
    if watched:
        rules.add_rule(refuse, "shmget", pyseccomp.Arg(1, pyseccomp.GT, SMALL_SHARED_BYTES))
        for name in UNSEEN_MEMORY:
            rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), name)
    if fake_ownership:
        for name in FAKE_OWNERSHIP:
            if _exists(name):
                rules.add_rule(pyseccomp.ERRNO(0), name)
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return _NEWER + file.read()


def _instruction(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, true, false, value)


# In front of the rest, whose jumps are relative: a newer number is answered with ENOSYS. Numbers with bit 30 are x32's,
# which the rest kills.
_NEWER = (
    _instruction(0x20, 0)  # load the number
    + _instruction(0x35, NEWEST + 1, 0, 2)  # as large or larger?
    + _instruction(0x35, 0x40000000, 1, 0)
    + _instruction(0x06, 0x00050000 | errno.ENOSYS)
)


def _exists(name: str) -> bool:
    """True when this architecture has a system call of that name."""
    try:
        pyseccomp.resolve_syscall(pyseccomp.system_arch(), name)
    except OSError:
        return False
    return True


def _confine_sockets(rules: pyseccomp.SyscallFilter) -> None:
    refuse = pyseccomp.ERRNO(errno.EAFNOSUPPORT)
    for call in ("socket", "socketpair"):
        for family in range(max(SOCKET_FAMILIES)):
            if family not in SOCKET_FAMILIES:
                rules.add_rule(refuse, call, pyseccomp.Arg(0, pyseccomp.EQ, family))
        rules.add_rule(refuse, call, pyseccomp.Arg(0, pyseccomp.GT, max(SOCKET_FAMILIES)))
    unknown = pyseccomp.ERRNO(errno.EPROTONOSUPPORT)
    for family in (2, 10):
        here = pyseccomp.Arg(0, pyseccomp.EQ, family)
        rules.add_rule(unknown, "socket", here, pyseccomp.Arg(2, pyseccomp.GT, HIGHEST_IP_PROTOCOL))
        rules.add_rule(unknown, "socket", here, pyseccomp.Arg(2, pyseccomp.EQ, DCCP))
    netlink = pyseccomp.Arg(0, pyseccomp.EQ, 16)
    for protocol in range(max(NETLINK_PROTOCOLS)):
        if protocol not in NETLINK_PROTOCOLS:
            rules.add_rule(unknown, "socket", netlink, pyseccomp.Arg(2, pyseccomp.EQ, protocol))
    rules.add_rule(unknown, "socket", netlink, pyseccomp.Arg(2, pyseccomp.GT, max(NETLINK_PROTOCOLS)))
