"""Inside a sandbox: move files over a pipe. Loaded by process 1 when it is first asked to; standard library only.

A stream of files is a list of records, each a head of `HEAD` bytes, a name relative to the target, and a body:

    kind (1)  mode (4)  modification time (8)  size of the body (8)  length of the name (2)     numbers big-endian

Kinds: ``d`` folder, ``f`` file with its bytes, ``l`` link with its target, ``z`` the end. A single file has an empty
name. Plain records instead of tar: nothing has to be started and imported for it inside, and the host's reader of
what an untrusted sandbox sends is short.
"""

import os

HEAD = 23
CHUNK = 1 << 17
DEPTH_LIMIT = 200
NOT_FOUND = 44
"""Exit code when there is nothing at the path to send."""
CHANGED = (2, 6, 20, 40)
"""ENOENT, ENXIO, ENOTDIR and ELOOP: what was looked at has been replaced."""
NOT_EMPTY = 39
_KIND, _FILE, _LINK, _FOLDER = 0o170000, 0o100000, 0o120000, 0o040000


def read_exactly(number: int, size: int) -> bytes:
    """That many bytes of a pipe.

    Raises:
        OSError: the pipe ended early.
    """
    data = bytearray()
    while len(data) < size:
        piece = os.read(number, min(CHUNK, size - len(data)))
        if not piece:
            raise OSError("the stream of files ended early")
        data += piece
    return bytes(data)


def write_all(number: int, data: bytes) -> None:
    """All bytes to a pipe or file."""
    view = memoryview(data)
    while view:
        view = view[os.write(number, view) :]


# ---------------------------------------------------------------------------------------------- receiving


def remove(path: str) -> None:
    """Take a file, link or folder out of the way.

    Raises:
        OSError: it cannot be removed.
    """
    try:
        if os.lstat(path).st_mode & _KIND != _FOLDER:
            os.unlink(path)
            return
    except FileNotFoundError:
        return
    clear(path)
    os.rmdir(path)


def clear(path: str) -> None:
    """Remove what lies in a folder, however deep, without following a link.

    Works from folder to folder instead of by path, because paths have a greatest length and depth has none.

    Raises:
        OSError: it cannot be removed, or somebody moves folders meanwhile.
    """
    start = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        enter(path)
        above: list[tuple[str, os.stat_result, list[str]]] = []
        patience = 100
        names = os.listdir(".")
        while names or above:
            if names:
                name = names.pop()
                here = os.stat(".")
                if not remove_flat(name) and enter(name):
                    above.append((name, here, names))
                    names = os.listdir(".")
                continue
            name, here, names = above.pop()
            os.chdir("..")
            if not os.path.samestat(here, os.stat(".")):
                raise OSError("a folder was moved while it was removed")
            if not remove_empty(name):
                patience -= 1
                names.append(name)
            if patience < 0:
                raise OSError("a folder is filled while it is removed")
    finally:
        os.fchdir(start)
        os.close(start)


