"""Keep the docs true: regenerate what is derived from the code, and check every link.

``python scripts/docs.py`` rewrites ``docs/cli.md`` and every block of the form::

    <!-- generated: NAME -->
    ...
    <!-- end generated -->

in the Markdown files of the repository. ``--check`` writes nothing and fails when something would change, or when a
link between files, or to a heading, leads nowhere. Links to other hosts are not followed.
"""

import argparse
import ast
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(<!-- generated: ([a-z-]+) -->\n)(.*?)(<!-- end generated -->)", re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


# ------------------------------------------------------------------------------------------------ generated tables


def enum_table(enum: type[StrEnum], first: str) -> str:
    """Markdown table of an enum's members and their one-line meanings."""
    from skill2env.records import meanings

    rows = "".join(f"| `{value}` | {_cell(text)} |\n" for value, text in meanings(enum).items())
    return f"| {first} | meaning |\n|---|---|\n{rows}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _reasons() -> str:
    from skill2env.records import Reason

    return enum_table(Reason, "reason")


def _skips() -> str:
    from skill2env.records import SkipReason

    return enum_table(SkipReason, "reason")


def _boundaries() -> str:
    from skill2env.errors import Boundary

    return enum_table(Boundary, "boundary")


def _rubric_policies() -> str:
    from skill2env.train.reward import RubricPolicy

    return enum_table(RubricPolicy, "policy")


def _rollout_statuses() -> str:
    from skill2env.rollout.records import RolloutStatus

    return enum_table(RolloutStatus, "status")


def _gates() -> str:
    from skill2env.verify.verify import GATES

    rows = ""
    # A gate that is made of probes is a function of another module; whichever module says "Gate `name`:" is meant.
    told = [
        module.__doc__ or ""
        for name, module in list(sys.modules.items())
        if name.startswith("skill2env.verify.")
    ]
    for gate in GATES:
        mark = f"Gate `{gate.name}`: "
        text = _first_paragraph(next(doc for doc in told if doc.startswith(mark))).removeprefix(mark)
        rows += (
            f"| `{gate.name}` | {_cell(text if '.' in text.split()[0] else text[:1].upper() + text[1:])} |\n"
        )
    return f"| gate | what it decides |\n|---|---|\n{rows}"


def _rules() -> str:
    from skill2env.verify.rules import RULES

    rows = "".join(
        f"| `{rule.code}` | `{rule.reason.value}` | {rule.ours.value} | {rule.foreign.value} | {_cell(rule.mend)} |\n"
        for rule in RULES
    )
    return f"| finding | reason | `ours` | `foreign` | how to mend it |\n|---|---|---|---|---|\n{rows}"


def _diagnostics() -> str:
    from skill2env.ingest.quirks import QUIRKS

    rows = "".join(
        f"| `{quirk.code}` | {quirk.severity.value} | {_cell(quirk.meaning)} |\n" for quirk in QUIRKS.values()
    )
    return f"| code | severity | meaning |\n|---|---|---|\n{rows}"


def _bases() -> str:
    from skill2env.sandbox.catalog import CATALOG, COMMON

    rows = ""
    for base in CATALOG.values():
        own = ", ".join(f"`{name}`" for name in base.packages if name not in COMMON)
        rows += f"| `{base.name}` | {_cell(base.about)} | {own} | {base.megabytes} MB |\n"
    common = ", ".join(f"`{name}`" for name in COMMON)
    return (
        f"| name | for | packages | size, about |\n|---|---|---|---|\n{rows}\n"
        f"Each also holds what Debian calls essential or required, and {common}.\nRecommended packages are left out.\n"
    )


def _domains() -> str:
    from skill2env.records import Domain

    return enum_table(Domain, "domain")


def _licence_families() -> str:
    from skill2env.hub.licence_families import LicenceFamily

    return enum_table(LicenceFamily, "family")


def _screening_rules() -> str:
    from skill2env.hub.rules import default_rules

    rows = ""
    for rule in default_rules():
        scores = ((rule.note, "note"), (rule.review, "review"), (rule.drop, "drop"))
        leads = ", ".join(f"{name} from {score:g}" for score, name in scores if score is not None)
        rows += f"| `{rule.id}` | `{rule.group.value}` | {_cell(rule.meaning)} | {_cell(rule.reason)} | {leads} |\n"
    return f"| rule | group | what it means | why that matters | leads to |\n|---|---|---|---|---|\n{rows}"


