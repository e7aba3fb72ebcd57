"""Harbor's lint with every rule on, one task at a time.

A task can switch rules off for itself in its own ``[metadata.harbor.lint]``; that is ignored here. One task that makes
the linter raise (a script that is not UTF-8 does) becomes a finding about that task instead of ending the batch.
"""

import threading
from pathlib import Path

from harbor.lint import lint_task

from skill2env.records import Finding, Severity

CODE_PREFIX = "harbor-lint:"
"""Findings carry the rule's name behind this prefix, for example ``harbor-lint:unpinned-image``."""

CRASH_CODE = CODE_PREFIX + "crash"
"""The linter itself raised on this task."""

_LOCK = threading.Lock()
"""Harbor's linter changes the process-wide warning filters while it runs, which two threads must not do at once."""


def lint_task_all(task_dir: Path) -> tuple[Finding, ...]:
    """Lint one task with all rules.

    Args:
        task_dir: a task directory; need not be a valid task.

    Returns:
        Findings of severity ``error`` in the linter's order (path, line, rule). Empty when there is nothing to say.
    """
    root = task_dir.resolve()
    try:
        with _LOCK:
            found = lint_task(root)
    except Exception as error:
        return (
            Finding(
                code=CRASH_CODE,
                severity=Severity.ERROR,
                message=f"Harbor's linter cannot read this task: {type(error).__name__}: {error}"[:400],
                mend="Make every text file of the task UTF-8 and every input a regular file.",
            ),
        )
    return tuple(
        Finding(
            code=CODE_PREFIX + item.rule.value,
            severity=Severity.ERROR,
            message=item.message,
            where=_where(item.path, item.line, root),
        )
        for item in found
    )


def _where(path: str, line: int | None, root: Path) -> str:
    place = Path(path)
    relative = place.relative_to(root).as_posix() if place.is_relative_to(root) else place.name
    return f"{relative}:{line}" if line else relative
