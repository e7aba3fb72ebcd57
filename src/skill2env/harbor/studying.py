"""An agent that runs a script and brings home what it found and what it left: files before, files changed, files gone.

Only regular files are read, outside of what a distribution installs, up to `FILE_BYTES` each and `TOTAL_BYTES`
together; what is larger is listed without content. Nothing of it stays in the container.
"""

import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import override

from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from pydantic import Field

from skill2env.errors import Boundary, InfraError
from skill2env.harbor.agents import ScriptAgent, ScriptOptions

STUDY_AGENT = "skill2env.harbor.studying:StudyAgent"
"""Import path, as ``run_trial`` and ``harbor run -a`` take it."""

FILE_BYTES = 2**20
TOTAL_BYTES = 24 * 2**20
FILES = 3000
_NOTES = "study.json"
_BEFORE, _AFTER = "study-before.tar", "study-after.tar"
_TOOLS = "PATH=/usr/sbin:/usr/bin:/sbin:/bin; LC_ALL=C; export PATH LC_ALL; cd /; "
_NEVER = "/proc /sys /dev /run /logs /tests /solution"
_SYSTEM = "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /boot /etc /var/lib /var/cache /var/log /var/backups /opt/venv"
_NO_FIND = 77


@dataclass(frozen=True, slots=True)
class StudiedFile:
    """A regular file inside a container."""

    path: str
    mode: int
    size: int
    data: bytes | None = field(default=None, repr=False)
    """Content; None when it was too large to take along."""


@dataclass(frozen=True, slots=True)
class Studied:
    """What `StudyAgent` brought home."""

    before: Mapping[str, StudiedFile]
    """Files outside system folders, and any file that the agent may write, before the script ran."""
    after: Mapping[str, StudiedFile]
    """Files anywhere that were made or changed while it ran."""
    removed: tuple[str, ...] = ()
    """Paths of `before` that are gone."""
    writable_files: frozenset[str] = frozenset()
    """Paths of `before` that the agent's user may write."""
    writable_folders: tuple[str, ...] = ()
    """Folders in which it may make files."""
    uid: int = 0
    """Who the agent is."""
    search_path: tuple[str, ...] = ()
    """Folders of its ``PATH``."""
    home: str = ""
    workdir: str = "/"


class StudyOptions(ScriptOptions):
    """Options of `StudyAgent`."""

    inventory: bool = True
    """Take everything; False takes only `collect`, after the script."""
    collect: list[str] = Field(default_factory=list[str])
    """Absolute paths of files to take after the script when there is no inventory."""


