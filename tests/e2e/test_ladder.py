"""The drills of examples/training: every one is fair, pays for parts, pays nothing for nothing, and is accepted."""

import json
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from skill2env.authors.reference import factory_at
from skill2env.authors.registry import AuthorSettings, make_author
from skill2env.config import load_config
from skill2env.errors import UserError
from skill2env.harbor.likeness import SHORT, TWIN_INSTRUCTION
from skill2env.ingest import load_skill
from skill2env.plan import plan_workflows
from skill2env.similarity import renamed_ratio, tokens

SEEDS = range(4)
ALMOST = {
    "r1-write-word": ("echo", "echo the", 1 / 2),
    "r1-write-number": ("echo", "echo number:", 1 / 2),
    "r1-write-pair": ("echo", "echo and", 1 / 2),
    "r1-write-phrase": ("echo", "echo it reads", 1 / 2),
    "r1-write-in-folder": ("echo", "echo it says", 1 / 2),
    "r1-overwrite": (">", ">>", 1 / 2),
    "r1-write-setting": ("=", ": ", 1 / 2),
    "r1-write-capitals": (" >", " small >", 1 / 2),
    "r1-write-two-lines": ("%s\\n", "%s ", 2 / 3),
    "r1-write-three-lines": ("%s\\n", "%s ", 1 / 2),
    "r1-repeat-line": ("%s\\n", "%s ", 1 / 2),
    "r2-append-line": (">>", ">", 1 / 3),
    "r2-copy-file": ("", "head -n 3 {source} > {target}", 3 / 10),
    "r2-first-line": ("-n 1", "-n 2", 1 / 2),
    "r2-last-line": ("-n 1", "-n 2", 1 / 2),
    "r2-top-two": ("-n 2", "-n 3", 1 / 4),
    "r2-third-line": ("3p", "3,4p", 1 / 2),
    "r2-skip-heading": ("+2", "+3", 3 / 8),
    "r2-change-word": ("/'", "/;$a more'", 2 / 3),
    "r2-delete-line": ("sed -i", "sed -i -e 1d -e", 1 / 2),
    "r2-join-files": ("cat", "sort", 1 / 2),
    "r2-to-capitals": ("", "head -n 3 {source} | tr a-z A-Z > {target}", 3 / 8),
    "r3-count-lines": ("wc -l <", "wc -l", 1 / 2),
    "r3-count-words": ("wc -w <", "wc -w", 1 / 2),
    "r3-count-matching": ("", "{command}; echo lines >> {target}", 1 / 2),
    "r3-count-different": ("wc -l", "wc", 1 / 2),
    "r3-largest-number": ("tail -n 1", "tac", 1 / 2),
    "r3-keep-matching": ("grep", "grep -m 2", 1 / 3),
    "r3-drop-matching": ("grep -v", "grep -m 2 -v", 1 / 3),
    "r3-sort-lines": ("sort", "sort -r", 0),
    "r3-sort-numbers": ("sort -n", "sort -nr", 0),
    "r3-sort-unique": ("sort -u", "sort", 1 / 2),
    "r3-reverse-lines": ("tac", "tail -n 3", 1 / 12),
    "r3-comma-column": ("-f2", "-f1", 0),
    "r3-blank-column": ("-f1", "-f2", 0),
}
"""Drill -> a slip in its command (what is put for what, or a whole command), and what is left of the reward."""


@pytest.fixture(scope="module")
def drills(repository: Path) -> ModuleType:
    """The example's own module, loaded as the command line loads it."""
    make = factory_at(f"{repository}/examples/training/drills.py:make_author")
    return sys.modules[make.__module__]


