"""Inputs for functions that no test of the skill calls: from annotations, defaults, parameter names and the skill's own texts.

Covers: public module-level functions whose parameters are texts, numbers, truth values, paths to text files, lists of
these and dicts with the keys that the function reads. A wrong guess costs nothing: calls that end in a type error are
dropped when they are recorded.
"""

import ast
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill2env.authors.code.cases import Case
from skill2env.authors.code.understand import ModuleInfo, Project

CALLS_A_FUNCTION = 10
MAX_FUNCTIONS = 30
MAX_BLOCK_CHARS = 6000
_LONG_NAMES = re.compile(r"text|content|body|markdown|source|code|raw|doc|lines|html|xml|csv|diff|block")
_PATH_NAMES = re.compile(r"path|file|^src$|^dst$")
_NUMBER_NAMES = re.compile(
    r"^n$|count|size|limit|depth|num|width|height|index|level|score|rate|total|days|threshold"
)
_SPAN = re.compile(r"`([^`\n]{1,80})`")
_FENCE = re.compile(r"^```([\w-]*)\n(.*?)^```", re.S | re.M)
SUFFIXES = {
    "": "md",
    "bash": "sh",
    "python": "py",
    "markdown": "md",
    "mermaid": "md",
    "javascript": "js",
    "text": "txt",
}


@dataclass(frozen=True, slots=True)
class Words:
    """What inputs are made of."""

    short: tuple[str, ...]
    """Inline code of the documentation and short texts of the code."""
    blocks: tuple[tuple[str, str], ...]
    """(file name, text) of fenced blocks and bundled text files."""
    numbers: tuple[float, ...]


def invent(project: Project, known: frozenset[str]) -> list[Case]:
    """Calls of public functions that are not among the targets in `known`, a few of each."""
    found: list[Case] = []
    functions = 0
    for file, module in sorted(project.modules.items()):
        words = _words(project, module)
        for node in module.source.tree.body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or node.name == "main":
                continue
            if f"{file}:{node.name}" in known or project.missing_imports(file):
                continue
            functions += 1
            if functions > MAX_FUNCTIONS:
                return found
            found += _calls(file, node, words)
    return found


def _words(project: Project, module: ModuleInfo) -> Words:
    docs = "\n".join(project.files[path] for path in sorted(project.files) if path.endswith(".md"))
    spans = [span for span in dict.fromkeys(_SPAN.findall(docs)) if "/Users" not in span][:60]
    blocks: list[tuple[str, str]] = []
    for language, text in _FENCE.findall(docs):
        if len(text) <= MAX_BLOCK_CHARS and len(blocks) < 24:
            wrapped = f"```{language}\n{text}```\n" if language == "mermaid" else text
            blocks.append((f"sample.{SUFFIXES.get(language, language)}", wrapped))
    for path, text in project.samples.items():
        if len(text) <= MAX_BLOCK_CHARS:
            blocks.append((path.rsplit("/", 1)[-1], text))
    return Words(tuple(spans) + module.texts[:60], tuple(blocks), module.numbers)


def _calls(file: str, node: ast.FunctionDef, words: Words) -> list[Case]:
    parameters = [*node.args.posonlyargs, *node.args.args]
    if node.args.vararg or node.args.kwonlyargs or len(parameters) > 6 or not parameters:
        return []
    rng = random.Random(f"{file}:{node.name}")
    required = len(parameters) - len(node.args.defaults)
    makers = [_maker(item, node, words) for item in parameters]
    if any(maker is None for maker in makers[:required]):
        return []
    found: dict[str, Case] = {}
    for _ in range(3 * CALLS_A_FUNCTION):
        count = rng.randint(required, len(parameters))
        chosen = makers[:count]
        if any(maker is None for maker in chosen):
            chosen = makers[:required]
        case = Case("function", file, node.name, tuple(maker(rng) for maker in chosen if maker is not None))
        found.setdefault(case.id, case)
        if len(found) >= CALLS_A_FUNCTION:
            break
    return list(found.values())