def _faults() -> str:
    from skill2env.authors.code.faults.catalog import Kind
    from skill2env.authors.code.faults.operators import OPERATORS
    from skill2env.records import meanings

    does = {kind.value: _first_paragraph(operator.__doc__).replace("``", "`") for kind, operator in OPERATORS}
    rows = "".join(
        f"| `{value}` | {_cell(text)} | {_cell(does[value])} |\n" for value, text in meanings(Kind).items()
    )
    return f"| kind | what is wrong | how it is made |\n|---|---|---|\n{rows}"


def _families() -> str:
    from skill2env.authors.code.families.table import FAMILIES

    rows = "".join(f"| `{family.name}` | {_cell(family.about)} |\n" for family in FAMILIES)
    return f"| family | what the agent does |\n|---|---|\n{rows}"


def _libraries() -> str:
    from skill2env.authors.code.libraries import SETS

    rows = "".join(
        f"| `{item.name}` | {', '.join(f'`{name}`' for name in sorted(item.provides)) or 'nothing'} |\n"
        for item in SETS
    )
    return f"| set | what can be imported besides Python's own |\n|---|---|\n{rows}"


def _first_paragraph(text: str | None) -> str:
    return _one_line((text or "").split("\n\n", maxsplit=1)[0])


def _settings() -> str:
    from skill2env.config import RunConfig

    rows = "".join(
        f"| `{key}` | `{default}` | {_cell(text)} |\n"
        for key, default, text in _settings_of(RunConfig, prefix="")
    )
    return f"| key | default | meaning |\n|---|---|---|\n{rows}"


def _settings_of(model: Any, prefix: str) -> Iterator[tuple[str, str, str]]:
    """Dotted key, default and meaning of every setting of a configuration model, in the order of the source."""
    texts = _field_texts(model)
    for name, field in model.model_fields.items():
        if hasattr(field.annotation, "model_fields"):
            yield from _settings_of(field.annotation, f"{prefix}{name}.")
            continue
        default = field.get_default(call_default_factory=True)
        default = default.value if isinstance(default, StrEnum) else default
        shown = "none" if default is None else json.dumps(default)
        text = texts.get(name, "")
        if isinstance(field.default, StrEnum):
            text += " One of " + ", ".join(f"`{member.value}`" for member in type(field.default)) + "."
        yield f"{prefix}{name}", shown, text


def _field_texts(model: Any) -> dict[str, str]:
    """Field name -> the string that follows it in the class body, on one line and in Markdown's own quoting."""
    (body,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for node, after in pairwise(body.body):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(after, ast.Expr)
        ):
            text = after.value.value if isinstance(after.value, ast.Constant) else ""
            found[node.target.id] = _one_line(str(text)).replace("``", "`")
    return found


GENERATED: dict[str, Callable[[], str]] = {
    "reasons": _reasons,
    "skips": _skips,
    "boundaries": _boundaries,
    "rubric-policies": _rubric_policies,
    "rollout-statuses": _rollout_statuses,
    "settings": _settings,
    "gates": _gates,
    "rules": _rules,
    "diagnostics": _diagnostics,
    "bases": _bases,
    "domains": _domains,
    "faults": _faults,
    "families": _families,
    "libraries": _libraries,
    "licence-families": _licence_families,
    "screening-rules": _screening_rules,
}
"""Name of a generated block -> what fills it."""


# ------------------------------------------------------------------------------------------------ command line page


def cli_page() -> str:
    """``docs/cli.md``: every verb with its arguments and options, read from the command line itself."""
    import typer.main

    from skill2env.cli.main import app

    command: Any = typer.main.get_command(app)
    parts = [
        "# Command line\n",
        "This page is written by `make docs` from the program itself; `skill2env VERB --help` prints the same.\n",
    ]
    parts += _command_sections(command, "skill2env", skip_own=False)
    return "\n".join(parts).rstrip() + "\n"


def _command_sections(command: Any, path: str, *, skip_own: bool = True) -> Iterator[str]:
    if not skip_own:
        yield _paragraphs(command.help)
        yield _parameters(command)
    for name, sub in getattr(command, "commands", {}).items():
        if sub.hidden:
            continue
        here = f"{path} {name}"
        yield f"## `{here}`\n"
        yield _paragraphs(sub.help or _table_help(here))
        if getattr(sub, "commands", None):
            yield from _command_sections(sub, here)
        else:
            yield f"```\n{here}{_usage(sub)}\n```\n"
            yield _parameters(sub)


