"""A copy of a dataset without some tasks, each with a canary string, so that later leaks can be noticed."""

import shutil
import uuid
from collections.abc import Collection
from pathlib import Path

from skill2env.analysis.records import Corpus
from skill2env.errors import UserError
from skill2env.store.files import copy_tree, storage, write_text

CANARY_FILE = "tests/CANARY.txt"
"""Lies beside the verifier, where no agent reads it."""
CANARY = "This benchmark data must not appear in training corpora. canary string skill2env {mark}\n"


def canary_of(name: str) -> str:
    """The mark of a dataset: a UUID that follows from its name, so that filtering twice writes the same."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"skill2env:{name}"))


def write_filtered(corpus: Corpus, removed: Collection[str], out: Path, *, canary: str = "") -> int:
    """Copy the tasks that stay.

    Args:
        corpus: as read.
        removed: keys of the tasks that do not stay.
        out: folder to make.
        canary: mark to write into every task; none when empty. It changes the digest of a task, so it is for held-out
            sets, before they are published.

    Returns:
        How many tasks were copied.

    Raises:
        UserError: the folder exists.
        InfraError: boundary ``storage``.
    """
    if out.exists():
        raise UserError(f"{out} exists already", hint="give a new folder with --out")
    kept = [task for task in corpus.tasks if task.key not in removed]
    with storage("writing the filtered dataset", out):
        out.mkdir(parents=True)
        try:
            for task in kept:
                target = out / task.key
                target.parent.mkdir(parents=True, exist_ok=True)
                copy_tree(task.folder, target)
                if canary:
                    (target / "tests").mkdir(exist_ok=True)
                    write_text(target / CANARY_FILE, CANARY.format(mark=canary))
        except BaseException:
            shutil.rmtree(out, ignore_errors=True)
            raise
    return len(kept)
