"""Everything the author knows about one skill's code, made once and kept: tests, behaviour, viable faults.

The result depends on the skill's digest, the base image and our own code, and on nothing else, so it is kept on disk
under exactly that key.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from skill2env.authors.code.alive import Life, bring_to_life
from skill2env.authors.code.assess import Viable, assess
from skill2env.authors.code.behaviour import Behaviour, record
from skill2env.authors.code.bench import BenchFailed, SandboxBench
from skill2env.authors.code.cases import Case
from skill2env.authors.code.contract import BASE
from skill2env.authors.code.faults.sites import Site, find_sites
from skill2env.authors.code.libraries import Libraries
from skill2env.authors.code.understand import Project, understand
from skill2env.errors import Boundary, InfraError
from skill2env.records import Skill, Skipped, SkipReason, digest_of
from skill2env.sandbox.containers import build_image, ensure_base
from skill2env.sandbox.images import BuildFailed, BuiltImage
from skill2env.spent import Spent
from skill2env.store.files import storage, write_bytes

MIN_CASES = 16
PYTEST = "RUN apt-get update && apt-get install -y --no-install-recommends python3-pytest && rm -rf /var/lib/apt/lists/*\n"


def planning_dockerfile(libraries: Libraries) -> str:
    """The image of every task of the set plus pytest, so that what is recorded is what the task's own interpreter does."""
    return f"FROM {BASE}\n{libraries.install}{PYTEST}"


@dataclass(frozen=True, slots=True)
class Study:
    """What is known about a skill whose code is alive."""

    project: Project
    behaviour: Behaviour
    viable: tuple[Viable, ...]
    tests: Mapping[str, str]


@cache
def source_digest() -> str:
    """Digest of this package's files: results of other code must not be reused."""

    def walk(folder: Traversable, prefix: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for entry in folder.iterdir():
            if entry.is_dir() and entry.name != "__pycache__":
                found.update(walk(entry, f"{prefix}{entry.name}/"))
            elif entry.name.endswith(".py"):
                found[prefix + entry.name] = digest_of(entry.read_text("utf-8"))
        return found

    return digest_of(walk(resources.files("skill2env.authors.code"), ""))


def planning_image(libraries: Libraries) -> BuiltImage:
    """Image of the planning sandbox with a set of libraries: built on first use, then cached by content.

    Raises:
        InfraError: the image cannot be built here.
    """
    with TemporaryDirectory(prefix="skill2env-") as folder:
        (Path(folder) / "Dockerfile").write_text(planning_dockerfile(libraries), encoding="utf-8")
        try:
            return build_image(Path(folder))
        except BuildFailed as failure:
            raise InfraError(Boundary.BUILD, f"the planning image does not build: {failure}") from failure


def study(skill: Skill, skill_dir: Path, kept: Path | None, spent: Spent | None = None) -> Study | Skipped:
    """Study a skill, or say why it cannot be used.

    Args:
        skill: as ingested.
        skill_dir: its folder.
        kept: folder for finished studies; None to keep nothing.
        spent: told what it took.

    Raises:
        InfraError: the sandbox or the disk failed.
    """
    project = understand(skill, skill_dir)
    if not project.modules:
        return Skipped(reason=SkipReason.NO_CODE, detail=_no_code(skill, project))
    file = None
    if kept is not None:
        key = digest_of([skill.digest, ensure_base(BASE).digest, source_digest(), skill.slug])
        file = kept / "code" / f"{key.removeprefix('sha256:')}.json"
        found = _load(file, project)
        if found is not None:
            return found
    result = _study(skill, skill_dir, project, spent or Spent())
    if file is not None:
        with storage("keeping a study", file.parent):
            file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, json.dumps(_to_json(result), ensure_ascii=False).encode())
    return result


def _no_code(skill: Skill, project: Project) -> str:
    if project.unreadable:
        return f"no Python file of it can be read: {next(iter(project.unreadable.items()))}"
    other = sorted(
        {Path(item.path).suffix for item in skill.files} & {".sh", ".js", ".ts", ".rb", ".pl", ".ps1"}
    )
    return f"it has no Python code outside of tests{', only ' + ', '.join(other) if other else ''}"


def _study(skill: Skill, skill_dir: Path, project: Project, spent: Spent) -> Study | Skipped:
    try:
        with spent.on("image"):
            image = planning_image(project.libraries)
        with SandboxBench(image) as bench:
            with spent.on("tests"):
                life = bring_to_life(bench, project, skill, skill_dir)
            with spent.on("record"):
                behaviour = record(bench, project, life.calls)
            if len(behaviour.cases) < MIN_CASES:
                return _not_enough(project, life, behaviour)
            with spent.on("faults"):
                viable = assess(bench, project, behaviour)
    except BenchFailed as error:
        return Skipped(
            reason=SkipReason.CODE_NOT_ALIVE, detail=f"its code got in the way of the recorder: {error}"
        )
    if not viable:
        detail = f"{len(behaviour.cases)} recorded cases, but no fault breaks some of them with wrong values and keeps some"
        return Skipped(reason=SkipReason.NO_FAULT_FOUND, detail=detail)
    return Study(project, behaviour, tuple(viable), life.tests)


def _not_enough(project: Project, life: Life, behaviour: Behaviour) -> Skipped:
    missing = sorted({name for file in project.modules for name in project.missing_imports(file)})
    lacks = f"; it imports {', '.join(missing)}, which no image here has" if missing else ""
    if behaviour.tried and (life.passed or not missing):
        detail = f"{len(behaviour.cases)} of {behaviour.tried} tried calls repeat exactly and say something, {MIN_CASES} are needed{lacks}"
        return Skipped(reason=SkipReason.NO_STABLE_BEHAVIOUR, detail=detail)
    why = (
        life.problem
        or f"{life.passed} of {len(life.tests)} tests pass and none calls a function that can be repeated"
    )
    return Skipped(reason=SkipReason.CODE_NOT_ALIVE, detail=f"{why}{lacks}")


def _to_json(result: Study | Skipped) -> dict[str, Any]:
    if isinstance(result, Skipped):
        return {"skipped": result.model_dump(mode="json")}
    return {
        "cases": [
            {**case.to_json(), "test": case.test, "origin": case.origin}
            for case in result.behaviour.cases.values()
        ],
        "outcomes": dict(result.behaviour.outcomes),
        "reached": {key: sorted(names) for key, names in result.behaviour.reached.items()},
        "observed": sorted(result.behaviour.observed),
        "tried": result.behaviour.tried,
        "viable": [
            {"key": v.site.key, "file": v.site.file, "broken": list(v.broken), "tried": v.tried}
            for v in result.viable
        ],
        "tests": dict(result.tests),
    }


def _load(file: Path, project: Project) -> Study | Skipped | None:
    """A kept study; None when there is none or it cannot be read (it is then made again)."""
    try:
        data = json.loads(file.read_bytes())
        if "skipped" in data:
            return Skipped.model_validate(data["skipped"])
        cases = {case.id: case for item in data["cases"] if (case := Case.read(item)) is not None}
        sites: dict[str, Site] = {
            site.key: site
            for path in sorted({item["file"] for item in data["viable"]})
            for site in find_sites(path, project.modules[path].source)
        }
        viable = tuple(Viable(sites[v["key"]], tuple(v["broken"]), v["tried"]) for v in data["viable"])
        reached = {key: frozenset(names) for key, names in data["reached"].items()}
        behaviour = Behaviour(cases, data["outcomes"], reached, frozenset(data["observed"]), data["tried"])
        return Study(project, behaviour, viable, data["tests"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
