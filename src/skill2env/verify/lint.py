"""Gate `lint`: Harbor's linter with every rule on, deaf to the switches that a task sets for itself."""

from skill2env.harbor.lint import lint_task_all
from skill2env.verify.gate import GateContext, Hit, Report, Subject


def check(subject: Subject, context: GateContext) -> Report:  # noqa: ARG001
    """Report what the linter says."""
    found = lint_task_all(subject.task_dir)
    return Report([Hit(item.code, item.message, item.where) for item in found])
