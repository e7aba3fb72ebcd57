"""What the host leaves out of a planner's answer, and why: nothing is dropped without a reason that is counted."""

from enum import StrEnum

from skill2env.records import Record


class DropReason(StrEnum):
    """Why a workflow, or a part of one, was left out."""

    NOT_JSON = "not_json"
    """The answer holds no JSON list or object of workflows."""
    ANSWER_TOO_LONG = "answer_too_long"
    """The answer exceeds the size limit and was not read."""
    TRUNCATED = "truncated"
    """The answer stops, or stops being JSON, in the middle; the workflows before that point are kept."""
    NOT_AN_OBJECT = "not_an_object"
    """An entry of the list is not a JSON object."""
    SCHEMA = "schema"
    """Required fields are missing or have the wrong type."""
    BAD_NAME = "bad_name"
    """The name cannot be turned into a kebab-case name."""
    TOO_LONG = "too_long"
    """A field or list exceeds its limit."""
    BAD_TEXT = "bad_text"
    """A field holds characters that cannot be stored (NUL, lone surrogates)."""
    DUPLICATE = "duplicate"
    """An earlier workflow has the same name."""
    NEAR_DUPLICATE = "near_duplicate"
    """An earlier workflow describes nearly the same work in nearly the same words."""
    UNGROUNDED = "ungrounded"
    """None of its grounding sentences occurs in the skill."""
    OVER_COUNT = "over_count"
    """More workflows than asked for."""
    SENTENCE_NOT_FOUND = "sentence_not_found"
    """One grounding sentence does not occur in the skill; the workflow stands on the others."""
    UNKNOWN_AXIS = "unknown_axis"
    """`suitable` names an axis that does not exist; only that entry is left out."""
    BAD_AXIS_VALUE = "bad_axis_value"
    """`suitable` holds a value that is not a short lower-case phrase; only that value is left out."""
    UNKNOWN_FIELD = "unknown_field"
    """The workflow has a field that the schema does not; only that field is left out."""

    @property
    def partial(self) -> bool:
        """Whether the workflow it concerns is kept."""
        return self in {
            DropReason.SENTENCE_NOT_FOUND,
            DropReason.UNKNOWN_AXIS,
            DropReason.BAD_AXIS_VALUE,
            DropReason.UNKNOWN_FIELD,
        }


class Dropped(Record):
    """One thing that was left out."""

    reason: DropReason
    detail: str
    """What it concerns, shortened to 200 characters."""


def dropped(reason: DropReason, detail: str) -> Dropped:
    """A `Dropped` with its detail made printable and short."""
    text = "".join(char if char.isprintable() else " " for char in detail.encode("utf-8", "replace").decode())
    return Dropped(reason=reason, detail=" ".join(text.split())[:200])
