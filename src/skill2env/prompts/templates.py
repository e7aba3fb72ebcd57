"""Render ``NAME.md.j2`` and say which version of it was used.

What must agree with the code is never typed into a template: JSON schemas, reason tables and the meanings of axis
values are rendered from the records and catalogs, so they cannot drift apart.
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any, cast

import jinja2
from jinja2.meta import find_referenced_templates
from pydantic import BaseModel, TypeAdapter

from skill2env.axes import AXIS_NAMES, CATALOGS
from skill2env.records import Reason, Record, SkipReason, TaskContract, Workflow, digest_of, meanings

TEMPLATES: tuple[str, ...] = ("plan", "contract", "mend", "solution", "repair")
"""Prompts that `render` knows, one for each phase."""

AUTHOR_REASONS: tuple[Reason, ...] = (
    Reason.MALFORMED,
    Reason.UNSAFE_FILE,
    Reason.TOO_LARGE,
    Reason.CONTRACT_INVALID,
    Reason.METRIC_UNSOURCED,
    Reason.RUBRIC_INVALID,
    Reason.SHELL_SYNTAX,
    Reason.HIDDEN_TEXT,
    Reason.DOCKERFILE_RULE,
    Reason.LINT,
    Reason.PRIVATE_LEAK,
    Reason.BUILD_FAILED,
    Reason.NOP_REWARDED,
    Reason.NOP_FAILED,
    Reason.REWARD_INVALID,
    Reason.REWARD_DISAGREES,
    Reason.VERIFIER_HUNG,
    Reason.UNSTABLE,
    Reason.ASSET_UNAVAILABLE,
    Reason.ASSET_CHANGED,
    Reason.ASSET_REFUSED,
    Reason.AUTHOR_CREDENTIAL,
)
"""What a contract can be rejected for; the contract prompt lists them."""

HOST_ONLY_SKIPS: frozenset[SkipReason] = frozenset(
    {
        SkipReason.LICENCE,
        SkipReason.NO_CODE,
        SkipReason.CODE_NOT_ALIVE,
        SkipReason.NO_STABLE_BEHAVIOUR,
        SkipReason.NO_FAULT_FOUND,
        SkipReason.NO_RECORDING,
        SkipReason.TOO_EXPENSIVE,
    }
)
"""Reasons that only the host or one special author can find; no prompt offers them."""


def render(name: str, **variables: Any) -> str:
    """Render one prompt.

    Args:
        name: one of `TEMPLATES`.
        variables: everything the template names beyond the tables; a missing one is an error, never a blank.

    Raises:
        jinja2.UndefinedError: a variable is missing.
        KeyError: there is no such prompt.
    """
    if name not in TEMPLATES:
        raise KeyError(name)
    return _environment().get_template(f"{name}.md.j2").render(**variables)


@cache
def prompt_digest(name: str) -> str:
    """Digest of a prompt before its variables: its template, what that includes, and the schemas and tables.

    Raises:
        KeyError: there is no such prompt.
    """
    if name not in TEMPLATES:
        raise KeyError(name)
    sources = {part: _source(part) for part in sorted(_reachable(f"{name}.md.j2"))}
    return digest_of({"sources": sources, "tables": _tables()})


def _reachable(name: str) -> set[str]:
    found = {name}
    parsed = _environment().parse(_source(name))
    for referred in find_referenced_templates(parsed):
        assert referred is not None, "templates name what they include literally"
        found |= _reachable(referred)
    return found


def _source(name: str) -> str:
    return resources.files(__package__).joinpath(*name.split("/")).read_text(encoding="utf-8")


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # Markdown for models, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["as_data"] = _as_data
    environment.globals.update(_tables())  # pyright: ignore[reportArgumentType]
    return environment


def _as_data(value: Any) -> str:
    """Untrusted values as indented JSON in a fence that they cannot close, because JSON never starts a line with it."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)  # str of a missing variable raises
    return f"~~~~json\n{text}\n~~~~"


@cache
def _tables() -> dict[str, Any]:
    offered = [reason for reason in SkipReason if reason not in HOST_ONLY_SKIPS]
    return {
        "workflow_schema": _schema(TypeAdapter(list[Workflow])),
        "contract_schema": _schema(TypeAdapter(TaskContract)),
        "skip_reasons": _bullets(offered),
        "reject_reasons": _bullets(AUTHOR_REASONS),
        "catalogs": {axis: meanings(CATALOGS[axis]) for axis in AXIS_NAMES},
    }


def _bullets(members: Iterable[StrEnum]) -> str:
    return "\n".join(f"- `{member.value}`: {meanings(type(member))[member.value]}" for member in members)


def _schema(adapter: TypeAdapter[Any]) -> str:
    schema = adapter.json_schema()
    models = {model.__name__: model for model in _records()}
    tops = [schema, *cast("dict[str, Any]", schema.get("$defs", {})).values()]
    for part in tops:
        model = models.get(part.get("title", ""))
        for owner in model.__mro__ if model is not None else ():
            for field, text in _field_texts(owner).items() if issubclass(owner, Record) else ():
                part["properties"][field].setdefault("description", text)
    return json.dumps(_without_titles(schema), indent=1, ensure_ascii=False)


def _records() -> Iterable[type[BaseModel]]:
    from skill2env import records

    return [item for item in vars(records).values() if isinstance(item, type) and issubclass(item, BaseModel)]


def _field_texts(model: type[BaseModel]) -> dict[str, str]:
    """Field -> the docstring literal below it, for the model's own fields."""
    body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for node, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[node.target.id] = " ".join(str(after.value.value).split())
    return found


def _without_titles(value: Any) -> Any:
    """Drop pydantic's generated titles: they repeat the names. A property that is itself called title stays."""
    if isinstance(value, list):
        return [_without_titles(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        tree = cast("dict[str, Any]", value)
        return {
            key: _without_titles(item)
            for key, item in tree.items()
            if key != "title" or not isinstance(item, str)
        }
    return value
