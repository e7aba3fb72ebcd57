"""From JSON objects to `Workflow` records, with every dropped item named."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, cast

from pydantic import ValidationError

from skill2env.axes import AXIS_NAMES, is_axis_value
from skill2env.plan.drops import Dropped, DropReason, dropped
from skill2env.records import Workflow
from skill2env.similarity import jaccard, shingles, words

MAX_NAME_CHARS = 40
MAX_TEXT_CHARS = 6000
"""Of one text field."""
MAX_LIST_ITEMS = 40
"""Of grounding, assets and the values of one axis; of the fields of any object."""
MAX_DEPTH = 6

TWIN_WORDS = 3
"""Words in a row that are compared."""
TWIN_LEAST = 25
"""Words that a workflow must have to be compared."""
TWIN_JACCARD = 0.8
"""From this share of common shingles on, two workflows of a skill are the same work."""
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_ASSET_FIELDS = frozenset({"what", "url", "revision", "licence", "fallback"})


def parse_workflows(
    entries: Iterable[Any], *, count: int, occurs: Callable[[str], bool]
) -> tuple[tuple[Workflow, ...], tuple[Dropped, ...]]:
    """Turn the entries of an answer into at most `count` workflows, in their order.

    Args:
        entries: JSON values.
        count: how many are wanted.
        occurs: whether a sentence occurs in the skill.

    Returns:
        The workflows and everything that was left out.
    """
    kept: dict[str, Workflow] = {}
    losses: list[Dropped] = []
    for entry in entries:
        workflow = _parse_one(entry, occurs, losses)
        if workflow is None:
            continue
        if workflow.name in kept:
            losses.append(dropped(DropReason.DUPLICATE, workflow.name))
        elif twin := _twin(workflow, kept.values()):
            losses.append(dropped(DropReason.NEAR_DUPLICATE, f"{workflow.name} repeats {twin}"))
        elif len(kept) >= count:
            losses.append(dropped(DropReason.OVER_COUNT, workflow.name))
        else:
            kept[workflow.name] = workflow
    return tuple(kept.values()), tuple(losses)


def _twin(workflow: Workflow, others: Iterable[Workflow]) -> str:
    """Name of an earlier workflow that describes nearly the same work; empty when there is none."""
    if len(words(_work(workflow))) < TWIN_LEAST:
        return ""  # too short to tell a repetition from a common phrase
    told = shingles(_work(workflow), TWIN_WORDS)
    near = (
        other.name for other in others if jaccard(told, shingles(_work(other), TWIN_WORDS)) >= TWIN_JACCARD
    )
    return next(near, "")


def _work(workflow: Workflow) -> str:
    """What there is to do, without the scenery: two tellings of one problem differ in names and places first."""
    return "\n".join(
        (workflow.summary, workflow.planted_problem, workflow.difficulty_source, workflow.solution_sketch)
    )


def _parse_one(entry: Any, occurs: Callable[[str], bool], losses: list[Dropped]) -> Workflow | None:
    if not isinstance(entry, dict):
        losses.append(dropped(DropReason.NOT_AN_OBJECT, repr(entry)))
        return None
    fields = cast("dict[str, Any]", entry)
    label = str(fields.get("name", "(no name)"))
    name = slug_name(label) if "name" in fields else ""
    if "name" in fields and not name:
        losses.append(dropped(DropReason.BAD_NAME, label))
        return None
    problem = _text_problem(fields)
    if problem:
        losses.append(dropped(problem[0], f"{label}: {problem[1]}"))
        return None
    cleaned = _known_fields(fields, label, losses)
    if name:
        cleaned["name"] = name
    cleaned["suitable"] = _suitable(fields.get("suitable"), label, losses)
    cleaned["assets"] = _assets(fields.get("assets"))
    cleaned["grounding"] = _grounding(fields.get("grounding"), label, occurs, losses)
    if not cleaned["grounding"]:
        losses.append(dropped(DropReason.UNGROUNDED, label))
        return None
    try:
        return Workflow.model_validate(cleaned)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        losses.append(dropped(DropReason.SCHEMA, f"{label}: {where}: {first['msg']}"))
        return None


def slug_name(text: str) -> str:
    """Kebab-case form of a name, cut to `MAX_NAME_CHARS`; empty when nothing usable is left."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)
    name = "-".join(words)[:MAX_NAME_CHARS].strip("-")
    return name if _NAME.fullmatch(name) else ""


