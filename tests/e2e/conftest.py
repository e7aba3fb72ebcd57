"""The program as a user calls it: a process of its own, real sandboxes, real files."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROGRAM = [sys.executable, "-m", "skill2env.cli.main"]


@dataclass
class Shell:
    """Runs the program in a folder of its own."""

    folder: Path
    examples: Path

    def start(self, *arguments: object) -> "subprocess.Popen[str]":
        """Start it in a process group of its own and go on."""
        return subprocess.Popen(
            [*PROGRAM, *map(str, arguments)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __call__(self, *arguments: object, code: int = 0) -> "subprocess.CompletedProcess[str]":
        """Run it to its end and check the exit code."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=280)
        done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
        assert done.returncode == code, f"exit code {done.returncode}\n{out}\n{err}"
        return done

    def demo(self, *extra: object, out: object = "out/demo", skills: object = None) -> list[object]:
        """Arguments that compile small skills with the shipped scripted author."""
        return [
            "compile",
            skills or self.folder / "skills",
            "--author",
            "scripted",
            "--out",
            out,
            "--workflows",
            1,
            "--allow-degraded",
            "--allow-near-duplicates",  # the scripted author makes much the same of every skill
            *extra,
        ]

    def recorded(self, *extra: object, out: object = "out/examples") -> list[object]:
        """Arguments that compile the example skills from their recordings."""
        return [
            "compile", self.examples / "skills", "--recordings", self.examples / "recordings", "--workflows", 2,
            "--out", out, "--allow-degraded", *extra,
        ]  # fmt: skip


SKILL = """---
name: {name}
description: Use this when a ledger of {name} has to be added up by hand.
---
# {name}
Add up every account of the {name} ledger and leave out the lines that were voided.
Check the total of {name} against the month before.
"""


@pytest.fixture
def shell(tmp_path: Path, repository: Path, base_image: Any) -> Shell:
    """A shell with three small skills; skipped where no sandbox works."""
    del base_image
    for name in ("cafe", "clinic", "depot"):
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL.format(name=name))
    return Shell(tmp_path, repository / "examples")


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Relative path -> mode and bytes of everything below a folder."""
    return {
        p.relative_to(folder).as_posix(): (p.stat().st_mode & 0o7777, p.read_bytes() if p.is_file() else b"")
        for p in sorted(folder.rglob("*"))
    }


@pytest.fixture
def bytes_of() -> Any:
    """The function `tree`."""
    return tree


@pytest.fixture(scope="session", autouse=True)
def _quiet() -> None:
    os.environ.setdefault("COLUMNS", "200")
