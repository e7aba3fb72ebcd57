"""Gate `config`: task.toml loads, and asks for nothing that our format forbids."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from skill2env.harbor.task import TaskFacts, read_task
from skill2env.harbor.task_toml import SCHEMA_VERSION
from skill2env.verify.gate import GateContext, Hit, Report, Subject

WHERE = "task.toml"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*")
_PRIVATE = ("/logs", "/tests", "/solution", "/proc", "/sys", "/dev")
ROOT_USERS = frozenset({None, "0", "root", ""})


def check(subject: Subject, context: GateContext) -> Report:  # noqa: ARG001
    """Read task.toml; later gates find what it says in `subject.facts`."""
    facts = facts_of(subject)
    if isinstance(facts, Hit):
        return Report([facts])
    hits = [
        *_identity(facts),
        *_network(facts),
        *_roles(facts),
        *_artifacts(facts),
        *_surroundings(facts),
        *_host_variables(facts),
    ]
    return Report(
        hits, {"mode": facts.mode, "agent_user": facts.agent_user, "network": facts.networks["agent"]}
    )


def facts_of(subject: Subject) -> TaskFacts | Hit:
    """What task.toml says, read once per subject; a hit when it cannot be loaded."""
    if subject.facts is None:
        try:
            subject.facts = read_task(subject.task_dir)
        except ValueError as error:
            first = " ".join(str(error).split())[:400]
            return Hit("config-invalid", f"task.toml is not valid: {first}", WHERE)
    return subject.facts


def _identity(facts: TaskFacts) -> Iterator[Hit]:
    if not _NAME.fullmatch(facts.name):
        yield Hit("config-name", f"[task] name is {facts.name!r}, not organisation/name in lower case", WHERE)
    if facts.schema_version != SCHEMA_VERSION:
        yield Hit(
            "config-schema", f"schema_version is {facts.schema_version!r}, not {SCHEMA_VERSION!r}", WHERE
        )


def _network(facts: TaskFacts) -> Iterator[Hit]:
    open_phases = sorted(phase for phase, mode in facts.networks.items() if mode != "no-network")
    if open_phases:
        yield Hit("network-open", f"the network is open for {', '.join(open_phases)}", WHERE)


def _roles(facts: TaskFacts) -> Iterator[Hit]:
    if facts.mode != "separate":
        yield Hit("verifier-shared", "the verifier runs in the agent's container", WHERE)
    if (facts.agent_user or "").split(":")[0] in ROOT_USERS or facts.agent_user is None:
        yield Hit("agent-root", "the agent runs as root", WHERE)
    if facts.steps:
        yield Hit("config-steps", f"the task has {facts.steps} steps", WHERE)


def _artifacts(facts: TaskFacts) -> Iterator[Hit]:
    if not facts.artifacts:
        yield Hit("artifacts-missing", "no artifacts are listed", WHERE)
    for artifact in facts.artifacts:
        path = PurePosixPath(artifact)
        if not path.is_absolute() or ".." in path.parts or path == PurePosixPath("/"):
            yield Hit("artifact-path", f"artifact {artifact!r} is not an absolute path below /", WHERE)
        elif any(
            path.is_relative_to(private) or PurePosixPath(private).is_relative_to(path)
            for private in _PRIVATE
        ):
            yield Hit("artifact-path", f"artifact {artifact!r} lies over a private or system folder", WHERE)


def _surroundings(facts: TaskFacts) -> Iterator[Hit]:
    wanted = [*facts.services]
    if facts.compose:
        wanted.append("compose services")
    if facts.docker_image:
        wanted.append("a prebuilt image")
    if wanted:
        yield Hit("config-service", f"the task asks for {', '.join(wanted)}", WHERE)
    if facts.os != "linux":
        yield Hit("config-os", f"the task targets {facts.os}", WHERE)


def _host_variables(facts: TaskFacts) -> Iterator[Hit]:
    for variable in facts.host_variables:
        harmless = variable.has_default and not variable.is_set
        yield Hit(
            "host-variable-default" if harmless else "host-variable",
            f"{variable.where} takes ${variable.name} from the machine that runs the trial",
            WHERE,
        )
