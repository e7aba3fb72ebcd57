"""Which commands and programs are seen in scripts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.verify.static import bash, python
from skill2env.verify.static.programs import Origin, Role, invocations, programs


def calls(text: str) -> list[tuple[str, ...]]:
    return [command.call for command in bash.read(text).commands]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("curl -s 'https://x.org/a b'", [("curl", "-s", "https://x.org/a b")]),
        ('H=https://x.org; curl "$H/a" ${H}/b', [("curl", "https://x.org/a", "https://x.org/b")]),
        ("/usr/bin/env -i A=1 timeout -k 5 90 /usr/bin/python3 -I x.py", [("python3", "-I", "x.py")]),
        ("sudo -u root nice -n 5 apt-get install x", [("apt-get", "install", "x")]),
        ("command -v curl", [()]),
        ("a | b && (c; { d; }) || e & f=$(g)", [("a",), ("b",), ("c",), ("d",), ("e",), ("g",)]),
        ("if a; then b; fi; for x in 1; do c; done; f() { d; }", [("a",), ("b",), ("c",), ("d",)]),
        ("# curl x\necho 'wget y'", [("echo", "wget y")]),
        ("cat <<'E'\ncurl x\nE\n", [("cat",)]),
    ],
)
def test_commands(text: str, found: list[tuple[str, ...]]) -> None:
    assert calls(text) == found


def test_heredocs_redirections_and_guards() -> None:
    script = bash.read("{ python3 - <<'P'\nx = 1\nP\n} > /out 2>&1\na || b\nif ! c; then d; fi\n")
    first, a, b, c, d = script.commands
    assert (first.stdin, first.stdin_line) == ("x = 1\n", 2)
    assert "/out" in [redirect.target for redirect in first.redirects]
    assert [command.guarded for command in (a, b, c, d)] == [False, True, False, True]


@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    bash.read(text)
    python.read(text)


def write(task: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        place = task / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return task


def test_what_test_sh_reaches(tmp_path: Path) -> None:
    task = write(
        tmp_path,
        {
            "tests/test.sh": "#!/bin/bash\npython3 /tests/grade.py\nbash -c 'true here'\n",
            "tests/grade.py": "import helper\n",
            "tests/helper.py": "x = 1\n",
            "tests/unused.py": "y = 1\n",
            "tests/broken.py": "import fixture\n",
            "environment/broken.py": "import fixture\n",
        },
    )
    found = programs(task, Role.VERIFIER)
    assert [(item.path, item.origin) for item in found] == [
        ("tests/test.sh", Origin.FILE),
        ("tests/test.sh", Origin.INLINE),
        ("tests/grade.py", Origin.FILE),
        ("tests/helper.py", Origin.FILE),
    ]


def test_what_is_written_counts_when_it_is_started(tmp_path: Path) -> None:
    solve = (
        "cat > /app/a.py <<'P'\na\nP\ncat > /app/b.py <<'P'\nb\nP\npython3 /app/a.py\npython3 - <<'P'\nc\nP\n"
    )
    found = programs(write(tmp_path, {"solution/solve.sh": solve}), Role.SOLUTION)
    assert [(item.text, item.origin) for item in found[1:]] == [
        ("a\n", Origin.WRITTEN),
        ("c\n", Origin.INLINE),
    ]
    assert found[2].where(1) == "solution/solve.sh:9"


def test_programs_that_python_starts(tmp_path: Path) -> None:
    text = (
        "import subprocess as s, os, sys\ns.run(['curl', '-s', URL])\ns.run([sys.executable, '-m', 'pip', 'x'])\n"
        "os.system('wget a; git b')\ns.run(['bash', '-c', 'apt c'])\nrun('no')\n"
    )
    task = write(tmp_path, {"tests/test.sh": "python3 g.py\n", "tests/g.py": text})
    found = [item.call for item in invocations(programs(task, Role.VERIFIER)[1])]
    assert found == [
        ("curl", "-s", "$?"),
        ("python3", "-m", "pip", "x"),
        ("wget", "a"),
        ("git", "b"),
        ("apt", "c"),
    ]


@pytest.mark.parametrize(
    ("code", "start"),
    [
        ("f(f'http://127.0.0.1:{p}/x')", "http://127.0.0.1:"),
        ("U = 'http://a.org'\nf(U + '/b')", "http://a.org"),
        ("f('http://{}/'.format(h))", "http://{}/"),
        ("f(Request('http://c.org'))", "http://c.org"),
        ("f(x)", None),
    ],
)
def test_how_a_string_begins(code: str, start: str | None) -> None:
    source = python.read(code)
    assert source is not None
    call = next(call for call in source.calls() if call.name == "f")
    assert source.text(call.node.args[0]) == start
