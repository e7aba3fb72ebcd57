"""What the names and first bytes of a skill's files give away."""

from dataclasses import dataclass, field

from skill2env.ingest.quirks import note
from skill2env.records import Diagnostic

LEFTOVER_FOLDERS = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        "__pycache__",
        "node_modules",
        ".venv",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".ipynb_checkpoints",
    }
)
"""Never part of a skill and never searched for skills: version control, caches and installed packages."""
LEFTOVER_FILES = frozenset({".git", ".DS_Store", "Thumbs.db", "desktop.ini"})
"""``.git`` as a file marks a worktree or submodule."""
_LEFTOVER_ENDINGS = (".pyc", ".pyo", ".swp", ".orig", "~")
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".whl", ".jar", ".skill")
_ARCHIVE_HEADS = (
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\0",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!",
    b"\x28\xb5\x2f\xfd",
)
_OFFICE = (".docx", ".xlsx", ".pptx", ".odt", ".ods", ".epub", ".npz", ".h5ad")
"""Documents that are zip files inside."""
_NATIVE_HEADS = (
    b"\x7fELF",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\0asm",
)
_LFS_HEAD = b"version https://git-lfs.github.com/spec/"
_SIDECARS = frozenset(
    {"_meta.json", "skill-report.json", "skill.oms.sig", "skill-card.md", "TOME.json", "agents/openai.yaml"}
)
SCRIPT_ENDINGS = (".py", ".sh", ".bash", ".js", ".mjs", ".ts", ".rb", ".pl", ".r", ".ps1", ".php", ".lua")
TEXT_ENDINGS = (
    *SCRIPT_ENDINGS,
    ".md",
    ".txt",
    ".csv",
    ".tsv",
    ".json",
    ".yaml",
    ".yml",
    ".toml",
    ".xml",
    ".html",
)


def is_leftover(name: str, *, folder: bool) -> bool:
    """True for entries that tools and systems leave behind and that are no part of the bundle."""
    if folder:
        return name in LEFTOVER_FOLDERS
    return name in LEFTOVER_FILES or name.endswith(_LEFTOVER_ENDINGS)


@dataclass(slots=True)
class Signs:
    """Diagnostic code -> paths that gave rise to it."""

    paths: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def add(self, code: str, path: str) -> None:
        """Note one path."""
        self.paths.setdefault(code, []).append(path)

    def look(self, path: str, head: bytes, *, text: bool, executable: bool) -> None:
        """Judge one regular file by its path and its first 512 bytes."""
        for code in (*_by_name(path, executable=executable), *_by_content(path, head, text=text)):
            self.add(code, path)

    def diagnostics(self) -> list[Diagnostic]:
        """One diagnostic a code, with up to three paths."""
        return [note(code, shortened(paths), sorted(paths)[0]) for code, paths in sorted(self.paths.items())]


def shortened(paths: list[str]) -> str:
    """The first three of a list, and how many more there are."""
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(path if len(path) <= 60 else f"…{path[-59:]}" for path in sorted(paths)[:3]) + more


def _by_name(path: str, *, executable: bool) -> list[str]:
    name = path.rpartition("/")[2]
    lowered = name.lower()
    codes: list[str] = []
    if lowered == ".env" or lowered.startswith(".env."):
        codes.append("env-file")
    elif any(part.startswith(".") for part in path.split("/")):
        codes.append("hidden-file")
    if path in _SIDECARS or name in _SIDECARS:
        codes.append("sidecar")
    if path in {"evals/evals.json", "evals.json"}:
        codes.append("eval-cases")
    if any(char in " '\"`$&;|<>*?(){}[]!#" or not char.isascii() for char in path):
        codes.append("odd-file-name")
    if path.startswith("scripts/") and lowered.endswith(SCRIPT_ENDINGS) and not executable:
        codes.append("script-not-executable")
    return codes


def _by_content(path: str, head: bytes, *, text: bool) -> list[str]:
    lowered = path.lower()
    if text:
        return ["lfs-pointer"] if head.startswith(_LFS_HEAD) else []
    codes = ["binary-file"]
    if head.startswith(_NATIVE_HEADS) or (head.startswith(b"MZ") and b"PE\0\0" in head):
        codes.append("native-executable")
    elif lowered.endswith(_ARCHIVES) or (head.startswith(_ARCHIVE_HEADS) and not lowered.endswith(_OFFICE)):
        codes.append("archive-file")
    elif lowered.endswith(TEXT_ENDINGS):
        codes.append("not-utf8")
    return codes
