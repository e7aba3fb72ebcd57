"""What a skill's code is, read without running it: the project that a task will hold, its modules, tests and data.

Covers: which files belong to the project, what Python modules import and define, scripts and their examples in the
documentation. Does not cover: whether any of it works; `alive` finds that out in the sandbox.
"""

import ast
import posixpath
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from skill2env.authors.code.faults.source import Source
from skill2env.authors.code.libraries import Libraries, choose
from skill2env.authors.code.readme import readme
from skill2env.authors.code.seeds import Seeds, read_seeds
from skill2env.records import FileKind, Skill

MAX_FILE_BYTES = 512 * 1024
MAX_PROJECT_BYTES = 4 * 2**20
MAX_PROJECT_FILES = 300
TEST_FOLDERS = {"test", "tests", "testing", "evals", "eval", "bench_test_cases"}
HIDDEN_FOLDERS = {"__pycache__", "node_modules"}
DATA_SUFFIXES = (
    ".csv",
    ".tsv",
    ".txt",
    ".json",
    ".md",
    ".vcf",
    ".fasta",
    ".fa",
    ".fas",
    ".xml",
    ".yaml",
    ".yml",
    ".log",
)
REMOVED_MODULES = frozenset(
    "aifc asynchat asyncore audioop cgi cgitb chunk crypt distutils imghdr imp lib2to3 mailcap msilib nis nntplib "
    "ossaudiodev pipes smtpd sndhdr spwd sunau telnetlib uu xdrlib".split()
)
"""Of the standard library of Python 3.11, gone in the Python that runs skill2env."""


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """A function or method that a fault may sit in or a case may call."""

    name: str
    """Qualified name in its module."""
    line: int
    end_line: int
    doc: str
    public: bool
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """One Python file of the project."""

    file: str
    source: Source
    functions: tuple[FunctionInfo, ...]
    imports: tuple[str, ...]
    """First names of everything imported at module level outside try."""
    loads: tuple[str, ...]
    """Dotted names of everything imported when the module is, within try and if as well, sorted."""
    is_script: bool
    """Has a ``__main__`` guard."""
    numbers: tuple[float, ...]
    """Numeric constants of the code, sorted; inputs near them are worth trying."""
    texts: tuple[str, ...]
    """Short text constants of the code, sorted."""


@dataclass(frozen=True, slots=True)
class Example:
    """A command of the documentation that starts one of the project's scripts."""

    file: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Project:
    """A skill's code as it will lie in the task, plus what only planning may see."""

    name: str
    files: Mapping[str, str]
    """Path -> text of everything the task holds, README.md included."""
    modules: Mapping[str, ModuleInfo]
    tests: tuple[str, ...]
    """Paths of the skill's own test modules; never part of `files`."""
    examples: tuple[Example, ...]
    unreadable: Mapping[str, str] = field(default_factory=dict[str, str])
    """Python files that do not parse -> why."""
    seeds: Seeds = field(default_factory=Seeds)
    """What the skill's own evals offer; the file itself is never part of `files`."""

    @property
    def data_files(self) -> tuple[str, ...]:
        """Bundled sample data, sorted."""
        return tuple(
            sorted(path for path in self.files if path.endswith(DATA_SUFFIXES) and path != "README.md")
        )

    @cached_property
    def samples(self) -> Mapping[str, str]:
        """Texts that inputs can be made of: bundled data by path, then files of the skill's evals, sorted."""
        seeded = {
            f"evals/{name}": text for name, text in self.seeds.files.items() if name.endswith(DATA_SUFFIXES)
        }
        return {**{path: self.files[path] for path in self.data_files}, **seeded}

    @cached_property
    def own_names(self) -> frozenset[str]:
        """Names of the project's modules and folders."""
        own = {Path(path).stem for path in self.modules}
        return frozenset(own | {part for path in self.modules for part in Path(path).parts[:-1]})

    @cached_property
    def _own(self) -> frozenset[str]:
        """Names that need nobody else: the project's, and those of the Python in the images."""
        return self.own_names | sys.stdlib_module_names | REMOVED_MODULES

    def missing_imports(self, file: str) -> tuple[str, ...]:
        """Imports of a module that nothing in the project's image provides."""
        known = self._own | self.libraries.provides
        return tuple(name for name in self.modules[file].imports if name not in known)

    @cached_property
    def foreign(self) -> frozenset[str]:
        """Imports of all modules that are neither the standard library's nor the project's."""
        return frozenset({name for module in self.modules.values() for name in module.imports} - self._own)

    @cached_property
    def libraries(self) -> Libraries:
        """Packages that the task's image holds besides Python."""
        return choose(self.foreign)


