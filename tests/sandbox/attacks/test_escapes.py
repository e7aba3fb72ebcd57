"""Ways out by files, devices, processes and sockets: each as root inside and as an agent without rights."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skill2env.sandbox.command import ExecOutcome
from skill2env.sandbox.identity import Tier
from skill2env.sandbox.session import Sandbox, SandboxSpec
from skill2env.sandbox.transfer import TransferRefused

pytestmark = pytest.mark.sandbox

# {what: program}; argv: a file of the host, a port of the host, an abstract socket of the host
EITHER = {
    "write the host's file": (
        "tries(*[write(way + sys.argv[1]) for way in ('', '/proc/1/root', '/proc/self/root', '/proc/1/cwd', "
        "'/oldroot', '/newroot', '/../..', '/proc/self/cwd/..', '/run/skill2env/guest/../../..')])"
    ),
    "read the host's file": "tries(*[read(way + sys.argv[1]) for way in ('', '/proc/1/root', '/proc/1/cwd')])",
    "walk up": (
        "os.chdir('/')\nfor _ in range(50): os.chdir('..')\ntries(lambda: os.stat('.' + sys.argv[1]))"
    ),
    "memory of process 1": (
        "tries(*[read(f'/proc/1/{n}') for n in ('mem', 'environ', 'maps', 'smaps', 'auxv', 'stack', 'syscall', "
        "'pagemap', 'task/1/mem', 'task/1/environ', 'mem/../mem')], write('/proc/1/mem'), "
        "*[lambda n=n: os.readlink(f'/proc/1/{n}') for n in ('root', 'cwd', 'exe')], "
        "*[lambda n=n: os.readlink(f'/proc/1/fd/{n}') for n in range(12)], "
        "*[read(f'/proc/1/fd/{n}') for n in range(12)], *[write(f'/proc/1/fd/{n}') for n in range(12)])"
    ),
    "settings of process 1": (
        "tries(write('/proc/1/oom_score_adj', '-1000'), "
        "write('/proc/1/uid_map', '0 0 1'), write('/proc/1/setgroups', 'allow'), write('/proc/1/attr/current', 'x'))"
    ),
    "kernel memory and devices": (
        "names = 'mem kmem port kmsg sda vda vda1 loop0 loop-control fuse kvm net/tun mapper/control vhost-net "
        "btrfs-control nvme0 nbd0 snapshot uinput rtc0 hpet watchdog cpu/0/msr'.split()\n"
        "tries(*[read('/dev/' + n) for n in names], *[write('/dev/' + n) for n in names], read('/proc/kcore'), "
        "read('/proc/kmsg'))"
    ),
    "new files in /dev": "tries(write('/dev/x'), lambda: os.mkdir('/dev/d'), lambda: os.unlink('/dev/null'), "
    "lambda: os.chmod('/dev/null', 0), lambda: os.chown('/dev/null', 0, 0), write('/dev/pts/x'))",
    "kernel settings": (
        "tries(*[write('/proc/sys/' + n, '1') for n in ('kernel/core_pattern', 'kernel/modprobe', 'kernel/hostname', "
        "'kernel/sysrq', 'kernel/ns_last_pid', 'kernel/yama/ptrace_scope', 'vm/drop_caches', 'vm/overcommit_memory', "
        "'fs/suid_dumpable', 'fs/protected_symlinks', 'fs/binfmt_misc/register', 'fs/file-max', "
        "'net/ipv4/ip_forward', 'user/max_user_namespaces', 'kernel/unprivileged_bpf_disabled')], "
        "lambda: os.chmod('/proc/sys/kernel/core_pattern', 0o666))"
    ),
    "files that act": (
        "tries(write('/proc/sysrq-trigger', 'b'), write('/proc/mtrr'), write('/proc/irq/default_smp_affinity', '1'), "
        "write('/proc/scsi/scsi'), write('/proc/acpi/wakeup'), write('/proc/bus/pci/00/00.0'), "
        "write('/proc/fs/nfsd/threads'), write('/proc/timer_list'), read('/proc/vmallocinfo'))"
    ),
    "sysfs and control groups": (
        "tries(lambda: os.listdir('/sys/fs'), write('/sys/kernel/uevent_helper', '/tmp/x'), lambda: os.listdir("
        "'/sys/fs/cgroup'), write('/sys/fs/cgroup/cgroup.procs', '0'), write('/sys/power/state', 'mem'), "
        "lambda: os.listdir('/sys/kernel/debug'))"
    ),
    "become less of a victim": (
        "tries(write('/proc/self/oom_score_adj', '-1000'), write('/proc/self/oom_score_adj', '-1'))"
    ),
    "raise limits": (
        "names = ('NOFILE', 'CORE', 'MEMLOCK', 'NPROC', 'NICE', 'RTPRIO')\n"
        "def up(name):\n  which = getattr(resource, 'RLIMIT_' + name); hard = resource.getrlimit(which)[1]\n"
        "  def way():\n    if hard == -1: raise OSError('no limit')\n"
        "    try: resource.setrlimit(which, (hard + 1, hard + 1))\n    except ValueError as e: raise OSError(e)\n"
        "  return way\ntries(*map(up, names))"
    ),
    "our programs": (
        "g = '/run/skill2env/guest'\ntries(write(g + '/init.py'), write(g + '/new'), "
        "lambda: os.unlink(g + '/kill.py'), lambda: os.symlink('x', g + '/s'), "
        "lambda: os.rename(g, '/tmp/g'), lambda: os.chmod(g + '/init.py', 0o777), lambda: os.rmdir(g), "
        "lambda: os.link(g + '/init.py', '/tmp/l'), lambda: os.utime(g + '/init.py'))"
    ),
    "processes of the host": (
        "pids = [int(p) for p in os.listdir('/proc') if p.isdigit()]\n"
        "assert len(pids) < 40, pids\n"
        "tries(*[lambda p=p: os.kill(p, 0) for p in (4000, 99999, 4194303) if p not in pids], "
        "*[lambda p=p: os.pidfd_open(p) for p in (99999, 4194303)], lambda: os.sched_setaffinity(99999, {0}))"
    ),
    "abstract sockets of the host": (
        "def way():\n  s = socket.socket(socket.AF_UNIX); s.connect('\\0' + sys.argv[3])\ntries(way)"
    ),
    "the host's loopback": "tries(lambda: socket.create_connection(('127.0.0.1', int(sys.argv[2])), 2), "
    "lambda: socket.create_connection(('::1', int(sys.argv[2])), 2))",
    "the internet": (
        "def datagram():\n  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('192.0.2.1', 53))\n"
        "tries(lambda: socket.create_connection(('192.0.2.1', 80), 2), datagram, "
        "lambda: socket.create_connection(('169.254.169.254', 80), 2), lambda: socket.getaddrinfo('example.org', 80))"
    ),
    "network interfaces": (
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "assert [n for _, n in socket.if_nameindex()] == ['lo']\n"
        "def up():\n  fcntl.ioctl(s, 0x8914, struct.pack('16sh', b'lo', 0))\n"
        "def link():\n  n = socket.socket(16, 3, 0)\n"
        "  n.send(struct.pack('IHHIIBBHiII', 32, 16, 0x601, 1, 0, 0, 0, 0, 0, 0, 0))\n"
        "  code = struct.unpack('i', n.recv(4096)[16:20])[0]\n  if code: raise OSError(-code, 'x')\ntries(up, link)"
    ),
    "type into a terminal": (
        "import pty\npid, master = pty.fork()\nif pid == 0:\n"
        "  try: fcntl.ioctl(0, 0x5412, b'x')\n  except OSError: os._exit(7)\n  os._exit(0)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7\n"
        "tries(lambda: fcntl.ioctl(master, 0x5412, b'x'), lambda: fcntl.ioctl(master, 0x541c, b'\\1'))"
    ),
    "signals to process 1": (
        "for n in range(1, 65):\n  try: os.kill(1, n)\n  except OSError: pass\n"
        "for n in (9, 19):\n  try: signal.pidfd_send_signal(os.pidfd_open(1), n)\n  except OSError: pass\n"
        "time.sleep(0.2)\nprint('held' if open('/proc/1/stat').read().split()[2] in 'SR' else 'BROKEN')"
    ),
    "limits of process 1": (
        "tries(*[lambda n=n: resource.prlimit(1, n, (0, 0)) for n in (0, 1, 2, 3, 6, 7, 9)])"
    ),
    "set-id programs": (
        "import shutil\nd = '/tmp/setid%d' % os.getuid(); os.makedirs(d, exist_ok=True)\n"
        "shutil.copy('/usr/bin/id', d + '/id'); os.chmod(d + '/id', 0o6755)\n"
        "done = subprocess.run([d + '/id', '-u'], capture_output=True, text=True)\n"
        "print('held' if done.stdout.strip() == str(os.getuid()) else 'BROKEN')"
    ),
}  # fmt: skip
AGENT_ONLY = {
    "hard link to a set-id program": (
        "def way():\n  os.link('/usr/bin/su', '/tmp/su-link')\n"
        "  done = subprocess.run(['/tmp/su-link', '-c', 'id -u'], stdin=subprocess.DEVNULL, capture_output=True)\n"
        "  if done.returncode: raise OSError\n  return done\ntries(way)"
    ),
    "set-id programs of the image": (
        "def gain(*argv):\n  def way():\n"
        "    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True)\n"
        "    if done.returncode: raise OSError\n    return done\n  return way\n"
        "tries(gain('su', '-c', 'true'), gain('mount', '-t', 'tmpfs', 'x', '/mnt'), gain('newgrp', 'root'), "
        "gain('chsh', '-s', '/bin/sh'), gain('umount', '/run'))"
    ),
    "files of root": (
        "tries(write('/etc/passwd'), write('/root/x'), read('/etc/shadow'), write('/usr/bin/python3'), "
        "write('/bin/bash'), lambda: os.listdir('/root'), lambda: os.chown('/tmp', os.getuid(), 0), "
        "lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]))"
    ),
    "file capabilities": (
        "import shutil\nshutil.copy('/usr/bin/id', '/tmp/caps')\ntries(lambda: os.setxattr('/tmp/caps', "
        "'security.capability', struct.pack('<5I', 0x2000001, 0xffffffff, 0, 0xffffffff, 0)), lambda: os.setxattr("
        "'/tmp/caps', 'trusted.x', b'y'), lambda: os.setxattr('/tmp/caps', 'trusted.overlay.opaque', b'y'))"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EITHER)
def test_nothing_leads_out(holds: Callable[..., None], host: object, who: str | None, name: str) -> None:
    found = [str(host.file), str(host.port), host.name]  # type: ignore[attr-defined]
    holds(EITHER[name], *found, user=who)


@pytest.mark.parametrize("name", AGENT_ONLY)
def test_an_agent_does_not_become_root(holds: Callable[..., None], who: str | None, name: str) -> None:
    if who is None:
        pytest.skip("root inside is root inside")
    holds(AGENT_ONLY[name], user=who)


def test_file_capabilities_by_root_give_an_agent_nothing(box: Sandbox, holds: Callable[..., None]) -> None:
    if not box.several_users:
        pytest.skip("one uid")
    script = (
        "import shutil\nshutil.copy('/usr/bin/cat', '/tmp/capcat')\n"
        "tries(lambda: os.setxattr('/tmp/capcat', 'security.capability', "
        "struct.pack('<5I', 0x2000001, 0xffffffff, 0, 0xffffffff, 0)))"
    )
    holds(script)


def test_an_agent_has_no_power_over_processes_of_others(box: Sandbox, holds: Callable[..., None]) -> None:
    if not box.several_users:
        pytest.skip("one uid")
    victim = box.start_command(["sleep", "30"])
    script = (
        "time.sleep(0.3)\np = int(subprocess.run(['pgrep', '-x', 'sleep'], capture_output=True).stdout.split()[0])\n"
        "def allowed(n):\n  def way():\n    r = call(*n)\n    if r != 'worked': raise OSError(r)\n  return way\n"
        "tries(lambda: os.kill(p, 9), read(f'/proc/{p}/mem'), read(f'/proc/{p}/environ'), write(f'/proc/{p}/mem'), "
        "lambda: os.listdir(f'/proc/{p}/fd'), allowed((101, 16, p, 0, 0)), lambda: resource.prlimit(p, 7, (1, 1)), "
        "lambda: os.sched_setaffinity(p, {0}), write(f'/proc/{p}/oom_score_adj', '1000'))"
    )
    try:
        holds(script, user="nobody")
    finally:
        victim.kill()
        assert victim.wait(10).return_code == 137


def test_commands_are_mapped_to_nobody_of_the_host(box: Sandbox) -> None:
    rows = box.exec(["cat", "/proc/self/uid_map", "/proc/self/gid_map"]).stdout.decode().split("\n")
    firsts = [int(row.split()[1]) for row in rows if row]
    assert 0 not in firsts
    if box.identity.tier is Tier.ROOT:
        assert min(firsts) >= 1000


def test_set_id_files_of_a_layer_are_out_of_reach_of_other_users(fresh: Callable[..., Sandbox]) -> None:
    box = fresh()
    box.exec(["sh", "-c", "cp /usr/bin/id /tmp/id && chmod 6777 /tmp/id"])
    path = box._scratch.upper / "tmp/id"  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
    above = [folder.stat() for folder in path.parents]
    assert any(not status.st_mode & 0o001 and status.st_gid >= 1000 for status in above) or any(
        not status.st_mode & 0o011 for status in above
    ), "a user of the host can run what a sandbox left"


def test_what_root_replaces_never_runs_in_process_1(fresh: Callable[..., Sandbox]) -> None:
    """Python's own library is root's to write, and process 1 is a Python program."""
    box = fresh()
    script = (
        "import glob\nfolder = [p for p in sys.path if p.endswith('/python3.11') or p.count('/python3.')][0]\n"
        "evil = 'import os\\nos.system(\"touch /evil-$PPID\") if os.getpid() == 1 or os.getppid() == 0 else None\\n'\n"
        "for name in ('kill', 'files', 'warnings', 'relay', 'users', 'encodings/ascii', 'codecs', 'stat'):\n"
        "    open(f'{folder}/{name}.py', 'w').write(evil)\n"
    )
    box.exec(["python3", "-c", "import sys\n" + script])
    command = box.start_command(["sleep", "60"])
    command.kill()
    assert command.wait(10).return_code == 137
    box.exec(["true"], env={"PATH": "/nowhere:/usr/bin:/bin"})
    with pytest.raises(FileNotFoundError):
        box.get("/no/such", Path("/nowhere"))
    box.empty_folders(["/made"])
    assert box.exec(["/bin/sh", "-c", "ls -d /evil*"]).stdout == b""


def test_a_transfer_cannot_be_taken_over(
    fresh: Callable[..., Sandbox], in_fresh: Callable[..., ExecOutcome], tmp_path: Path
) -> None:
    """The process that sends files has the uid of root inside; what it sends would be believed."""
    box = fresh()
    box.exec(["truncate", "-s", "900M", "/big"])
    script = (
        "end = time.time() + 20\nbroken = seen = 0\nme = os.getpid()\n"
        "while time.time() < end and not os.path.exists('/stop'):\n"
        "  for p in [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, me)]:\n"
        "    def ours():\n      with open(f'/proc/{p}/cmdline', 'rb') as f: return b'skill2env/guest/' in f.read()\n"
        "    def look(way, *args):\n      global broken\n"
        "      try:\n        way(*args); broken = broken or ours() and args\n      except OSError: pass\n"
        "    try: mine = ours()\n    except OSError: continue\n    if not mine: continue\n    seen = 1\n"
        "    for n in ('mem', 'environ', 'maps'): look(lambda n: open(f'/proc/{p}/{n}', 'rb').read(1), n)\n"
        "    for n in range(8): look(lambda n: os.readlink(f'/proc/{p}/fd/{n}'), n)\n"
        "print('BROKEN' if broken else 'held' if seen else 'nothing seen', broken)\n"
    )
    result: list[ExecOutcome] = []
    thread = threading.Thread(target=lambda: result.append(in_fresh(box, script)))
    thread.start()
    time.sleep(0.3)
    box.get("/big", tmp_path / "big")
    box.exec(["touch", "/stop"])
    thread.join(60)
    assert result[0].stdout.startswith(b"held"), result[0]


def test_a_program_that_cannot_be_opened_does_not_stop_the_sandbox(fresh: Callable[..., Sandbox]) -> None:
    """Whatever makes the start of a command wait, other commands go on."""
    box = fresh()
    box.exec(
        ["sh", "-c", "rm /etc/passwd; mkfifo /etc/passwd; (sleep 30 > /etc/passwd) & exit 0"], timeout_sec=20
    )
    done = box.exec(["true"], timeout_sec=10)
    assert done.return_code in (0, 127)
    assert box.exec(["true"], user="0", timeout_sec=10).return_code in (0, 127)


@pytest.mark.parametrize(
    "tool", ["/bin/bash", "/bin/sh", "/usr/bin/tar", "/usr/bin/mkdir", "/etc/passwd", "/etc/group"]
)
def test_tools_that_root_replaced_do_not_serve_us(
    fresh: Callable[..., Sandbox], tmp_path: Path, tool: str
) -> None:
    """Files and folders are moved by process 1 alone; only commands run what the image has."""
    box = fresh()
    box.exec(
        ["python3", "-c", f"import os; os.unlink({tool!r}); open({tool!r}, 'w').write('#!/usr/bin/false')"]
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "in/f").write_text("x")
    box.put(tmp_path / "in", "/made/by/us")
    box.make_folders({"/more": 0o777})
    box.empty_folders(["/more"])
    box.get("/made/by/us", tmp_path / "out")
    assert (tmp_path / "out/f").read_text() == "x"
    assert box.exec(["/usr/bin/python3", "-c", "print(1)"]).stdout == b"1\n"


def test_without_python_nothing_more_starts_but_the_sandbox_serves(
    fresh: Callable[..., Sandbox], tmp_path: Path
) -> None:
    box = fresh()
    box.exec(["sh", "-c", "rm -rf /usr/bin/python3* /usr/lib/python3*; echo x > /f"])
    assert box.exec(["cat", "/f"]).stdout == b"x\n"
    box.get("/f", tmp_path / "f")
    assert (tmp_path / "f").read_text() == "x\n"
    command = box.start_command(["sleep", "60"])
    command.kill()
    assert command.wait(10).return_code == 137


def test_layers_below_stay_as_they_are(rootfs: Path) -> None:
    before = {name: (rootfs / name).read_bytes() for name in ("etc/passwd", "usr/bin/env", "etc/bash.bashrc")}
    with Sandbox(SandboxSpec(layers=(rootfs,))) as box:
        box.exec(["sh", "-c", "rm -rf --one-file-system --no-preserve-root / 2>/dev/null; :"], timeout_sec=60)
    assert {name: (rootfs / name).read_bytes() for name in before} == before


def test_a_folder_that_is_asked_for_is_not_opened_through_a_link(fresh: Callable[..., Sandbox]) -> None:
    """An agent puts a link where the harness makes a folder for everybody."""
    box = fresh()
    box.exec(["sh", "-c", "mkdir -m 777 /theirs; ln -s /etc /theirs/out; ln -s /root /theirs/empty"])
    box.make_folders({"/theirs/out": 0o777})
    box.empty_folders(["/theirs/empty"])
    assert box.exec(["stat", "-c", "%a", "/etc", "/root"]).stdout.split()[0] == b"755"
    assert box.exec(["sh", "-c", "stat -c %a /root"]).stdout != b"777\n"


def test_refusals_are_the_senders(fresh: Callable[..., Sandbox], tmp_path: Path) -> None:
    box = fresh()
    box.exec(["truncate", "-s", "5T", "/huge"])
    assert os.path.lexists(tmp_path)
    with pytest.raises((TransferRefused, FileNotFoundError)):
        box.get("/huge", tmp_path / "huge")
    with pytest.raises((TransferRefused, FileNotFoundError)):
        box.get("/proc/kcore", tmp_path / "kcore")
    assert not (tmp_path / "huge").exists()
