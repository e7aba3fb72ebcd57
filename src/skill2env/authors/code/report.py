"""The reports folder of a task: every shown case as a small program with its inputs and the output that is right.

`case-NN/run.py` prints what the project does with the case, `case-NN/expected.txt` holds what it should print. Both
texts, right and wrong, come from real runs in the sandbox, so they never disagree with the code.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# The values here are tagged JSON of any shape; `cases.well_formed` checks them where they come in.

import json
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill2env.authors.code.bench import Bench, BenchFailed, ask, helper_text
from skill2env.authors.code.cases import Case
from skill2env.authors.code.preload import preload
from skill2env.authors.code.understand import Project

MAX_EXPECTED_LINES = 120
SHOW = ("pprint", "shutil", "subprocess", "tempfile")
"""What show.py imports."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One reported case as the instruction sees it."""

    number: int
    case: Case
    call: str
    """What is called, as a person would write it."""
    now: str
    """What it prints today."""
    expected: str
    """What it should print."""
    has_input: bool = False
    """It comes with input files."""
    place: str = "reports"
    """Name of the folder that holds the cases."""

    @property
    def folder(self) -> str:
        """``case-NN``."""
        return f"case-{self.number:02d}"

    def difference(self) -> tuple[str, str]:
        """First pair of lines that differ, today's and the right one; empty when a side has no line there."""
        now, right = self.now.splitlines(), self.expected.splitlines()
        for index in range(max(len(now), len(right))):
            pair = (now[index : index + 1] or [""])[0], (right[index : index + 1] or [""])[0]
            if pair[0] != pair[1]:
                return pair[0].strip(), pair[1].strip()
        return "", ""


def write_reports(
    bench: Bench,
    project: Project,
    cases: Sequence[tuple[Case, Any, Any]],
    now: Mapping[str, str],
    right: Mapping[str, str] | None = None,
    folder: str = "reports",
) -> tuple[dict[str, str], list[Shown]]:
    """Files below the reports folder and the shown cases.

    Args:
        bench: runs the case programs on both versions.
        project: the original.
        cases: (case, right outcome, today's outcome) in the order of their numbers.
        now: changed files of the version that the task holds.
        right: changed files of the version that is right; None for the original itself.
        folder: name of the reports folder.

    Raises:
        BenchFailed: a case program did not tell the two versions apart, so the report would be empty.
        InfraError: the sandbox failed.
    """
    files: dict[str, str] = {"show.py": helper_text("show.py")}
    for number, (case, expected, today) in enumerate(cases, 1):
        files.update(
            {f"case-{number:02d}/{name}": text for name, text in _program(case, expected, today).items()}
        )
    trees = (("right", right or {}), ("now", now))
    wanted = preload(project, [case.file for case, _, _ in cases if case.kind == "function"])
    printed = [_run(bench, project, files, tree, len(cases), folder, wanted) for tree in trees]
    shown: list[Shown] = []
    for number, (case, _, _) in enumerate(cases, 1):
        place = f"case-{number:02d}"
        expected, today = (outputs.get(place, "") for outputs in printed)
        if (
            not expected
            or expected == today
            or "Traceback" in expected
            or expected.count("\n") > MAX_EXPECTED_LINES
        ):
            raise BenchFailed(f"report {number} shows no difference")
        files[f"{place}/expected.txt"] = expected
        has_input = any(name.startswith(f"{place}/input/") for name in files)
        shown.append(Shown(number, case, call_text(case), today, expected, has_input, folder))
    return files, shown


def _run(
    bench: Bench,
    project: Project,
    files: Mapping[str, str],
    version: tuple[str, Mapping[str, str]],
    count: int,
    folder: str,
    wanted: Sequence[str],
) -> dict[str, str]:
    """Output of every case program on one version of the project."""
    name, texts = version
    root = f"/report/{name}/{project.name}"
    tree = {**project.files, **texts, **{f"{folder}/{path}": text for path, text in files.items()}}
    bench.put_tree(dict(tree), root)
    programs = {
        f"case-{number:02d}": f"{root}/{folder}/case-{number:02d}/run.py" for number in range(1, count + 1)
    }
    answer = ask(bench, {"mode": "print", "programs": programs, "preload": [*wanted, *SHOW]})
    return {key: str(text) for key, text in answer.items()}


