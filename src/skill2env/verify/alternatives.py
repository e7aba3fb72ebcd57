"""Gate `alternatives`: every other right solution that the task ships earns 1 on every metric.

They lie in ``solution/alternatives/NAME/solve.sh``. The whole solution folder is in place while one of them runs.
"""

from collections.abc import Sequence
from pathlib import Path

from skill2env.harbor.agents import SCRIPT_AGENT
from skill2env.sandbox.conditions import NotApplicable
from skill2env.verify.config import facts_of
from skill2env.verify.gate import GateContext, Hit, Subject, rejecting
from skill2env.verify.oracle import solution_hits
from skill2env.verify.probing import Answer, Asking, Probe, gate_of

NAME = "alternatives"
FOLDER = "solution/alternatives"


def probes(subject: Subject, context: GateContext) -> Sequence[Probe]:  # noqa: ARG001
    """One probe a folder of alternatives."""
    home = subject.task_dir / FOLDER
    folders = sorted(home.iterdir()) if home.is_dir() and not home.is_symlink() else []
    return [_probe(folder) for folder in folders if folder.is_dir() and not folder.is_symlink()]


check = gate_of(NAME, probes)


def _probe(folder: Path) -> Probe:
    def ask(asking: Asking) -> Answer:
        return _try(asking, folder)

    return Probe(folder.name, ask)


def _try(asking: Asking, folder: Path) -> Answer:
    where = f"{FOLDER}/{folder.name}/solve.sh"
    if not (folder / "solve.sh").is_file():
        return Answer([Hit("alternative-failed", "the alternative has no solve.sh", where)])
    facts = facts_of(asking.subject)
    if isinstance(facts, Hit) or facts.steps:
        raise NotApplicable("the task has several steps")
    kwargs = {
        "source": str(asking.subject.task_dir / "solution"),
        "entry": f"alternatives/{folder.name}/solve.sh",
        "env": dict(facts.solution_env),
    }
    outcome = asking.trial(SCRIPT_AGENT, agent_kwargs=kwargs)
    wrong = rejecting(solution_hits(outcome, outcome.reward()), asking.subject.profile)
    hits = (
        [Hit("alternative-failed", f"as another right solution: {wrong[0].message}", where)] if wrong else []
    )
    return Answer(hits)
