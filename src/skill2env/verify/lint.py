"""Gate `lint`: Harbor's linter with every rule on, deaf to the switches that a task sets for itself."""

from skill2env.harbor.lint import lint_task_all
from skill2env.records import Finding
from skill2env.verify.gate import GateContext, Hit, Report, Subject

_INVALID = "harbor-lint:invalid-task-config"


def check(subject: Subject, context: GateContext) -> Report:  # noqa: ARG001
    """Report what the linter says."""
    found = lint_task_all(subject.task_dir)
    return Report([Hit(_code(item), item.message, item.where) for item in found])


def _code(item: Finding) -> str:
    """Code of a finding; a compose file that the installed Compose cannot load may be too new for it, not wrong."""
    compose = item.where.rpartition("/")[2].startswith("docker-compose.yaml")
    return "harbor-lint:compose" if compose and item.code == _INVALID else item.code
