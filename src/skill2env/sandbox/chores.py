"""Harbor's own small commands, which process 1 does by itself: a shell and a program for each take a tenth of a trial.

Covers exactly ``chmod +x FILE`` and ``rm -f -- FILE...`` on plain absolute paths. What process 1 cannot do at once is
run as the command that it is, so every message and exit code is the program's own.
"""

import re
from typing import NamedTuple

_PATH = r"/[A-Za-z0-9._/-]+"
_EXECUTABLE = re.compile(rf"chmod \+x ({_PATH})")
_REMOVE = re.compile(rf"rm -f --((?: {_PATH})+)")


class Chore(NamedTuple):
    """A request to process 1: its letter and its paths."""

    request: str
    paths: list[str]


def read_chore(command: str) -> Chore | None:
    """The chore that a command line asks for; None when it is anything else."""
    if match := _EXECUTABLE.fullmatch(command):
        return Chore("C", [match[1]])
    if match := _REMOVE.fullmatch(command):
        return Chore("R", match[1].split())
    return None
