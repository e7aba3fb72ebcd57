"""The six axes along which the tasks of one workflow vary, each value with the meaning that prompts print.

The vocabulary is open: an author may name values of its own, in `Workflow.suitable` or when a recording pins the axes
it was written for. What stands here is what the sampler draws from when nobody says otherwise. Plan and diversify
both need it and stages do not know each other, so it lies beside the records.
"""

import re
from enum import StrEnum
from functools import cache

from skill2env.records import Axes, meanings


class Archetype(StrEnum):
    """Shape of the work."""

    REPAIR = "repair"
    """Something that used to work gives wrong results or fails; find the cause and mend it, breaking nothing else."""
    BUILD = "build"
    """Make a tool, a document set or a data product that does not exist yet, to a written specification."""
    MIGRATE = "migrate"
    """Move content or code from an old form to a new one so that nothing is lost and old quirks are handled."""
    INVESTIGATE = "investigate"
    """Work out from traces what happened, and hand in findings that can be checked against the facts."""
    AUDIT = "audit"
    """Judge many items against a written policy; every item ends with a decision and the rule behind it."""
    RECONCILE = "reconcile"
    """Bring two or more sources that ought to agree into agreement, and account for every difference."""
    TRANSFORM = "transform"
    """Turn raw, messy input into a clean product of an exact shape, with edge cases that matter."""
    OPTIMISE = "optimise"
    """Make something that already works meet a measurable target without changing what it delivers."""
    HARDEN = "harden"
    """Make something robust against bad input, misuse or failure that it does not survive today."""
    SYNTHESISE = "synthesise"
    """Condense scattered sources into one deliverable whose every statement can be traced back to them."""
    CONFIGURE = "configure"
    """Set up a tool, a policy or a service description so that it behaves as required in all named situations."""
    EXTEND = "extend"
    """Add a capability to existing work, keep to its conventions, and leave its present behaviour alone."""


class VerifierPattern(StrEnum):
    """How the outcome is graded."""

    RECOMPUTE = "recompute"
    """The verifier derives the right answer from private copies of the inputs and compares field by field."""
    BEHAVIOURAL = "behavioural"
    """The verifier runs the delivered program on inputs that the agent never saw and judges what it does."""
    DIFFERENTIAL = "differential"
    """The delivered program and a private reference run side by side on many generated inputs."""
    INVARIANTS = "invariants"
    """Properties that every right answer has are checked: totals, orderings, round trips, conservation, uniqueness."""
    ADVERSARIAL = "adversarial"
    """A private set of hard cases, good and bad mixed; credit only for telling them apart in both directions."""
    THRESHOLD = "threshold"
    """A quality figure is measured on private data and must pass a stated limit that trivial answers miss."""
    STATE = "state"
    """The final state of a set of files is compared with the required state, including what must be untouched."""
    TRACEABILITY = "traceability"
    """Every claim in the deliverable must point to evidence that exists and supports it, and none may be missing."""


class Complexity(StrEnum):
    """Expected tool-calling turns of a competent agent, as a band."""

    SHORT = "turns-05-10"
    """5 to 10 turns: one main difficulty, a handful of files."""
    MODERATE = "turns-11-20"
    """11 to 20 turns: two difficulties that interact, some exploration first."""
    LONG = "turns-21-40"
    """21 to 40 turns: several parts that depend on each other, with intermediate results worth checking."""
    DEEP = "turns-41-80"
    """41 to 80 turns: a world with many parts, where a wrong early choice shows only later."""


TURNS: dict[str, tuple[int, int]] = {
    Complexity.SHORT: (5, 10),
    Complexity.MODERATE: (11, 20),
    Complexity.LONG: (21, 40),
    Complexity.DEEP: (41, 80),
}
"""Band -> fewest and most expected tool-calling turns."""


