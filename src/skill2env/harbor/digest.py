"""Harbor's content digest of a task: what dataset.toml and lock.json name."""

from pathlib import Path

from harbor.publisher.packager import Packager
from harbor.skills import compute_skill_digest

from skill2env.records import SHA256_PREFIX


def task_digest(task_dir: Path) -> str:
    """Digest over the files that Harbor publishes (task.toml, instruction.md, environment/, tests/, solution/ ...).

    File modes and every other top-level file are not covered; that is Harbor's definition, not ours.

    Args:
        task_dir: a task directory.

    Returns:
        ``sha256:`` and 64 hex digits.
    """
    digest, _ = Packager.compute_content_hash(task_dir)
    return SHA256_PREFIX + digest


def skill_digest(folder: Path) -> str:
    """Harbor's digest of a skill that an agent is given: over all files of `folder`, which must hold no links."""
    return compute_skill_digest(folder)
