"""What of a task must not be in the agent's image, and what may although it lies in tests/ too.

A fixture that the agent is given and that the verifier keeps a pristine copy of is public (students' answers may be
the input of a task). The files that grade, the reference solution and the rubric are private whatever else holds them.
"""

import hashlib
import re
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from skill2env.verify.reading import decode, read_file, walk

MIN_SIZE = 24
"""Smaller files (an empty module) are equal by chance; bytes."""
MIN_LINE = 16
"""Shorter lines are equal by chance; characters."""
TRUTH = re.compile(
    r"(?:^|[^a-z])(?:expected|golden|truth|answers?|oracle|solutions?)(?:[^a-z]|$)", re.IGNORECASE
)
"""Names of files that say what is right."""
_CODE = (".sh", ".py", ".js", ".ts", ".pl", ".rb", ".c", ".go", ".rs")
_BOILERPLATE = re.compile(r"#!|set -|(?:import|from)\s|export\s|cat\s*>|umask|cd\s|exit\s|#|if __name__")


@dataclass(frozen=True, slots=True)
class PrivateFile:
    """One file whose content must not be found in the image."""

    path: str
    kind: str
    """``grader``, ``solution``, ``rubric``, ``truth``, or ``named``: a public file whose name speaks of answers."""
    sha256: str
    size: int
    lines: tuple[str, ...]
    """Lines that together give the file away: of a solution all of them, because it may repeat a public file and
    change one line; of other texts the distinctive ones. Stripped; empty for data."""
    distinctive: tuple[str, ...]
    """Lines that do not occur by chance."""


def private_files(task_dir: Path) -> tuple[PrivateFile, ...]:
    """The private files of a task, sorted by path."""
    environment = [data for path, data in _contents(task_dir, "environment") if not _is_cache(path)]
    public = {_sha(data) for data in environment}
    public_lines = {line for data in environment for line in _lines_of(decode(data) or "", everything=True)}
    script = decode(read_file(task_dir / "tests" / "test.sh")) or ""
    shown = _lines_of(decode(read_file(task_dir / "instruction.md")) or "", everything=True)
    found: list[PrivateFile] = []
    for top in ("solution", "tests", "steps"):
        for path, data in _contents(task_dir, top):
            kind = _kind(path, _sha(data) in public, script)
            if kind and len(data) >= MIN_SIZE:
                found.append(_file(path, kind, data, shown, public_lines))
    return tuple(sorted(found, key=lambda item: item.path))


def _file(path: str, kind: str, data: bytes, shown: set[str], public: set[str]) -> PrivateFile:
    text = decode(data) if kind in ("grader", "solution", "rubric") else None
    distinctive = _lines_of(text or "") - shown
    lines = distinctive
    if kind == "solution":
        lines = _lines_of(text or "", everything=True) - shown - {""}
    elif kind == "grader" and "reward" not in (text or ""):
        # It may be the original of a file that the agent is given with a fault: what both share is public.
        lines = distinctive - public
    return PrivateFile(path, kind, _sha(data), len(data), tuple(sorted(lines)), tuple(sorted(distinctive)))


def to_json(files: tuple[PrivateFile, ...]) -> list[dict[str, Any]]:
    """The form that the scanner reads."""
    return [asdict(item) for item in files]


def _kind(path: str, is_public: bool, test_script: str) -> str:
    name = PurePosixPath(path).name
    top = path.split("/", maxsplit=1)[0]
    if name == "Dockerfile":
        return ""
    if top == "solution" or "/solution/" in path:
        return "solution"
    if name == "rubric.md":
        return "rubric"
    if name == "test.sh" or name in test_script:
        return "grader"
    if TRUTH.search(PurePosixPath(name).stem):
        return "named" if is_public else "truth"
    if path.count("/") == 1 and name.endswith(_CODE) and not is_public:
        return "grader"
    return "" if is_public else "truth"


def _contents(task_dir: Path, top: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for path, _ in walk(task_dir / top):
        data = read_file(task_dir / top / path, limit=16 * 1024 * 1024)
        if data is not None:
            found.append((f"{top}/{path}", data))
    return found


def _lines_of(text: str, *, everything: bool = False) -> set[str]:
    lines = {line.strip() for line in text.splitlines()}
    if everything:
        return lines
    return {line for line in lines if len(line) >= MIN_LINE and not _BOILERPLATE.match(line)}


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _is_cache(path: str) -> bool:
    return "__pycache__" in path
