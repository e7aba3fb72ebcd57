"""Files of a container of an engine, by short shell programs that run in it as root. `EngineBox` adds its life."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox import engine_files, transfer
from skill2env.sandbox.command import ExecOutcome, Executing
from skill2env.sandbox.engine_command import EngineCommand
from skill2env.sandbox.guest import PathKind
from skill2env.sandbox.streams import Pipes, Sink

_TRANSFER_TIMEOUT_SEC = 600.0
_SHORT_TIMEOUT_SEC = 60.0
_ERROR_BYTES = 4096
_MAKE = 'while [ $# -gt 1 ]; do mkdir -p -- "$2" && { [ -z "$1" ] || chmod "$1" -- "$2"; } || exit 1; shift 2; done'
_EMPTY = (
    'for d; do { [ -d "$d" ] && [ ! -L "$d" ]; } || { rm -rf -- "$d"; mkdir -p -- "$d"; }; '
    'rm -rf -- "$d"/* "$d"/.[!.]* "$d"/..?*; chmod 777 -- "$d" || exit 1; done'
)
_KIND = 'if [ -d "$1" ]; then exit 2; elif [ -f "$1" ]; then exit 1; fi; exit 0'


class EngineGuest(Executing):
    """Files in, out and inside; see `Guest` for what each method takes."""

    @abstractmethod
    def _start(
        self,
        argv: Sequence[str],
        pipes: Pipes,
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        fed: bool = False,
    ) -> EngineCommand:
        """Start a command; `fed` when its input comes through `pipes`."""

    def put(self, source: Path, target: str, *, owner: str | None = None) -> None:
        """Copy a file or the content of a folder of the host to `target` inside; see `Guest.put`.

        Raises:
            FileNotFoundError: there is no `source`.
            InfraError: the copy failed.
        """
        source = Path(source)
        whole = source.is_dir()
        source.stat()
        folder, name = (target, "") if whole else engine_files.split(target)
        stream = engine_files.pack(source, name=name, owner=owner)
        done = self._script(
            engine_files.RECEIVE, folder, name, stdin=stream, timeout_sec=_TRANSFER_TIMEOUT_SEC
        )
        if done.return_code:
            told = done.stderr.decode(errors="replace").strip()[:500] or f"code {done.return_code}"
            where = Boundary.STORAGE if "No space left" in told else Boundary.SANDBOX
            raise InfraError(where, f"copying to {target} failed: {told}")

    def unpack(self, archive: Iterator[bytes], target: str) -> None:
        """Unpack a tar stream to a folder inside, made when it is missing.

        Raises:
            InfraError: it failed.
        """
        done = self._script(
            engine_files.RECEIVE, target, "", stdin=archive, timeout_sec=_TRANSFER_TIMEOUT_SEC
        )
        if done.return_code:
            told = done.stderr.decode(errors="replace").strip()[:500]
            raise InfraError(Boundary.SANDBOX, f"unpacking to {target} failed: {told}")

    def get(
        self, source: str, target: Path, *, limit_bytes: int = transfer.LIMIT_BYTES, links: bool = False
    ) -> None:
        """Copy a file or the content of a folder inside to `target` on the host; see `Guest.get`.

        Raises:
            FileNotFoundError: there is no `source`.
            TransferRefused: too much, or what no honest program would send.
            InfraError: the container is gone, or the host cannot write.
        """
        try:
            with engine_files.Download(limit_bytes) as download:
                done = self._script(
                    engine_files.SEND, source, sink=download.feed, timeout_sec=_TRANSFER_TIMEOUT_SEC
                )
                if done.return_code == engine_files.NOT_FOUND:
                    raise FileNotFoundError(source)
                if done.return_code not in (0, 1):  # 1: a file changed or vanished while it was read
                    told = done.stderr.decode(errors="replace").strip()[:500]
                    raise transfer.TransferRefused(f"copying {source} failed: {told or done.return_code}")
                download.write(Path(target), links=links)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise InfraError(Boundary.STORAGE, f"writing {target} failed: {error}") from error

    def make_folders(self, folders: Mapping[str, int | None]) -> None:
        """Make folders inside, with their parents, where they are missing; see `Guest.make_folders`.

        Raises:
            InfraError: one cannot be made.
        """
        words = [
            part for path, mode in folders.items() for part in ("" if mode is None else f"{mode:o}", path)
        ]
        self._must(_MAKE, *words, doing="making folders")

    def empty_folders(self, folders: Sequence[str]) -> None:
        """Make folders inside empty, and writable by everybody; make those that are missing.

        Raises:
            InfraError: it failed.
        """
        self._must(_EMPTY, *folders, doing="emptying folders")

    def kind(self, path: str) -> PathKind:
        """What a path inside leads to; links are followed.

        Raises:
            InfraError: the container is gone.
        """
        code = self._script(_KIND, path).return_code
        return PathKind(code) if code in tuple(PathKind) else PathKind.OTHER

    def _must(self, script: str, *words: str, doing: str) -> None:
        done = self._script(script, *words)
        if done.return_code:
            told = done.stderr.decode(errors="replace").strip()[:500] or f"code {done.return_code}"
            raise InfraError(Boundary.SANDBOX, f"{doing} in the container failed: {told}")

    def _script(
        self,
        script: str,
        *words: str,
        stdin: Iterator[bytes] | None = None,
        sink: Sink | None = None,
        timeout_sec: float = _SHORT_TIMEOUT_SEC,
    ) -> ExecOutcome:
        """Run a short shell program of ours as root."""
        pipes = Pipes(stdin=stdin, merge_stderr=False, limit=_ERROR_BYTES, sink=sink)
        argv = ["sh", "-c", script, "sh", *words]
        return self._start(argv, pipes, fed=stdin is not None).wait(timeout_sec)
