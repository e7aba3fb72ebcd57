"""The hub's folder: where everything lies, who may write to it, and which sources it registers.

Layout::

    hub.toml         sources and licence policy, for people to edit; `hub add` appends to it
    manifest.jsonl   pins of everything that the store holds; rewritten by every sync
    index.sqlite     what is known of each skill; `hub sync` and `hub scan` make it again
    store/           contents by digest (see `hub.store`)
    downloads/       archives of packages by digest, and bare copies of git repositories
    work/            unfinished work; emptied by whoever holds the lock
    HUB.lock         held by the process that writes
"""

import os
import shutil
import tomllib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import ValidationError

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.harbor.toml_text import to_toml
from skill2env.hub.policy import LicencePolicy
from skill2env.hub.records import SourceSpec
from skill2env.records import Record
from skill2env.store.files import check_writable, storage, sweep, write_text

CONFIG_NAME = "hub.toml"
_HEAD = """\
# Sources and policy of a skill hub. `skill2env hub add SOURCE` appends a source, `skill2env hub sync` fetches them.
# docs/hub.md explains every key.

format = 1
"""


class HubConfig(Record):
    """What ``hub.toml`` says."""

    format: int = 1
    policy: LicencePolicy = LicencePolicy()
    source: tuple[SourceSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Hub:
    """Paths of one hub. Making one touches nothing."""

    path: Path

    @property
    def config_file(self) -> Path:
        """Sources and policy."""
        return self.path / CONFIG_NAME

    @property
    def manifest(self) -> Path:
        """Pins of what is stored."""
        return self.path / "manifest.jsonl"

    @property
    def index(self) -> Path:
        """The SQLite file."""
        return self.path / "index.sqlite"

    @property
    def store(self) -> Path:
        """Contents by digest."""
        return self.path / "store"

    @property
    def downloads(self) -> Path:
        """What came over the network."""
        return self.path / "downloads"

    @property
    def work(self) -> Path:
        """Unfinished work."""
        return self.path / "work"

    def require(self) -> None:
        """Check that this is a hub.

        Raises:
            UserError: there is no ``hub.toml``.
        """
        if not self.config_file.is_file():
            raise UserError(
                f"{self.path} is no hub: it has no {CONFIG_NAME}",
                hint="`skill2env hub add SOURCE` makes one, in ./hub or where --hub says",
            )

    @contextmanager
    def locked(self) -> Generator[None]:
        """Hold the hub for this process and sweep what an earlier one left unfinished.

        The lock is the kernel's and ends with the process, however it ends.

        Raises:
            InfraError: boundary ``storage``; another process works here, or the folder cannot be written to.
        """
        check_writable(self.path)
        lock = FileLock(self.path / "HUB.lock", timeout=0)
        with storage("locking", self.path):
            try:
                lock.acquire()
            except Timeout:  # a kind of OSError, so it must not reach storage()
                raise InfraError(
                    Boundary.STORAGE,
                    f"another process is working on the hub {self.path}",
                    hint="wait for it and run the same command again",
                ) from None
        try:
            sweep(self.path)
            with storage("emptying", self.work):
                if self.work.is_dir() and not self.work.is_symlink():
                    shutil.rmtree(self.work)
                self.work.mkdir(mode=0o700)
            yield
        finally:
            shutil.rmtree(self.work, ignore_errors=True)
            lock.release()

    def config(self) -> HubConfig:
        """What ``hub.toml`` says.

        Raises:
            UserError: it is missing, cannot be read, or says something that is not understood.
        """
        self.require()
        try:
            tree = tomllib.loads(self.config_file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UserError(f"cannot read {self.config_file}: {error}", hint="mend it by hand") from None
        return parse_config(tree, str(self.config_file))


def parse_config(tree: Mapping[str, Any], where: str) -> HubConfig:
    """Check what a hub's TOML says.

    Raises:
        UserError: a key or a value is wrong; the message names it.
    """
    try:
        config = HubConfig.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{where}: {place}: {first['msg']}", hint="docs/hub.md explains every key") from None
    ids = [source.id for source in config.source]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise UserError(f"{where}: several sources are called {twice[0]}", hint="give each an id of its own")
    if config.format != 1:
        raise UserError(f"{where} has format {config.format}", hint="upgrade skill2env to read it")
    return config


def register(hub: Hub, specs: list[SourceSpec], extra: str = "") -> None:
    """Append sources to ``hub.toml``, which keeps its comments; it is made when missing.

    Args:
        hub: the hub.
        specs: new sources.
        extra: TOML to begin a new file with, for example a policy.

    Raises:
        UserError: an id is taken, or the file cannot be read.
        InfraError: boundary ``storage``.
    """
    check_writable(hub.path)
    text = hub.config_file.read_text(encoding="utf-8") if hub.config_file.is_file() else _HEAD + extra
    taken = {source.id for source in hub.config().source} if hub.config_file.is_file() else set[str]()
    for spec in specs:
        if spec.id in taken:
            raise UserError(
                f"the hub already has a source called {spec.id}",
                hint=f"give another name with --id, or edit {hub.config_file}",
            )
        taken.add(spec.id)
    tables = [spec.model_dump(mode="json", exclude_defaults=True) for spec in specs]
    text = text.rstrip("\n") + "\n\n" + to_toml({"source": tables}).lstrip("\n")
    parse_config(tomllib.loads(text), str(hub.config_file))
    write_text(hub.config_file, text)


def resolved(hub: Hub, location: str) -> Path:
    """A path of ``hub.toml``, which is relative to the hub's folder."""
    return Path(os.path.normpath(hub.path.absolute() / Path(location).expanduser()))
