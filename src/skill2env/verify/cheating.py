"""Run one cheat and say what it earned."""

from collections.abc import Mapping, Sequence

from skill2env.harbor.agents import SCRIPT_AGENT
from skill2env.harbor.outcome import TrialOutcome
from skill2env.sandbox.conditions import NotApplicable
from skill2env.verify.config import facts_of
from skill2env.verify.dropping import Drop, write_source
from skill2env.verify.gate import Hit
from skill2env.verify.probing import Answer, Asking
from skill2env.verify.study import Study

FULL_SHARE = 0.5
"""A cheat that earns this much of a metric is rejected in both profiles; less is a warning about foreign tasks."""


def run_cheat(
    asking: Asking,
    study: Study,
    drops: Sequence[Drop],
    *,
    before: str = "",
    after: str = "",
    label: str = "",
    partly: bool = False,
) -> TrialOutcome:
    """Run an agent that only writes `drops`."""
    name = "-".join(filter(None, (asking.probe, label)))
    source = asking.context.evidence / asking.gate / "agents" / name
    write_source(source, drops, before=before, after=after)
    asking = Asking(asking.subject, study.limited(asking.context), asking.gate, asking.probe)
    kwargs = {"source": str(source), "entry": "run.sh", "limit_sec": 30}
    outcome = asking.trial(SCRIPT_AGENT, label=label, agent_kwargs=kwargs, patient=False)
    if outcome.solve_exit_code and not partly:
        raise NotApplicable("the agent may not write where the reference solution writes")
    limit = asking.context.timeouts.verifier_cap_sec
    if not partly and outcome.failure is not None and outcome.failure.timed_out:
        raise NotApplicable(
            f"the verifier takes more than {limit:.0f} s over it, and gives no reward until then"
        )
    return outcome


def earned(asking: Asking, outcome: TrialOutcome) -> dict[str, float]:
    """Metrics on which a cheat got more than nothing, and more than doing nothing gets."""
    nop = asking.subject.nop
    least: Mapping[str, float] = {} if nop is None else nop.reward().metrics
    return {
        name: value
        for name, value in sorted(outcome.reward().metrics.items())
        if value > max(0.0, least.get(name, 0.0))
    }


def judge(asking: Asking, outcome: TrialOutcome, what: str, *, code: str = "cheat") -> Answer:
    """What a cheat's reward says about the task.

    Args:
        asking: the probe.
        outcome: its trial.
        what: it did, as the subject of "earns".
        code: of the finding when it earned a metric.
    """
    gains = earned(asking, outcome)
    values = {f"metric:{name}": value for name, value in sorted(outcome.reward().metrics.items())}
    if not gains:
        return Answer(values=values)
    shown = ", ".join(f"{name} = {value:g}" for name, value in gains.items())
    if code in ("cheat", "cheat-rewards") and max(gains.values()) < FULL_SHARE:
        code = "cheat-share"
    return Answer([Hit(code, f"{what} earns {shown}", asking.probe)], values=values)


def refused_rights(asking: Asking, study: Study) -> Answer | None:
    """What replaces attacks by rights where the agent has all of them; None where they make sense."""
    facts = facts_of(asking.subject)
    shared = not isinstance(facts, Hit) and facts.mode == "shared"
    if shared and study.one_user:
        raise NotApplicable("agent and verifier are one user in this sandbox")
    if not shared or not study.is_root:
        return None
    message = "the agent is root in the verifier's own container: it can replace what the verifier runs"
    first = asking.probe == "rewards"
    return Answer([Hit("cheat-root", message, "task.toml")] if first else (), message=message)


def escaped(text: str) -> str:
    """Text for single quotes of a shell."""
    return text.replace("'", "'\\''")
