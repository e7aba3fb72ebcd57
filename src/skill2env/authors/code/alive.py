"""Bring a skill's code to life: run its own tests in the sandbox, watched, and collect the calls they make.

The watched calls are the best source of truthful inputs: somebody who knew the method chose them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skill2env.authors.code.bench import (
    TEST_CPU_SECONDS,
    TEST_SECONDS,
    TOOLS,
    Bench,
    BenchFailed,
    as_object,
    items,
)
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
    try:
        first, second = (_watch(bench, project, root, seed, days) for seed, days in (("0", 0), ("1", 401)))
    except BenchFailed as error:
        return Life({}, (), f"its tests could not be run ({error})")
    return _agreed(_read(first, project), _read(second, project))


def _watch(bench: Bench, project: Project, root: str, seed: str, days: int) -> dict[str, Any]:
    """Run the tests once under the given hash seed and clock.

    The limit that matters counts the processor's time, so that a busy machine does not change the result.
    """
    out = f"/tmp/trace-{seed}.json"
    folders = ":".join(sorted({TOOLS, root, *(str(Path(root, path).parent) for path in project.modules)}))
    env = {
        "HOME": "/tmp", "LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": seed,
        "PYTHONPATH": folders, "TRACE_ROOT": root, "TRACE_OUT": out, "TRACE_SHIFT": str(days),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg",
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
    files = [f"{root}/{path}" for path in project.tests if not path.endswith("conftest.py")]
    script = f'ulimit -t {TEST_CPU_SECONDS}; "$@" >/dev/null 2>&1; cat "$TRACE_OUT"'
    command = ["/bin/sh", "-c", script, "sh", *pytest, *files]
    return as_object(bench.run(command, env=env, cwd=root, stdin=b"", timeout_sec=TEST_SECONDS))


def _agreed(first: Life, second: Life) -> Life:
    """What both runs have in common: the rest depends on chance or on the clock."""
    tests = {name: word for name, word in first.tests.items() if second.tests.get(name) == word}
    again = {case.id for case in second.calls}
    calls = tuple(case for case in first.calls if case.id in again and tests.get(case.test) == "passed")
    return Life(tests, calls, first.problem)


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
