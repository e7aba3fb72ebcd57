"""Gate `shell`: scripts that the kernel can start and bash can parse. Nothing is executed."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from skill2env import bash_tree
from skill2env.errors import Boundary, InfraError, boundary
from skill2env.verify.gate import GateContext, Hit, Report, Stage, Subject
from skill2env.verify.reading import decode, read_file, walk

_PARSE_TIMEOUT_SEC = 20.0
_SHELLS = ("bash", "sh", "dash")
_BOM = b"\xef\xbb\xbf"


def check(subject: Subject, context: GateContext) -> Report:  # noqa: ARG001
    """Check every ``.sh`` file below tests/ and solution/."""
    folders = {Stage.CONTRACT: ("tests",), Stage.SOLUTION: ("solution",)}.get(
        subject.stage, ("tests", "solution")
    )
    scripts = [
        path
        for path, _ in walk(subject.task_dir)
        if path.endswith(".sh") and (path.split("/")[0] in folders or path.startswith("steps/"))
    ]
    return Report(
        [hit for path in scripts for hit in _script(subject.task_dir, path)], {"scripts": len(scripts)}
    )


def _script(root: Path, path: str) -> Iterator[Hit]:
    data = read_file(root / path)
    if data is None:
        return  # the gate `files` says so
    if data.startswith(_BOM):
        yield Hit("shell-bom", "the script begins with a byte order mark", path)
    if b"\r\n" in data:
        line = data.split(b"\r\n")[0].count(b"\n") + 1
        yield Hit("shell-crlf", "the script has Windows line ends", f"{path}:{line}")
        return
    if decode(data) is None:
        yield Hit("shell-not-utf8", "the script is not UTF-8 text", path)
    first = data.split(b"\n", 1)[0]
    if not first.startswith(b"#!"):
        yield Hit("shell-no-interpreter", "the first line names no interpreter", f"{path}:1")
    elif first[2:].split() and not _is_shell(first):
        return  # Python or another language in a .sh file
    if bash_tree.parse(data) is None:
        yield Hit("shell-tangled", "the script is too tangled to be read: it cannot be checked", path)
        return
    yield from _parse(data, path)


def _is_shell(first: bytes) -> bool:
    words = first[2:].decode("utf-8", errors="replace").split()
    program = words[0].rsplit("/", 1)[-1]
    if program == "env":
        program = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
    return program in _SHELLS


def _parse(data: bytes, path: str) -> Iterator[Hit]:
    bash = shutil.which("bash")
    if bash is None:
        raise InfraError(Boundary.SANDBOX, "no bash on this machine to parse scripts with", transient=False)
    # -n reads without executing; extended patterns are on because a script may switch them on before it uses them.
    try:
        with boundary(Boundary.SANDBOX, "running bash"):
            done = subprocess.run(
                [bash, "--noprofile", "--norc", "-O", "extglob", "-n", "/dev/stdin"],
                input=data,
                capture_output=True,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
                timeout=_PARSE_TIMEOUT_SEC,
                check=False,
            )
    except subprocess.TimeoutExpired:
        yield Hit("shell-syntax", f"bash cannot parse the script within {_PARSE_TIMEOUT_SEC:g} s", path)
        return
    if done.returncode:
        message = done.stderr.decode("utf-8", errors="replace").strip().splitlines()
        yield Hit(
            "shell-syntax",
            (message[0] if message else "bash cannot parse it").replace("/dev/stdin: ", ""),
            path,
        )
