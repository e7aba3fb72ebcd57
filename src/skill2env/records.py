"""The contract on one page: every record that crosses a disk, a process or a model.

Skill -> Workflow -> TaskSpec -> Candidate -> Verdict -> Attempt. All are frozen pydantic models with unknown
fields forbidden. Closed vocabularies are StrEnums whose members carry a one-line meaning, so that the command
line, the docs and the prompts can print the same sentence (see `meaning`).

Digests are lower-case SHA-256 hex with the prefix ``sha256:``. Sizes are bytes, durations seconds, money
micro-dollars (1e-6 USD, integers), unless a name says otherwise.
"""

import ast
import hashlib
import inspect
import json
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SHA256_PREFIX = "sha256:"


class Record(BaseModel):
    """Base of all records: immutable, closed, comparable by value."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


def canonical_json(value: Any) -> str:
    """Serialise `value` (records, dicts, lists, scalars) so that equal values give equal bytes."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Path):
        return value.as_posix()
    raise TypeError(f"not serialisable: {type(value).__name__}")


def digest_of(value: Any) -> str:
    """Digest of the canonical JSON of `value`, with the ``sha256:`` prefix."""
    return digest_bytes(canonical_json(value).encode())


def digest_bytes(data: bytes) -> str:
    """Digest of raw bytes, with the ``sha256:`` prefix."""
    return SHA256_PREFIX + hashlib.sha256(data).hexdigest()


@cache
def meanings[E: StrEnum](enum: type[E]) -> dict[str, str]:
    """Map each member's value to the docstring literal that follows it in the class body."""
    body = ast.parse(inspect.getsource(enum)).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for node, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[str(node.value.value)] = " ".join(str(after.value.value).split())
    return found


def meaning(member: StrEnum) -> str:
    """One-line meaning of an enum member (empty when none is written)."""
    return meanings(type(member)).get(member.value, "")


# ---------------------------------------------------------------------------------------------- severity, findings


class Severity(StrEnum):
    """How much a diagnostic or a finding matters."""

    INFO = "info"
    """Worth knowing; nothing to do."""
    WARN = "warn"
    """Accepted, but a reviewer should look."""
    ERROR = "error"
    """Stops this item."""


class Diagnostic(Record):
    """One thing ingest noticed about a skill."""

    code: str
    """Stable kebab-case id, for example ``frontmatter-unquoted-colon``."""
    severity: Severity
    message: str
    """One sentence for a person."""
    where: str = ""
    """Relative path, with ``:line`` when known."""


class Finding(Record):
    """One thing a gate noticed about a candidate."""

    code: str
    """Stable kebab-case id, for example ``rubric-section-missing`` or ``harbor-lint:unpinned-image``."""
    severity: Severity
    message: str
    """One sentence for a person."""
    where: str = ""
    """Path relative to the task, with ``:line`` when known."""
    mend: str = ""
    """One sentence: how to mend the task."""


# ---------------------------------------------------------------------------------------------- skill


class FileKind(StrEnum):
    """What an inventory entry is on disk."""

    TEXT = "text"
    """A regular file that decodes as UTF-8 and holds no NUL (a byte order mark is allowed)."""
    BINARY = "binary"
    """A regular file that does not."""
    SYMLINK = "symlink"
    """A link that stays inside the skill; its target is recorded, never followed out."""
    REFUSED = "refused"
    """A link that escapes or loops, a device, a socket, a FIFO, or a file over the limit. Never copied."""


class SkillFile(Record):
    """One file of the bundle."""

    path: str
    """POSIX path relative to the skill folder."""
    kind: FileKind
    size: int
    """Bytes; 0 for links and refused entries."""
    sha256: str
    """Digest of the content; of the target text for links; empty when refused."""
    executable: bool = False
    target: str = ""
    """Link target as written, for links."""


class LicenceEvidence(StrEnum):
    """Where a licence statement was found, strongest first."""

    SKILL_FILE = "skill_file"
    """A licence file inside the skill folder."""
    FRONT_MATTER = "front_matter"
    """The `license` field of SKILL.md."""
    REPOSITORY = "repository"
    """A licence file of the author's own repository or package around the skill."""
    AGGREGATOR = "aggregator"
    """A licence file of a collection that gathers other people's skills: not the author's grant."""
    NONE = "none"
    """No statement was found."""


