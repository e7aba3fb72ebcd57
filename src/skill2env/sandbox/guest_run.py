"""Inside a sandbox: who a command runs as, and how it becomes its program. Loaded by process 1 at its start."""

import os


def explain(error: BaseException) -> str:
    """One line about an exception."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (": " + os.fsdecode(error.filename) if error.filename else "")
    return str(error) or type(error).__name__


def table(path: str) -> list[list[str]]:
    """Lines of /etc/passwd or /etc/group as lists of fields. Read here, so that no name service is asked."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    with open(number, "rb") as file:
        return [line.split(":") for line in file.read(1 << 20).decode("utf-8", "replace").splitlines()]


def account(user: str) -> tuple[int, int, list[int], str]:
    """(uid, gid, groups, home) of a name or number; with ``user:group``, the group's number instead of its own.

    Raises:
        LookupError: there is no such user or group.
    """
    user, _, group = user.partition(":")
    entries = [e for e in table("/etc/passwd") if len(e) >= 7 and e[2].isdigit() and e[3].isdigit()]
    number = int(user) if user.isdigit() else -1
    entry = next((e for e in entries if e[0] == user or int(e[2]) == number), None)
    if entry is None and user == "root":
        entry = ["root", "", "0", "0", "", "/root", ""]
    if entry is None and number < 0:
        raise LookupError("no user " + user + " in the sandbox's /etc/passwd")
    if entry is None:
        entry = ["", "", user, "0", "", "/", ""]
    named = [g for g in table("/etc/group") if len(g) >= 4 and g[2].isdigit()]
    if group:
        gid = int(group) if group.isdigit() else next((int(g[2]) for g in named if g[0] == group), -1)
        if gid < 0:
            raise LookupError("no group " + group + " in the sandbox's /etc/group")
        return int(entry[2]), gid, [gid], entry[5] or "/"
    gid = int(entry[3])
    more = {int(g[2]) for g in named if entry[0] and entry[0] in g[3].split(",")}
    return int(entry[2]), gid, sorted(more | {gid}), entry[5] or "/"


def become(uid: int, gid: int, groups: list[int]) -> None:
    """Drop to a user. In a namespace with a single uid, setgroups is denied and nothing needs to change."""
    try:
        os.setgroups(groups)
    except OSError:
        if uid != os.getuid() or gid != os.getgid():
            raise
    os.setgid(gid)
    os.setuid(uid)


def run_program(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """Become a program, found through the environment's PATH; imports nothing, unlike `os.execvpe`.

    Raises:
        OSError: there is none.
    """
    folders = [b""] if b"/" in argv[0] else env.get(b"PATH", b"/usr/bin:/bin").split(b":")
    problem = None
    for folder in folders:
        try:
            os.execve(os.path.join(folder, argv[0]), argv, env)
        except (FileNotFoundError, NotADirectoryError) as error:
            problem = problem or error
        except OSError as error:
            problem = error
            if error.errno != 13:  # another folder may hold one that may be run
                break
    assert problem is not None
    raise OSError(problem.errno, problem.strerror, os.fsdecode(argv[0]))
