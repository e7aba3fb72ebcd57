"""One line of ``manifest.jsonl``: what a reader wants to know about a task without opening its folder."""

from pathlib import Path

from pydantic import Field, ValidationError

from skill2env.errors import UserError
from skill2env.publish.notices import asset_folder, notice_folder
from skill2env.records import Axes, Candidate, GateOutcome, Record, Severity, Skill, Verdict, canonical_json

MANIFEST_NAME = "manifest.jsonl"


class TaskEntry(Record):
    """A published task."""

    name: str
    """``org/slug``, the name in task.toml."""
    folder: str
    """Name of the task's folder in the dataset."""
    digest: str
    """Harbor's digest of the folder."""
    content: str
    """Digest of all files but task.toml: equal for the same task under another name."""
    notices: str
    """Name of the skill's folder below LICENSES/."""
    assets: tuple[str, ...] = ()
    """Names of the folders below LICENSES/ of public files that the task holds, sorted."""
    skill: str
    """Slug of the skill."""
    skill_digest: str
    source: str
    """Where the skill came from; empty for a local folder."""
    licence: str
    """SPDX expression of the skill's licence; empty when unknown."""
    licence_evidence: str
    """Value of `LicenceEvidence`."""
    domain: str
    workflow: str
    axes: Axes
    seed: int
    variant: int
    author: str
    model: str
    base_image: str
    freeze_digest: str
    repairs: int
    gates: dict[str, str] = Field(default_factory=dict)
    """Gate -> digest of its normalised evidence; only gates that ran."""
    findings: tuple[str, ...] = ()
    """Codes of findings that a reviewer should look at, sorted."""


def make_entry(
    candidate: Candidate, verdict: Verdict, skill: Skill, *, folder: str, digest: str, content: str
) -> TaskEntry:
    """Build the manifest line of an accepted candidate."""
    spec = candidate.spec
    return TaskEntry(
        name=spec.task_name,
        folder=folder,
        digest=digest,
        content=content,
        notices=notice_folder(skill),
        assets=tuple(sorted({asset_folder(item.sha256) for item in candidate.assets})),
        skill=skill.slug,
        skill_digest=skill.digest,
        source=skill.origin,
        licence=skill.licence.spdx,
        licence_evidence=skill.licence.evidence,
        domain=spec.workflow.domain,
        workflow=spec.workflow.name,
        axes=spec.axes,
        seed=spec.seed,
        variant=spec.variant,
        author=candidate.author.name,
        model=candidate.author.model,
        base_image=candidate.base_image,
        freeze_digest=candidate.freeze_digest,
        repairs=candidate.repairs,
        gates=gate_digests(verdict),
        findings=tuple(sorted({f.code for f in verdict.findings if f.severity is Severity.WARN})),
    )


def gate_digests(verdict: Verdict) -> dict[str, str]:
    """Gate -> digest of its normalised evidence, of the gates that ran."""
    return {
        gate.gate: gate.evidence_digest() for gate in verdict.gates if gate.outcome is not GateOutcome.NOT_RUN
    }


def manifest_text(entries: list[TaskEntry]) -> str:
    """The manifest of these tasks, sorted by name; one canonical JSON object a line."""
    return "".join(canonical_json(entry) + "\n" for entry in sorted(entries, key=lambda e: e.name))


def read_manifest(dataset: Path) -> list[TaskEntry]:
    """Entries of a dataset folder, sorted by name; empty when it has no manifest.

    Raises:
        UserError: the manifest cannot be read or a line is not an entry.
    """
    path = dataset / MANIFEST_NAME
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from None
    entries: list[TaskEntry] = []
    for number, line in enumerate(lines, start=1):
        try:
            entries.append(TaskEntry.model_validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise UserError(
                f"{path}:{number} is not a manifest entry: {'.'.join(map(str, first['loc']))}: {first['msg']}",
                hint="restore the file, or move the folder away and compile again",
            ) from None
    return sorted(entries, key=lambda e: e.name)