class Licence(Record):
    """What is known about the terms of a skill."""

    spdx: str = ""
    """SPDX expression, ``LicenseRef-Proprietary`` for an explicit refusal, empty when unknown."""
    evidence: LicenceEvidence = LicenceEvidence.NONE
    statement: str = ""
    """The words or the file that say so, shortened to 200 characters."""
    where: str = ""
    """Path of the file that says so, relative to the skill folder (may start with ``../``)."""


class Skill(Record):
    """One understood skill. The digest covers every regular file, so it is the skill's identity."""

    name: str
    """Name as declared, or the folder's name with a diagnostic."""
    slug: str
    """``[a-z0-9-]{1,64}`` made from the name; safe in paths."""
    description: str
    triggers: tuple[str, ...] = ()
    """Sentences that say when the skill applies, taken verbatim from description, front matter or body."""
    body: str
    """Markdown after the front matter, LF line ends, no byte order mark."""
    entry: str = "SKILL.md"
    """Relative path of the entry file as it is really spelled."""
    front_matter: dict[str, Any] = Field(default_factory=dict)
    """Every key as parsed, including unknown ones; plain JSON values only."""
    files: tuple[SkillFile, ...] = ()
    """Sorted by path; the entry file included."""
    missing_references: tuple[str, ...] = ()
    """Relative paths that the text points to and the folder lacks."""
    licence: Licence = Licence()
    origin: str = ""
    """Where the bundle came from (package and version, repository and commit, or empty for a local folder)."""
    digest: str
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def size(self) -> int:
        """Sum of the sizes of all files, in bytes."""
        return sum(item.size for item in self.files)


# ---------------------------------------------------------------------------------------------- workflow, axes, spec


class Domain(StrEnum):
    """The thirteen fields of work of the hub: what a skill is for, not the technique that it uses."""

    SOFTWARE = "software engineering and testing"
    """Writing, reviewing, testing, building and maintaining programs, and the tools and agents that do so."""
    AI_SCIENCE = "AI/ML and scientific computing"
    """Training, serving and evaluating models; simulation, statistics and the computing of the natural sciences."""
    BUSINESS = "business, finance, legal, HR"
    """Accounts, valuation, contracts, compliance, hiring, procurement and running a company."""
    MARKETING = "marketing and sales"
    """Winning and keeping customers: campaigns, copy, search ranking, pipelines, proposals and pricing pages."""
    RESEARCH = "research and education"
    """Finding, reading, writing and judging scholarship; designing studies; teaching and learning."""
    DOCUMENTS = "documents and media"
    """Making and converting documents, slides, sheets, images, sound and video."""
    INFRASTRUCTURE = "infrastructure and cloud"
    """Deploying and running systems: cloud services, containers, networks, monitoring and incidents."""
    PRODUCT = "product and user research"
    """Deciding what to build: requirements, road maps, interviews, experiments and metrics of a product."""
    DESIGN = "visual and UI/UX design"
    """How things look and are used: interfaces, layout, colour, type, accessibility and design systems."""
    DATA = "data engineering"
    """Moving, modelling, cleaning and querying data: pipelines, warehouses, databases and their quality."""
    PRODUCTIVITY = "productivity and collaboration"
    """Getting through the day's work with others: mail, calendars, meetings, notes, tickets and automations."""
    SECURITY = "cybersecurity"
    """Finding, judging, detecting and preventing attacks: audits, forensics, detection rules and hardening."""
    HEALTH = "health and consumer life"
    """Care, fitness, food, travel, home, shopping and play of private people, and work with patients."""


class AssetLead(Record):
    """A public artifact that could ground the world of a task."""

    what: str
    url: str = ""
    revision: str = ""
    """Commit, tag or version that pins it."""
    licence: str = ""
    fallback: str = ""
    """What to write ourselves when it cannot be had."""


class Asset(AssetLead):
    """A public file that the host downloads, checks and puts into a task; the author needs no network for it."""

    licence: str = ""
    """SPDX expression of its terms, for example ``CC-BY-4.0``."""
    licence_url: str = ""
    """Address of the text that says so, beside or above the file on the same host. It is kept as the notice."""
    attribution: str = ""
    """Who made it, as its terms ask to be named."""
    sha256: str = Field(default="", pattern=r"^(?:(?:sha256:)?[0-9a-f]{64})?$")
    """Digest that the file must have; empty when it is not known."""
    paths: tuple[str, ...] = Field(default=(), max_length=8)
    """Where the host puts it, ``environment/...``, and ``tests/NAME`` for the verifier's private copy. Empty when the
    file only was a model for what you wrote yourself: nothing is downloaded then."""


