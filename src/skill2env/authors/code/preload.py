"""Libraries that are imported once before recorded cases run: those that the code in question imports when it is imported."""

import sys
from collections.abc import Iterable

from skill2env.authors.code.understand import Project

NEVER = frozenset(
    {"__future__", "__main__", "antigravity", "idlelib", "readline", "site", "this", "tkinter", "turtle"}
)
"""Modules whose import does something, or needs what a container lacks."""


def preload(project: Project, files: Iterable[str]) -> list[str]:
    """Dotted names, sorted; none that the project itself could mean by them.

    Args:
        project: the code.
        files: modules whose functions are called and scripts that are run. What they import of the project counts as well.
    """
    by_name: dict[str, list[str]] = {}
    for path in sorted(project.modules):
        for part in path.removesuffix(".py").split("/"):  # a package stands for all that lies in it
            by_name.setdefault(part, []).append(path)
    known = (sys.stdlib_module_names | project.libraries.provides) - project.own_names - NEVER
    waiting, seen, names = sorted(set(files) & set(project.modules)), set[str](), set[str]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in project.modules[path].loads:
            parts = name.split(".")
            if parts[0] in known:
                names.add(name)
            waiting += [file for part in parts for file in by_name.get(part, [])]
    return sorted(names)