class Played:
    """One drill in a folder instead of a container: its command and its verifier are run as they are, but for paths."""

    def __init__(self, drills: ModuleType, name: str, seed: int, folder: Path) -> None:
        kind = drills.KINDS[name]
        self.drill = kind.make(drills.Draw(seed))
        self.folder = folder / f"{name}-{seed}"
        files = kind.contract_files(self.drill)
        self.contract = json.loads(files["contract.json"])
        for path, text in files.items():
            place = self.folder / path.removeprefix("environment/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(self._moved(text) if path == "tests/grade.py" else text)
        (self.folder / "logs/verifier").mkdir(parents=True)
        self.given = {self._moved(path): Path(self._moved(path)).read_text() for path in self.drill.given}
        self.target = Path(self._moved(self.drill.target))
        self.program = compile((self.folder / "tests/grade.py").read_text(), name, "exec")

    def _moved(self, text: str) -> str:
        for top in ("app", "tests", "logs"):
            text = text.replace(f"/{top}/", f"{self.folder}/{top}/")
        return text

    def fresh(self) -> None:
        """As before any work."""
        self.target.unlink(missing_ok=True)
        for path, text in self.given.items():
            Path(path).write_text(text)

    def run(self, command: str) -> dict[str, float]:
        """What a command earns."""
        self.fresh()
        subprocess.run(["bash", "-c", self._moved(command)], check=True, timeout=20, capture_output=True)
        return self.graded()

    def deliver(self, text: str) -> dict[str, float]:
        """What a text in the place of the answer earns."""
        self.fresh()
        self.target.write_text(text)
        return self.graded()

    def graded(self) -> dict[str, float]:
        """The rewards, `reward` among them."""
        exec(self.program, {})
        return json.loads((self.folder / "logs/verifier/reward.json").read_text())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", ALMOST)


def test_the_table_is_whole(drills: ModuleType) -> None:
    assert sorted(drills.KINDS) == sorted(ALMOST)
    assert [kind.rung for kind in drills.KINDS.values()] == [1] * 11 + [2] * 11 + [3] * 13
    words = [*drills.Draw(0)._words, *sys.modules["drills_parts"].COLOURS]
    assert not [(one, other) for one in words for other in words if one != other and one in other]


def test_it_is_asked_briefly_and_names_every_path(drills: ModuleType, name: str) -> None:
    for seed in SEEDS:
        drill = drills.KINDS[name].make(drills.Draw(seed))
        assert len(drill.instruction.split()) <= 40
        assert drill.instruction.endswith("One short bash command is enough.")
        paths = [drill.target, *(drill.given if drill.private else ())]
        assert all(path in drill.instruction for path in paths)
        assert all(check.sentence in drill.sentences for check in drill.checks)
        assert 2 <= len(drill.checks) <= 3
        assert all(1 <= len(lines) <= 10 for lines in drill.given.values())
        assert drill.command.count("\n") == 0


def test_the_solution_earns_everything_and_nothing_earns_nothing(
    drills: ModuleType, name: str, tmp_path: Path
) -> None:
    for seed in SEEDS:
        played = Played(drills, name, seed, tmp_path)
        names = {metric["name"] for metric in played.contract["metrics"]}
        done = played.run(played.drill.command)
        assert done == dict.fromkeys([*names, "reward"], 1.0)
        right, zero = played.target.read_text(), dict.fromkeys(done, 0.0)
        played.fresh()
        assert played.graded() == zero
        worthless = ["", "\n", "x\n", "0\n", "1\n", "OK\n", "x\n" * right.count("\n"), *played.given.values()]
        for text in worthless:
            if text != right:
                assert played.deliver(text) == zero, text


def test_wrong_answers_of_the_right_form_lose(drills: ModuleType, name: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        played = Played(drills, name, seed, tmp_path)
        played.run(played.drill.command)
        lines = played.target.read_text().splitlines()
        for wrong in (
            lines[:-1],
            [*lines, "more"],
            ["more", *lines],
            [f"{lines[0]}s", *lines[1:]],
            lines[::-1],
        ):
            if wrong != lines:
                assert played.deliver("".join(f"{line}\n" for line in wrong))["reward"] < 1, wrong


def test_blanks_and_the_last_line_end_mean_nothing(drills: ModuleType, name: str, tmp_path: Path) -> None:
    played = Played(drills, name, 1, tmp_path)
    played.run(played.drill.command)
    right = played.target.read_text()
    for text in (right.rstrip("\n"), right + "\n", right.replace("\n", " \n"), right.replace("\n", "\r\n")):
        assert played.deliver(text)["reward"] == 1


def test_a_slip_is_paid_in_part(drills: ModuleType, name: str, tmp_path: Path) -> None:
    old, new, left = ALMOST[name]
    for seed in SEEDS:
        played = Played(drills, name, seed, tmp_path)
        source = next(iter(played.drill.given))
        command = played.drill.command
        parts = {"source": source, "target": played.drill.target, "command": command}
        slip = command.replace(old, new, 1) if old else new.format(**parts)
        assert slip != command
        assert played.run(slip)["reward"] == pytest.approx(left), slip


def test_no_two_drills_are_told_alike(drills: ModuleType) -> None:
    """Near-duplicates are rejected; what keeps drills apart is that each is asked in its own words."""
    for seed in SEEDS:
        told = [tokens(kind.make(drills.Draw(seed)).instruction) for kind in drills.KINDS.values()]
        assert min(map(len, told)) >= SHORT, "so short that only equal ones are compared"
        assert max(renamed_ratio(*pair) for pair in combinations(told, 2)) < TWIN_INSTRUCTION


def test_seeds_give_other_words(drills: ModuleType, name: str) -> None:
    kind = drills.KINDS[name]
    told = {kind.make(drills.Draw(seed)).instruction for seed in range(20)}
    assert len(told) == 20
    assert kind.make(drills.Draw(3)) == kind.make(drills.Draw(3))


def test_every_workflow_rests_on_the_skill(repository: Path) -> None:
    folder = repository / "examples/training/shell-files"
    config = load_config(repository / "configs/ladder.toml")
    author = make_author(config.author.name, AuthorSettings())
    plan = plan_workflows(load_skill(folder), folder, author, count=config.plan.workflows, seed=0)
    assert [workflow.name for workflow in plan.workflows] == list(ALMOST)
    assert plan.dropped == ()


def test_drills_can_be_chosen(repository: Path, drills: ModuleType) -> None:
    folder = repository / "examples/training/shell-files"
    name = f"{repository}/examples/training/drills.py:make_author"
    author = make_author(name, AuthorSettings(options={"drills": ["r2", "r3-count"]}))
    plan = plan_workflows(load_skill(folder), folder, author, count=50, seed=0)
    assert {workflow.name[:2] for workflow in plan.workflows} == {"r2", "r3"}
    assert len(plan.workflows) == 15
    assert author.identity != make_author(name, AuthorSettings()).identity
    with pytest.raises(UserError, match="no drill is called 'r4'"):
        make_author(name, AuthorSettings(options={"drills": ["r4"]}))
    with pytest.raises(UserError, match="no option 'rungs'"):
        make_author(name, AuthorSettings(options={"rungs": [1]}))


def test_other_skills_are_declined(repository: Path, drills: ModuleType) -> None:
    folder = repository / "examples/skills/expense-claim-audit"
    plan = plan_workflows(load_skill(folder), folder, drills.DrillAuthor(), count=3, seed=0)
    assert plan.skipped is not None
    assert "shell-files" in plan.skipped.detail


CHOICE = """
[author]
name = "{author}:make_author"

[author.options]
drills = ["r1-overwrite", "r2-append-line", "r3-sort-unique"]
"""


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_drill_of_each_rung_is_accepted(shell: Any) -> None:
    config = shell.folder / "choice.toml"
    config.write_text(CHOICE.format(author=shell.examples / "training/drills.py"))
    done = shell(
        "compile", shell.examples / "training/shell-files", "--config", config, "--out", "out/ladder",
        "--allow-degraded", "--json",
    )  # fmt: skip
    said = json.loads(done.stdout)
    assert said["counts"] == {"published": 3, "rejected": 0, "skipped": 0, "infra": 0}, said["reasons"]
    entries = [
        json.loads(line) for line in (shell.folder / "out/ladder/manifest.jsonl").read_text().splitlines()
    ]
    assert sorted(entry["workflow"] for entry in entries) == [
        "r1-overwrite",
        "r2-append-line",
        "r3-sort-unique",
    ]