class Generated(Record):
    """A large or binary file of the world that a script of the same task made."""

    path: str
    """The file, ``environment/...``."""
    script: str
    """The script that wrote it, in the task as well; it names the file."""


class StagedAsset(Record):
    """A public file as it was put into a task."""

    asset: Asset
    sha256: str
    size: int
    """Bytes."""
    address: str
    """Where it was found in the end, after redirects."""
    licence: str
    """Terms under which it is used, chosen among alternatives."""
    notice: str = ""
    """Digest of the licence text that is kept with the task; empty when there is none."""


class Workflow(Record):
    """One capability a skill teaches, rich enough to build several tasks on."""

    name: str
    """Kebab-case, unique within the skill."""
    summary: str
    scenario: str
    """Who is in what situation."""
    initial_world: str
    """Files, services and data that exist when the agent arrives."""
    planted_problem: str
    difficulty_source: str
    """Why a competent newcomer without the skill would probably get it wrong."""
    solution_sketch: str
    verifier_strategy: str
    assets: tuple[AssetLead, ...] = ()
    grounding: tuple[str, ...] = Field(min_length=1)
    """Sentences of the skill, verbatim, that the workflow rests on."""
    suitable: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Axis name -> axis values that fit. A missing axis means all values fit."""
    domain: str = ""
    """Value of a `Domain`, empty when undecided."""


class Axes(Record):
    """The six axes of variation. Values are ids of `diversify`'s catalogs or free text (open vocabulary)."""

    archetype: str
    """Shape of the work: repair, build, migrate, investigate ..."""
    verifier_pattern: str
    """How the outcome is graded: recompute, behavioural, differential, invariants ..."""
    complexity: str
    """Expected tool-calling turns, as a band."""
    persona: str
    """Who asks."""
    tone: str
    """How they ask."""
    expertise: str
    """How much the asker knows about the method."""


class TaskSpec(Record):
    """Everything that determines one task before an author sees it."""

    skill_digest: str
    skill_slug: str
    workflow: Workflow
    axes: Axes
    seed: int
    """Derived from (run seed, skill digest, workflow name, variant); 63 bits."""
    variant: int
    """0-based index among the variants of this workflow."""
    task_name: str
    """``org/slug``, stable for the same inputs."""


# ---------------------------------------------------------------------------------------------- authoring contract


class Metric(Record):
    """One named component of the reward."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    sentence: str
    """A sentence of instruction.md, verbatim, that this metric checks."""


class Limits(Record):
    """Resources of the agent's and the verifier's container, and their time limits."""

    cpus: int = Field(default=1, ge=1, le=16)
    memory_mb: int = Field(default=1024, ge=64, le=65536)
    storage_mb: int = Field(default=2048, ge=64, le=102400)
    agent_timeout_sec: float = Field(default=900.0, gt=0, le=86400)
    verifier_timeout_sec: float = Field(default=120.0, gt=0, le=3600)
    build_timeout_sec: float = Field(default=600.0, gt=0, le=7200)


class TaskContract(Record):
    """``contract.json``: what the contract session tells the host beyond the files. Not published."""

    title: str = Field(min_length=3, max_length=120)
    metrics: tuple[Metric, ...] = Field(min_length=2, max_length=6)
    artifacts: tuple[str, ...] = Field(min_length=1)
    """Absolute paths in the agent's container that are graded; none over /logs."""
    limits: Limits = Limits()
    assets: tuple[Asset, ...] = Field(default=(), max_length=20)
    """Public files that the world holds, or was modelled on."""
    generated: tuple[Generated, ...] = Field(default=(), max_length=100)
    """Where large or binary files come from that are neither the skill's nor assets."""
    keywords: tuple[str, ...] = ()


class Phase(StrEnum):
    """One kind of authoring session."""

    PLAN = "plan"
    """Reads the skill, names its workflows."""
    CONTRACT = "contract"
    """Writes environment/, instruction.md, tests/, the rubric and contract.json."""
    SOLUTION = "solution"
    """Writes solution/ only, after the seal."""
    REPAIR = "repair"
    """Rewrites solution/ after a failing Oracle, fed with the verifier's output."""