def _program(case: Case, right: Any, wrong: Any) -> dict[str, str]:
    """``run.py`` of a case and its input files."""
    inputs: dict[str, str] = {}
    _collect(list(case.args), inputs)
    _collect(list(case.kwargs.values()), inputs)
    files = {f"input/{name}": text for name, text in sorted(inputs.items())}
    written = _differing_files(right, wrong)
    words = [literal(item) for item in case.args] + [
        f"{key}={literal(item)}" for key, item in sorted(case.kwargs.items())
    ]
    if written:
        words.append(f"files={tuple(written)!r}")
    lines = ["import os, sys", "from pathlib import Path", ""]
    lines += ["sys.path.insert(0, str(Path(__file__).resolve().parent.parent))", "import show", ""]
    if case.kind == "command":
        if right.get("stdout") == wrong.get("stdout"):
            words.append("output=False")
        lines += ["show.workspace(__file__)", _call("show.script", [repr(case.file), *words])]
    else:
        if "arguments" in right or "arguments" in wrong:
            words.append("arguments=True")
        lines += [*_imports(case), "", "show.workspace(__file__)", _call("show.call", [case.name, *words])]
    files["run.py"] = "\n".join(lines) + "\n"
    return files


def _call(name: str, words: Sequence[str]) -> str:
    line = f"{name}({', '.join(words)})"
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {word},\n" for word in words) + ")"


def _differing_files(right: Any, wrong: Any) -> list[str]:
    mine, theirs = right.get("files", {}), wrong.get("files", {})
    return sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))


def _collect(value: Any, inputs: dict[str, str]) -> None:
    """Input files of a case, by their path below its work folder."""
    if isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            _collect(item, inputs)
    elif isinstance(value, dict):
        if value.get("$") == "file":  # pyright: ignore[reportUnknownMemberType]
            inputs[str(value["name"])] = str(value["text"])  # pyright: ignore[reportUnknownArgumentType]
        elif value.get("$") == "folder":  # pyright: ignore[reportUnknownMemberType]
            for name, text in value["files"].items():  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
                inputs[posixpath.normpath(f"{value['name']}/{name}")] = str(text)  # pyright: ignore[reportUnknownArgumentType]
        else:
            _collect(value.get("v"), inputs)  # pyright: ignore[reportUnknownMemberType]


def import_line(case: Case) -> tuple[str, str]:
    """Folder to put on the path, relative to the project, and the import statement for a case's function."""
    folder, stem = posixpath.split(case.file)
    return folder, f"from {stem.removesuffix('.py')} import {case.name.split('.')[0]}"


def _imports(case: Case) -> list[str]:
    folder, statement = import_line(case)
    lines = [
        f"sys.path.insert(0, str(show.ROOT{''.join(f' / {part!r}' for part in folder.split('/') if part)}))"
    ]
    classes = sorted(_classes([list(case.args), list(case.kwargs.values())]))
    lines.append(statement)
    for file, name in classes:
        module = posixpath.basename(file).removesuffix(".py")
        lines.append(f"from {module} import {name.split('.')[0]}")
    return list(dict.fromkeys(lines))


def _classes(value: Any) -> set[tuple[str, str]]:
    if isinstance(value, list):
        return {found for item in value for found in _classes(item)}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        own = (
            {(str(value["file"]), str(value["class"]))}
            if value.get("$") in ("object", "enum")
            else set[tuple[str, str]]()
        )  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType]
        return own | _classes(value.get("v"))  # pyright: ignore[reportUnknownMemberType]
    return set()


