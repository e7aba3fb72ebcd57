"""What must hold for the repository as a whole: nothing private, nothing binary, docs and pins that match the code."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "skill2env"
LARGEST_FILE = 400_000
"""Bytes. The largest honest file is the lock of the development tools."""


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# Spelled in pieces, so that this file does not contain what it looks for.
PRIVATE = [
    ("/" + "work/main", "a path of a development machine"),
    ("/" + "work/shared", "a path of a development machine"),
    ("/" + "work/" + ".library", "a path of a development machine"),
    ("/root/" + ".pyenv", "a path of a development machine"),
    ("files.python" + "hosted.org", "a registry host"),
    ("py" + "pi.org/simple", "a registry host"),
    ("registry.npm" + "js.org", "a registry host"),
    ("deb.debian" + ".org", "a mirror host"),
]


@pytest.mark.parametrize(("needle", "what"), PRIVATE, ids=[needle for needle, _ in PRIVATE])
def test_no_machine_path_or_registry_host_is_tracked(needle: str, what: str) -> None:
    holding = [relative(path) for path in tracked_files() if needle.encode() in path.read_bytes()]
    assert not holding, f"{what} ({needle}) in {holding}"


def test_no_binary_or_huge_file_is_tracked() -> None:
    files = tracked_files()
    assert files
    assert not [relative(path) for path in files if b"\0" in path.read_bytes()]
    assert not [relative(path) for path in files if path.stat().st_size > LARGEST_FILE]


def test_no_link_leaves_the_repository() -> None:
    links = [path for path in tracked_files() if path.is_symlink()]
    assert not [relative(path) for path in links if not path.resolve().is_relative_to(ROOT)]


def locked(name: str) -> dict[str, int]:
    """Package -> number of hashes, of one requirement file."""
    entries = re.split(r"\n(?=[a-zA-Z0-9])", (ROOT / "requirements" / name).read_text(encoding="utf-8"))
    return {
        entry.split("==")[0]: len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", entry))
        for entry in entries
        if "==" in entry
    }


@pytest.mark.parametrize(
    "name",
    [
        "analyze.txt",
        "base.txt",
        "dev.txt",
        "embed.txt",
        "huggingface.txt",
        "parquet.txt",
        "train.txt",
        "uv.txt",
    ],
)
def test_every_requirement_is_pinned_with_hashes(name: str) -> None:
    packages = locked(name)
    assert packages
    assert not [package for package, hashes in packages.items() if hashes == 0]


def requirement_name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]).lower()


def test_every_declared_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    base = {requirement_name(item) for item in project["project"]["dependencies"]}
    groups = project["dependency-groups"]
    dev = {requirement_name(item) for item in (*groups["build"], *groups["dev"]) if isinstance(item, str)}
    assert not base - set(locked("base.txt"))
    assert not (base | dev) - set(locked("dev.txt"))
    (backend,) = project["build-system"]["requires"]
    assert backend in groups["build"], (
        "the build backend must be the one that is hashed in requirements/dev.txt"
    )


def test_base_and_dev_pins_agree() -> None:
    def pins(name: str) -> set[str]:
        return set(
            re.findall(r"^([a-zA-Z0-9._-]+==[^ ]+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE)
        )

    assert pins("base.txt") <= pins("dev.txt")


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=60
    )


@pytest.mark.parametrize(
    "program",
    [
        "import skill2env",
        "import sys; sys.argv = ['skill2env', '--help']; from skill2env.cli.main import main; main()",
    ],
    ids=["import", "help"],
)
def test_help_path_imports_neither_pydantic_nor_harbor(program: str) -> None:
    wrapped = f"""
import sys
try:
    exec({program!r})
except SystemExit as end:
    assert not end.code, end.code
heavy = sorted(name for name in sys.modules if name.split(".")[0] in ("pydantic", "harbor", "litellm", "jinja2"))
assert not heavy, heavy
"""
    run_python("-c", wrapped)


def test_every_package_says_what_it_is_for() -> None:
    packages = sorted(SOURCES.rglob("__init__.py"))
    assert packages
    assert not [relative(path) for path in packages if not path.read_text(encoding="utf-8").startswith('"""')]


def verbs() -> list[str]:
    """Every command of the command line, groups flattened (``skill show``)."""
    found = run_python(
        "-c",
        """
import typer.main
from skill2env.cli.main import app

def walk(command, path):
    for name, sub in getattr(command, "commands", {}).items():
        here = [*path, name]
        walk(sub, here) if getattr(sub, "commands", None) else print(" ".join(here))

walk(typer.main.get_command(app), [])
""",
    ).stdout.split("\n")
    return sorted(filter(None, found))


def test_docs_mention_every_verb() -> None:
    pages = "\n".join(
        path.read_text(encoding="utf-8")
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
        if path.name != "cli.md"  # generated, so it proves nothing about the prose
    )
    listed = verbs()
    assert "compile" in listed
    assert not [verb for verb in listed if f"skill2env {verb}" not in pages]


def test_readme_commands_exist_in_the_makefile() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    used = set(re.findall(r"^make ([a-z]+)", readme, re.MULTILINE))
    assert {"demo", "test"} <= used <= targets


def test_changelog_starts_with_what_is_unreleased() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    titles = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    assert titles[0] == "Unreleased"


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "scripts").glob("*.sh")))
def test_shell_scripts_parse(script: str) -> None:
    subprocess.run(["sh", "-n", ROOT / "scripts" / script], check=True)


def test_documents_are_up_to_date() -> None:
    outcome = subprocess.run(
        [sys.executable, "scripts/docs.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stderr