def _table_help(path: str) -> str:
    """The one-line help of a verb whose own text is empty."""
    from skill2env.cli.main import VERBS

    return VERBS.get(path.removeprefix("skill2env "), "")


def _usage(command: Any) -> str:
    words = [" [OPTIONS]"]
    for item in command.params:
        if item.param_type_name == "argument":
            name = (item.metavar or item.name).strip("[]").upper()
            many = "..." if item.nargs == -1 and not name.endswith("...") else ""
            words.append(f" {name}{many}" if item.required else f" [{name}{many}]")
    return "".join(words)


def _paragraphs(text: str | None) -> str:
    return re.sub(r"[ \t]*\n[ \t]*", "\n", (text or "").replace("\b", "").strip()) + "\n"


def _parameters(command: Any) -> str:
    rows: list[str] = []
    for item in command.params:
        if getattr(item, "hidden", False) or item.name in {"install_completion", "show_completion"}:
            continue
        if item.param_type_name == "argument":
            label = f"`{(item.metavar or item.name).strip('[]').upper()}`"
        else:
            label = ", ".join(f"`{name}`" for name in (*item.opts, *item.secondary_opts))
        rows.append(f"| {label} | {_cell(_one_line(getattr(item, 'help', '')))}{_default(item)} |")
    if not rows:
        return ""
    return "| argument or option | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _default(item: Any) -> str:
    value = item.default
    if isinstance(item.show_default, str):
        return f" (default: {item.show_default})"
    if callable(value) or value in (None, False, True, (), [], "") or not getattr(item, "show_default", True):
        return ""
    if isinstance(value, StrEnum):
        value = value.value
    if Path(str(value)).is_absolute():
        return ""  # a path of this machine says nothing to a reader
    return f" (default: `{value}`)"


# ------------------------------------------------------------------------------------------------ links


def markdown_files() -> list[Path]:
    """Every Markdown file of the project's own docs that git tracks or would track; examples are data, not docs."""
    listed = subprocess.run(
        [
            "git",
            "-c",
            f"safe.directory={ROOT}",
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "*.md",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    # Examples, test data and prompts are input of the program, not pages about it.
    own = (name for name in listed if not name.startswith(("examples/", "tests/", "src/")))
    return [ROOT / name for name in sorted(own) if (ROOT / name).is_file()]


def anchors(text: str) -> set[str]:
    """Ids that the usual forges give to the headings of `text`."""
    seen: dict[str, int] = {}
    found: set[str] = set()
    for title in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def broken_links(page: Path, text: str) -> Iterator[str]:
    """Relative links of `page` whose file or heading does not exist."""
    for match in LINK.finditer(FENCE.sub("", text)):
        target = match.group(1) or match.group(2)
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        name, _, anchor = target.partition("#")
        other = (page.parent / name).resolve() if name else page
        if not other.exists():
            yield f"{page.relative_to(ROOT)}: link to {target}, which does not exist"
        elif anchor and other.suffix == ".md" and anchor not in anchors(other.read_text(encoding="utf-8")):
            yield f"{page.relative_to(ROOT)}: link to {target}, but there is no such heading"


# ------------------------------------------------------------------------------------------------ main


def fill(text: str) -> str:
    """`text` with every generated block filled anew.

    Raises:
        KeyError: for a block whose name nobody generates.
    """
    return BLOCK.sub(lambda match: match.group(1) + GENERATED[match.group(2)]() + match.group(4), text)


def wanted_pages() -> dict[Path, str]:
    """What every generated or partly generated page should hold."""
    pages = {page: fill(page.read_text(encoding="utf-8")) for page in markdown_files()}
    pages[ROOT / "docs/cli.md"] = cli_page()
    return pages


def main() -> int:
    """Regenerate or check; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail when something is out of date"
    )
    check = parser.parse_args().check
    problems: list[str] = []
    for page, text in wanted_pages().items():
        current = page.read_text(encoding="utf-8") if page.exists() else ""
        if current == text:
            continue
        if check:
            problems.append(f"{page.relative_to(ROOT)} is out of date; run: make docs")
        else:
            page.write_text(text, encoding="utf-8")
            print(f"docs: wrote {page.relative_to(ROOT)}")
    pages = markdown_files()
    for page in pages:
        problems += broken_links(page, page.read_text(encoding="utf-8"))
    for problem in problems:
        print(f"docs: {problem}", file=sys.stderr)
    if not problems:
        print(f"docs: {len(pages)} pages, up to date, no dead link")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
