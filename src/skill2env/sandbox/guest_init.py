"""Process 1 inside a sandbox: starts every command as its own child and reports how it ended.

Runs with the *image's* python3 as ``python3 -I -S -B start.py FD KIND LIMIT=VALUE...``, bind-mounted read-only;
start.py imports it, because only what is imported can lie there as byte code. It imports C modules and what Python
loads by itself, and nothing else: each import costs a millisecond at every start.

KIND is ``build`` while a layer is built, which must hold nothing of ours, and ``trial`` otherwise.
FD is a SOCK_SEQPACKET socket to the host. A request is one packet of NUL-separated fields that carries descriptors;
a request too long for a packet is the single field ``M`` with a memory file as its last descriptor. Requests:

    E id user cwd argc argv... NAME=value...   run a command; descriptors: its stdin, stdout and stderr
    P id owner target                          create the files that come from the first descriptor
    G id source                                write files to the second descriptor (`guest_files` has the format)
    D id mode path mode path...                make folders where they are missing, and set modes that are not empty
    X id path...                               make folders where they are missing, and empty them
    C id path                                  make a file executable; answer 1 when that is refused
    R id path...                               remove files; answer 1 when one is there and cannot be removed
    T id path                                  answer 1 for a file, 2 for a folder, 0 for anything else
    L id port path                             listen on 127.0.0.1:port and relay to the unix socket at path
    K id                                       kill the session of a command and all its descendants
    A id                                       kill everything but process 1
    F id                                       the same, and let nothing write to files any more

Answers: ``id code`` when a command ended (128 + signal when killed), ``id !text`` when it could not be started,
``ready`` once at the start. End of file on the socket ends the sandbox.

Output never passes through this process: commands write to pipes of the host.
"""

import _socket
import os
import select
import sys

HERE = os.path.dirname(sys.argv[0])

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing and signal (with its enums) would cost start-up time inside
    import signal as _signal
    from collections.abc import Callable

    from skill2env.sandbox import guest_place as place
    from skill2env.sandbox import guest_run as run
else:
    import _signal

    import place
    import run

PACKET_LIMIT = 1 << 16
PYTHON = ("/usr/bin/python3", "-I", "-S", "-B")
CONTROL = int(sys.argv[1])
RELAY_STARTS = 100
"""A relay that ends is started again so many times: killed by a limit, it must not leave its port to others."""
CHANGED_SIGNALS = (_signal.SIGPIPE, _signal.SIGXFSZ, _signal.SIGINT, _signal.SIGTERM, _signal.SIGCHLD)
"""By Python itself or below; commands get them as the kernel has them."""


# ---------------------------------------------------------------------------------------------- children


def spawn(action: "Callable[[], None]") -> tuple[int, int]:
    """Fork a child for `action`. Returns (pid, a reader of what went wrong in it; it ends with exec or exit).

    The child gives up the control socket first: nothing but process 1 may answer the host.
    """
    reader, writer = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        raise
    if pid:
        os.close(writer)
        return pid, reader
    code = 127
    try:
        os.close(reader)
        os.close(CONTROL)
        os.setsid()
        _signal.set_wakeup_fd(-1)
        for number in CHANGED_SIGNALS:
            _signal.signal(number, _signal.SIG_DFL)
        prefer_as_victim()
        action()
        code = 0
    except BaseException as error:
        os.write(writer, run.explain(error).encode("utf-8", "replace")[:4000] or b"failed")
    finally:
        os._exit(code)


