"""Bring a skill's code to life: run its own tests in the sandbox, watched, and collect the calls they make.

The watched calls are the best source of truthful inputs: somebody who knew the method chose them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skill2env.authors.code.bench import TEST_SECONDS, TOOLS, Bench, BenchFailed, as_object, items
from skill2env.authors.code.cases import Case
from skill2env.authors.code.understand import Project
from skill2env.authors.staging import read_inside
from skill2env.records import FileKind, Skill

MAX_FIXTURE_BYTES = 2 * 2**20
_WORDS = ("passed", "skipped", "failed")


@dataclass(frozen=True, slots=True)
class Life:
    """What running the skill's own tests showed."""

    tests: Mapping[str, str]
    """Test id -> passed, skipped or failed."""
    calls: tuple[Case, ...]
    """Calls and commands in the order of the tests that made them."""
    problem: str = ""
    """Why the tests could not be run at all; empty otherwise."""

    @property
    def passed(self) -> int:
        """Number of tests that passed."""
        return sum(word == "passed" for word in self.tests.values())


def bring_to_life(bench: Bench, project: Project, skill: Skill, skill_dir: Path) -> Life:
    """Run the skill's tests over its whole folder and watch them.

    Raises:
        InfraError: the sandbox failed. A skill whose tests fail or hang is data.
    """
    if not project.tests:
        return Life({}, (), "it carries no tests")
    root = f"/skill/{project.name}"
    bench.put_tree(_whole(skill, skill_dir), root)
    out = "/tmp/trace.json"
    folders = ":".join(sorted({TOOLS, root, *(str(Path(root, path).parent) for path in project.modules)}))
    env = {
        "HOME": "/tmp", "LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0",
        "PYTHONPATH": folders, "TRACE_ROOT": root, "TRACE_OUT": out, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # fmt: skip
    pytest = ["/usr/bin/python3", "-m", "pytest", "-p", "tracer", "-p", "no:cacheprovider", "-q", "--tb=no"]
    pytest += [
        "--continue-on-collection-errors",
        "--rootdir",
        root,
        "-c",
        "/dev/null",
        "--import-mode=importlib",
    ]
    script = '"$@" >/dev/null 2>&1; cat "$TRACE_OUT"'
    files = [f"{root}/{path}" for path in project.tests if not path.endswith("conftest.py")]
    try:
        told = bench.run(
            ["/bin/sh", "-c", script, "sh", *pytest, *files],
            env=env,
            cwd=root,
            stdin=b"",
            timeout_sec=TEST_SECONDS,
        )
        found = as_object(told)
    except BenchFailed as error:
        return Life({}, (), f"its tests could not be run ({error})")
    return _read(found, project)


def _whole(skill: Skill, skill_dir: Path) -> dict[str, bytes]:
    """Every regular file of the skill, tests and fixtures included."""
    wanted = [item for item in skill.files if item.kind in (FileKind.TEXT, FileKind.BINARY)]
    return {item.path: read_inside(skill_dir, item.path) for item in wanted if item.size <= MAX_FIXTURE_BYTES}


def _read(found: Mapping[str, Any], project: Project) -> Life:
    raw = found.get("tests")
    tests = {str(k): str(v) for k, v in raw.items() if v in _WORDS} if isinstance(raw, dict) else {}  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
    calls: list[Case] = []
    for kind in ("calls", "commands"):
        for item in items(found, kind):
            case = Case.read(item)
            if case is not None and case.file in project.modules and tests.get(case.test) == "passed":
                calls.append(case)
    return Life(dict(sorted(tests.items())), tuple(calls), "" if tests else "pytest collected no test")


def fingerprint(life: Life) -> str:
    """Short text of the test results, for the plan's notes."""
    return json.dumps({word: sum(value == word for value in life.tests.values()) for word in _WORDS})
