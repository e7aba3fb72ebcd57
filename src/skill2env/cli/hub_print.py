"""How the hub's documents look to people."""

import textwrap
from collections.abc import Mapping
from typing import Any

from skill2env.cli.output import print_table, size
from skill2env.ingest.text import printable

_WIDTH = 110


def _line(label: str, text: str) -> None:
    filled = textwrap.fill(
        printable(text), _WIDTH, initial_indent=f"  {label:<10}", subsequent_indent=" " * 12
    )
    print(filled)


def print_skill(told: Mapping[str, Any]) -> None:
    """What is stored of one skill."""
    print(printable(told["name"], 100))
    _line("", told["description"][:600])
    _line("digest", told["digest"])
    words = f"{told['words']:,} words, {told['files']} files, {size(told['size'])}, {told['scripts']} scripts"
    _line("content", words + (f", language {told['language']}" if told["language"] else ""))
    _line("folder", told["folder"])
    for place in told["places"]:
        _line("found at", f"{place['place']}  {place['origin']}")
    if told["missing_references"]:
        _line("missing", f"{told['missing_references']} files that the text points to are not there")
    for item in told["diagnostics"][:20]:
        _line(item["severity"], f"{item['code']}: {item['message']}")
    print()


def print_why(told: Mapping[str, Any]) -> None:
    """Why one skill was decided so."""
    print(f"{printable(told['name'], 80)}  {told['digest'][:19]}")
    _line(
        "export",
        ("taken. " if told["export"]["chosen"] else "left out. ") + " ".join(told["export"]["because"]),
    )
    licence = told["licence"]
    _line(
        "licence",
        f"{licence['spdx'] or 'none'}, {'allowed' if licence['allowed'] else 'refused'}: {licence['reason']}",
    )
    for place in told["places"]:
        terms = place["licence"]
        said = f"{terms['spdx'] or 'no terms understood'} by {terms['evidence'].replace('_', ' ')}"
        said += f" in {terms['where']}: {terms['statement']}" if terms["where"] else ""
        speaks = " (speaks for it)" if place["speaks"] else ""
        _line("place", f"{place['place']}{speaks}: {said}" + (", a test fixture" if place["fixture"] else ""))
    screening = told["screening"]
    _line("screening", screening["verdict"] or "not examined")
    for flag in screening["flags"]:
        where = f"{flag['file']}:{flag['start']}-{flag['stop']}" if flag["file"] else "the whole skill"
        _line("", f"{flag['verdict']}: {flag['rule']} [{where}] {flag['excerpt']}")
    copies = told["copies"]
    if copies["represented_by"]:
        _line("copy", f"{copies['likeness']} ({copies['jaccard']:.3f}) of {copies['represented_by']}")
    elif copies["others"]:
        _line("copies", f"stands for {len(copies['others'])} others")
    for other in copies["others"][:10]:
        _line(
            "",
            f"{other['likeness'] or 'representative'} {other['jaccard']:.3f} {other['name']}"
            f" ({other['source']}:{other['path']})",
        )
    domain = told["domain"]
    said = domain["domain"] or f"unsure, perhaps {domain['likeliest']}"
    words = ", ".join(f"{reason['word']} {reason['weight']:+.2f}" for reason in domain["words"])
    _line("domain", f"{said} ({domain['confidence']:.2f}): {words}")
    print()


def print_stats(found: Mapping[str, Any]) -> None:
    """Counts of a hub."""
    print(
        f"{found['skills']:,} contents at {found['places']:,} places, {found['files']:,} files, {size(found['bytes'])};"
        f" {found['chosen']:,} are what an export takes"
    )
    print(
        f"{found['with_scripts']:,} with scripts, {found['with_missing_files']:,} point to missing files,"
        f" {found['copies']:,} copies ({found['exact_copies']:,} exact, {found['near_copies']:,} near)"
        f" of {found['clusters']:,} others\n"
    )
    print_table(
        ("source", "status", "places", "contents", "taken", "left out"),
        [
            (row["id"], row["status"], row["places"], row["skills"], row["chosen"], row["left_out"])
            for row in found["sources"]
        ],
    )
    print()
    print_table(
        ("licence", "evidence", "policy", "skills"),
        [
            (
                printable(row["spdx"], 40) or "none",
                row["evidence"],
                "allowed" if row["allowed"] else "refused",
                row["skills"],
            )
            for row in found["licences"]
        ],
    )
    for title, key, empty in (
        ("verdict", "by_verdict", "not examined"),
        ("flag", "by_flag", "-"),
        ("domain", "by_domain", "unsure"),
        ("language", "by_language", "unknown"),
    ):
        print()
        print_table((title, "skills"), [(name or empty, count) for name, count in found[key].items()])
