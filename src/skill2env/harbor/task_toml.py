"""task.toml, written by the host and never by an author, through Harbor's own model and always the same bytes.

Two stages: before the seal there is no ``[metadata]``, so that the seal covers every setting; the finished task adds
``[metadata.skill2env]``, where everything about its origin and its gates lives, because Harbor's digest and package
cover task.toml and none of our other files.
"""

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from harbor.models.task.config import (
    AgentConfig,
    Author,
    EnvironmentConfig,
    NetworkMode,
    PackageInfo,
    TaskConfig,
    VerifierConfig,
    VerifierEnvironmentMode,
)

from skill2env import __version__
from skill2env.errors import UserError
from skill2env.harbor.toml_text import to_toml
from skill2env.records import AuthorIdentity, GateResult, Skill, StagedAsset, TaskContract, TaskSpec

AGENT_USER = "agent"
"""Our Dockerfiles create this user; agents and reference solutions run as it."""

SCHEMA_VERSION = "1.4"
METADATA_KEY = "skill2env"
"""``[metadata.skill2env]``."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """What is known about a task only after its seal."""

    author: AuthorIdentity
    freeze_digest: str
    prompt_digests: Sequence[str] = ()
    base_image: str = ""
    """Catalog name and digest of the base image that was run."""
    gates: Sequence[GateResult] = ()
    level: str = ""
    """How much the gates checked; empty when none ran."""
    assets: Sequence[StagedAsset] = ()
    """Public files that the host put in."""
    hosts: Sequence[str] = ()
    """``HOST:PORT`` that the authoring sessions reached."""
    notes: Sequence[str] = ()
    """Short facts a reader must know, for example ``degraded: single-uid``."""


def render_task_toml(
    spec: TaskSpec, contract: TaskContract, skill: Skill, provenance: Provenance | None = None
) -> str:
    """The text of task.toml.

    Args:
        spec: what was to be made.
        contract: what the contract session said about it.
        skill: the source.
        provenance: None before the seal; then ``[metadata]`` is left out.

    Raises:
        UserError: a name or path in the contract breaks Harbor's schema, or does not survive TOML.
    """
    metadata = (
        {} if provenance is None else {METADATA_KEY: _filled(_facts(spec, contract, skill, provenance))}
    )
    try:
        config = _config(spec, contract, metadata)
        text = dump_config(config)
        same = TaskConfig.model_validate(tomllib.loads(text)) == config
    except (ValueError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"task.toml cannot be written: {error}", hint="mend contract.json") from error
    if not same:
        raise UserError(
            "task.toml does not survive being read again", hint="remove control characters from contract.json"
        )
    return text


def _filled(facts: dict[str, Any]) -> dict[str, Any]:
    """Without empty lists, which Harbor's writer leaves out: what is read again must equal what was written."""
    return {key: value for key, value in facts.items() if value not in ([], ())}


def strip_metadata(text: str) -> str:
    """The sealed form of a finished task.toml: equal to what `render_task_toml` gave without provenance.

    Raises:
        ValueError: the text is not a valid task.toml.
    """
    config = TaskConfig.model_validate(tomllib.loads(text))
    config.metadata = {}
    return dump_config(config)


def change_provenance(
    text: str,
    *,
    base_image: str,
    freeze_digest: str,
    gates: Sequence[GateResult],
    kept: Collection[str] = (),
) -> str:
    """A finished task.toml after its base was exchanged; one without provenance of ours is returned as it is.

    Args:
        text: as it was.
        base_image: what runs now.
        freeze_digest: as it is now.
        gates: what the gates say now.
        kept: gates that looked at the task before its seal and have nothing to do with the base; what they said stays.

    Raises:
        ValueError: the text is not a valid task.toml.
    """
    config = TaskConfig.model_validate(tomllib.loads(text))
    ours = config.metadata.get(METADATA_KEY)
    if not ours:
        return text
    before = [cast("dict[str, Any]", gate) for gate in ours.get("gates", ()) if isinstance(gate, dict)]
    said = [gate for gate in before if gate.get("gate") in kept]
    changes = {
        "base_image": base_image,
        "freeze_digest": freeze_digest,
        "gates": [*said, *_gate_facts(gates)],
    }
    config.metadata = {**config.metadata, METADATA_KEY: {**ours, **changes}}
    return dump_config(config)


