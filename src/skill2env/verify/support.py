"""Tasks that cannot be judged here: said at once and clearly, instead of by whatever breaks first.

That is no fault of the task, so it is no rejection: the verdict is `infra`, and the message says what could judge it.
"""

from skill2env.errors import Boundary
from skill2env.records import GateOutcome, GateResult
from skill2env.verify.config import facts_of
from skill2env.verify.gate import GateContext, Hit, Subject
from skill2env.verify.rules import Profile

_GATE = "config"
_DEVICES = ("gpus", "tpu")


def unsupported(subject: Subject, context: GateContext) -> GateResult | None:
    """Why nothing here can run a task of others; None when something may. Our own format forbids all of it anyway."""
    facts = facts_of(subject)
    if subject.profile is Profile.OURS or isinstance(facts, Hit):
        return None
    if facts.os != "linux":
        return _refusal(f"tasks for {facts.os} are not supported: every sandbox here runs Linux")
    if context.sandbox.name != "namespace":
        return None
    wanted = [name for name in facts.services if name in _DEVICES]
    wanted += ["compose services"] if facts.compose else []
    if wanted:
        return _refusal(
            f"the namespace sandbox does not support {', '.join(wanted)}; try an engine, with --sandbox docker"
        )
    return None


def _refusal(message: str) -> GateResult:
    values = {"boundary": Boundary.SANDBOX.value, "supported": False}
    return GateResult(gate=_GATE, outcome=GateOutcome.INFRA, message=message, values={**values})