class Usage(Record):
    """What a session cost. Zero for authors without a model."""

    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    micro_dollars: int | None = 0
    """None when the price is unknown."""
    turns: int = 0
    estimated: bool = False
    """Some of the tokens were estimated: the endpoint gave no counts, or a reply broke off that is billed."""


class AuthorIdentity(Record):
    """Who authored; part of every cache key and of the provenance."""

    name: str
    """``recorded``, ``code``, ``builtin``, ``harbor:NAME`` ..."""
    model: str = ""
    version: str = ""
    """Version of the author's own code or recording format."""
    digest: str = ""
    """Digest of what else determines its output (recording, prompt set, settings)."""


class SkipReason(StrEnum):
    """Why an author declined to make a task. A skip is a value, never an error."""

    NEEDS_ACCOUNT = "needs_account"
    """The work needs an account, a key or a login."""
    NEEDS_NETWORK = "needs_network"
    """The work needs a live network service."""
    NEEDS_HARDWARE = "needs_hardware"
    """The work needs a device, a GPU or another operating system."""
    NEEDS_GUI = "needs_gui"
    """The work happens in a graphical interface."""
    NEEDS_HUMAN = "needs_human"
    """A human has to approve or answer on the way."""
    NEEDS_ROOT_AGENT = "needs_root_agent"
    """The agent would have to be root, or live process state would have to be graded."""
    UNSAFE = "unsafe"
    """The skill or the task would teach harm, or carries malware or injected instructions."""
    PURE_KNOWLEDGE = "pure_knowledge"
    """The skill holds opinion or persona only; nothing can be checked."""
    TOO_THIN = "too_thin"
    """The skill does not say enough to ground a task."""
    LICENCE = "licence"
    """The licence forbids derived works, or the policy asks for stronger evidence."""
    NO_CODE = "no_code"
    """The `code` author found no code in the skill that it can run."""
    CODE_NOT_ALIVE = "code_not_alive"
    """The skill's code could not be brought to life in the sandbox (dependencies, imports, failing tests)."""
    NO_STABLE_BEHAVIOUR = "no_stable_behaviour"
    """The code runs, but too little of its behaviour repeats exactly."""
    NO_FAULT_FOUND = "no_fault_found"
    """No injected fault breaks some of the recorded behaviour and keeps some."""
    NO_RECORDING = "no_recording"
    """The `recorded` author has no session for this skill and workflow."""
    UNREADABLE = "unreadable"
    """The skill's entry file is there and cannot be read, or leads out of the skill."""
    TOO_EXPENSIVE = "too_expensive"
    """The task had cost as much as one task may before it was finished."""
    AUTHOR_GAVE_UP = "author_gave_up"
    """The author said that it could not finish, or ended without a complete result."""


class Skipped(Record):
    """A TaskSpec for which no candidate was made."""

    kind: Literal["skipped"] = "skipped"
    reason: SkipReason
    detail: str = ""


# ---------------------------------------------------------------------------------------------- verdict


