"""Runs checks on versions of a project, each in a process forked from one that has imported unittest and libraries.

python3 -s -P -B starter.py: the first line of standard input is {"preload": [NAME]}, each further one
{"folder": DIR, "paths": [DIR], "checks": FOLDER, "env": {...}}; answers {"pid": N} once started and {"code": N} at its end.

Nothing of the project is run or known here but the places of folders. Standard library only, Python 3.9 or newer.
"""

import gc
import json
import os
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import unittest  # noqa: E402

from grading import unprivileged  # noqa: E402
from warm import preload  # noqa: E402

OWN = ("grading", "warm")
LAST_DESCRIPTOR = 4096


def alone() -> None:
    """In the child: no way to speak to whoever started it."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.closerange(3, LAST_DESCRIPTOR)
    unprivileged()
    for name in OWN:
        sys.modules.pop(name, None)
    sys.path.remove(HERE)


def check(order: Any) -> int:
    """What ``python3 -m unittest discover`` would end with in the folder."""
    alone()
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.path[:0] = [order["folder"], *order["paths"]]
    arguments = ["discover", "-s", order["checks"], "-p", "test*.py"]
    sys.argv = ["python3 -m unittest", *arguments]
    try:
        unittest.main(module=None, argv=list(sys.argv))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def main() -> None:
    """Serve orders to their end."""
    preload(json.loads(sys.stdin.readline())["preload"])
    gc.freeze()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = check(json.loads(line))
            finally:
                os._exit(code & 0xFF)
        print(json.dumps({"pid": pid}), flush=True)
        _, status = os.waitpid(pid, 0)
        print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), flush=True)


if __name__ == "__main__":
    main()
