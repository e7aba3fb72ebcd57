"""What a compilation would cost, before anything is paid.

Counts what can be counted without an author (skills, the length of the prompts and of the skills' texts) and multiplies
by sessions as they were: those of this model in the run folder's ledger where there are any, else assumptions that are
printed with the result. It is an expectation: plans may find fewer workflows than asked for, and more rounds may be
needed than one in two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skill2env.config import RunConfig
from skill2env.errors import UserError
from skill2env.ingest import blocking, find_skills, load_skill
from skill2env.llm.dialogue import TokenUsage, estimate_tokens
from skill2env.llm.prices import PriceTable
from skill2env.llm.settings import model_settings
from skill2env.plan.stage import plan_prompt
from skill2env.records import FileKind, Phase, Skill
from skill2env.store.ledger import FINISHED, Ledger
from skill2env.store.run_folder import RunFolder

SHARE_REPAIRED = 0.5
"""Repair sessions for each task, where nothing was measured; mending sessions likewise."""


@dataclass(frozen=True, slots=True)
class SessionShape:
    """How long a session of one phase is."""

    turns: int
    output_tokens: int
    """Of the whole session."""
    measured: int = 0
    """Finished sessions that this is the mean of; 0 for an assumption."""
    input_tokens: int = 0
    """Measured mean; 0 to compute it from the turns."""


ASSUMED: dict[Phase, SessionShape] = {
    Phase.PLAN: SessionShape(8, 6_000),
    Phase.CONTRACT: SessionShape(40, 30_000),
    Phase.SOLUTION: SessionShape(20, 10_000),
    Phase.REPAIR: SessionShape(15, 8_000),
}
_PROMPT_TOKENS = 4_000
"""Of a contract, solution or repair prompt."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Sessions, tokens and money by phase."""

    skills: int
    left_out: int
    """Skills that would be skipped before any session."""
    sessions: dict[str, float]
    tokens: dict[str, TokenUsage]
    micro_dollars: int | None
    """None when the model has no price."""
    measured: dict[str, int]
    """Finished sessions that each phase's figures rest on; 0 where they are assumed."""

    def document(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "skills": self.skills,
            "left_out": self.left_out,
            "sessions": self.sessions,
            "input_tokens": {phase: used.input for phase, used in self.tokens.items()},
            "output_tokens": {phase: used.output for phase, used in self.tokens.items()},
            "micro_dollars": self.micro_dollars,
            "measured_sessions": self.measured,
        }


def estimate(paths: Sequence[Path], *, run: Path, config: RunConfig) -> Estimate:
    """Estimate what `compile` would cost with these settings.

    Args:
        paths: as for `compile`.
        run: run folder; its ledger, when there is one, says how long sessions were.
        config: settings.

    Raises:
        UserError: no model, no skill, or a price table that cannot be read.
    """
    if not config.author.model:
        raise UserError("only authors with a model cost something", hint="give one with --model NAME")
    skills, left_out = _skills(paths)
    shapes = _shapes(run, config.author.model)
    per_skill = config.plan.workflows * config.plan.variants
    repairs = SHARE_REPAIRED * min(1, config.create.max_repairs)
    mends = SHARE_REPAIRED * min(1, config.create.max_mends)
    counts = {
        Phase.PLAN: 1.0,
        Phase.CONTRACT: per_skill * (1 + mends),
        Phase.SOLUTION: float(per_skill),
        Phase.REPAIR: per_skill * repairs,
    }
    tokens = {phase: TokenUsage() for phase in counts}
    for skill in skills:
        for phase, count in counts.items():
            tokens[phase] += _session(skill, phase, shapes[phase], count, config)
    prices = PriceTable.of(config.author.prices)
    price = prices.find(model_settings(config.author.model).name)
    total = sum(tokens.values(), TokenUsage())
    requests = round(len(skills) * sum(count * shapes[phase].turns for phase, count in counts.items()))
    return Estimate(
        skills=len(skills),
        left_out=left_out,
        sessions={phase.value: count * len(skills) for phase, count in counts.items()},
        tokens={phase.value: used for phase, used in tokens.items()},
        micro_dollars=None if price is None else price.of_sum(total, requests),
        measured={phase.value: shapes[phase].measured for phase in counts},
    )


def _skills(paths: Sequence[Path]) -> tuple[list[Skill], int]:
    """Skills that an author would be asked about, each content once, and how many would not."""
    found: dict[str, Skill] = {}
    left_out = 0
    for folder in sorted({folder.resolve() for path in paths for folder in find_skills(path).folders}):
        try:
            skill = load_skill(folder)
        except UserError:
            left_out += 1
            continue
        if blocking(skill) or skill.digest in found:
            left_out += 1
        else:
            found[skill.digest] = skill
    return list(found.values()), left_out


def _shapes(run: Path, model: str) -> dict[Phase, SessionShape]:
    """Means of the finished sessions of this model, else assumptions."""
    ledger = RunFolder(run).ledger
    shapes = dict(ASSUMED)
    if not ledger.is_file():
        return shapes
    query = (
        "SELECT phase, count(*) AS number, avg(turns) AS turns, avg(input_tokens) AS input,"
        " avg(output_tokens) AS output FROM sessions WHERE outcome = ? AND model IN (?, ?) AND input_tokens > 0"
        " GROUP BY phase"
    )
    with Ledger.read(ledger) as opened:
        rows = opened.query(query, (FINISHED, model, model_settings(model).name))
    for row in rows:
        shapes[Phase(row["phase"])] = SessionShape(
            round(row["turns"]), round(row["output"]), row["number"], round(row["input"])
        )
    return shapes


def _session(skill: Skill, phase: Phase, shape: SessionShape, count: float, config: RunConfig) -> TokenUsage:
    """Tokens of `count` sessions: with each turn the whole dialogue so far is read again."""
    if shape.measured:
        return TokenUsage(round(count * shape.input_tokens), round(count * shape.output_tokens))
    prompt = (
        estimate_tokens(plan_prompt(skill, config.plan.workflows)) if phase is Phase.PLAN else _PROMPT_TOKENS
    )
    read = estimate_tokens(skill.body) + sum(
        estimate_tokens(" " * min(item.size, 20_000)) for item in skill.files if item.kind is FileKind.TEXT
    )
    # What is read and written comes in evenly over the turns, so on average half of it is in the dialogue.
    average = prompt + (min(read, 60_000) + shape.output_tokens * 2) / 2
    return TokenUsage(round(count * shape.turns * average), round(count * shape.output_tokens))