type Maker = Callable[[random.Random], Any]


def _maker(item: ast.arg, node: ast.FunctionDef, words: Words) -> Maker | None:
    """How to make values for a parameter; None when nothing sensible is known."""
    kind = ast.unparse(item.annotation) if item.annotation else ""
    name = item.arg.lower()
    keys = _keys_read(node, item.arg)
    return _make(kind.replace("Optional[", "").replace("typing.", ""), name, keys, words)


def _make(kind: str, name: str, keys: Sequence[str], words: Words) -> Maker | None:
    kind = kind.removesuffix("| None").strip()
    listed = re.match(r"(?:list|List|Sequence|Iterable|tuple|set)\[(.+?)(?:, \.\.\.)?\]$", kind)
    if listed:
        inner = _make(listed[1], name, keys, words)
        return None if inner is None else lambda rng: [inner(rng) for _ in range(rng.randint(1, 4))]
    if kind.startswith(("dict", "Dict", "Mapping")) or (not kind and keys):
        return (lambda rng: _record(keys, words, rng)) if keys else None
    if kind in ("Path", "pathlib.Path") or (kind in ("", "str") and _PATH_NAMES.search(name)):
        return (
            (lambda rng: _file(words, rng, "path" if kind.endswith("Path") else "str"))
            if words.blocks
            else None
        )
    if kind == "bool":
        return lambda rng: rng.random() < 0.5
    if kind in ("int", "float") or (not kind and _NUMBER_NAMES.search(name)):
        return lambda rng: _number(kind, words, rng)
    if kind in ("str", "") or kind.startswith("str |"):
        return lambda rng: _text(name, words, rng)
    return None


def _keys_read(node: ast.FunctionDef, name: str) -> tuple[str, ...]:
    """Text keys that a function reads from one of its parameters, or from the items of a loop over it."""
    names = {name}
    for part in ast.walk(node):
        if (
            isinstance(part, ast.For | ast.comprehension)
            and isinstance(part.iter, ast.Name)
            and part.iter.id == name
        ):
            names |= {target.id for target in ast.walk(part.target) if isinstance(target, ast.Name)}
    found: dict[str, None] = {}
    for part in ast.walk(node):
        base: ast.expr | None = None
        key: ast.expr | None = None
        if isinstance(part, ast.Subscript):
            base, key = part.value, part.slice
        elif (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and part.func.attr == "get"
            and part.args
        ):
            base, key = part.func.value, part.args[0]
        if (
            isinstance(base, ast.Name)
            and base.id in names
            and isinstance(key, ast.Constant)
            and isinstance(key.value, str)
        ):
            found.setdefault(key.value)
    return tuple(found)[:12]


def _record(keys: Sequence[str], words: Words, rng: random.Random) -> dict[str, Any]:
    pairs: list[list[Any]] = []
    for key in keys:
        if rng.random() < 0.9:
            number = _NUMBER_NAMES.search(key.lower()) or rng.random() < 0.25
            pairs.append([key, _number("float", words, rng) if number else _text(key.lower(), words, rng)])
    return {"$": "dict", "v": pairs}


def _number(kind: str, words: Words, rng: random.Random) -> Any:
    near = [n + d for n in words.numbers for d in (-1, 0, 1)]
    value = rng.choice([0, 1, 2, 3, 5, 10, 42, *near])
    return {"$": "float", "v": repr(round(float(value), 6))} if kind == "float" else int(value)


def _text(name: str, words: Words, rng: random.Random) -> str:
    if words.blocks and _LONG_NAMES.search(name) and rng.random() < 0.85:
        return rng.choice(words.blocks)[1]
    return rng.choice(words.short) if words.short else name


def _file(words: Words, rng: random.Random, kind: str) -> Mapping[str, Any]:
    name, text = rng.choice(words.blocks)
    return {"$": "file", "name": name, "text": text, "as": kind}
