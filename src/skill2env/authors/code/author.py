"""The `code` author: plans and creates from a skill's own code, without a model.

It brings the code to life in the sandbox, records its behaviour, plants faults that break some of it and keep some,
and writes the task around them. Equal skills, base images and specs give equal bytes.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skill2env.authors.code.assess import compare
from skill2env.authors.code.bench import Bench, BenchFailed, SandboxBench
from skill2env.authors.code.contract import contract_files, solution_files, write_files
from skill2env.authors.code.design import Design, Level, broken_texts, design, level_of
from skill2env.authors.code.report import Shown, write_reports
from skill2env.authors.code.study import Study, planning_image, source_digest, study
from skill2env.authors.code.workflows import groups, workflow
from skill2env.authors.protocol import CreateReply, CreateRequest, PlanReply, PlanRequest
from skill2env.errors import Boundary, boundary
from skill2env.records import (
    AuthorIdentity,
    Licence,
    LicenceEvidence,
    Phase,
    Skill,
    Skipped,
    SkipReason,
    TaskSpec,
    canonical_json,
    digest_of,
)

PERMISSIVE = frozenset(
    "MIT MIT-0 Apache-2.0 BSD-2-Clause BSD-3-Clause ISC 0BSD Unlicense CC0-1.0 Zlib BSL-1.0 PostgreSQL CC-BY-4.0".split()
)
STRONG = frozenset({LicenceEvidence.SKILL_FILE, LicenceEvidence.FRONT_MATTER, LicenceEvidence.REPOSITORY})
ATTEMPTS = 4
"""Designs tried for one spec before it is skipped."""


@dataclass(frozen=True, slots=True)
class LicencePolicy:
    """Whose code may become part of a task."""

    allowed: frozenset[str] = PERMISSIVE
    """SPDX identifiers; every part of an AND, one part of an OR must be among them."""
    evidence: frozenset[LicenceEvidence] = STRONG

    def refusal(self, licence: Licence) -> str:
        """Why a licence does not do; empty when it does."""
        if not licence.spdx:
            return "no licence is stated, so its code may not be passed on"
        parts = [part.strip(" ()") for part in licence.spdx.replace(" WITH ", "+").split(" AND ")]
        if not all(any(word.strip(" ()") in self.allowed for word in part.split(" OR ")) for part in parts):
            return f"its licence {licence.spdx} is not among the permissive ones that allow changed copies"
        if licence.evidence not in self.evidence:
            return f"its licence {licence.spdx} rests on weak evidence ({licence.evidence.value})"
        return ""


@dataclass(frozen=True, slots=True)
class Made:
    """One designed task before it is written."""

    plan: Design
    reports: tuple[Mapping[str, str], list[Shown]]
    level: Level


@dataclass(slots=True)
class CodeAuthor:
    """Implements `authors.protocol.Author`. Safe to use from several threads."""

    cache: Path | None = None
    """Folder for finished studies of skills; None to study again in every process."""
    policy: LicencePolicy = field(default_factory=LicencePolicy)
    _studies: dict[str, Study | Skipped] = field(default_factory=dict[str, Study | Skipped])
    _made: dict[str, Made | Skipped] = field(default_factory=dict[str, Made | Skipped])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _locks: dict[str, threading.Lock] = field(default_factory=dict[str, threading.Lock])

    @property
    def identity(self) -> AuthorIdentity:
        """Name and digest of everything that determines the output besides the skill and the base image."""
        settings = [sorted(self.policy.allowed), sorted(self.policy.evidence)]
        return AuthorIdentity(name="code", version="1", digest=digest_of([source_digest(), settings]))

    def plan(self, request: PlanRequest) -> PlanReply:
        """Name a workflow for every group of functions with viable faults.

        Raises:
            InfraError: the sandbox or the disk failed.
        """
        found = self._study(request.skill, request.skill_dir)
        if isinstance(found, Skipped):
            return PlanReply(skipped=found)
        named = groups(found)[: request.count]
        return PlanReply(text=canonical_json([workflow(request.skill, found, group) for group in named]))

    def create(self, request: CreateRequest) -> CreateReply:
        """Write the files of one phase.

        Raises:
            InfraError: the sandbox or the disk failed.
        """
        if request.phase is Phase.PLAN:
            raise ValueError("planning has its own call")
        if request.phase is Phase.REPAIR:
            detail = "the reverse change is the only solution this author knows, and it did not pass"
            return CreateReply(skipped=Skipped(reason=SkipReason.AUTHOR_GAVE_UP, detail=detail))
        found = self._study(request.skill, request.skill_dir)
        made = found if isinstance(found, Skipped) else self._make(request.spec, request.skill, found)
        if isinstance(made, Skipped) or isinstance(found, Skipped):
            return CreateReply(skipped=made if isinstance(made, Skipped) else None)
        if request.phase is Phase.CONTRACT:
            files = contract_files(
                request.spec,
                request.skill,
                found.project,
                found.behaviour,
                made.plan,
                made.reports,
                made.level,
            )
        else:
            files = solution_files(found.project, made.plan)
        with boundary(Boundary.STORAGE, "writing the task"):
            write_files(files, request.workspace / "task")
        return CreateReply()

    def _study(self, skill: Skill, skill_dir: Path) -> Study | Skipped:
        refusal = self.policy.refusal(skill.licence)
        if refusal:
            return Skipped(reason=SkipReason.LICENCE, detail=refusal)
        with self._one_at_a_time(skill.digest):
            if skill.digest not in self._studies:
                self._studies[skill.digest] = study(skill, skill_dir, self.cache)
            return self._studies[skill.digest]

    def _one_at_a_time(self, key: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(key, threading.Lock())

    def _make(self, spec: TaskSpec, skill: Skill, found: Study) -> Made | Skipped:
        key = canonical_json([skill.digest, spec.workflow.name, spec.seed, spec.axes.complexity])
        with self._one_at_a_time(key):
            if key not in self._made:
                self._made[key] = self._design(spec, found)
            return self._made[key]

    def _design(self, spec: TaskSpec, found: Study) -> Made | Skipped:
        group = next((item for item in groups(found) if item.name == spec.workflow.name), None)
        if group is None:
            return Skipped(
                reason=SkipReason.NO_FAULT_FOUND, detail=f"it has no workflow {spec.workflow.name}"
            )
        level = level_of(spec.axes.complexity)
        why = (
            f"no set of {level.faults} faults in {spec.workflow.name} leaves enough to show and to hold back"
        )
        with SandboxBench(planning_image()) as bench:
            bench.put_tree(dict(found.project.files), "/project/original")
            for attempt in range(ATTEMPTS):
                try:
                    plan = design(
                        bench, found.project, found.behaviour, group.viable, level, spec.seed + attempt
                    )
                    if plan is not None:
                        return Made(plan, _reports(bench, found, plan), level)
                except BenchFailed as error:
                    why = str(error)
        return Skipped(reason=SkipReason.NO_FAULT_FOUND, detail=why)


def _reports(bench: Bench, found: Study, plan: Design) -> tuple[Mapping[str, str], list[Shown]]:
    behaviour = found.behaviour
    ids = [i for fault in plan.faults for i in fault.reported]
    texts = broken_texts(found.project, [fault.site for fault in plan.faults])
    wrong: dict[str, Any] = compare(
        bench, behaviour, [{"id": "all", "texts": texts, "cases": sorted(set(ids))}], full=True
    )["all"]
    distinct = list(dict.fromkeys(ids))
    return write_reports(
        bench, found.project, [(behaviour.cases[i], behaviour.outcomes[i], wrong[i]) for i in distinct], plan
    )
