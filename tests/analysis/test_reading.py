"""Any folder of Harbor tasks can be read, and what is odd about it is said."""

import os
from pathlib import Path
from typing import Any

import pytest

from skill2env.analysis.reading import DATA_LIMIT, FILE_LIMIT, read_corpus
from skill2env.errors import UserError


def test_a_task_of_ours(make_task: Any, tmp_path: Path) -> None:
    make_task("one", skill="pdf-forms", axes={"tone": "terse"}, domain="cybersecurity")
    corpus = read_corpus(tmp_path / "data")
    (task,) = corpus.tasks
    assert (task.key, task.name, task.skill, task.domain, task.guessed) == (
        "one", "org/one", "pdf-forms", "cybersecurity", False,
    )  # fmt: skip
    assert dict(task.axes) == {"tone": "terse"}
    assert task.licence == "MIT"
    assert "Count every line once" in task.rubric
    assert "rubric" not in task.tests
    assert task.size == sum(p.stat().st_size for p in (tmp_path / "data/one").rglob("*") if p.is_file())
    assert corpus.diagnostics == ()


def test_oddities_are_told_and_none_is_fatal(make_task: Any, tmp_path: Path) -> None:
    make_task("a", rubric=None)
    make_task("b", instruction="  \n")
    (make_task("c") / "task.toml").write_text("schema_version = 1\n[task\n")
    (make_task("d") / "task.toml").write_text('schema_version = "9.9"\n[task]\nname = "org/a"\n')
    (make_task("e") / "tests/big.py").write_bytes(b"x = 1\n" * 9_000_000)
    (make_task("f") / "instruction.md").write_bytes("Zähle die Konten".encode("latin-1"))
    folder = make_task("g")
    (folder / "tests/link.py").symlink_to("/etc/passwd")
    os.mkfifo(folder / "tests/pipe.sh")
    (make_task("h") / "task.toml").unlink()
    corpus = read_corpus(tmp_path / "data")
    assert len(corpus.tasks) == 8
    assert corpus.counts() == {
        "no-plain-file": 2,
        "config-missing": 1,
        "config-unreadable": 1,
        "file-shortened": 1,
        "instruction-missing": 1,
        "name-twice": 1,
        "not-utf8": 1,
        "rubric-missing": 1,
        "schema-other": 1,
    }
    big = corpus.tasks[4]
    assert len(big.tests) < FILE_LIMIT + 1000
    assert "Z\ufffdhle" in corpus.tasks[5].instruction
    assert "root" not in corpus.tasks[6].tests


def test_data_counts_less_than_programs_and_binaries_not_at_all(make_task: Any, tmp_path: Path) -> None:
    folder = make_task("one")
    (folder / "tests/truth.json").write_text("7" * 100_000)
    (folder / "tests/logo.png").write_bytes(b"\x89PNG\0" * 100)
    (task,) = read_corpus(tmp_path / "data").tasks
    assert DATA_LIMIT <= len(task.tests) < DATA_LIMIT + 200


def test_domains_of_strangers_are_guessed_and_their_own_words_kept(tmp_path: Path) -> None:
    folder = tmp_path / "set/hash"
    (folder / "tests").mkdir(parents=True)
    (folder / "task.toml").write_text('version = "1.0"\n[metadata]\ncategory = "security"\n')
    (folder / "instruction.md").write_text(
        "Recover the password from the forensic memory dump, find the malware, the exploit and the attacker's"
        " vulnerability scan, and write an incident report about the intrusion and the leaked credentials."
    )
    (task,) = read_corpus(tmp_path / "set").tasks
    assert task.category == "security"
    assert task.domain == "cybersecurity"
    assert task.guessed
    assert not read_corpus(tmp_path / "set", domains=False).tasks[0].domain


def test_an_empty_folder_is_a_note_and_a_missing_one_a_mistake(tmp_path: Path) -> None:
    assert read_corpus(tmp_path).counts() == {"corpus-empty": 1}
    with pytest.raises(UserError, match="does not exist"):
        read_corpus(tmp_path / "nothing")


def test_only_what_is_asked_for_is_read(make_task: Any, tmp_path: Path) -> None:
    make_task("one", rubric=None)
    corpus = read_corpus(tmp_path / "data", parts=("instruction",))
    assert corpus.tasks[0].instruction
    assert corpus.tasks[0].tests == ""
    assert corpus.diagnostics == ()
