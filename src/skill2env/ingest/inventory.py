"""The files of a skill: sizes, digests and kinds, with limits, and without ever following a link out of the folder."""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from skill2env.ingest.quirks import note
from skill2env.ingest.text import is_text
from skill2env.records import SHA256_PREFIX, Diagnostic, FileKind, SkillFile, digest_bytes, digest_of

SKIPPED_FOLDERS = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".pytest_cache"}
)
LEFTOVERS = (".pyc", ".pyo", ".DS_Store", "Thumbs.db", ".swp")
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".whl", ".jar", ".skill")
SIDECARS = frozenset(
    {"_meta.json", "skill-report.json", "skill.oms.sig", "skill-card.md", "TOME.json", "agents/openai.yaml"}
)
_SAMPLE_BYTES = 65536
_CHUNK_BYTES = 1 << 20
_NATIVE = (b"\x7fELF", b"MZ", b"\xfe\xed\xfa", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


@dataclass(frozen=True, slots=True)
class IngestLimits:
    """What of a bundle is taken; everything beyond is refused with a diagnostic."""

    file_bytes: int = 32 * 2**20
    total_bytes: int = 128 * 2**20
    files: int = 5000
    depth: int = 16
    entry_bytes: int = 4 * 2**20
    """How much of the entry file is read as text."""


@dataclass(slots=True)
class Inventory:
    """Files sorted by path, and what was odd about them."""

    files: list[SkillFile] = field(default_factory=list[SkillFile])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def digest(self) -> str:
        """Identity of the bundle: path, kind and content of every file that was taken.

        The executable bit is left out: archives, Windows checkouts and package formats lose it, and the same skill
        must keep its identity on the way through them.
        """
        return digest_of([[f.path, f.kind, f.sha256] for f in self.files if f.kind is not FileKind.REFUSED])


def take_inventory(root: Path, limits: IngestLimits) -> Inventory:
    """List a skill's folder.

    Args:
        root: the folder itself; may be a link, its content is what counts.
        limits: sizes, counts and depth.
    """
    result = Inventory()
    seen: dict[str, list[str]] = {}
    total = 0
    for path, status in _walk(root, "", limits, result):
        if len(result.files) >= limits.files:
            result.diagnostics.append(note("over-limit", f"more than {limits.files} files"))
            break
        item = _entry(root, path, status, limits, total, seen)
        total += item.size if item.kind is not FileKind.REFUSED else 0
        result.files.append(item)
    result.files.sort(key=lambda f: f.path)
    _summarise(result, seen, total)
    return result


def _walk(
    root: Path, inside: str, limits: IngestLimits, result: Inventory
) -> Iterator[tuple[str, os.stat_result]]:
    try:
        names = sorted(os.listdir(root / inside if inside else root))
    except OSError as error:
        result.diagnostics.append(note("unreadable", error.strerror or "", inside or "."))
        return
    for name in names:
        path = f"{inside}/{name}" if inside else name
        try:
            status = (root / path).lstat()
            path.encode()
        except OSError as error:
            result.diagnostics.append(note("unreadable", error.strerror or "", path))
            continue
        except UnicodeEncodeError:
            result.diagnostics.append(note("odd-file-name", "not UTF-8, refused", ascii(path)))
            continue
        if stat.S_ISDIR(status.st_mode):
            if name in SKIPPED_FOLDERS:
                continue
            if path.count("/") + 1 >= limits.depth:
                result.diagnostics.append(note("over-limit", f"deeper than {limits.depth} folders", path))
                continue
            yield from _walk(root, path, limits, result)
        else:
            yield path, status


def _entry(
    root: Path,
    path: str,
    status: os.stat_result,
    limits: IngestLimits,
    total: int,
    seen: dict[str, list[str]],
) -> SkillFile:
    def refuse(code: str) -> SkillFile:
        seen.setdefault(code, []).append(path)
        return SkillFile(path=path, kind=FileKind.REFUSED, size=status.st_size, sha256="")

    if stat.S_ISLNK(status.st_mode):
        return _link(root, path, seen)
    if not stat.S_ISREG(status.st_mode):
        return refuse("special-file")
    if status.st_size > limits.file_bytes or total + status.st_size > limits.total_bytes:
        return refuse("over-limit")
    try:
        sample, digest = _read(root / path)
    except OSError:
        return refuse("unreadable")
    _classify(path, sample, seen)
    kind = FileKind.TEXT if is_text(sample) else FileKind.BINARY
    if kind is FileKind.BINARY:
        seen.setdefault("binary-file", []).append(path)
    return SkillFile(
        path=path, kind=kind, size=status.st_size, sha256=digest, executable=bool(status.st_mode & 0o111)
    )


def _read(path: Path) -> tuple[bytes, str]:
    """(first bytes, digest) without following a link that replaced the file."""
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        sample = file.read(_SAMPLE_BYTES)
        digest.update(sample)
        while piece := file.read(_CHUNK_BYTES):
            digest.update(piece)
    return sample, SHA256_PREFIX + digest.hexdigest()


def _link(root: Path, path: str, seen: dict[str, list[str]]) -> SkillFile:
    target = os.readlink(root / path)
    aim = os.path.normpath(os.path.join(os.path.dirname(path), target))
    code, kind = "symlink", FileKind.SYMLINK
    real_root = os.path.realpath(root)
    real = os.path.realpath(root / path)
    if (
        os.path.isabs(target)
        or aim.startswith("..")
        or not (real == real_root or real.startswith(real_root + os.sep))
    ):
        code, kind = "symlink-escapes", FileKind.REFUSED
    elif os.path.realpath(os.path.dirname(root / path)).startswith(real + os.sep) or real in (
        real_root,
        os.path.realpath(os.path.dirname(root / path)),
    ):
        code, kind = "symlink-loop", FileKind.REFUSED
    elif not os.path.exists(real):
        code = "symlink-dangles"
    seen.setdefault(code, []).append(path)
    sha = digest_bytes(target.encode(errors="surrogateescape")) if kind is FileKind.SYMLINK else ""
    return SkillFile(
        path=path,
        kind=kind,
        size=0,
        sha256=sha,
        target=target.encode(errors="replace").decode(errors="replace"),
    )


def _classify(path: str, sample: bytes, seen: dict[str, list[str]]) -> None:
    name = PurePosixPath(path).name
    codes: list[str] = []
    if sample.startswith(_NATIVE):
        codes.append("native-executable")
    if name.lower().endswith(ARCHIVES):
        codes.append("archive-file")
    if sample.startswith(b"version https://git-lfs.github.com/spec/"):
        codes.append("lfs-pointer")
    if name == ".env" or name.startswith(".env."):
        codes.append("env-file")
    elif name.startswith("."):
        codes.append("hidden-file")
    if name.endswith(LEFTOVERS):
        codes.append("build-leftover")
    if path in SIDECARS or name in SIDECARS:
        codes.append("sidecar")
    if not path.isascii() or any(c in path for c in " '\"\\\n\t") or not path.isprintable():
        codes.append("odd-file-name")
    if path.startswith("scripts/") and name.endswith((".py", ".sh", ".js", ".rb", ".pl")):
        codes.append("script-not-executable")
    for code in codes:
        seen.setdefault(code, []).append(path)


def _summarise(result: Inventory, seen: dict[str, list[str]], total: int) -> None:
    executable = {f.path for f in result.files if f.executable}
    seen["script-not-executable"] = [p for p in seen.get("script-not-executable", []) if p not in executable]
    for code, paths in sorted(seen.items()):
        if paths:
            more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
            shown = ", ".join(
                p.encode("unicode_escape").decode()[:80] if not p.isprintable() else p[:80]
                for p in sorted(paths)[:3]
            )
            result.diagnostics.append(note(code, shown + more, sorted(paths)[0]))
    if total > 5 * 2**20 or len(result.files) > 100:
        result.diagnostics.append(note("huge-folder", f"{len(result.files)} files, {total:,} bytes"))
