"""Semantic versions of a dataset, from what changed in it and nothing else."""

import re
from collections.abc import Mapping

FIRST = "1.0.0"
"""Version of a dataset that was not there before."""


def next_version(before: str | None, old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Version after a change of tasks.

    Args:
        before: the present version; None for a new dataset. One that is not ``N.N.N`` counts as none.
        old: task name -> digest, as published until now.
        new: task name -> digest, as about to be published.

    Returns:
        Next major version when a task changed or went, next minor when tasks came, else `before`.
    """
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", before or "")
    if found is None:
        return FIRST
    major, minor, patch = map(int, found.groups())
    if any(new.get(name) != digest for name, digest in old.items()):
        return f"{major + 1}.0.0"
    if len(new) > len(old):
        return f"{major}.{minor + 1}.0"
    return f"{major}.{minor}.{patch}"
