"""Functions of a project that can be taken out, and what is noted down about the lost code."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from skill2env.authors.code.faults.source import Edit
from skill2env.authors.code.understand import FunctionInfo, ModuleInfo


@dataclass(frozen=True, slots=True)
class Lost:
    """A function that can be taken out."""

    info: FunctionInfo
    module: ModuleInfo
    node: ast.FunctionDef

    @property
    def key(self) -> str:
        """``file:name``."""
        return f"{self.module.file}:{self.info.name}"

    @property
    def edit(self) -> Edit:
        """The change that takes the body out and leaves signature and docstring."""
        source = self.module.source
        body = self.node.body[1:] if ast.get_docstring(self.node) else self.node.body
        start, end = source.span(body[0])[0], source.span(body[-1])[1]
        return Edit(
            start, end, f'raise NotImplementedError("{self.info.name} is to be written: see CONTRACT.md")'
        )


def contract_text(chosen: Sequence[Lost]) -> str:
    """CONTRACT.md: signature, documentation, and the facts of the lost code that no example can tell."""
    parts = [
        "# What was lost\n\nSignatures and docstrings still stand in the code. What follows was noted down about the old code: the fixed "
        "values and texts that it worked with, what it called, and which errors it raised by itself. The examples folder holds recorded "
        "calls."
    ]
    for lost in chosen:
        source = lost.module.source
        head = source.data[source.span(lost.node)[0] : source.span(lost.node.body[0])[0]].decode().strip()
        facts = [f"## `{lost.info.name}` in `{lost.module.file}`", f"```python\n{head}\n```", lost.info.doc]
        facts.append(
            "\n".join(
                f"- {name}: {', '.join(f'`{v}`' for v in values) or 'none'}" for name, values in _facts(lost)
            )
        )
        parts.append("\n\n".join(facts))
    return "\n\n".join(parts) + "\n"


def _facts(lost: Lost) -> list[tuple[str, list[str]]]:
    """Fixed numbers, texts, names it called, errors it raised; each sorted, so that their order tells nothing."""
    numbers: set[str] = set()
    texts: set[str] = set()
    called: set[str] = set()
    raised: set[str] = set()
    own = {info.name for info in lost.module.functions}
    own |= {
        t.id
        for n in lost.module.source.tree.body
        if isinstance(n, ast.Assign)
        for t in n.targets
        if isinstance(t, ast.Name)
    }
    body = lost.node.body[1:] if ast.get_docstring(lost.node) else lost.node.body
    for node in (part for statement in body for part in ast.walk(statement)):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            numbers.add(repr(node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
            texts.add(repr(node.value))
        elif isinstance(node, ast.Name) and node.id in own and node.id != lost.info.name:
            called.add(node.id)
        elif (
            isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and isinstance(node.exc.func, ast.Name)
        ):
            raised.add(node.exc.func.id)
    clean = sorted(text for text in texts if "`" not in text and len(text) <= 120)
    return [
        ("fixed numbers", sorted(numbers)),
        ("fixed texts", clean),
        ("functions and constants of this file that it used", sorted(called)),
        ("errors that it raised by itself", sorted(raised)),
    ]
