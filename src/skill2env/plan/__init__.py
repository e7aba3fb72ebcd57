"""Stage 2, Skill -> Workflows: what the skill teaches, grounded in its own sentences."""

from skill2env.plan.drops import Dropped, DropReason
from skill2env.plan.stage import Plan, plan_workflows

__all__ = ["DropReason", "Dropped", "Plan", "plan_workflows"]
