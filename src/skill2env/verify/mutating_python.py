"""Changes to Python programs, found with the parser of the standard library."""

import ast
import copy
from dataclasses import dataclass, field
from typing import cast

from skill2env.verify.mutating import Change

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
}  # fmt: skip
_OTHER_NAME = {
    "sorted": "list", "min": "max", "max": "min", "any": "all", "all": "any", "set": "list", "floor": "ceil",
    "ceil": "floor", "round": "int", "median": "mean", "mean": "median", "reversed": "list",
    "abs": "float", "update": "setdefault",
}  # fmt: skip
_IDLE_KEYWORDS = frozenset(
    {"exist_ok", "parents", "indent", "newline", "ensure_ascii", "flush", "check", "capture_output"}
)
_PLAIN_METHODS = frozenset({"strip", "lstrip", "rstrip", "lower", "upper", "casefold", "title"})


def python_changes(path: str, data: bytes, start: int, end: int) -> list[Change]:
    """Changes to the Python program between two offsets of a file; none where it does not parse."""
    source = data[start:end]
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    finder = _Finder(path, source, start)
    finder.visit(tree)
    return finder.found


@dataclass
class _Finder(ast.NodeVisitor):
    path: str
    source: bytes
    offset: int
    found: list[Change] = field(default_factory=list[Change])

    def __post_init__(self) -> None:
        self._lines = [0]
        for line in self.source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first = self._lines[node.lineno - 1] + node.col_offset
        return first, self._lines[node.end_lineno - 1] + node.end_col_offset

    def _replace(self, node: ast.expr | ast.stmt, new: str, kind: str, *, harsh: bool = False) -> None:
        start, end = self._span(node)
        self.found.append(
            Change(self.path, self.offset + start, self.offset + end, new.encode(), kind, harsh)
        )

    # -------------------------------------------------------------------------------------------- what is left alone

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Old Pythons cannot parse what would be written here."""

    def visit_Import(self, node: ast.Import) -> None:
        """Without it nothing runs."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Without it nothing runs."""

    def visit_arguments(self, node: ast.arguments) -> None:
        """Defaults yes, annotations no."""
        for default in (*node.defaults, *filter(None, node.kw_defaults)):
            self.visit(default)

    def visit_keyword(self, node: ast.keyword) -> None:
        """Layout and folders are no part of an answer."""
        if node.arg not in _IDLE_KEYWORDS:
            self.generic_visit(node)

    # -------------------------------------------------------------------------------------------- expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        changed = copy.copy(node)
        swap = _COMPARE[type(node.ops[-1])]
        changed.ops = [*node.ops[:-1], swap()]
        self._replace(node, f"({ast.unparse(changed)})", "comparison")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        changed = copy.copy(node)
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._replace(node, f"({ast.unparse(changed)})", "and or or")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace(node, f"bool({ast.unparse(node.operand)})", "condition")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = _ARITHMETIC.get(type(node.op))
        if other is not None and not (_is_text(node.left) or _is_text(node.right)):
            changed = copy.copy(node)
            changed.op = other()
            harsh = isinstance(node.op, ast.Add | ast.Mod) and not (
                _is_number(node.left) or _is_number(node.right)
            )
            self._replace(node, f"({ast.unparse(changed)})", "arithmetic", harsh=harsh)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._replace(node, str(not value), "constant")
        elif isinstance(value, int):
            self._replace(node, str(value + 1), "number")
        elif isinstance(value, float):
            self._replace(node, repr(value + 1.0), "number")

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if name in _OTHER_NAME:
            changed = copy.copy(node)
            changed.func = copy.copy(function)
            setattr(
                changed.func, "id" if isinstance(function, ast.Name) else "attr", _OTHER_NAME[cast(str, name)]
            )
            if name == "sorted":
                changed.keywords = []
            self._replace(node, ast.unparse(changed), "function")
        elif isinstance(function, ast.Attribute) and name in _PLAIN_METHODS and not node.args:
            self._replace(node, ast.unparse(function.value), "call removed")
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._less(node.iter)
        for condition in node.ifs:
            self._replace(condition, f"not ({ast.unparse(condition)})", "condition")
        self.generic_visit(node)

    def _less(self, items: ast.expr) -> None:
        self._replace(items, f"list({ast.unparse(items)})[1:]", "item left out")

    # -------------------------------------------------------------------------------------------- statements

    def visit_For(self, node: ast.For) -> None:
        self._less(node.iter)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._replace(node.test, f"not ({ast.unparse(node.test)})", "condition")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        self._replace(node, "pass", "statement removed", harsh=_writes(node))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace(node, "pass", "statement removed")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets):
            self._replace(node, "pass", "statement removed")
        else:
            self._replace(node, "pass", "assignment removed", harsh=True)
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "pass", "statement removed")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "pass", "statement removed")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self._replace(node.value, "None", "nothing returned", harsh=True)
        self.generic_visit(node)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _writes(node: ast.Expr) -> bool:
    """Whether a statement is likely to make an output, without which nothing is delivered."""
    names = {getattr(child, "attr", getattr(child, "id", "")) for child in ast.walk(node)}
    return bool(
        names
        & {"write", "write_text", "write_bytes", "dump", "makedirs", "mkdir", "open", "serve_forever", "main"}
    )