class Reason(StrEnum):
    """Why a candidate was rejected. `skill2env explain REASON` prints the meaning and how to mend it."""

    MALFORMED = "malformed"
    """Required files are missing, empty, unreadable or the task cannot be loaded at all."""
    UNSAFE_FILE = "unsafe_file"
    """A link, device or path leaves the task folder, or a name cannot be stored portably."""
    TOO_LARGE = "too_large"
    """A file or the whole task exceeds the size limits."""
    CONTRACT_INVALID = "contract_invalid"
    """contract.json is missing or breaks its schema."""
    CONFIG_RULE = "config_rule"
    """task.toml asks for something that the task format forbids (network, verifier mode, users, host variables)."""
    HIDDEN_TEXT = "hidden_text"
    """The instruction holds characters that people cannot see."""
    METRIC_UNSOURCED = "metric_unsourced"
    """A metric quotes a sentence that instruction.md does not contain."""
    RUBRIC_INVALID = "rubric_invalid"
    """The rubric lacks a section or has no bullet, or too many, in one."""
    SHELL_SYNTAX = "shell_syntax"
    """test.sh or solve.sh does not parse, has CRLF line ends or is not UTF-8."""
    DOCKERFILE_RULE = "dockerfile_rule"
    """The Dockerfile uses an instruction or a form that the task format forbids."""
    LINT = "lint"
    """Harbor's lint reports a finding with all rules on."""
    PRIVATE_LEAK = "private_leak"
    """The agent's image holds tests, solution, rubric or a repository's history."""
    BUILD_FAILED = "build_failed"
    """The image does not build although the package mirror answers."""
    PIN_MISMATCH = "pin_mismatch"
    """The base image that was run is not the one that the Dockerfile names by digest."""
    NOP_REWARDED = "nop_rewarded"
    """Doing nothing earns more than 0 on at least one metric."""
    NOP_FAILED = "nop_failed"
    """The verifier or the container fails after doing nothing, for another reason than the form of the reward."""
    ORACLE_FAILED = "oracle_failed"
    """The reference solution does not earn exactly 1 on every metric."""
    ORACLE_ERROR = "oracle_error"
    """The reference solution exits non-zero, times out or is missing."""
    REWARD_INVALID = "reward_invalid"
    """The reward is missing, empty, not flat, not finite, outside [0,1] or not numeric."""
    REWARD_DISAGREES = "reward_disagrees"
    """reward.json, reward.txt, the metric names of two runs or the contract disagree."""
    VERIFIER_HUNG = "verifier_hung"
    """The verifier exceeds its time limit."""
    UNSTABLE = "unstable"
    """The same run gives different rewards when repeated or in the other verifier mode."""
    STATEFUL = "stateful"
    """Grading changes what the next grading says, or the solution cannot be run twice."""
    SURROUNDINGS = "surroundings"
    """The reference solution loses reward under another clock, zone, locale, machine, folder or hash seed."""
    BRITTLE = "brittle"
    """Output of equal meaning in another form loses reward, and no sentence of the instruction asks for the form."""
    CHEATABLE = "cheatable"
    """A run that does not do the work earns more than 0 on at least one metric."""
    WEAK_VERIFIER = "weak_verifier"
    """Most wrong versions of the reference solution still earn full reward."""
    ALTERNATIVE_FAILED = "alternative_failed"
    """Another right solution that the task ships does not earn 1 on every metric."""
    UNDECLARED = "undeclared"
    """The verifier demands a path or a name that neither the instruction nor the world states."""
    SOLUTION_GIVEN = "solution_given"
    """The instruction contains the solution, or the solution does not do the work."""
    NETWORK_NEEDED = "network_needed"
    """Solving or grading fetches or installs something when the task runs."""
    INJECTION = "injection"
    """A text that the agent reads gives orders to the reader beyond the task."""
    SECRET = "secret"
    """A file holds what looks like a working credential."""
    FREEZE_BROKEN = "freeze_broken"
    """A session tried to change the sealed contract."""
    SOLUTION_EXHAUSTED = "solution_exhausted"
    """The repair rounds are used up and the reference solution still fails."""
    DUPLICATE = "duplicate"
    """The dataset already holds this task."""
    ASSET_UNAVAILABLE = "asset_unavailable"
    """A public file that contract.json names cannot be downloaded as it is declared."""
    ASSET_CHANGED = "asset_changed"
    """A public file has other bytes than contract.json or the author's own copy says."""
    ASSET_REFUSED = "asset_refused"
    """A public file may not be used: its licence, its address or its size is not allowed."""
    AUTHOR_CREDENTIAL = "author_credential"
    """A file holds a key that the author was given, plain or in an encoding that is easily undone."""
    TAKEN_DOWN = "taken_down"
    """The dataset's owner took this task, skill, source or licence down, and it may not come back."""


class GateOutcome(StrEnum):
    """How one gate ended."""

    PASSED = "passed"
    """Nothing that rejects; findings may exist."""
    REJECTED = "rejected"
    """This gate rejects the candidate."""
    INFRA = "infra"
    """The gate could not be decided because the surroundings failed."""
    NOT_RUN = "not_run"
    """An earlier gate ended the sequence, or the gate does not apply (message says which)."""


class ProbeOutcome(StrEnum):
    """How one probe of a gate ended. Never averaged: what is unknown is no pass."""

    PASSED = "passed"
    """The task bore it."""
    FAILED = "failed"
    """It did not."""
    NOT_APPLICABLE = "not_applicable"
    """The probe does not bite on this task or in this image (the message says why)."""
    ERROR = "error"
    """The surroundings failed; run again."""


