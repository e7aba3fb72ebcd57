"""Where a solution can be changed, and which changes are chosen."""

import ast
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from skill2env.verify.mutants import same_meaning, solution_files
from skill2env.verify.mutating import Change, changes, choose
from skill2env.verify.mutating_shell import shell_changes

SCRIPT = b"""\
#!/bin/bash
set -euo pipefail
awk '$2 >= 10 { n += 1 } END { print n }' /app/in.txt > /app/out/n.txt
sort -n /app/in.txt | uniq | head -n 3 > /app/out/top.txt
if [ "$x" -gt 3 ]; then rm /app/junk; fi
/usr/bin/python3 - <<'PY'
rows = [row for row in open("/app/in.txt") if row.strip()]
total = 0
for row in rows:
    total += len(row) * 2
open("/app/out/total.txt", "w").write(f"{total}")
PY
cat > /app/tool.py <<'PY'
def tool(n):
    return n < 4 and n > 1
PY
cat > /app/notes.ini <<'END'
limit = 20
END
"""


def results(found: list[Change], data: bytes = SCRIPT) -> set[str]:
    return {change.apply(data).decode() for change in found}


def test_shell_pipelines_tests_and_awk_are_changed() -> None:
    texts = results(shell_changes("solve.sh", SCRIPT, 0, len(SCRIPT)))
    for wanted in (
        "$2 > 10",
        "$3 >= 10",
        "sort /app",
        "sort -n /app/in.txt | head",
        "-ge 3",
        "head -n 4",
        "limit = 21",
    ):
        assert any(wanted in " ".join(text.split()) for text in texts), wanted


def test_programs_in_documents_are_changed_as_programs() -> None:
    found = changes({"solve.sh": SCRIPT})
    texts = results(found)
    for wanted in ("n <= 4", "n < 4 or n > 1", "    pass\n", "list(rows)[1:]", "if not (row.strip())"):
        assert any(wanted in text for text in texts), wanted
    for change in found:
        text = change.apply(SCRIPT).decode()
        program = text.split("<<'PY'\n")[1].split("PY\n")[0]
        ast.parse(program)


def test_nothing_is_changed_into_itself_and_diffs_name_the_place() -> None:
    found = changes({"solve.sh": SCRIPT})
    assert all(change.apply(SCRIPT) != SCRIPT for change in found)
    change = next(change for change in found if b"-ge" in change.new)
    assert change.line(SCRIPT) == 5
    assert '-if [ "$x" -gt 3 ]' in change.diff(SCRIPT)


def test_the_choice_repeats_and_spreads() -> None:
    files = {"solve.sh": SCRIPT}
    first = choose(changes(files), files, 6)
    assert first == choose(changes(files), files, 6)
    assert len({change.kind for change in first}) >= 4
    assert len({change.line(SCRIPT) for change in first}) == 6
    assert choose(changes(files), files, 0) == []


@given(st.binary(max_size=200))
def test_any_script_can_be_read(data: bytes) -> None:
    for change in changes({"solve.sh": b"#!/bin/sh\n" + data, "data.txt": data, "x.py": data}):
        assert 0 <= change.start <= change.end


def test_files_of_the_same_meaning() -> None:
    assert same_meaning(b'{"a": [1, 2]}', b'{ "a": [2, 1] }\n')
    assert same_meaning(b"b  1\na\n", b"a\nb 1")
    assert not same_meaning(b"a\n", b"b\n")
    assert not same_meaning(None, b"")


def test_other_right_solutions_are_not_changed(tmp_path: Path) -> None:
    """The reference does not run them, so a change there would only look like one that says the same."""
    for name in ("solve.sh", "helper.py", "alternatives/by-hand/solve.sh", "alternatives/by-hand/helper.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    assert sorted(solution_files(tmp_path)) == ["helper.py", "solve.sh"]
