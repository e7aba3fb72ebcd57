"""The process that runs a project's code: what it answers, and how it keeps cases apart."""

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from skill2env.authors.code import bench
from skill2env.authors.code.templates import warm

PROJECT = {
    "tool.py": """
        import os, sys
        from dataclasses import dataclass
        from pathlib import Path
        SEEN = []
        @dataclass
        class Point:
            x: int
            y: int = 0
        def double(n): return 2 * n
        def remember(n):
            SEEN.append(n)
            return len(SEEN)
        def sort_in_place(items): items.sort()
        def write(folder):
            (folder / "a.txt").write_text(f"in {folder}")
        def move(point): return Point(point.x + 1, point.y)
        def fail(): raise KeyError("x")
        def leave(): sys.exit(3)
        def vanish(): os._exit(0)
        def hang():
            while True: pass
        def odd(): return object()
        def shout(): print("loud", Path(__file__).parent)
        def fork():
            if os.fork() == 0: os._exit(0)
            return "parent"
        """,
    "pack/__init__.py": "",
    "pack/inner.py": "from .base import BASE\ndef plus(n): return n + BASE\n",
    "pack/base.py": "BASE = 10\n",
    "script.py": """
        import sys
        from helper import word
        if __name__ == "__main__":
            open("out.txt", "w").write(word + open(sys.argv[1]).read())
            print(len(sys.argv))
            sys.exit(4)
        """,
    "helper.py": "word = 'hi '\n",
    "noisy.py": "import sys\nprint('imported')\nsys.stdout = None\ndef f(): print('called', file=sys.stdout)\n",
    "broken.py": "import no_such_module\ndef f(): return 1\n",
}


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    root, tools = tmp_path / "project", tmp_path / "tools"
    for name, text in PROJECT.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text))
    tools.mkdir()
    for name in ("child.py", "tagged_values.py", "warm.py"):
        (tools / name).write_text(bench.helper_text(name))

    def run(*cases: dict[str, Any], skip: str = "") -> list[Any]:
        numbered = [
            {"id": str(number), "kind": "function", "args": [], **case} for number, case in enumerate(cases)
        ]
        reader, writer = os.pipe()
        (tmp_path / "skip").write_text(skip)
        done = subprocess.run(
            [
                sys.executable,
                "-B",
                str(tools / "child.py"),
                root,
                tmp_path / "work",
                str(writer),
                tmp_path / "skip",
            ],
            input=json.dumps({"cases": numbered, "preload": ["json"]}).encode(),
            pass_fds=(writer,),
            timeout=60,
            capture_output=True,
            check=True,
        )
        assert not done.stderr
        os.close(writer)
        with os.fdopen(reader) as answers:
            found = {item["id"]: item["outcome"] for item in map(json.loads, answers)}
        return [found.get(case["id"]) for case in numbered]

    return run


def call(name: str, *args: Any, file: str = "tool.py") -> dict[str, Any]:
    return {"file": file, "name": name, "args": list(args)}


def test_values_exceptions_and_exits(ask: Any) -> None:
    point = {"$": "object", "file": "tool.py", "class": "Point", "v": [["x", 1], ["y", 5]]}
    moved = {**point, "v": [["x", 2], ["y", 5]]}
    assert ask(call("double", 4), call("fail"), call("leave"), call("move", point), call("odd")) == [
        {"value": 8},
        {"raised": "KeyError"},
        {"exit": 3},
        {"value": moved},
        {"unsupported": True},
    ]


def test_cases_do_not_see_each_other(ask: Any) -> None:
    assert ask(call("remember", 1), call("remember", 2)) == [{"value": 1}, {"value": 1}]


def test_effects(ask: Any) -> None:
    folder = {"$": "folder", "name": ".", "files": {"old.txt": "x"}, "as": "path"}
    assert ask(call("sort_in_place", [3, 1]), call("write", folder), call("shout")) == [
        {"value": None, "arguments": [[1, 3]]},
        {"value": None, "files": {"a.txt": "in <work>"}},
        {"value": None, "stdout": "loud <root>\n"},
    ]


def test_code_that_dies_or_hangs_costs_its_own_case_only(ask: Any) -> None:
    assert ask(call("vanish"), call("hang"), call("fork"), call("double", 1)) == [
        None,
        {"died": True},
        {"value": "parent"},
        {"value": 2},
    ]


def test_packages_and_modules_that_do_not_import(ask: Any) -> None:
    assert ask(call("plus", 1, file="pack/inner.py"), call("f", file="broken.py"), call("double", 2)) == [
        {"value": 11},
        {"died": True},
        {"value": 4},
    ]


def test_commands(ask: Any) -> None:
    given = {"$": "file", "name": "in.txt", "text": "you", "as": "str"}
    case = {"kind": "command", "file": "script.py", "argv": [given]}
    assert ask(case) == [{"exit": 4, "files": {"out.txt": "hi you"}, "stdout": "2\n"}]


def test_cases_that_nobody_needs_are_not_run(ask: Any) -> None:
    assert ask(call("double", 1), call("double", 2), call("plus", 1, file="pack/inner.py"), skip="1\n2") == [
        {"value": 2},
        None,
        None,
    ]


def test_compiled_code_is_that_of_the_files(tmp_path: Path) -> None:
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(dedent(text))
    (tmp_path / "wrong.py").write_text("def (")
    made = warm.Compiled(tmp_path)
    for name in ("script.py", "pack/inner.py", "wrong.py", "gone.py"):
        made.add(name)
    known = {name for name in PROJECT if made.code(tmp_path / name) is not None}
    assert known == {"pack/__init__.py", "pack/inner.py", "pack/base.py", "script.py", "helper.py"}
    assert made.code(tmp_path / "wrong.py") is None


def test_libraries_that_are_missing_are_left_to_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    warm.preload(["json", "no_such_module_here", "os.path"])
    assert capsys.readouterr().out == ""
    assert "no_such_module_here" not in sys.modules


def test_what_an_import_prints_is_no_output_of_a_case(ask: Any) -> None:
    assert (
        ask(call("f", file="noisy.py"), call("f", file="noisy.py"))
        == [{"value": None, "stdout": "called\n"}] * 2
    )