def enter(path: str) -> bool:
    """Make a folder that is no link the working folder; False when it is gone."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    os.fchdir(number)
    os.close(number)
    return True


def remove_flat(name: str) -> bool:
    """Remove what is no folder; False for a folder."""
    try:
        if os.lstat(name).st_mode & _KIND == _FOLDER:
            return False
        os.unlink(name)
    except FileNotFoundError:
        pass
    return True


def remove_empty(name: str) -> bool:
    """Remove a folder that was emptied; False when somebody has filled it meanwhile."""
    try:
        os.rmdir(name)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno != NOT_EMPTY:
            raise
        return False
    return True


def make_empty(path: str) -> None:
    """An empty folder at `path` that everybody may write to; one that is there stays the same folder."""
    if not os.path.isdir(path) or os.path.islink(path):
        remove(path)
        os.makedirs(path)
    clear(path)
    os.chmod(path, 0o777)


def place_folder(path: str, mode: int, uid: int, gid: int) -> None:
    """A folder at `path`, replacing a link or file that is in the way; one that exists keeps mode and owner."""
    try:
        if os.lstat(path).st_mode & _KIND == _FOLDER:
            return
        os.unlink(path)
    except FileNotFoundError:
        pass
    os.mkdir(path)
    os.chmod(path, mode)
    if uid or gid:
        os.chown(path, uid, gid)


def place_file(number: int, path: str, *, size: int, mode: int, uid: int, gid: int) -> None:
    """A new file at `path` with the next `size` bytes of the stream; never written through an old link."""
    remove(path)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        while size:
            piece = os.read(number, min(CHUNK, size))
            if not piece:
                raise OSError("the stream of files ended early")
            write_all(file, piece)
            size -= len(piece)
        if uid or gid:
            os.fchown(file, uid, gid)
        os.fchmod(file, mode)
    finally:
        os.close(file)


def receive(number: int, target: str, uid: int, gid: int) -> None:
    """Create the files of a stream below `target`, or `target` itself from a single file.

    Raises:
        OSError: something cannot be written here, or the stream is cut short.
    """
    os.umask(0o022)
    while True:
        head = read_exactly(number, HEAD)
        kind = head[:1]
        if kind == b"z":
            return
        mode, mtime, size, length = (
            int.from_bytes(head[a:b], "big") for a, b in ((1, 5), (5, 13), (13, 21), (21, 23))
        )
        name = os.fsdecode(read_exactly(number, length))
        path = os.path.join(target, name) if name else target
        if not name:
            os.makedirs(path if kind == b"d" else os.path.dirname(path) or "/", exist_ok=True)
        if kind == b"d":
            if name:
                place_folder(path, mode, uid, gid)
        elif kind == b"l":
            link = os.fsdecode(read_exactly(number, size))
            remove(path)
            os.symlink(link, path)
            if uid or gid:
                os.chown(path, uid, gid, follow_symlinks=False)
        else:
            place_file(number, path, size=size, mode=mode, uid=uid, gid=gid)
            os.utime(path, (mtime, mtime))


# ---------------------------------------------------------------------------------------------- sending


def record(number: int, kind: bytes, name: str, info: os.stat_result, size: int) -> None:
    """Write the head and name of one entry."""
    raw = os.fsencode(name)
    head = kind + (info.st_mode & 0o7777).to_bytes(4, "big") + max(0, int(info.st_mtime)).to_bytes(8, "big")
    write_all(number, head + size.to_bytes(8, "big") + len(raw).to_bytes(2, "big") + raw)


def send_file(number: int, name: str, where: "str | int", inner: str) -> None:
    """Write one regular file; what turns out to be anything else is left out.

    Args:
        number: the pipe.
        name: of the file in its folder, or its path.
        where: the open folder; a path is taken from the start, and only then links are followed.
        inner: the name that is sent; empty for a single file.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    inside = isinstance(where, int)
    file = os.open(name, flags | (os.O_NOFOLLOW if inside else 0), dir_fd=where if inside else None)
    try:
        info = os.fstat(file)
        if info.st_mode & _KIND != _FILE:
            return
        record(number, b"f", inner, info, info.st_size)
        left = info.st_size
        while left:
            piece = os.read(file, min(CHUNK, left)) or bytes(min(CHUNK, left))  # shrank meanwhile: filled up
            write_all(number, piece)
            left -= len(piece)
    finally:
        os.close(file)


def send_tree(number: int, folder: int, inner: str, depth: int = 0) -> None:
    """Write what lies in an open folder, in sorted order.

    What a running process removes, or turns into something else, between two looks is left out.

    Raises:
        OSError: folders are nested without end.
    """
    if depth > DEPTH_LIMIT:
        raise OSError("folders are nested more than " + str(DEPTH_LIMIT) + " deep")
    for entry in sorted(os.listdir(folder)):
        name = os.path.join(inner, entry)
        try:
            info = os.stat(entry, dir_fd=folder, follow_symlinks=False)
            kind = info.st_mode & _KIND
            if kind == _FILE:
                send_file(number, entry, folder, name)
            elif kind == _LINK:
                link = os.fsencode(os.readlink(entry, dir_fd=folder))
                record(number, b"l", name, info, len(link))
                write_all(number, link)
            elif kind == _FOLDER:
                lower = os.open(
                    entry, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
                )
                try:
                    record(number, b"d", name, info, 0)
                    send_tree(number, lower, name, depth + 1)
                finally:
                    os.close(lower)
        except OSError as error:
            if error.errno not in CHANGED:
                raise


def send(number: int, source: str) -> None:
    """Write a folder's content, or one file under the empty name. Exits with `NOT_FOUND` when there is neither."""
    if os.path.isdir(source):
        folder = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        record(number, b"d", "", os.fstat(folder), 0)
        send_tree(number, folder, "")
    elif os.path.isfile(source):
        send_file(number, source, "", "")
    else:
        os._exit(NOT_FOUND)
    write_all(number, b"z" + bytes(HEAD - 1))
