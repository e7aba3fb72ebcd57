"""Where skills come from: one file a kind, all behind `base.Source`."""

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from skill2env.errors import UserError
from skill2env.hub.folder import Hub
from skill2env.hub.records import LOGIN, SourceKind, SourceSpec
from skill2env.hub.sources.archive import ArchiveSource, RemoteArchiveSource, is_remote
from skill2env.hub.sources.base import Place, Source
from skill2env.hub.sources.corpus import INDEX_NAME, CorpusSource
from skill2env.hub.sources.folder import FolderSource
from skill2env.hub.sources.git import GitSource
from skill2env.hub.sources.packages import PackageSource

__all__ = ["Place", "Source", "open_source", "spec_of"]

_PACKAGE = re.compile(r"pypi:([^=\s]+)==(\S+)|npm:(@?[^@\s]+)@(\S+)")
_REMOTE = re.compile(r"(?:git\+)?((?:https?|ssh|git|file)://[^#\s]+|[\w.-]+@[\w.-]+:(?!/)[^#\s]+)(?:#(\S+))?")
_ARCHIVES = (".zip", ".skill", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".whl")


def open_source(hub: Hub, spec: SourceSpec, *, offline: bool = False, stored: str = "") -> Source:
    """The source of a registration.

    Args:
        hub: the hub.
        spec: the registration.
        offline: nobody is asked over the network, not even what is newest.
        stored: revision that an earlier sync of the same registration brought; empty when there was none.
    """
    match spec.kind:
        case SourceKind.FOLDER:
            return FolderSource(hub, spec)
        case SourceKind.ARCHIVE:
            return (RemoteArchiveSource if is_remote(spec.location) else ArchiveSource)(hub, spec)
        case SourceKind.GIT:
            return GitSource(hub, spec, offline=offline, stored=stored)
        case SourceKind.PYPI | SourceKind.NPM:
            return PackageSource(hub, spec)
        case SourceKind.CORPUS:
            return CorpusSource(hub, spec)


def spec_of(
    hub: Hub, text: str, *, name: str = "", kind: str = "", revision: str = "", **more: Any
) -> SourceSpec:
    """Understand what a person gave as a source.

    Args:
        hub: the hub; local paths are registered relative to it.
        text: ``pypi:NAME==VERSION``, ``npm:NAME@VERSION``, a repository's URL (``#COMMIT`` pins it), an archive's
            (``#sha256=HEX`` pins it), or a path.
        name: id of the source; derived from `text` when empty.
        kind: what it is, when that should not be guessed.
        revision: commit, branch or version, when `text` does not say it.
        more: other fields of the registration.

    Raises:
        UserError: it is none of these, or there is nothing at the path.
    """
    package = _PACKAGE.fullmatch(text)
    remote = _REMOTE.fullmatch(text)
    if package:
        pypi, version, npm, npm_version = package.groups()
        guessed, location = (SourceKind.PYPI, pypi) if pypi else (SourceKind.NPM, npm)
        revision = revision or version or npm_version
    elif remote and (kind == SourceKind.ARCHIVE or _names_archive(remote[1])):
        guessed, location = SourceKind.ARCHIVE, remote[1]
        pinned = re.fullmatch(r"sha256=([0-9a-f]{64})", remote[2] or "")
        if remote[2] and not pinned:
            raise UserError(
                f"#{remote[2]} says nothing about an archive", hint="give #sha256=... or --sha256"
            )
        if pinned and more.setdefault("sha256", "") in ("", pinned[1]):
            more["sha256"] = pinned[1]
    elif remote:
        guessed, location = SourceKind.GIT, remote[1]
        revision = revision or remote[2] or ""
    else:
        path, _, commit = text.partition("#") if not os.path.lexists(text) else (text, "", "")
        guessed = _kind_of(Path(path))
        location = os.path.relpath(Path(path).absolute(), hub.path.absolute())
        revision = revision or commit
    label = name or _label(location if not remote else remote[1])
    try:
        facts = {"id": label, "kind": kind or guessed, "location": location, "revision": revision}
        return SourceSpec.model_validate({**facts, **more})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        hint = "give a name of a-z, 0-9, dot, hyphen and underscore with --id" if place == "id" else ""
        if place == "location":
            hint = "store the login with `git credential`, or use a URL of ssh"
        shown = LOGIN.sub("", text)
        raise UserError(f"{shown} cannot be a source: {place}: {first['msg']}", hint=hint) from None


def _names_archive(url: str) -> bool:
    return is_remote(url) and urlsplit(url).path.lower().endswith(_ARCHIVES)


def _kind_of(path: Path) -> SourceKind:
    if path.is_file() and path.name.lower().endswith(_ARCHIVES):
        return SourceKind.ARCHIVE
    if (path / INDEX_NAME).is_file():
        return SourceKind.CORPUS
    if path.name.endswith(".git") and (path / "HEAD").is_file():
        return SourceKind.GIT
    if path.is_dir():
        return SourceKind.FOLDER
    raise UserError(
        f"{path} is no source",
        hint="give a folder, an archive, a repository's URL, pypi:NAME==VERSION or npm:NAME@VERSION",
    )


def _label(location: str) -> str:
    location = location.partition("?")[0] if is_remote(location) else location
    last = location.rstrip("/").rpartition("/")[2].rpartition(":")[2] if "@" not in location[:1] else location
    stem = re.sub(r"(?:\.git|\.zip|\.skill|\.whl|\.tar(?:\.\w+)?|\.t[gbx]z2?)$", "", last)
    return re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip("-._")[:64] or "source"
