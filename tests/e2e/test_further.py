"""The further examples: recordings replay byte for byte to accepted tasks, and worlds come from their own seeds."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SKILLS = ("caption-conform", "packet-filter-upkeep", "sign-in-forensics")
WORLDS = {
    "caption-conform/migrate-archive": ("world.py", "archive"),
    "packet-filter-upkeep/shrink-lists": ("world.py", "lists"),
    "sign-in-forensics/spray-detector": ("cases.py", "samples"),
    "sign-in-forensics/trace-takeover": ("world.py", "evidence"),
}


MINUTES = 20
"""Time limit of one compilation: two tasks, on a machine that others use as well."""


def compiled(shell: Any, skill: str, out: str) -> dict[str, Any]:
    """What `compile --json` says of one skill, replayed into a dataset and a run of their own."""
    further = shell.examples / "further"
    process = shell.start(
        "compile", further / "skills" / skill, "--recordings", further / "recordings", "--workflows", 2,
        "--out", out, "--allow-degraded", "--json",
    )  # fmt: skip
    said, complaint = process.communicate(timeout=60 * MINUTES)
    assert process.returncode == 0, complaint
    return json.loads(said)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


@pytest.mark.parametrize("task", WORLDS)
def test_a_world_is_what_its_seed_makes(task: str, repository: Path, tmp_path: Path) -> None:
    program, folder = WORLDS[task]
    files = repository / "examples/further/recordings" / task / "0/contract/files"
    subprocess.run(
        [sys.executable, "-B", str(files / "tests" / program), str(tmp_path)], check=True, timeout=60
    )
    assert contents(tmp_path) == contents(files / "environment/app" / folder)


def test_private_copies_equal_what_the_agent_gets(repository: Path) -> None:
    files = repository / "examples/further/recordings/packet-filter-upkeep/requests-to-rules/0/contract/files"
    copies = sorted((files / "tests").glob("private_*.csv"))
    assert len(copies) == 4
    for copy in copies:
        given = files / "environment/app" / copy.name.removeprefix("private_")
        assert copy.read_bytes() == given.read_bytes(), copy.name


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.vast
@pytest.mark.timeout(60 * MINUTES)
@pytest.mark.parametrize("skill", SKILLS)
def test_recordings_replay_byte_for_byte_to_accepted_tasks(skill: str, shell: Any) -> None:
    done = compiled(shell, skill, "out/further")
    assert done["counts"] == {"published": 2, "rejected": 0, "skipped": 0, "infra": 0}, done["reasons"]
    dataset = shell.folder / "out/further"
    for line in (dataset / "manifest.jsonl").read_text().splitlines():
        entry = json.loads(line)
        home = shell.examples / "further/recordings" / skill / entry["workflow"] / "0"
        recorded = {**contents(home / "contract/files"), **contents(home / "solution/files")}
        made = contents(dataset / entry["folder"])
        assert made.keys() - recorded.keys() == {"task.toml"}
        assert recorded.keys() - made.keys() == {"contract.json"}
        differing = {path for path in made.keys() & recorded.keys() if made[path] != recorded[path]}
        assert differing == {"environment/Dockerfile"}, "only the name of the base becomes its digest"
        ours, theirs = (files["environment/Dockerfile"].splitlines() for files in (recorded, made))
        assert ours[0] == b"FROM debian-bookworm"
        assert theirs[0].startswith(b"FROM ")
        assert b"@sha256:" in theirs[0]
        assert theirs[1:] == ours[1:]
        assert any(path.startswith("solution/alternatives/") for path in made), (
            "another right solution is shipped"
        )


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.vast
@pytest.mark.timeout(120 * MINUTES)
def test_a_replay_gives_the_same_dataset_again(shell: Any) -> None:
    for out in ("one/further", "two/further"):
        compiled(shell, "packet-filter-upkeep", out)
    assert contents(shell.folder / "one/further") == contents(shell.folder / "two/further")
