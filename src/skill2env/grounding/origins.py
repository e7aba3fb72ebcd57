"""Where the files of a world come from: large and binary ones have to have a declared origin.

Text of ordinary size is the author's own writing. A table of a megabyte or a picture is not, so it must be a file of
the skill, an asset, or made by a script of the task; else a reviewer is told.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from skill2env.authors.workspace import path_problem
from skill2env.records import Finding, Severity, TaskContract, digest_bytes

LARGE_BYTES = 256 * 1024
CODE = "origin-undeclared"
_MEND = "Declare it in contract.json as an asset, or under `generated` with the script that made it."


def undeclared(
    task_dir: Path, contract: TaskContract, skill_files: Collection[str], staged: Collection[str]
) -> Iterator[Finding]:
    """Findings about files below environment/ without an origin.

    Args:
        task_dir: the task's folder, collected by the host.
        contract: what the author declared.
        skill_files: digests of the skill's files.
        staged: paths that the host put there.
    """
    scripts = {item.path: item.script for item in contract.generated}
    world = task_dir / "environment"
    for path in sorted(item for item in world.rglob("*") if item.is_file() and not item.is_symlink()):
        name = path.relative_to(task_dir).as_posix()
        data = path.read_bytes()
        why = _needs_origin(data)
        if not why or name in staged or digest_bytes(data) in skill_files:
            continue
        if name in scripts:
            problem = _script_problem(task_dir, scripts[name], path.name)
            if not problem:
                continue
            why = f"{why}; {problem}"
        yield Finding(
            code=CODE,
            severity=Severity.WARN,
            message=f"the origin of this file is not declared ({why})",
            where=name,
            mend=_MEND,
        )


def _needs_origin(data: bytes) -> str:
    """Why a file needs an origin; empty when it needs none."""
    if len(data) > LARGE_BYTES:
        return f"{len(data):,} bytes"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "binary"
    return "binary" if "\0" in text else ""


def _script_problem(task_dir: Path, script: str, name: str) -> str:
    """Why a script does not account for a file; empty when it does."""
    source = task_dir / script
    if path_problem(script) or source.is_symlink() or not source.is_file():
        return f"the script {script!r} is not in the task"
    if name.encode() not in source.read_bytes():
        return f"the script {script} does not name it"
    return ""
