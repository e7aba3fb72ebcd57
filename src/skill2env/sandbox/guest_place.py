"""Inside a sandbox: what process 1 does to itself and to the files around it. Loaded by it; built-in modules only."""

import os
import resource

SHARED_FOLDERS = ("/tmp", "/var/tmp")
HOSTS = b"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"


def shut_off() -> None:
    """Close this process's memory and descriptors to root inside, which has the same uid; children inherit it."""
    try:
        import _ctypes

        program = _ctypes.dlopen(None, 0)  # pyright: ignore[reportArgumentType]
        _ctypes.call_function(_ctypes.dlsym(program, "prctl"), (4, 0, 0, 0, 0))  # PR_SET_DUMPABLE
    except Exception:  # an image without it: a changed group has the same effect, where there are several
        try:
            os.setegid(1)
            os.setegid(0)
        except OSError:
            pass


def prepare(kind: str) -> None:
    """What every program may count on, whatever the image's Dockerfile did."""
    for path in SHARED_FOLDERS:
        try:
            if not os.path.isdir(path):
                os.makedirs(path)
            if os.stat(path).st_mode & 0o7777 != 0o1777:
                os.chmod(path, 0o1777)
        except OSError:
            pass
    if kind != "build":
        name_this_machine(os.uname().nodename.encode())


def name_this_machine(name: bytes) -> None:
    """Let the names of this machine resolve, as in a container."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with open(os.open("/etc/hosts", flags, 0o644), "rb+", buffering=0) as file:
            words = (file.read(1 << 16) or b"").split()
            if b"localhost" not in words:
                file.write(HOSTS)
            if name not in words:
                file.write(b"127.0.1.1\t" + name + b"\n")
    except OSError:
        pass


def lower(name: str, value: int) -> None:
    """Lower one of the limits on each process; every command inherits it, and nobody inside may raise it."""
    which = getattr(resource, "RLIMIT_" + name)
    hard = resource.getrlimit(which)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def make_folders(pairs: list[bytes]) -> None:
    """Make folders; see the request ``D``.

    Raises:
        OSError: one cannot be made.
    """
    for mode, path in zip(pairs[::2], pairs[1::2], strict=True):
        if mode and os.path.islink(path):
            os.unlink(path)  # or the folder that it leads to would be opened to everybody
        os.makedirs(path, exist_ok=True)
        if mode:
            os.chmod(path, int(mode, 8))


def make_executable(path: bytes) -> bool:
    """Let everybody execute a file, as ``chmod +x`` does under the usual umask; False when that is refused."""
    try:
        os.chmod(path, os.stat(path).st_mode & 0o7777 | 0o111)
    except OSError:
        return False
    return True


def remove_files(paths: list[bytes]) -> bool:
    """Remove files and links; those that are missing are no failure. False when one could not be removed."""
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError:
            return False
    return True


def kind_of(path: bytes) -> int:
    """What a path leads to; see the request ``T``."""
    return 2 if os.path.isdir(path) else 1 if os.path.isfile(path) else 0
