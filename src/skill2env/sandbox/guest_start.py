"""Begins process 1 inside a sandbox, in as few lines as can be: a program is compiled at every start, a module not."""

import os
import sys

sys.path.insert(0, os.path.dirname(sys.argv[0]))  # first: everything behind it root inside may write to

import init  # pyright: ignore[reportMissingImports]  (guest_init.py, by its name inside)

init.main()  # pyright: ignore[reportUnknownMemberType]
