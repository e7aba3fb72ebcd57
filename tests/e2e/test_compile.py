import json
import os
import shutil
import subprocess
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sandbox


def tasks(dataset: Path) -> list[str]:
    return [json.loads(line)["name"] for line in (dataset / "manifest.jsonl").read_text().splitlines()]


def sessions(shell: Any, run: str) -> int:
    return json.loads(shell("run", "show", run, "--json").stdout)["spend"]["sessions"]


@pytest.mark.slow
def test_recorded_examples_from_skill_to_harbor(shell: Any, bytes_of: Callable[[Path], Any]) -> None:
    """The main job: six tasks that Harbor's own lint and oracle accept, found again in a second."""
    done = json.loads(shell(*shell.recorded("--json")).stdout)
    dataset = shell.folder / "out/examples"
    assert done["status"] == "finished"
    assert done["counts"] == {"published": 6, "rejected": 0, "skipped": 0, "infra": 0}
    assert len(tasks(dataset)) == 6
    before = bytes_of(dataset)
    held = sessions(shell, "out/runs/examples")
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(shell.folder / "pyc")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    used: list[float] = []
    for _ in range(3):
        start = os.times()
        again = subprocess.run(
            [*_program(), *map(str, shell.recorded("-q"))], cwd=shell.folder, env=environment, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        end = os.times()
        used.append(end.children_user + end.children_system - start.children_user - start.children_system)
    assert "6 tasks in" in again.stdout
    assert min(used) < 1.5, f"a finished example takes {min(used):.2f} s"
    assert bytes_of(dataset) == before
    assert sessions(shell, "out/runs/examples") == held, "nothing finished is done twice"
    assert "consistent" in shell("run", "audit", "out/runs/examples").stdout
    folders = [path.parent for path in sorted(dataset.glob("*/task.toml"))]
    harbor = Path(_program()[0]).with_name("harbor")
    lint = subprocess.run(
        [harbor, "lint", "--select", "ALL", *folders], capture_output=True, text=True, check=False
    )
    assert lint.returncode == 0, lint.stdout + lint.stderr
    verdicts = shell("verify", dataset, "--json").stdout.splitlines()
    assert Counter(json.loads(line)["verdict"] for line in verdicts) == {"accepted": 6}


def _program() -> list[str]:
    import sys

    return [sys.executable, "-m", "skill2env.cli.main"]


def test_published_tasks_carry_their_provenance(shell: Any) -> None:
    shell(*shell.demo())
    dataset = shell.folder / "out/demo"
    assert len(tasks(dataset)) == 3
    line = json.loads((dataset / "manifest.jsonl").read_text().splitlines()[0])
    facts = tomllib.loads((dataset / line["folder"] / "task.toml").read_text())["metadata"]["skill2env"]
    assert facts["skill"]["digest"] == line["skill_digest"]
    assert facts["freeze_digest"] == line["freeze_digest"]
    assert {g["gate"]: g["evidence"] for g in facts["gates"]} | line["gates"] == {
        g["gate"]: g["evidence"] for g in facts["gates"]
    }
    assert {"build", "nop", "oracle"} <= set(line["gates"])
    assert facts["level"] == "standard"
    for data in (dataset / line["folder"]).rglob("*"):
        if data.is_file():
            assert str(shell.folder).encode() not in data.read_bytes()
    shown = shell("dataset", "show", dataset).stdout
    assert "3 tasks" in shown
    assert "problem" not in shown


@pytest.mark.slow
@pytest.mark.vast
def test_a_benchmark_is_published_at_level_strict(shell: Any) -> None:
    def level_of(dataset: Path) -> str:
        (file,) = dataset.glob("*/task.toml")
        return tomllib.loads(file.read_text())["metadata"]["skill2env"]["level"]

    one = shell.folder / "skills/cafe"
    shell(*shell.demo(skills=one))
    held = sessions(shell, "out/runs/demo")
    done = shell(*shell.demo("--level", "strict", skills=one))
    assert "gates.level" in done.stderr, "the message names what changed"
    assert level_of(shell.folder / "out/demo") == "strict"
    assert sessions(shell, "out/runs/demo") == held, "no session is held again"
    wrong = shell(*shell.demo("--level", "paper", skills=one), code=2)
    assert "verify.level" in wrong.stderr
    assert "standard" in wrong.stderr


@pytest.mark.slow
def test_same_seed_same_bytes_other_seed_other_axes(shell: Any, bytes_of: Callable[[Path], Any]) -> None:
    shell(*shell.demo("--seed", 7, "--workers", 1, out="one/demo"))
    shell(*shell.demo("--seed", 7, "--workers", 4, out="two/demo"))
    shell(*shell.demo("--seed", 8, out="three/demo"))
    assert bytes_of(shell.folder / "one/demo") == bytes_of(shell.folder / "two/demo")
    axes = [
        sorted(
            json.dumps(json.loads(line)["axes"]) for line in (shell.folder / name).read_text().splitlines()
        )
        for name in ("one/demo/manifest.jsonl", "three/demo/manifest.jsonl")
    ]
    assert axes[0] != axes[1]


@pytest.mark.slow
def test_every_rejection_and_skip_is_kept_with_its_reason(shell: Any) -> None:
    rejected = shell.examples / "rejected"
    wanted = len([path for path in (rejected / "recordings").glob("*/*") if path.is_dir()])
    done = json.loads(
        shell(
            "compile", rejected / "skills", "--recordings", rejected / "recordings", "--workflows", 50, "--json"
        ).stdout
    )  # fmt: skip
    assert done["status"] == "finished"
    assert done["unfinished"] == 0
    assert sum(row["count"] for row in done["reasons"]) == wanted
    assert not done["counts"]["published"]
    run = Path(done["run_folder"])
    for attempt in done["attempts"]:
        assert attempt["reason"]
        if attempt["status"] == "skipped":
            assert not attempt["candidate"]
        elif attempt["candidate"]:
            assert (run / attempt["candidate"]).is_dir()
            for gate in attempt["verdict"]["gates"]:
                if gate["outcome"] == "rejected":
                    assert (run / gate["evidence"]).is_dir(), "the evidence is kept"
    assert "consistent" in shell("run", "audit", run).stdout


@pytest.mark.slow
def test_harbor_itself_runs_the_dataset(shell: Any) -> None:
    """``harbor run`` with our environment and its own oracle, as the card says."""
    shell(*shell.demo(skills=shell.folder / "skills/cafe"))
    harbor = Path(_program()[0]).with_name("harbor")
    command = [
        harbor,
        "run",
        "-p",
        "out/demo",
        "-a",
        "oracle",
        "-e",
        "skill2env.sandbox:NamespaceEnvironment",
    ]
    quiet = {**os.environ, "HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "true"}
    done = subprocess.run(
        [*command, "--jobs-dir", "jobs"],
        cwd=shell.folder,
        env=quiet,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = [json.loads(path.read_text()) for path in (shell.folder / "jobs").glob("*/*/result.json")]
    assert len(results) == 1
    assert results[0]["verifier_result"]["rewards"]["reward"] == 1
    assert results[0]["exception_info"] is None


@pytest.mark.slow
@pytest.mark.vast
def test_one_dataset_of_two_runs(shell: Any) -> None:
    shell(*shell.demo("--run", "runs/a", skills=shell.folder / "skills/cafe"))
    shell(*shell.demo("--run", "runs/b", skills=shell.folder / "skills/depot"))
    dataset = shell.folder / "out/demo"
    assert len(tasks(dataset)) == 2
    assert tomllib.loads((dataset / "dataset.toml").read_text())["dataset"]["version"] == "1.1.0"
    for run in ("runs/a", "runs/b"):
        assert "consistent" in shell("run", "audit", run).stdout
    shell("dataset", "drop", dataset, "--skill", "cafe")
    assert len(tasks(dataset)) == 1
    again = json.loads(
        shell(*shell.demo("--run", "runs/a", "--json", skills=shell.folder / "skills/cafe")).stdout
    )
    assert again["reasons"][0]["reason"] == "taken_down"
    assert len(tasks(dataset)) == 1


@pytest.mark.slow
@pytest.mark.vast
def test_new_terms_of_a_skill_are_published_without_new_work(shell: Any) -> None:
    """A licence file that appears around a skill does not change its bytes, but what the dataset has to say."""
    arguments = shell.demo(skills=shell.folder / "skills/cafe")
    shell(*arguments)
    held = sessions(shell, "out/runs/demo")
    shutil.copyfile(shell.examples.parent / "LICENSE", shell.folder / "skills/LICENSE")
    shell(*arguments)
    entry = json.loads((shell.folder / "out/demo/manifest.jsonl").read_text())
    assert entry["licence"] == "Apache-2.0"
    assert entry["licence_evidence"] == "repository"
    notices = shell.folder / "out/demo/LICENSES" / entry["notices"]
    assert "Apache" in (notices / "LICENSE").read_text()
    assert json.loads((notices / "NOTICE.json").read_text())["licence"] == "Apache-2.0"
    assert sessions(shell, "out/runs/demo") == held
    assert "consistent" in shell("run", "audit", "out/runs/demo").stdout


@pytest.mark.slow
@pytest.mark.vast
def test_a_deleted_dataset_comes_back(shell: Any, bytes_of: Callable[[Path], Any]) -> None:
    arguments = shell.demo(skills=shell.folder / "skills/cafe")
    shell(*arguments)
    before = bytes_of(shell.folder / "out/demo")
    held = sessions(shell, "out/runs/demo")
    shutil.rmtree(shell.folder / "out/demo")
    shell(*arguments)
    assert bytes_of(shell.folder / "out/demo") == before
    assert sessions(shell, "out/runs/demo") == held


def test_a_tampered_run_is_found(shell: Any) -> None:
    shell(*shell.demo(skills=shell.folder / "skills/cafe"))
    candidate = next((shell.folder / "out/runs/demo/candidates").iterdir())
    (candidate / "tests/test.sh").write_text("#!/bin/bash\necho tampered\n")
    (shell.folder / "out/runs/demo/candidates/stray").mkdir()
    said = shell("run", "audit", "out/runs/demo", code=1).stdout
    assert "the kept candidate differs from its seal" in said
    assert "stray: a candidate that the ledger does not know" in said


def test_plain_mistakes_have_plain_messages(shell: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments, said in (
        (["compile", "absent"], "does not exist"),
        (["compile", "empty"], "no SKILL.md"),
        (["compile", "skills", "--author", "nobody"], "no author is called 'nobody'"),
        (["compile", "skills", "--solution", "peek"], "'informed' or 'blind'"),
        (["compile", "skills", "--config", "absent.toml"], "cannot read the configuration"),
        (["compile", "skills", "--out", "o", "--run", "o/run"], "lie inside each other"),
        (["run", "show", "empty"], "is not a run folder"),
        (["run", "audit", "empty"], "is not a run folder"),
        (["dataset", "show", "empty"], "is not a dataset folder"),
        (["dataset", "drop", "empty"], "nothing to take down"),
    ):
        done = shell(*arguments, code=2)
        assert said in done.stderr, arguments
        assert "Traceback" not in done.stderr
        assert not done.stdout


def test_json_goes_to_standard_output_alone(shell: Any) -> None:
    done = shell(*shell.demo("--json", skills=shell.folder / "skills/cafe"))
    document = json.loads(done.stdout)
    assert not done.stderr
    assert document["dataset"]["tasks"] == 1
    assert document["attempts"][0]["status"] == "published"
    begun = time.monotonic()
    listed = json.loads(shell("run", "list", "--json").stdout)
    assert listed[0]["published"] == 1
    assert time.monotonic() - begun < 20