def prefer_as_victim() -> None:
    """Out of memory, the kernel ends this process and not process 1 or the host's work."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass


def execute(fields: list[bytes], files: list[int]) -> tuple[int, int]:
    """A child that becomes the command; returns what `spawn` does."""
    user, cwd, count = fields[0].decode(), fields[1], int(fields[2])
    argv = fields[3 : 3 + count]

    def action() -> None:
        uid, gid, groups, home = run.account(user)
        env = {b"HOME": os.fsencode(home)}
        for pair in fields[3 + count :]:
            name, _, value = pair.partition(b"=")
            env[name] = value
        for number in range(3):
            os.dup2(files[number], number)
        os.umask(0o022)
        run.become(uid, gid, groups)
        os.chdir(cwd)
        run.run_program(argv, env)

    return spawn(action)


def transfer(operation: bytes, fields: list[bytes], files: list[int]) -> int:
    """A child that moves files or empties folders; what goes wrong is written to its stderr. Returns its pid."""
    moving = __import__("files")

    def action() -> None:
        try:
            if operation == b"G":
                moving.send(files[1], os.fsdecode(fields[0]))
            elif operation == b"X":
                for path in fields:
                    moving.make_empty(os.fsdecode(path))
            else:
                uid, gid = run.account(fields[0].decode())[:2] if fields[0] else (0, 0)
                moving.receive(files[0], os.fsdecode(fields[1]), uid, gid)
        except BaseException as error:
            os.write(files[2], run.explain(error).encode("utf-8", "replace")[:4000])
            os._exit(1)

    pid, reader = spawn(action)
    os.close(reader)
    return pid


def listen(port: bytes) -> _socket.socket:
    """A listening socket on a port of this machine; connections queue from now on, so nobody waits for the relay."""
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(port)))
    listener.listen(128)
    return listener


def relay(listener: _socket.socket, path: bytes) -> int:
    """A child that passes connections on. Returns its pid."""
    number = listener.fileno()

    def action() -> None:
        os.set_inheritable(number, True)
        os.execv(PYTHON[0], [*PYTHON, HERE + "/relay.py", str(number), os.fsdecode(path)])

    pid, reader = spawn(action)
    os.close(reader)
    return pid


# ---------------------------------------------------------------------------------------------- process 1


class Server:
    """Answers requests until the host closes its end."""

    def __init__(self, control: _socket.socket) -> None:
        self.control = control
        self.running: dict[int, bytes] = {}
        self.starting: dict[int, int] = {}
        """Reader of what goes wrong -> pid, of commands that have not become their program yet."""
        self.relays: dict[int, tuple[_socket.socket, bytes]] = {}
        self.idle_relays: list[tuple[_socket.socket, bytes]] = []
        """Relays that could not be started again; the next request tries."""
        self.relay_starts = 0
        self.wake, writer = os.pipe()
        os.set_blocking(writer, False)
        os.set_blocking(self.wake, False)
        _signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        _signal.signal(_signal.SIGCHLD, lambda _number, _frame: None)
        for number in (_signal.SIGPIPE, _signal.SIGINT, _signal.SIGTERM):
            _signal.signal(number, _signal.SIG_IGN)

    def answer(self, text: bytes) -> None:
        """Send one packet; without a host there is nothing left to live for."""
        try:
            self.control.sendall(text[:8000])
        except OSError:
            os._exit(0)

    def serve(self) -> None:
        """Wait for requests and for ended children, for ever."""
        self.answer(b"ready")
        while True:
            ready = select.select([self.control, self.wake, *self.starting], [], [])[0]
            if self.wake in ready:
                try:
                    os.read(self.wake, 4096)
                except BlockingIOError:
                    pass
            for reader in [number for number in self.starting if number in ready]:
                self.started(reader)
            self.reap()
            if self.control in ready:
                self.take()

    def reap(self) -> None:
        """Collect every ended child; orphans of commands end here too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.relays:
                self.start_relay(*self.relays.pop(pid))
            for reader in [number for number, own in self.starting.items() if own == pid]:
                self.started(reader)
            ident = self.running.pop(pid, None)
            if ident is not None:
                code = os.waitstatus_to_exitcode(status)
                self.answer(b"%s %d" % (ident, code if code >= 0 else 128 - code))

    def started(self, reader: int) -> None:
        """A command has become its program, or tells why it could not."""
        told = os.read(reader, 4096)
        pid = self.starting.pop(reader)
        os.close(reader)
        if told:
            self.answer(self.running.pop(pid, b"0") + b" !" + told)

    def start_relay(self, listener: _socket.socket, path: bytes) -> None:
        """Start a relay, or start it again: its socket stays open here, so that nobody inside can take the port."""
        self.relay_starts += 1
        if self.relay_starts > RELAY_STARTS:
            return
        try:
            self.relays[relay(listener, path)] = listener, path
        except OSError:
            self.idle_relays.append((listener, path))

    def take(self) -> None:
        """Read one request and carry it out."""
        waiting, self.idle_relays = self.idle_relays, []
        for listener, path in waiting:
            self.start_relay(listener, path)
        space = _socket.CMSG_SPACE(16)
        packet, extra = self.control.recvmsg(PACKET_LIMIT, space, _socket.MSG_CMSG_CLOEXEC)[:2]
        if not packet:
            os._exit(0)
        files = [
            int.from_bytes(data[at : at + 4], sys.byteorder)
            for _, _, data in extra
            for at in range(0, len(data) - 3, 4)
        ]
        ident = b""
        try:
            if packet == b"M":
                with open(files[-1], "rb", closefd=False) as file:
                    packet = file.read()
            operation, ident, *fields = packet.split(b"\0")
            self.obey(operation, ident, fields, files)
        except (OSError, LookupError, ValueError) as error:
            self.answer(ident + b" !" + run.explain(error).encode("utf-8", "replace"))
        finally:
            for number in files:
                os.close(number)

    def obey(self, operation: bytes, ident: bytes, fields: list[bytes], files: list[int]) -> None:
        """Carry out one request."""
        if operation == b"K":
            for pid in [pid for pid, own in self.running.items() if own == ident]:
                __import__("kill").kill(pid)
        elif operation in (b"A", b"F"):
            if operation == b"F":
                place.lower("FSIZE", 0)
            __import__("kill").send_signal(-1, _signal.SIGKILL)
        elif operation == b"E":
            pid, reader = execute(fields, files)
            self.running[pid], self.starting[reader] = ident, pid
        elif operation == b"D":
            place.make_folders(fields)
            self.answer(ident + b" 0")
        elif operation in (b"C", b"R"):
            done = place.make_executable(fields[0]) if operation == b"C" else place.remove_files(fields)
            self.answer(b"%s %d" % (ident, not done))
        elif operation == b"T":
            self.answer(b"%s %d" % (ident, place.kind_of(fields[0])))
        elif operation == b"L":
            self.start_relay(listen(fields[0]), fields[1])
            self.answer(ident + b" 0")
        else:
            self.running[transfer(operation, fields, files)] = ident


def main() -> None:
    """Serve as process 1, for ever."""
    place.shut_off()
    os.set_inheritable(CONTROL, False)
    place.prepare(sys.argv[2])
    for setting in sys.argv[3:]:
        place.lower(setting.partition("=")[0], int(setting.partition("=")[2]))
    Server(_socket.socket(fileno=CONTROL)).serve()