class Persona(StrEnum):
    """Who asks."""

    SHIFT_LEAD = "shift-lead"
    """Runs today's operation; needs the thing to work before the next handover."""
    FOUNDER = "founder"
    """Owns a small company, does a bit of everything, thinks in outcomes and customers."""
    NEW_HIRE = "new-hire"
    """Joined this month, took over a colleague's folder, knows the goal better than the history."""
    AUDITOR = "auditor"
    """Has to sign off on the result; cares about completeness and a reason for every decision."""
    RESEARCHER = "researcher"
    """Prepares a study or a paper; cares about reproducibility and about what may be claimed."""
    MAINTAINER = "maintainer"
    """Looks after a code base or a template set that others depend on; dislikes needless change."""
    ANALYST = "analyst"
    """Answers questions from data for people who will act on the numbers."""
    SUPPORT_AGENT = "support-agent"
    """Passes on a customer's problem with what the customer said and sent."""
    CONSULTANT = "consultant"
    """Works for a client, has a written scope and a delivery date."""
    TEACHER = "teacher"
    """Needs correct material that learners will pick apart."""
    PROJECT_MANAGER = "project-manager"
    """Coordinates several people; talks in deliverables, owners and dates."""
    OPERATOR = "operator"
    """Runs machines and scheduled jobs; gives facts, paths and error messages."""
    VOLUNTEER = "volunteer"
    """Helps a club or a non-profit with home-made tools and little time."""
    COMPLIANCE_OFFICER = "compliance-officer"
    """Must show that rules were followed, to the letter, and that exceptions are listed."""


class Tone(StrEnum):
    """How they ask."""

    TERSE = "terse"
    """Short sentences, no greeting, nothing said twice."""
    FRIENDLY = "friendly"
    """Warm and polite, in full sentences, still precise about what is wanted."""
    FORMAL = "formal"
    """As in a written order: complete, neutral, numbered where it helps."""
    URGENT = "urgent"
    """Under time pressure; the most important thing first, the reason for the hurry stated."""
    RAMBLING = "rambling"
    """Tells the story as it happened; the requirements are all there but not in order."""
    SCEPTICAL = "sceptical"
    """Has seen this go wrong before; names what went wrong and what would not be accepted."""
    BULLETED = "bulleted"
    """A ticket: context, then a list of what must hold."""


class Expertise(StrEnum):
    """How much the asker knows about the method."""

    OUTSIDER = "outsider"
    """Knows what they need, not the trade: plain words, no technical terms, no hint at a method."""
    PRACTITIONER = "practitioner"
    """Uses the trade's words correctly and describes the situation well, but leaves the method open."""
    SPECIALIST = "specialist"
    """Names conventions, edge cases and tolerances that matter, without giving the steps."""
    ADJACENT = "adjacent"
    """An expert of a neighbouring field who describes things in its terms; the facts are right, some words are not."""


CATALOGS: dict[str, type[StrEnum]] = {
    "archetype": Archetype,
    "verifier_pattern": VerifierPattern,
    "complexity": Complexity,
    "persona": Persona,
    "tone": Tone,
    "expertise": Expertise,
}
"""Axis name -> its catalog, in the order of the fields of `Axes`."""

AXIS_NAMES: tuple[str, ...] = tuple(Axes.model_fields)

MAX_VALUE_CHARS = 60
"""Longest value of an axis that is not in a catalog."""

_VALUE = re.compile(r"[a-z0-9](?:[a-z0-9 _-]*[a-z0-9])?")


@cache
def axis_values(axis: str) -> tuple[str, ...]:
    """Values of one catalog in their order. Raises KeyError for an unknown axis."""
    return tuple(member.value for member in CATALOGS[axis])


def axis_meaning(axis: str, value: str) -> str:
    """Meaning of a value; a value outside the catalog means what its words say."""
    known = meanings(CATALOGS[axis]).get(value)
    return known or f"As the words say: {value.replace('-', ' ').replace('_', ' ')}."


def is_axis_value(value: str) -> bool:
    """Whether `value` can stand on an axis: lower-case words joined by spaces, hyphens or underscores, not too long."""
    return len(value) <= MAX_VALUE_CHARS and _VALUE.fullmatch(value) is not None