def _known_fields(fields: dict[str, Any], label: str, losses: list[Dropped]) -> dict[str, Any]:
    unknown = sorted(set(fields) - set(Workflow.model_fields))
    losses.extend(dropped(DropReason.UNKNOWN_FIELD, f"{label}: {key}") for key in unknown)
    return {key: value for key, value in fields.items() if key in Workflow.model_fields}


def _text_problem(value: Any, where: str = "", depth: int = 0) -> tuple[DropReason, str] | None:
    """The first text or list that is too long, too deep or cannot be stored, with the field it is in."""
    if isinstance(value, str):
        if len(value) > MAX_TEXT_CHARS:
            return DropReason.TOO_LONG, f"{where}: {len(value)} characters, {MAX_TEXT_CHARS} allowed"
        bad = any(char == "\0" or "\ud800" <= char <= "\udfff" for char in value)
        return (DropReason.BAD_TEXT, where) if bad else None
    if not isinstance(value, dict | list):
        return None
    tree = cast("dict[str, Any] | list[Any]", value)
    if depth > MAX_DEPTH or len(tree) > MAX_LIST_ITEMS:
        return DropReason.TOO_LONG, f"{where}: nested too deep, or more than {MAX_LIST_ITEMS} items"
    problems = (_text_problem(item, key, depth + 1) for key, item in _children(tree, where))
    return next((problem for problem in problems if problem), None)


def _children(value: dict[str, Any] | list[Any], where: str) -> list[tuple[str, Any]]:
    """Keys and values of an object, items of a list, each with the top-level field it belongs to."""
    if isinstance(value, list):
        return [(where, item) for item in value]
    return [(where or key, item) for key, text in value.items() for item in (key, text)]


def _suitable(value: Any, label: str, losses: list[Dropped]) -> dict[str, tuple[str, ...]]:
    """Known axes with usable values; an axis whose values are all unusable is open again."""
    found: dict[str, tuple[str, ...]] = {}
    for axis, values in cast("dict[str, Any]", value if isinstance(value, dict) else {}).items():
        if axis not in AXIS_NAMES:
            losses.append(dropped(DropReason.UNKNOWN_AXIS, f"{label}: {axis}"))
            continue
        usable: dict[str, None] = {}
        for item in _as_list(values):
            text = item.strip().lower() if isinstance(item, str) else ""
            if is_axis_value(text):
                usable[text] = None
            else:
                losses.append(dropped(DropReason.BAD_AXIS_VALUE, f"{label}: {axis}: {item!r}"))
        if usable:
            found[axis] = tuple(usable)
    return found


def _assets(value: Any) -> Any:
    """Asset leads; a bare string is what it is about, unknown keys of a lead do not matter."""
    found: list[Any] = []
    for item in _as_list(value):
        if isinstance(item, dict):
            lead = cast("dict[str, Any]", item)
            found.append(
                {key: text for key, text in lead.items() if key in _ASSET_FIELDS and text is not None}
            )
        else:
            found.append({"what": item})
    return found


def _grounding(
    value: Any, label: str, occurs: Callable[[str], bool], losses: list[Dropped]
) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for item in _as_list(value):
        sentence = " ".join(item.split()) if isinstance(item, str) else ""
        if sentence and occurs(sentence):
            found[sentence] = None
        else:
            losses.append(dropped(DropReason.SENTENCE_NOT_FOUND, f"{label}: {item}"))
    return tuple(found)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]
