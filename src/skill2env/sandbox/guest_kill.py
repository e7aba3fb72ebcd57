"""Inside a sandbox: end a command with everything that descends from it. Loaded by process 1 on first use."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # signal, with its enums, would cost start-up time inside
    import signal as _signal
else:
    import _signal


def members(session: int) -> set[int]:
    """Living processes of a session, and all their descendants."""
    parents: dict[int, int] = {}
    found: set[int] = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/" + name + "/stat", "rb") as file:
                state, parent, _, own = file.read().rpartition(b")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if state in (b"Z", b"X"):
            continue
        parents[int(name)] = int(parent)
        if session in (int(own), int(name)):  # its first process may not have begun the session yet
            found.add(int(name))
    size = -1
    while size != len(found):
        size = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return found - {1}


def kill(session: int) -> None:
    """Kill a command with everything that descends from it: all are stopped first, so that none can fork away."""
    seen: set[int] = set()
    for _ in range(100):
        fresh = members(session) - seen
        if not fresh:
            break
        seen |= fresh
        for pid in fresh:
            send_signal(pid, _signal.SIGSTOP)
    for pid in seen:
        send_signal(pid, _signal.SIGKILL)


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except OSError:
        pass
