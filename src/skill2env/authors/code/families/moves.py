"""Functions whose form may change by a rule, what recorded calls become then, and the edits that make it so."""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill2env.authors.code.cases import Case
from skill2env.authors.code.families.rules import RULES, Rule
from skill2env.authors.code.faults.source import Edit
from skill2env.authors.code.study import Study
from skill2env.authors.code.templates.tagged_values import same
from skill2env.authors.code.understand import FunctionInfo, ModuleInfo
from skill2env.records import digest_of

MIN_CHANGED = 8
MAX_OFFERS = 6


@dataclass(frozen=True, slots=True)
class Move:
    """One function and the rule by which it changes."""

    info: FunctionInfo
    module: ModuleInfo
    node: ast.FunctionDef
    rule: Rule
    changed: Mapping[str, tuple[Case, Any]]
    """Id of a recorded call -> the call in its new form and its right outcome."""

    @property
    def key(self) -> str:
        """``file:name``."""
        return f"{self.module.file}:{self.info.name}"


def moves(found: Study) -> list[Move]:
    """Every function that a rule fits, those with callers inside the project first, rules mixed."""
    ranked: list[tuple[int, int, str, Move]] = []
    used: dict[str, int] = {}
    for file, module in sorted(found.project.modules.items()):
        by_name = {info.name: info for info in module.functions}
        for node in module.source.tree.body:
            info = by_name.get(node.name) if isinstance(node, ast.FunctionDef) else None
            if (
                info is None
                or not isinstance(node, ast.FunctionDef)
                or not _movable(found, module, node, info)
            ):
                continue
            for rule in _rules(f"{file}:{info.name}"):
                changed = _changed(found, file, info, node, rule)
                if len(changed) >= MIN_CHANGED:
                    used[rule.name] = used.get(rule.name, 0) + 1
                    inside = len(_loads(module, info.name)) > 0
                    ranked.append(
                        (
                            used[rule.name],
                            int(not inside),
                            f"{file}:{info.name}",
                            Move(info, module, node, rule, changed),
                        )
                    )
    distinct: dict[str, Move] = {}
    for *_, move in sorted(ranked, key=lambda item: item[:3]):
        distinct.setdefault(move.key, move)
    return list(distinct.values())[:MAX_OFFERS]


def _rules(key: str) -> list[Rule]:
    """All rules in an order of the function's own, so that no rule is always tried first."""
    return sorted(RULES, key=lambda rule: digest_of([key, rule.name]))


def _movable(found: Study, module: ModuleInfo, node: ast.FunctionDef, info: FunctionInfo) -> bool:
    if not info.public or info.name == "main" or node.decorator_list or node.args.vararg or node.args.kwarg:
        return False
    if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(node)):
        return False
    word = re.compile(rf"\b{re.escape(info.name)}\b")
    others = [path for path in found.project.modules if path != module.file]
    if any(word.search(found.project.files[path]) for path in others):
        return False  # other modules would have to follow, which the reference solution does not do
    bound = [part for part in ast.walk(module.source.tree) if _binds(part, info.name)]
    return len(bound) == 1


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name == name
    if isinstance(node, ast.arg):
        return node.arg == name
    if isinstance(node, ast.alias):
        return (node.asname or node.name) == name
    return isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id == name


def _loads(module: ModuleInfo, name: str) -> list[ast.Name]:
    return [
        part
        for part in ast.walk(module.source.tree)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id == name
    ]


def _changed(
    found: Study, file: str, info: FunctionInfo, node: ast.FunctionDef, rule: Rule
) -> dict[str, tuple[Case, Any]]:
    """Recorded calls that look or end differently under a rule."""
    if rule.takes and (len(info.parameters) < 2 or node.args.posonlyargs):
        return {}
    result: dict[str, tuple[Case, Any]] = {}
    for i, case in found.behaviour.cases.items():
        if case.kind != "function" or (case.file, case.name) != (file, info.name):
            continue
        outcome = found.behaviour.outcomes[i]
        new = rule.change(case, outcome, info.parameters)
        if new is not None and not (new[0].id == case.id and same(new[1], outcome)):
            result[i] = new
    return result


def migrated(module: ModuleInfo, wanted: Sequence[Move]) -> list[Edit]:
    """Edits of one file: old functions get private names, inside callers follow, new functions stand after them."""
    source = module.source
    edits: list[Edit] = []
    helpers: set[str] = set()
    for move in sorted(wanted, key=lambda item: item.node.lineno):
        old = f"_{move.info.name}_before"
        start = source.span(move.node)[0] + len(b"def ")
        edits.append(Edit(start, start + len(move.info.name.encode()), old))
        edits += [source.replace(name, old) for name in _loads(module, move.info.name)]
        helper = move.rule.helper if move.rule.name not in helpers else ""
        helpers.add(move.rule.name)
        given = [f"{a.arg}" for a in (*move.node.args.posonlyargs, *move.node.args.args)]
        given += [f"{a.arg}={a.arg}" for a in move.node.args.kwonlyargs]
        takes = move.rule.takes or ast.unparse(move.node.args)
        body = move.rule.body.format(call=f"{old}({', '.join(given)})", old=old)
        doc = f'    """{move.info.name} in its new form: {move.rule.name}."""\n'
        text = f"\n\n\n{helper}{chr(10) * 2 if helper else ''}def {move.info.name}({takes}):\n{doc}{body}"
        end = source.span(move.node)[1]
        edits.append(Edit(end, end, text.rstrip("\n")))
    return edits
