"""Static pages for reviewers: an index with filters, and a page for each task with everything that the gates saw.

The pages load nothing from anywhere. A content security policy names the one script and the one style sheet by digest,
so that text of a task could not become code even if it escaped its place.
"""

import base64
import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, cast

import jinja2

from skill2env import __version__
from skill2env.records import GateOutcome, Reason, meaning
from skill2env.store.files import check_writable, storage, write_text
from skill2env.verify.report.matrix import kill_matrix
from skill2env.verify.report.outcome import Outcome, totals
from skill2env.verify.report.panes import panes_of, visible

INDEX = "index.html"
TASKS = "tasks"
_GENERATOR = 'name="generator" content="skill2env'
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_SIGNS = {
    GateOutcome.PASSED: "good",
    GateOutcome.REJECTED: "bad",
    GateOutcome.INFRA: "unsure",
    GateOutcome.NOT_RUN: "none",
}


@dataclass(frozen=True, slots=True)
class _Row:
    """One task with the page that shows it."""

    page: str
    outcome: Outcome


def write_pages(
    folder: Path,
    outcomes: Sequence[Outcome],
    *,
    level: str,
    sandbox: str,
    skills: Mapping[str, str] | None = None,
) -> None:
    """Write the pages; pages of an earlier report in the folder are replaced.

    Args:
        folder: where to; made when missing. ``index.html`` is where to begin.
        outcomes: the tasks.
        level: how much was checked.
        sandbox: where trials ran.
        skills: digest of a skill -> its text.

    Raises:
        InfraError: boundary ``storage``.
    """
    check_writable(folder)
    _remove_earlier(folder)
    with storage("making a folder in", folder):
        (folder / TASKS).mkdir(exist_ok=True)
    rows = [_Row(page, outcome) for page, outcome in zip(_pages(outcomes), outcomes, strict=True)]
    facts = {"level": level, "sandbox": sandbox}
    write_text(folder / INDEX, _render("index", rows=rows, totals=totals(outcomes), **facts))
    for row in rows:
        task = row.outcome.verified
        text = _render(
            "task",
            row=row,
            outcome=row.outcome,
            gates=task.verdict.gates,
            exhibits=task.exhibits,
            matrix=kill_matrix(task.exhibits.matrix),
            panes=panes_of(task.path, skills),
            **facts,
        )
        write_text(folder / TASKS / row.page, text)


def _remove_earlier(folder: Path) -> None:
    """Pages of tasks that are gone must not stay; what we did not write is left alone."""
    try:
        ours = _GENERATOR in (folder / INDEX).read_text(encoding="utf-8", errors="replace")[:4096]
    except OSError:
        return
    if ours and not (folder / TASKS).is_symlink():
        shutil.rmtree(folder / TASKS, ignore_errors=True)


def _pages(outcomes: Sequence[Outcome]) -> list[str]:
    """File names made from the names of the tasks' folders, each once."""
    taken: dict[str, None] = {}
    for outcome in outcomes:
        stem = _UNSAFE.sub("-", outcome.verified.path.name)[:80].strip(".-").lower() or "task"
        name, number = f"{stem}.html", 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}.html"
        taken[name] = None
    return list(taken)


def asset(name: str) -> str:
    """A style sheet or script of the pages."""
    return resources.files("skill2env.verify.report").joinpath("templates", name).read_text(encoding="utf-8")


def policy_hash(text: str) -> str:
    """How a content security policy names an inline script or style sheet."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def environment(*packages: str) -> jinja2.Environment:
    """Templates with escaping always on; a missing variable is an error.

    Args:
        packages: packages with a folder ``templates`` that are looked into first.
    """
    places = [jinja2.PackageLoader(name, "templates") for name in (*packages, "skill2env.verify.report")]
    found = jinja2.Environment(
        loader=jinja2.ChoiceLoader(places),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["visible"] = visible
    found.filters["meaning"] = _meaning
    names = cast("dict[str, Any]", found.globals)
    names.update(version=__version__, signs=_SIGNS, policy_hash=policy_hash, asset=asset)
    return found


def _meaning(reason: str) -> str:
    return meaning(Reason(reason)) if reason in Reason else ""


def _render(name: str, **variables: Any) -> str:
    return environment().get_template(f"{name}.html.j2").render(**variables)
