"""What cheats are made of; that they work is shown by labelled tasks."""

import subprocess
import tarfile
from pathlib import Path

import pytest

from skill2env.harbor.studying import StudiedFile
from skill2env.sandbox.conditions import NotApplicable
from skill2env.verify import cheat_outputs
from skill2env.verify.dropping import Drop, write_source
from skill2env.verify.forging import forge_shell, payload_for, plants
from skill2env.verify.mutable_truth import first_line, half
from skill2env.verify.study import Study, is_scratch


def study(
    outputs: dict[str, bytes], fixtures: dict[str, bytes] | None = None, instruction: str = ""
) -> Study:
    def files(contents: dict[str, bytes]) -> dict[str, StudiedFile]:
        return {path: StudiedFile(path, 0o644, len(data), data) for path, data in contents.items()}

    return Study(
        outputs=files(outputs), fixtures=files(fixtures or {}), originals={}, writable=frozenset(fixtures or {}),
        folders=("/app",), metrics=("a",), uid=1000, search_path=("/usr/bin",), home="/home/agent", workdir="/app",
        one_user=False, instruction=instruction, solve_sec=0.1, grade_sec=0.1,
    )  # fmt: skip


def test_copies_take_the_likeliest_input_and_never_the_answer() -> None:
    fixtures = {"/app/a.csv": b"x,y\n1,2\n", "/app/b.txt": b"words", "/app/same.csv": b"x,y\n9,9\n"}
    task = study({"/app/out.csv": b"x,y\n9,9\n"}, fixtures)
    assert cheat_outputs.copied(task, 0) == {"/app/out.csv": b"x,y\n1,2\n"}
    assert cheat_outputs.copied(task, 1) == {"/app/out.csv": b"words"}
    with pytest.raises(NotApplicable):
        cheat_outputs.copied(task, 2)


def test_claims_are_told_from_answers() -> None:
    outputs = {"/app/out/status": b"all checks passed\n", "/app/out/sums.csv": b"a,1\n"}
    found = cheat_outputs.claims(study(outputs, instruction="Write `/app/out/sums.csv`."))
    assert found == {"/app/out/status": b"all checks passed\n"}
    with pytest.raises(NotApplicable):
        cheat_outputs.claims(study({"/app/out/sums.csv": b"a,1\n"}, instruction="Write `/app/out/sums.csv`."))


def test_a_stub_equals_everything() -> None:
    space: dict[str, object] = {}
    exec(cheat_outputs.stub(b"def area(a):\n    return a\n") or b"", space)
    assert space["area"](3) == 17  # pyright: ignore
    assert cheat_outputs.stub(b"print(1)\n") is None
    assert cheat_outputs.stub(b"def (") is None


@pytest.mark.skipif(Path("/tests").exists(), reason="the payload would take this machine for a verifier's")
@pytest.mark.parametrize(
    ("name", "first"), [("x.py", b""), ("x", b"#!/bin/sh\n"), ("x", b"#!/usr/bin/env python3\n")]
)
def test_programs_do_nothing_before_grading_and_end_as_told(tmp_path: Path, name: str, first: bytes) -> None:
    program = tmp_path / "program"
    program.write_bytes(payload_for(name, first, forge_shell(["it's"]), say="OK\n", code=3))
    program.chmod(0o755)
    done = subprocess.run([program], capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (3, b"OK\n")


def test_plants_lie_where_names_are_looked_up() -> None:
    drops = plants(
        folders=["/app/lib"], search_path=["/app/bin"], home="/home/agent", programs=[("/app/run.sh", b"#!/bin/sh\n")],
        git_configs=[("/app/.git/config", b"[core]\n")], rc_files=[], verifier_texts=["checker --all", "import units"],
        forge=forge_shell(["a"]),
    )  # fmt: skip
    paths = {drop.path for drop in drops}
    assert paths >= {
        "/app/lib/sitecustomize.py", "/app/lib/units.py", "/app/lib/conftest.py", "/app/bin/python3",
        "/app/bin/checker", "/app/run.sh", "/app/.git/config", "/home/agent/.bashrc",
    }  # fmt: skip


def test_a_source_unpacks_what_it_drops(tmp_path: Path) -> None:
    folder = write_source(
        tmp_path / "source", [Drop("/a/b", b"x", 0o755), Drop("/a/link", b"", link="/tests/x")]
    )
    with tarfile.open(folder / "drops.tar") as tar:
        assert [(m.name, m.mode, m.linkname) for m in tar] == [
            ("a/b", 0o755, ""),
            ("a/link", 0o644, "/tests/x"),
        ]
    subprocess.run(["bash", "-n", folder / "run.sh"], check=True)


def test_inputs_are_shortened_in_their_own_form() -> None:
    assert half("", b"h\n1\n2\n3\n") == b"h\n1\n"
    assert half("", b'{"a": [1, 2, 3, 4]}') == b'{\n "a": [\n  1,\n  2\n ]\n}\n'
    assert half("", b"one line") == b"one line"
    assert first_line("", b"h\n1\n") == b"h\n"


def test_scratch_is_no_delivery() -> None:
    assert is_scratch("/tmp/x")
    assert is_scratch("/app/__pycache__/x.pyc")
    assert not is_scratch("/tmp/x", ("/tmp/x",))
    assert not is_scratch("/app/out/x")