class ProbeResult(Record):
    """What one probe said."""

    probe: str
    outcome: ProbeOutcome
    message: str = ""
    values: dict[str, float | int | str | bool | None] = Field(default_factory=dict)
    """Normalised facts only, as in `GateResult`."""


class GateResult(Record):
    """What one gate said."""

    gate: str
    outcome: GateOutcome
    reason: Reason | None = None
    message: str = ""
    findings: tuple[Finding, ...] = ()
    values: dict[str, float | int | str | bool | None] = Field(default_factory=dict)
    """Normalised facts only (metric values, exit codes, digests): never logs, times or paths."""
    probes: tuple[ProbeResult, ...] = ()
    """What its probes said, in order; empty for gates without probes."""
    evidence: str = ""
    """Folder with logs, relative to the evidence root; empty when none was kept."""
    seconds: float = 0.0
    """Wall time; not part of the evidence digest."""
    trials: int = 0
    """Trials that it ran; not part of the evidence digest."""
    trial_seconds: float = 0.0
    """Wall time of its trials added up, so more than `seconds` where some ran at once; not part of the digest."""

    def evidence_digest(self) -> str:
        """Digest of the normalised record: equal for equal behaviour on any machine."""
        return digest_of(
            {
                "gate": self.gate,
                "outcome": self.outcome,
                "reason": self.reason,
                "findings": sorted((f.code, f.where) for f in self.findings),
                "values": self.values,
                **({"probes": [(p.probe, p.outcome, p.values) for p in self.probes]} if self.probes else {}),
            }
        )


class VerdictStatus(StrEnum):
    """The three ends of verification."""

    ACCEPTED = "accepted"
    """Every gate passed."""
    REJECTED = "rejected"
    """A gate rejected the candidate, for a reason and with evidence."""
    INFRA = "infra"
    """No verdict: the surroundings failed. Run again."""


class Verdict(Record):
    """What the gates say about one candidate or task."""

    status: VerdictStatus
    reason: Reason | None = None
    """Set exactly when rejected."""
    boundary: str = ""
    """Set exactly when infra."""
    message: str = ""
    gates: tuple[GateResult, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings of all gates, in gate order."""
        return tuple(f for gate in self.gates for f in gate.findings)


# ---------------------------------------------------------------------------------------------- candidate, attempt


class Candidate(Record):
    """An unverified task directory and where it came from."""

    kind: Literal["candidate"] = "candidate"
    path: Path
    """Directory in Harbor task format, in the run folder."""
    spec: TaskSpec
    contract: TaskContract
    author: AuthorIdentity
    prompt_digest: str = ""
    freeze_digest: str
    """Digest over every sealed file; see `create.freeze`."""
    base_image: str = ""
    """Catalog name and digest of the image the Dockerfile names (``debian-bookworm@sha256:...``)."""
    repairs: int = 0
    """Repair rounds the reference solution needed."""
    assets: tuple[StagedAsset, ...] = ()
    """Public files that the host put in."""
    grounding: GateResult | None = None
    """What was found about the origin of its files; None when nobody looked."""
    hosts: tuple[str, ...] = ()
    """``HOST:PORT`` that its authoring sessions reached through the proxy, sorted."""


class AttemptStatus(StrEnum):
    """Where one TaskSpec ended."""

    PUBLISHED = "published"
    """Accepted and in the dataset."""
    REJECTED = "rejected"
    """A gate or the freeze rejected it; the candidate is kept with its evidence."""
    SKIPPED = "skipped"
    """The author declined, with a reason."""
    INFRA = "infra"
    """Not final: the surroundings failed. A later run takes it up again."""


class Attempt(Record):
    """One TaskSpec, from sampling to its end. The run's tables are queries over these."""

    key: str
    """Digest of everything that determines the attempt."""
    task_name: str
    skill_slug: str
    skill_digest: str
    workflow: str
    axes: Axes
    author: AuthorIdentity
    status: AttemptStatus
    reason: str = ""
    """Value of `Reason` or `SkipReason`, or the `Boundary` of an infra failure; empty when published."""
    detail: str = ""
    repairs: int = 0
    usage: Usage = Usage()
    candidate: str = ""
    """Path of the kept candidate relative to the run folder, empty when skipped."""
    verdict: Verdict | None = None