def understand(skill: Skill, skill_dir: Path) -> Project:
    """Read the skill's files.

    Raises:
        OSError: a file of the inventory cannot be read.
    """
    texts = _texts(skill, skill_dir)
    tests = tuple(sorted(path for path in texts if path.endswith(".py") and _is_test(path)))
    files = {path: text for path, text in texts.items() if _belongs(path) and path != skill.entry}
    files["README.md"] = readme(skill)
    modules: dict[str, ModuleInfo] = {}
    unreadable: dict[str, str] = {}
    for path in sorted(files):
        if path.endswith(".py"):
            try:
                modules[path] = _module(path, Source(files[path]))
            except (SyntaxError, ValueError, RecursionError) as error:
                unreadable[path] = str(error)
    examples = _examples(
        skill.body + "".join(files.get(name, "") for name in sorted(files) if name.endswith(".md")), modules
    )
    seeds = read_seeds(texts)
    return Project(skill.slug, dict(sorted(files.items())), modules, tests, examples, unreadable, seeds)


def _texts(skill: Skill, skill_dir: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in skill.files:
        if item.kind is not FileKind.TEXT or item.size > MAX_FILE_BYTES:
            continue
        data = (skill_dir / item.path).read_bytes()
        found[item.path] = data.decode("utf-8-sig" if item.path.endswith(".md") else "utf-8", "replace")
    return found


def _is_test(path: str) -> bool:
    parts = path.split("/")
    name = parts[-1]
    return (
        name.startswith("test_")
        or name.endswith("_test.py")
        or name == "conftest.py"
        or bool(TEST_FOLDERS & set(parts[:-1]))
    )


def _belongs(path: str) -> bool:
    """True for what a task's world may hold: no tests, no hidden or compiled files, no notes to the agent."""
    parts = path.split("/")
    if any(part.startswith(".") or part in HIDDEN_FOLDERS for part in parts):
        return False
    portable = all(re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", part) for part in parts)
    return (
        portable
        and not _is_test(path)
        and not path.endswith((".pyc", ".lock"))
        and parts[-1] not in ("AGENTS.md", "CLAUDE.md")
    )


def _module(path: str, source: Source) -> ModuleInfo:
    numbers: set[float] = set()
    texts: set[str] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant):
            if type(node.value) in (int, float) and abs(node.value) < 1e9:  # type: ignore[operator, arg-type]
                numbers.add(node.value)  # type: ignore[arg-type]
            elif isinstance(node.value, str) and 0 < len(node.value) <= 24 and "\n" not in node.value:
                texts.add(node.value)
    return ModuleInfo(
        path, source, tuple(_functions(source.tree, "")), _imports(source.tree), _loads(source.tree), _is_script(source.tree),
        tuple(sorted(numbers)), tuple(sorted(texts)),
    )  # fmt: skip


def _functions(node: ast.AST, prefix: str) -> list[FunctionInfo]:
    found: list[FunctionInfo] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            found += _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef):
            name = prefix + child.name
            parameters = tuple(
                item.arg for item in [*child.args.posonlyargs, *child.args.args, *child.args.kwonlyargs]
            )
            doc = ast.get_docstring(child) or ""
            public = not any(part.startswith("_") for part in name.split("."))
            found.append(
                FunctionInfo(name, child.lineno, child.end_lineno or child.lineno, doc, public, parameters)
            )
    return found


def _imports(tree: ast.Module) -> tuple[str, ...]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.split(".")[0])
    return tuple(sorted(names))


def _loads(tree: ast.Module) -> tuple[str, ...]:
    names: set[str] = set()
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Try):
            waiting += [
                *node.body,
                *node.orelse,
                *node.finalbody,
                *(s for h in node.handlers for s in h.body),
            ]
        elif isinstance(node, ast.If):
            waiting += [*node.body, *node.orelse]
    return tuple(sorted(names))


def _is_script(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.If)
        and any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))
        for node in tree.body
    )


def _examples(text: str, modules: Mapping[str, ModuleInfo]) -> tuple[Example, ...]:
    """Commands in the documentation that name a script of the project; continuation lines are joined."""
    scripts = {
        posixpath.basename(path): path
        for path, module in sorted(modules.items(), reverse=True)
        if module.is_script
    }
    found: dict[Example, None] = {}
    for line in text.replace("\\\n", " ").splitlines():
        if ".py" not in line or "|" in line or len(line) > 400:
            continue
        try:
            words = shlex.split(line.strip().strip("`"), comments=True)
        except ValueError:
            continue
        for index, word in enumerate(words):
            file = scripts.get(posixpath.basename(word))
            if file and (index == 0 or words[index - 1] in ("python", "python3", "run")):
                found.setdefault(Example(file, tuple(words[index + 1 :])))
                break
    return tuple(found)
