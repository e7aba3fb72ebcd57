"""Process 1 inside a sandbox: starts every command as its own child and reports how it ended.

Runs with the *image's* python3 as ``python3 -I -S -B init.py FD``, bind-mounted read-only, standard library only.
FD is a SOCK_SEQPACKET socket to the host. A request is one JSON packet that carries up to three descriptors
(stdin, stdout, stderr of the command), so output never passes through this process. Requests:

    {"id": 1, "op": "exec", "argv": [...], "cwd": "/", "env": {...}, "user": "agent" | 1000 | null, "nproc": 512}
    {"id": 1, "op": "kill"}          kill the command's whole process group and every descendant of its session

Answers: {"id": 1, "code": N} when the command ended (128 + signal when killed), {"id": 1, "error": "..."} when it
could not be started, {"ready": true} once at the start. End of file on the socket ends the sandbox.
"""

import array
import grp
import json
import os
import pwd
import resource
import select
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # annotations only: typing costs start-up time inside
    from collections.abc import Callable, Sequence
    from typing import Any

MAX_PACKET = 1 << 20


def account(user: "str | int | None") -> "tuple[int, int, list[int], str, str]":
    """(uid, gid, groups, home, name) of a name or number, read from the sandbox's own files."""
    if user is None:
        user = 0
    text = str(user)
    try:
        entry = pwd.getpwuid(int(text)) if text.isdigit() else pwd.getpwnam(text)
    except KeyError:
        if not text.isdigit():
            raise LookupError("no user " + text + " in the sandbox's /etc/passwd") from None
        return int(text), int(text), [], "/", text
    groups = sorted({g.gr_gid for g in grp.getgrall() if entry.pw_name in g.gr_mem} | {entry.pw_gid})
    return entry.pw_uid, entry.pw_gid, groups, entry.pw_dir or "/", entry.pw_name


def become(uid: int, gid: int, groups: "list[int]") -> None:
    """Drop to a user. In a namespace with a single uid, setgroups is denied and nothing needs to change."""
    if uid == os.getuid() and gid == os.getgid():
        try:
            os.setgroups(groups)
        except OSError:
            pass
        return
    os.setgroups(groups)
    os.setgid(gid)
    os.setuid(uid)


def start(request: "dict[str, Any]", files: "Sequence[int]") -> int:
    """Fork and exec one command; returns its pid. Raises OSError or LookupError when it cannot start."""
    uid, gid, groups, home, name = account(request.get("user"))
    env = {"HOME": home, "USER": name, "LOGNAME": name}
    env.update(request["env"])
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            failed = pipe.read()
        if failed:
            os.waitpid(pid, 0)
            raise OSError(failed.decode(errors="replace"))
        return pid
    try:
        os.close(reader)
        os.setsid()
        for number in range(3):
            os.dup2(files[number], number)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        limit = request.get("nproc")
        if limit:
            resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.umask(0o022)
        become(uid, gid, groups)
        os.chdir(request["cwd"])
        os.closerange(3, writer)
        os.closerange(writer + 1, 4096)
        os.execvpe(request["argv"][0], request["argv"], env)
    except BaseException as error:
        text = (
            error.strerror + ": " + str(error.filename or request["argv"][0])
            if isinstance(error, OSError) and error.strerror
            else str(error)
        )
        try:
            os.write(writer, text.encode() or b"failed")
        finally:
            os._exit(127)


def kill_session(pid: int) -> None:
    """Kill the command's group and all of its session, again and again while it still forks."""
    for _ in range(200):
        found = False
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            pass
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            try:
                with open("/proc/" + name + "/stat", "rb") as handle:
                    fields = handle.read().rpartition(b")")[2].split()
                if int(fields[3]) == pid and fields[0] not in (b"Z", b"X"):
                    found = True
                    os.kill(int(name), signal.SIGKILL)
            except (OSError, ValueError, IndexError):
                continue
        if not found:
            return


def reap(running: "dict[int, int]", answer: "Callable[[dict[str, Any]], None]") -> None:
    """Collect every ended child; orphans of commands end here too."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        ident = running.pop(pid, None)
        if ident is not None:
            code = os.waitstatus_to_exitcode(status)
            answer({"id": ident, "code": code if code >= 0 else 128 - code})


class Server:
    """Answers requests until the host closes its end."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.running: "dict[int, int]" = {}
        self.wake_reader, wake_writer = os.pipe()
        os.set_blocking(wake_writer, False)
        os.set_blocking(self.wake_reader, False)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)

    def answer(self, message: "dict[str, Any]") -> None:
        """Send one packet; without a host there is nothing left to live for."""
        try:
            self.control.sendall(json.dumps(message).encode())
        except OSError:
            os._exit(0)

    def serve(self) -> None:
        """Wait for requests and for ended children, for ever."""
        self.answer({"ready": True})
        while True:
            ready, _, _ = select.select([self.control, self.wake_reader], [], [])
            if self.wake_reader in ready:
                try:
                    os.read(self.wake_reader, 4096)
                except BlockingIOError:
                    pass
            reap(self.running, self.answer)
            if self.control in ready:
                self.take()

    def take(self) -> None:
        """Read one request and carry it out."""
        room = socket.CMSG_SPACE(3 * array.array("i").itemsize)
        packet, extra, _, _ = self.control.recvmsg(MAX_PACKET, room)
        if not packet:
            os._exit(0)
        files = array.array("i")
        for _, _, data in extra:
            files.frombytes(data[: len(data) - len(data) % files.itemsize])
        request = json.loads(packet)
        try:
            if request["op"] == "kill":
                for pid, ident in list(self.running.items()):
                    if ident == request["id"]:
                        kill_session(pid)
            else:
                self.running[start(request, files)] = request["id"]
        except (OSError, LookupError, ValueError) as error:
            self.answer({"id": request["id"], "error": str(error)})
        finally:
            for number in files:
                os.close(number)


if __name__ == "__main__":
    Server(socket.socket(fileno=int(sys.argv[1]))).serve()