_WRAPPED = {"decimal": "decimal.Decimal", "fraction": "fractions.Fraction", "datetime": "datetime.datetime.fromisoformat",
            "date": "datetime.date.fromisoformat", "time": "datetime.time.fromisoformat"}  # fmt: skip


def literal(value: Any) -> str:
    """Python source of a tagged form; files and folders are names relative to the current directory."""
    if isinstance(value, list):
        return f"[{', '.join(literal(item) for item in value)}]"  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return repr(value)
    tag, inner = str(value["$"]), value.get("v")  # pyright: ignore[reportUnknownArgumentType,reportUnknownMemberType,reportUnknownVariableType]
    if tag in ("file", "folder", "fresh"):
        name = "." if value["name"] == "." else str(value["name"])  # pyright: ignore[reportUnknownArgumentType]
        return f"Path.cwd() / {name!r}" if value["as"] == "path" else f"os.path.abspath({name!r})"
    if tag == "root":
        return f"show.ROOT / {inner!r}" if value["as"] == "path" else f"str(show.ROOT / {inner!r})"
    if tag in ("dict", "namespace", "object", "enum"):
        return _paired(tag, value)  # pyright: ignore[reportUnknownArgumentType]
    if tag in ("array", "frame"):
        return _science(tag, inner)
    if tag == "float":
        return f"float({inner!r})" if inner in ("nan", "inf", "-inf") else str(inner)  # pyright: ignore[reportUnknownArgumentType]
    if tag in ("tuple", "set", "frozenset", "iterator"):
        return _listed(tag, [literal(item) for item in inner])  # pyright: ignore[reportUnknownArgumentType,reportOptionalIterable,reportUnknownVariableType]
    if tag == "bytes":
        return f"__import__('base64').b64decode({inner!r})"
    if tag == "path":
        return f"Path({inner!r})"
    module = _WRAPPED.get(tag, "datetime.timedelta").split(".", 1)
    arguments = repr(inner) if tag in _WRAPPED else ", ".join(map(repr, inner))  # pyright: ignore[reportUnknownArgumentType,reportArgumentType]
    return f"__import__({module[0]!r}).{module[1]}({arguments})"


def _science(tag: str, inner: Any) -> str:
    if tag == "array":
        return f"__import__('numpy').array({literal(inner)})"
    columns = ", ".join(f"{name!r}: {literal(values)}" for name, values in inner)
    return f"__import__('pandas').DataFrame({{{columns}}})"


def _paired(tag: str, value: Mapping[str, Any]) -> str:
    if tag == "enum":
        return f"{value['class']}.{value['v']}"
    pairs = [(pair[0], literal(pair[1])) for pair in value["v"]]
    if tag == "dict":
        return "{" + ", ".join(f"{literal(key)}: {text}" for key, text in pairs) + "}"
    name = "__import__('argparse').Namespace" if tag == "namespace" else str(value["class"])
    return f"{name}({', '.join(f'{key}={text}' for key, text in pairs)})"


def _listed(tag: str, texts: Sequence[str]) -> str:
    joined = ", ".join(texts)
    if tag == "tuple":
        return f"({joined},)" if len(texts) == 1 else f"({joined})"
    if tag == "set":
        return "{" + joined + "}" if texts else "set()"
    return f"frozenset([{joined}])" if tag == "frozenset" else f"iter([{joined}])"


def call_text(case: Case) -> str:
    """A case as a person would write it down, without folders."""

    def short(value: Any) -> str:
        tag = value.get("$") if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
        if tag in ("file", "folder", "fresh", "root"):
            name = str(value.get("name") or value.get("v"))
            return name if case.kind == "command" else repr(name)
        return str(value) if case.kind == "command" else literal(value)

    words = [short(item) for item in case.args]
    if case.kind == "command":
        return " ".join(
            ["python3", case.file, *(json.dumps(word) if " " in word else word for word in words)]
        )
    words += [f"{key}={short(item)}" for key, item in sorted(case.kwargs.items())]
    return f"{case.name}({', '.join(words)})"
