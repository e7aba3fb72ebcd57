"""One command inside a container of an engine: a client of the engine that waits for it, and how to kill it.

Ending the client ends nothing inside, so every command runs below a shell whose arguments hold a mark. To kill it, a
second command looks for the mark, stops all of its session and all descendants, and kills them.
"""

import contextlib
import os
import re
import subprocess
import threading
import uuid
from collections.abc import Mapping, Sequence
from typing import Protocol, override

from skill2env.errors import InfraError
from skill2env.sandbox.command import KILLED, TIMED_OUT, ExecOutcome, Waiting
from skill2env.sandbox.engine import Engine, EngineError
from skill2env.sandbox.streams import Pending, Pipes

_GRACE_SEC = 10.0
"""How long a killed command may take to end; a process that escaped may hold its output open for ever."""
_FAILED_CODES = (1, 125, 126, 127, 137, 255)
_DAEMON = re.compile(
    rb"^(?:Error response from daemon|Error: |OCI runtime|cannot exec in|unable to find user|can only create exec)",
    re.M,
)
_KEPT_NAME = re.compile(
    r"(?i)^(?:PATH|HOME|TMPDIR|.*proxy|(?:DOCKER|CONTAINER|PODMAN|REGISTRY|STORAGE|XDG|SSL|LD|GO).*)$"
)

# "$@" and not exec, so that the mark stays among the arguments of a process above everything that the command starts.
_BELOW = '"$@"; exit $?'
# $1 finds the mark (as a pattern that does not find itself), $2 holds process numbers that are known already. What
# shares the command's output is its, too, even when it left the session and its parent. Prints what it started from.
_KILL = r"""
mark=$1 roots=$2 seen=' ' round=0
for f in $(grep -l -- "$mark" /proc/[0-9]*/cmdline 2>/dev/null); do
  pid=${f#/proc/} pid=${pid%/cmdline}
  [ "$pid" = $$ ] || roots="$roots $pid"
done
shares() { for r in $roots; do
  for n in 1 2; do [ "/proc/$1/fd/$n" -ef "/proc/$r/fd/$n" ] && [ -p "/proc/$1/fd/$n" ] && return 0; done
done; return 1; }
while [ $round -lt 20 ]; do
  round=$((round + 1)) fresh=
  for f in /proc/[0-9]*/stat; do
    { read -r line < "$f"; } 2>/dev/null || continue
    pid=${line%% *}
    set -- ${line##*) }
    { [ "$pid" = 1 ] || [ "$pid" = $$ ] || [ "$1" = Z ] || [ "$1" = X ]; } && continue
    case $seen in *" $pid "*) continue ;; esac
    case " $roots$seen " in
      *" $pid "*|*" $2 "*|*" $4 "*) ;;
      *) shares "$pid" || continue ;;
    esac
    seen="$seen$pid " fresh="$fresh $pid"
  done
  [ -n "$fresh" ] || break
  kill -STOP $fresh 2>/dev/null
done
[ "$seen" = ' ' ] || kill -KILL $seen 2>/dev/null
echo $roots
"""


class Container(Protocol):
    """What a command needs of the container around it."""

    engine: Engine
    name: str

    def running(self) -> bool:
        """Whether the container runs."""
        ...

    def ended(self, command: str) -> InfraError:
        """The error for a command under which the container ended."""
        ...

    def after_kill(self, code: int) -> str:
        """Why a killed command may have been killed."""
        ...


def passed(variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """(options, environment of the client) that hand variables on without showing values in the process list.

    Names that would change the client itself go as options.
    """
    options: list[str] = []
    environment = dict(os.environ)
    for name, value in variables.items():
        if "\0" in name + value:
            raise ValueError("a NUL character in a command")
        if name in os.environ or _KEPT_NAME.match(name) or not name:
            options += ["--env", f"{name}={value}"]
        else:
            environment[name] = value
            options += ["--env", name]
    return options, environment


class EngineCommand(Waiting):
    """A command in a container."""

    _AFTER_KILL_SEC = 1.0

    def __init__(
        self,
        container: Container,
        client: Sequence[str],
        argv: Sequence[str],
        pipes: Pipes,
        *,
        environment: Mapping[str, str],
        user: str,
    ) -> None:
        super().__init__(Pending(), pipes)
        self._user = user
        self._container = container
        self._argv = argv
        self._mark = f"skill2env-mark-{uuid.uuid4().hex}"
        self._lock = threading.Lock()
        self._killed = False
        if any("\0" in word for word in argv):
            raise ValueError("a NUL character in a command")
        try:
            stdin, stdout, stderr = pipes.guest_ends
            self._process = subprocess.Popen(
                [*client, "sh", "-c", _BELOW, self._mark, *argv],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=dict(environment),
                start_new_session=True,  # an interrupt at the terminal is ours to handle
            )
        except OSError as error:
            pipes.close_guest_ends()
            self._process = None
            self._pending.finish(error=f"{error.strerror}: {client[0]}")
            return
        pipes.close_guest_ends()
        threading.Thread(target=self._await, args=(self._process,), name="engine-exec", daemon=True).start()

    def _await(self, process: "subprocess.Popen[bytes]") -> None:
        self._pending.finish(code=process.wait())

    @override
    def kill(self) -> None:
        with self._lock:
            if self._killed or self._pending.done.is_set():
                return
            self._killed = True
        with contextlib.suppress(EngineError, InfraError):
            roots = self._kill_as(self._user, "")
            if (
                self._user != "0"
            ):  # who may look at whose output is a matter of users; root ends what became root
                self._kill_as("0", roots)

    def _kill_as(self, user: str, roots: str) -> str:
        pattern = f"[{self._mark[0]}]{self._mark[1:]}"
        options = ["--user", user, "--workdir", "/"]
        script = ["sh", "-c", _KILL, "sh", pattern, roots]
        container = self._container
        return container.engine.call("exec", *options, container.name, *script, timeout_sec=_GRACE_SEC)

    @override
    def _outlived(self) -> None:
        self._end_client()

    @override
    def _release(self) -> None:
        self._end_client()
        self._pending.close()

    def _end_client(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @override
    def _outcome(self, timed_out: bool) -> ExecOutcome:
        pipes, pending, container = self._pipes, self._pending, self._container
        if timed_out:
            breach = container.after_kill(KILLED)
            return ExecOutcome(TIMED_OUT, pipes.stdout, pipes.stderr, True, pipes.truncated, breach)
        if pending.error is not None:
            return ExecOutcome(127, b"", pending.error.encode(errors="replace"))
        code = pending.code if pending.code is not None else 1
        code = code if code >= 0 else 128 - code
        strange = code == KILLED or _DAEMON.search(pipes.stderr + pipes.stdout[:200])
        if code in _FAILED_CODES and strange and not container.running():
            raise container.ended(" ".join(self._argv)[:100])
        breach = container.after_kill(code)
        stderr = pipes.stderr + (f"\n{breach}\n".encode() if breach and code == KILLED else b"")
        return ExecOutcome(code, pipes.stdout, stderr, False, pipes.truncated, breach)
