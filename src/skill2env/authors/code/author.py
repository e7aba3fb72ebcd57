"""The `code` author: plans and creates from a skill's own code, without a model.

It brings the code to life in the sandbox, records its behaviour, plants faults that break some of it and keep some,
and writes the task around them. Equal skills, base images and specs give equal bytes.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skill2env.authors.code.behaviour import ROOT
from skill2env.authors.code.bench import BenchFailed, SandboxBench
from skill2env.authors.code.contract import write_files
from skill2env.authors.code.families.base import Draft, Family, Ground, NoTask, Offer
from skill2env.authors.code.families.table import all_offers
from skill2env.authors.code.study import Study, planning_image, source_digest, study
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
from skill2env.spent import Spent

PERMISSIVE = frozenset(
    "MIT MIT-0 Apache-2.0 BSD-2-Clause BSD-3-Clause ISC 0BSD Unlicense CC0-1.0 Zlib BSL-1.0 PostgreSQL CC-BY-4.0".split()
)
STRONG = frozenset({LicenceEvidence.SKILL_FILE, LicenceEvidence.FRONT_MATTER, LicenceEvidence.REPOSITORY})


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


@dataclass(slots=True)
class CodeAuthor:
    """Implements `authors.protocol.Author`. Safe to use from several threads."""

    cache: Path | None = None
    """Folder for finished studies of skills; None to study again in every process."""
    policy: LicencePolicy = field(default_factory=LicencePolicy)
    _studies: dict[str, Study | Skipped] = field(default_factory=dict[str, Study | Skipped])
    _made: dict[str, Draft | Skipped] = field(default_factory=dict[str, Draft | Skipped])
    _offers: dict[str, list[tuple[Family, Offer]]] = field(
        default_factory=dict[str, "list[tuple[Family, Offer]]"]
    )
    _spent: Spent = field(default_factory=Spent)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _locks: dict[str, threading.Lock] = field(default_factory=dict[str, threading.Lock])

    @property
    def identity(self) -> AuthorIdentity:
        """Name and digest of everything that determines the output besides the skill and the base image."""
        settings = [sorted(self.policy.allowed), sorted(self.policy.evidence)]
        return AuthorIdentity(name="code", version="1", digest=digest_of([source_digest(), settings]))

    def seconds(self) -> Mapping[str, float]:
        """Wall seconds of each part of its work: of a study (tests, record, faults), of tasks (draft)."""
        return self._spent.seconds

    def plan(self, request: PlanRequest) -> PlanReply:
        """Name workflows, of as many families as the code allows.

        Raises:
            InfraError: the sandbox or the disk failed.
        """
        found = self._study(request.skill, request.skill_dir)
        if isinstance(found, Skipped):
            return PlanReply(skipped=found)
        named = self._offered(request.skill, found)[: request.count]
        return PlanReply(text=canonical_json([offer.workflow for _, offer in named]))

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
        files = made.contract if request.phase is Phase.CONTRACT else made.solution
        with boundary(Boundary.STORAGE, "writing the task"):
            write_files(files, request.workspace / "task")
        return CreateReply()

    def _study(self, skill: Skill, skill_dir: Path) -> Study | Skipped:
        refusal = self.policy.refusal(skill.licence)
        if refusal:
            return Skipped(reason=SkipReason.LICENCE, detail=refusal)
        with self._one_at_a_time(skill.digest):
            if skill.digest not in self._studies:
                self._studies[skill.digest] = study(skill, skill_dir, self.cache, self._spent)
            return self._studies[skill.digest]

    def _offered(self, skill: Skill, found: Study) -> list[tuple[Family, Offer]]:
        with self._one_at_a_time(f"offers {skill.digest}"):
            if skill.digest not in self._offers:
                self._offers[skill.digest] = all_offers(skill, found)
            return self._offers[skill.digest]

    def _one_at_a_time(self, key: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(key, threading.Lock())

    def _make(self, spec: TaskSpec, skill: Skill, found: Study) -> Draft | Skipped:
        key = canonical_json([skill.digest, spec.workflow.name, spec.seed, spec.axes])
        with self._one_at_a_time(key):
            if key not in self._made:
                with self._spent.on("draft"):
                    self._made[key] = _draft(spec, skill, found, self._offered(skill, found))
            return self._made[key]


def _draft(
    spec: TaskSpec, skill: Skill, found: Study, offered: Sequence[tuple[Family, Offer]]
) -> Draft | Skipped:
    wanted = spec.workflow.name
    pair = next(((f, o) for f, o in offered if o.workflow.name == wanted), None)
    if pair is None:
        return Skipped(reason=SkipReason.NO_FAULT_FOUND, detail=f"it has no workflow {wanted}")
    family, offer = pair
    with SandboxBench(planning_image(found.project.libraries)) as bench:
        bench.put_tree(dict(found.project.files), ROOT)
        try:
            return family.draft(bench, Ground(spec, skill, found), offer)
        except (NoTask, BenchFailed) as error:
            return Skipped(reason=SkipReason.NO_FAULT_FOUND, detail=f"{family.name}: {error}")