class StudyAgent(ScriptAgent):
    """Runs a script as `ScriptAgent` does, and stores what `read_studied` reads in the trial's ``agent/``."""

    options_model = StudyOptions

    @staticmethod
    @override
    def name() -> str:
        return "skill2env-study"

    @override
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Look, run the script, look again.

        Raises:
            FileNotFoundError: the script does not exist on the host.
        """
        options = self.options
        assert isinstance(options, StudyOptions)
        if not options.inventory:
            await super().run(instruction, environment, context)
            await self._take(environment, options.collect, _AFTER)
            return
        await self._study(instruction, environment, context)

    async def _study(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        notes: dict[str, object] = {"problem": ""}
        before = await self._list(environment, f"{_NEVER} {_SYSTEM}", "-type f", user="root")
        writable = await self._list(environment, _NEVER, r"\( -type f -o -type d \) -writable")
        if before is None or writable is None:
            notes["problem"] = "the image has no GNU find"
            before = writable = []
        told = (await environment.exec('/usr/bin/id -u; echo "$PATH"; echo ~; pwd')).stdout or ""
        uid, path, home, workdir = (told.splitlines() + [""] * 4)[:4]
        notes |= {"uid": int(uid or 0), "path": path.split(":"), "home": home, "workdir": workdir}
        mine = [entry for entry in writable if notes["uid"] or not _is_system(entry[3])]
        listed = {entry[3]: entry for entry in (*before, *mine) if entry[0] == "f"}
        notes["before"] = list(listed.values())
        notes["writable"] = [[entry[0], entry[3]] for entry in mine]
        await self._take(environment, _affordable(listed.values()), _BEFORE)
        mark = (await environment.exec(f"{_TOOLS} mktemp && sleep 0.02", user="root")).stdout or ""
        await super().run(instruction, environment, context)
        changed = await self._list(environment, _NEVER, f"-type f -cnewer {mark.strip()}", user="root") or []
        left = await self._list(environment, f"{_NEVER} {_SYSTEM}", "-type f", user="root") or []
        await environment.exec(f"{_TOOLS} rm -f {mark.strip()}", user="root")
        notes["after"] = changed
        there = {entry[3] for entry in left}
        notes["removed"] = sorted(path for path in listed if not _is_system(path) and path not in there)
        await self._take(environment, _affordable(changed), _AFTER)
        (self.logs_dir / _NOTES).write_text(json.dumps(notes), encoding="utf-8")

    async def _list(
        self, environment: BaseEnvironment, pruned: str, what: str, *, user: str | None = None
    ) -> list[tuple[str, str, int, str]] | None:
        """Kind, mode, size and path of what `find` finds; None when it cannot."""
        prune = " -o ".join(f"-path {path}" for path in pruned.split())
        command = (
            f"{_TOOLS} find --version 2>/dev/null | grep -q GNU || exit {_NO_FIND}; "
            f"find / \\( {prune} \\) -prune -o {what} -printf '%y %m %s %p\\0' 2>/dev/null; true"
        )
        done = await environment.exec(command, user=user)
        if done.return_code == _NO_FIND:
            return None
        entries = [entry.split(" ", 3) for entry in (done.stdout or "").split("\0")]
        found = [(e[0], e[1], int(e[2]), e[3]) for e in entries if len(e) == 4 and e[2].isdigit()]
        return sorted(found, key=lambda entry: entry[3])

    async def _take(self, environment: BaseEnvironment, paths: Iterable[str], name: str) -> None:
        """Bring files home as one archive."""
        wanted = self.logs_dir / f"{name}.names"
        wanted.write_bytes(b"\0".join(path.lstrip("/").encode() for path in paths) + b"\0")
        made = await environment.exec(f"{_TOOLS} mktemp -d", user="root")
        folder = (made.stdout or "").strip()
        if not folder.startswith("/"):
            raise InfraError(Boundary.SANDBOX, "no folder for a study can be made in the container")
        await environment.upload_file(source_path=wanted, target_path=f"{folder}/names")
        command = f"{_TOOLS} tar --null --no-recursion -T {folder}/names -cf {folder}/files 2>/dev/null; true"
        await environment.exec(command, user="root")
        await environment.download_file(source_path=f"{folder}/files", target_path=self.logs_dir / name)
        await environment.exec(f"{_TOOLS} rm -rf -- {folder}", user="root")
        wanted.unlink()


def _is_system(path: str) -> bool:
    return any(path == top or path.startswith(top + "/") for top in _SYSTEM.split())


def _affordable(entries: Iterable[tuple[str, str, int, str]]) -> list[str]:
    """Paths to take along, smallest files first within the limits."""
    taken: list[str] = []
    total = 0
    for entry in sorted(entries, key=lambda entry: (entry[2], entry[3])):
        if entry[2] > FILE_BYTES or total + entry[2] > TOTAL_BYTES or len(taken) >= FILES:
            break
        total += entry[2]
        taken.append(entry[3])
    return taken


def read_studied(trial_folder: Path) -> Studied:
    """Read what a `StudyAgent` with an inventory brought home.

    Args:
        trial_folder: of a finished trial.

    Raises:
        ValueError: it brought nothing home, or could not look; the message says why.
    """
    folder = trial_folder / "agent"
    try:
        notes = json.loads((folder / _NOTES).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError("the files of the reference solution's run could not be listed") from error
    if notes["problem"]:
        raise ValueError(notes["problem"])
    before, after = _contents(folder / _BEFORE), _contents(folder / _AFTER)
    writable = notes["writable"]
    return Studied(
        before={entry[3]: _file(entry, before) for entry in notes["before"]},
        after={entry[3]: _file(entry, after) for entry in notes["after"]},
        removed=tuple(notes["removed"]),
        writable_files=frozenset(path for kind, path in writable if kind == "f"),
        writable_folders=tuple(sorted(path for kind, path in writable if kind == "d")),
        uid=notes["uid"],
        search_path=tuple(filter(None, notes["path"])),
        home=notes["home"],
        workdir=notes["workdir"],
    )


def read_collected(trial_folder: Path) -> dict[str, bytes]:
    """Content by absolute path of what a `StudyAgent` without an inventory was told to collect and found."""
    return _contents(trial_folder / "agent" / _AFTER)


def _file(entry: tuple[str, str, int, str], contents: Mapping[str, bytes]) -> StudiedFile:
    return StudiedFile(entry[3], int(entry[1], 8), entry[2], contents.get(entry[3]))


def _contents(archive: Path) -> dict[str, bytes]:
    """Regular files of an archive that untrusted code may have had a hand in, read into memory within the limits."""
    found: dict[str, bytes] = {}
    total = 0
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                total += member.size
                if total > 2 * TOTAL_BYTES or len(found) > FILES:
                    break
                stream = tar.extractfile(member) if member.isreg() else None
                if stream is not None:
                    found["/" + member.name.removeprefix("./")] = stream.read(FILE_BYTES + 1)
    except (OSError, tarfile.TarError):
        return found
    return found