def _gate_facts(gates: Sequence[GateResult]) -> list[dict[str, str]]:
    return [
        {"gate": gate.gate, "outcome": gate.outcome.value, "evidence": gate.evidence_digest()}
        for gate in gates
    ]


def name_image(path: Path, reference: str) -> None:
    """Let a task.toml name a ready-made image for the agent's environment.

    Args:
        path: the file; written again in Harbor's own form.
        reference: with digest.

    Raises:
        ValueError: it is not valid.
        OSError: it cannot be read or written.
    """
    config = TaskConfig.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    config.environment.docker_image = reference
    path.write_text(dump_config(config), encoding="utf-8")


def dump_config(config: TaskConfig) -> str:
    """The text of a task.toml; empty tables and lists are left out because they are Harbor's defaults."""
    data = config.model_dump(mode="json", exclude_none=True)
    ordered = {key: data.pop(key) for key in ("schema_version", "source", "artifacts", "task") if key in data}
    metadata = data.pop("metadata", {})
    return to_toml({**ordered, **data, "metadata": metadata})


def _config(spec: TaskSpec, contract: TaskContract, metadata: dict[str, Any]) -> TaskConfig:
    limits = contract.limits
    environment = EnvironmentConfig(
        network_mode=NetworkMode.NO_NETWORK,
        build_timeout_sec=limits.build_timeout_sec,
        cpus=limits.cpus,
        memory_mb=limits.memory_mb,
        storage_mb=limits.storage_mb,
    )
    return TaskConfig(
        schema_version=SCHEMA_VERSION,
        task=PackageInfo(
            name=spec.task_name,
            version="1.0.0",
            description=contract.title,
            authors=[Author(name="skill2env")],
            keywords=_keywords(spec, contract),
        ),
        metadata=metadata,
        agent=AgentConfig(
            timeout_sec=limits.agent_timeout_sec, user=AGENT_USER, network_mode=NetworkMode.NO_NETWORK
        ),
        verifier=VerifierConfig(
            timeout_sec=limits.verifier_timeout_sec,
            network_mode=NetworkMode.NO_NETWORK,
            environment_mode=VerifierEnvironmentMode.SEPARATE,
        ),
        environment=environment,
        artifacts=list(dict.fromkeys(contract.artifacts)),
    )


def _keywords(spec: TaskSpec, contract: TaskContract) -> list[str]:
    words = (*contract.keywords, spec.workflow.domain, spec.skill_slug)
    return sorted({word.strip() for word in words if word.strip()})


def _asset_facts(contract: TaskContract, staged: Sequence[StagedAsset]) -> list[dict[str, Any]]:
    """What the contract says about public files, and for those that the host put in what it found."""
    found = {item.asset: item for item in staged}
    facts: list[dict[str, Any]] = []
    for asset in contract.assets:
        told = asset.model_dump(mode="json")
        item = found.get(asset)
        if item is not None:
            told |= {"sha256": item.sha256, "size": item.size, "address": item.address}
            told |= {"licence_used": item.licence, "notice": item.notice}
        facts.append({key: value for key, value in told.items() if value not in ("", [])})
    return facts


def _facts(spec: TaskSpec, contract: TaskContract, skill: Skill, provenance: Provenance) -> dict[str, Any]:
    author = provenance.author
    facts: dict[str, Any] = {
        "compiler_version": __version__,
        "domain": spec.workflow.domain,
        "seed": spec.seed,
        "variant": spec.variant,
        "freeze_digest": provenance.freeze_digest,
        "prompt_digests": list(provenance.prompt_digests),
        "base_image": provenance.base_image,
        "notes": list(provenance.notes),
        "skill": {
            "name": skill.name,
            "digest": skill.digest,
            "source": skill.origin,
            "licence": skill.licence.spdx,
            "licence_evidence": skill.licence.evidence.value,
            "licence_file": skill.licence.where,
        },
        "workflow": {"name": spec.workflow.name, "summary": spec.workflow.summary},
        "axes": spec.axes.model_dump(mode="json"),
        "author": {
            "name": author.name,
            "model": author.model,
            "version": author.version,
            "digest": author.digest,
        },
        "metric_sources": {metric.name: metric.sentence for metric in contract.metrics},
        "assets": _asset_facts(contract, provenance.assets),
        "author_hosts": list(provenance.hosts),
        "level": provenance.level,
        "gates": _gate_facts(provenance.gates),
    }
    return {key: value for key, value in facts.items() if value != []}
