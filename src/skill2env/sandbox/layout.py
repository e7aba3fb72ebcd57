"""What a sandbox's file tree is made of, as arguments for bubblewrap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROXY_PORT = 3128
"""Port on 127.0.0.1 inside that relays to the host-side proxy."""
INSIDE = "/run/skill2env"
"""Folder inside for what we bring."""
_SHARED_MEMORY_BYTES = 512 * 2**20
_RUN_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Bind:
    """A host path visible inside; read-only unless `writable`."""

    source: Path
    target: str
    writable: bool = False


def arguments(
    *,
    layers: Sequence[Path],
    upper: Path,
    work: Path,
    guest: Path,
    binds: Sequence[Bind],
    proxy_socket: Path | None,
    hostname: str,
    control: int,
    limits: Mapping[str, int],
    build: bool,
) -> list[str]:
    """Arguments that build the tree and start process 1.

    Args:
        layers: lower directories, bottom first.
        upper: where writes go.
        work: the overlay's own folder, beside `upper`.
        guest: folder with our programs for the inside.
        binds: further host paths.
        proxy_socket: socket of the host's proxy, when there is a network.
        hostname: name of the machine inside.
        control: descriptor of the control socket that process 1 inherits.
        limits: limits on each process, by the name of the rlimit.
        build: True while a layer is built.
    """
    found = ["--hostname", hostname, "--clearenv", "--setenv", "PATH", DEFAULT_PATH]
    for layer in layers:
        found += ["--overlay-src", str(layer)]
    found += ["--overlay", str(upper), str(work), "/"]
    # Kernel settings are read-only even where their files look writable.
    found += ["--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
    # Root inside has the uid of process 1 and could rewrite it in memory: then exit codes would be what it likes.
    for memory in ("/proc/1/mem", "/proc/1/task/1/mem"):
        found += ["--ro-bind", "/dev/null", memory]
    # File systems in memory are bounded: the limits on processes do not see them.
    found += [
        "--perms",
        "1777",
        "--size",
        str(_SHARED_MEMORY_BYTES),
        "--tmpfs",
        "/dev/shm",
        "--remount-ro",
        "/dev",
    ]
    found += ["--perms", "0755", "--size", str(_RUN_BYTES), "--tmpfs", "/run"]
    found += ["--dir", INSIDE, "--ro-bind", str(guest), f"{INSIDE}/guest"]
    if proxy_socket is not None:
        found += ["--bind", str(proxy_socket), f"{INSIDE}/proxy.sock"]
    for bind in binds:
        found += ["--bind" if bind.writable else "--ro-bind", str(bind.source), bind.target]
    kind = "build" if build else "trial"
    first = ["/usr/bin/python3", "-I", "-S", "-B", f"{INSIDE}/guest/start.py", str(control), kind]
    return [*found, "--", *first, *(f"{name}={value}" for name, value in sorted(limits.items()))]
