"""What the leak gate finds in a built image, and what it rightly leaves alone."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.sandbox.images import BaseImage
from skill2env.verify import build, leak
from skill2env.verify.gate import GateContext, Subject
from skill2env.verify.leak_scanner import repository_objects
from skill2env.verify.private import private_files
from skill2env.verify.rules import Profile

Make = Callable[..., Path]
pytestmark = pytest.mark.sandbox


@pytest.fixture
def scan(
    builder: ModuleType, base: BaseImage, runnable_task: Make, context: GateContext
) -> Callable[..., dict[str, str]]:
    def run(tail: str, files: dict[str, str | bytes] | None = None) -> dict[str, str]:
        dockerfile = builder.DOCKERFILE.format(reference=base.reference) + tail
        task = runnable_task(changes={"environment/Dockerfile": dockerfile, **(files or {})})
        subject = Subject(task, Profile.OURS)
        assert build.check(subject, context).hits == ()
        return {hit.where: hit.code for hit in leak.check(subject, context).hits}

    return run


Scan = Callable[..., dict[str, str]]


def test_clean_image(scan: Scan) -> None:
    assert scan("") == {}


def test_copy_under_another_name(builder: ModuleType, scan: Scan) -> None:
    assert scan("COPY x /opt/x\n", {"environment/x": builder.GRADE}) == {"/opt/x": "leak-content"}


def test_near_copy_of_the_verifier(builder: ModuleType, scan: Scan) -> None:
    edited = builder.GRADE.replace("COUNTS = [17, 4, 98, 23, 51]", "COUNTS = []") + "\nprint('more')\n"
    assert scan("COPY x /opt/x\n", {"environment/x": edited}) == {"/opt/x": "leak-lines"}


def test_solution_inside_another_file(builder: ModuleType, scan: Scan) -> None:
    notes = "Notes of the maintainer\n" + builder.SOLVE_SH + "\nthe end\n"
    assert scan("COPY x /opt/x\n", {"environment/x": notes}) == {"/opt/x": "leak-lines"}


def test_rubric_text(builder: ModuleType, scan: Scan) -> None:
    assert scan("COPY x /opt/notes.md\n", {"environment/x": builder.RUBRIC + "\n"}) == {
        "/opt/notes.md": "leak-lines"
    }


def test_public_fixture_with_a_pristine_copy_is_no_leak(builder: ModuleType, scan: Scan) -> None:
    padded = builder.NUMBERS * 10
    assert scan("", {"environment/numbers.txt": padded, "tests/numbers.txt": padded}) == {}


def test_expected_output_in_the_image(scan: Scan) -> None:
    truth = '{"sum": 193, "largest": 98, "more": 0}\n'
    assert scan(
        'RUN printf \'{"sum": 193, "largest": 98, "more": 0}\\n\' > /opt/x\n', {"tests/wanted.json": truth}
    ) == {"/opt/x": "leak-content"}


def test_public_file_with_the_name_of_an_answer_is_only_noted(scan: Scan) -> None:
    answers = "student,answer\nann,4\nbob,5\ncid,6\n"
    files: dict[str, str | bytes] = {"environment/answers.csv": answers, "tests/answers.csv": answers}
    assert scan("COPY answers.csv /app/answers.csv\n", files) == {"/app/answers.csv": "leak-answer-name"}


def test_solution_that_repeats_a_public_file_and_changes_one_line(scan: Scan) -> None:
    module = "".join(f"def function_number_{n}(value):\n    return value + {n} * 10\n\n" for n in range(20))
    fixed = module.replace("value + 7 * 10", "value + 7 * 11")
    solve = f"#!/bin/bash\nset -e\ncat > /app/module.py <<'PY'\n{fixed}PY\n"
    files: dict[str, str | bytes] = {
        "environment/module.py": module,
        "solution/solve.sh": solve,
        "tests/original.py": fixed,
    }
    assert scan("COPY module.py /app/module.py\n", files) == {}
    mended = "COPY module.py /app/module.py\nRUN sed 's/+ 7 . 10/+ 7 * 11/' /app/module.py > /opt/mended\n"
    assert scan(mended, files) == {"/opt/mended": "leak-content"}


def test_mount_points_and_histories(scan: Scan) -> None:
    tail = "RUN mkdir /tests && echo x > /tests/x && echo y > /root/.bash_history && echo z > /opt/solve.sh\n"
    assert scan(tail) == {
        "/tests/x": "leak-path",
        "/root/.bash_history": "history",
        "/opt/solve.sh": "leak-path",
    }


def test_file_that_a_later_layer_deletes(builder: ModuleType, scan: Scan) -> None:
    found = scan("COPY x /opt/x\nRUN rm /opt/x\n", {"environment/x": builder.GRADE})
    assert found == {"/opt/x": "leak-hidden-layer"}
    found = scan("COPY x /opt/deep/x\nRUN rm -r /opt/deep\n", {"environment/x": builder.GRADE})
    assert found == {"/opt/deep/x": "leak-hidden-layer"}


def test_image_that_replaces_its_own_python_hides_nothing(builder: ModuleType, scan: Scan) -> None:
    python = "/usr/local/bin/python3"
    tail = f"COPY x /opt/x\nRUN printf '#!/bin/sh\\necho []\\n' > {python} && chmod +x {python}\n"
    assert scan(tail, {"environment/x": builder.GRADE})["/opt/x"] == "leak-content"


def _git(folder: Path, *words: str) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        **{
            f"GIT_{who}_{what}": "x@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, env=environment)


@pytest.mark.parametrize("packed", [False, True])
def test_history_of_a_repository(packed: bool, builder: ModuleType, scan: Scan, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    _git(repository, "init", "--quiet")
    for number, content in enumerate((builder.SOLVE_SH, "echo broken\n")):
        (repository / "run.sh").write_text(content)
        _git(repository, "add", ".")
        _git(repository, "commit", "--quiet", "--message", str(number))
    if packed:
        _git(repository, "gc", "--quiet", "--aggressive")
    files: dict[str, str | bytes] = {
        f"environment/repository/{path.relative_to(repository)}": path.read_bytes()
        for path in repository.rglob("*")
        if path.is_file()
    }
    files["environment/repository/.git/refs/keep"] = "x"
    found = scan("COPY repository /app/repository\n", files)
    assert found == {"/app/repository/.git": "leak-history"}
    assert any(b"sort --numeric-sort" in data for data in repository_objects(repository / ".git"))


def test_innocent_history_is_only_named(scan: Scan) -> None:
    files: dict[str, str | bytes] = {
        f"environment/r/.git/{name}": "x" for name in ("HEAD", "objects/x", "refs/x")
    }
    assert scan("COPY r /app/r\n", files) == {"/app/r/.git": "history"}


def test_kinds_of_private_files(builder: ModuleType, make_task: Make) -> None:
    task = make_task(
        changes={
            "tests/expected.csv": "a,b\n1,2\n3,4\n5,6\n7,8\n9,10\n",
            "tests/pristine/numbers.txt": builder.NUMBERS * 5,
            "environment/numbers.txt": builder.NUMBERS * 5,
            "solution/notes.md": "the fix is a cast to integer\n",
        }
    )
    assert {item.path: item.kind for item in private_files(task)} == {
        "solution/notes.md": "solution",
        "solution/solve.sh": "solution",
        "tests/expected.csv": "truth",
        "tests/grade.py": "grader",
        "tests/rubric.md": "rubric",
        "tests/test.sh": "grader",
    }
