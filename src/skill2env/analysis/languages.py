"""Which languages and tools a task is about, and what kind of program its verifier is: tables, no guesses."""

import re

from skill2env.analysis.records import TaskRecord

LANGUAGES: dict[str, str] = {
    "bash": "Shell", "c": "C", "cc": "C++", "cfg": "INI", "cpp": "C++", "cs": "C#", "css": "CSS", "ex": "Elixir",
    "go": "Go", "h": "C", "hpp": "C++", "hs": "Haskell", "htm": "HTML", "html": "HTML", "ini": "INI",
    "ipynb": "Jupyter", "java": "Java", "jl": "Julia", "js": "JavaScript", "jsx": "JavaScript", "kt": "Kotlin",
    "lua": "Lua",
    "md": "Markdown", "mjs": "JavaScript", "php": "PHP", "pl": "Perl", "proto": "Protobuf", "ps1": "PowerShell",
    "py": "Python", "r": "R", "rb": "Ruby", "rs": "Rust", "rst": "reStructuredText", "scala": "Scala", "sh": "Shell",
    "sql": "SQL", "swift": "Swift", "tex": "TeX", "tf": "Terraform", "toml": "TOML", "ts": "TypeScript",
    "tsx": "TypeScript", "vue": "Vue", "xml": "XML", "yaml": "YAML", "yml": "YAML", "zig": "Zig",
}  # fmt: skip
"""Ending of a file's name -> language."""

DATA_FORMATS = frozenset(
    "csv json jsonl tsv parquet xlsx xls db sqlite pdf docx pptx png jpg svg wav mp4 log txt".split()
)
"""Endings of data files, which are counted beside the languages."""

_CALLS = (
    ("pytest", re.compile(r"\bpytest\b|^\s*import pytest\b", re.MULTILINE)),
    ("unittest", re.compile(r"\bunittest\b")),
    ("node", re.compile(r"\b(?:node|npx|jest|vitest|mocha)\b[^\n]*\.(?:js|ts|mjs)|\bnpm (?:run )?test\b")),
    ("go test", re.compile(r"\bgo test\b")),
    ("cargo test", re.compile(r"\bcargo test\b")),
    (
        "Python program",
        re.compile(r"\bpython3?\b[^\n]*\.py\b|\bpython3? -[cIm]|\bpython3? - ?<<|\bpython3? -I"),
    ),
)


def languages_of(task: TaskRecord) -> frozenset[str]:
    """Languages of the files of the agent's world and of the solution, the Dockerfile left out."""
    found: set[str] = set()
    for path, _ in task.files:
        if path.startswith(("environment/", "solution/")):
            language = LANGUAGES.get(path.rsplit(".", 1)[-1].lower()) if "." in path else None
            if language:
                found.add(language)
    return frozenset(found)


def formats_of(task: TaskRecord) -> frozenset[str]:
    """Endings of the data files of the agent's world."""
    endings = (path.rsplit(".", 1)[-1].lower() for path, _ in task.files if path.startswith("environment/"))
    return frozenset(ending for ending in endings if ending in DATA_FORMATS)


def verifier_of(task: TaskRecord) -> str:
    """What kind of program computes the reward: the first of a fixed list of forms whose call occurs in tests/."""
    if not task.tests.strip():
        return "none"
    return next((kind for kind, pattern in _CALLS if pattern.search(task.tests)), "shell only")
