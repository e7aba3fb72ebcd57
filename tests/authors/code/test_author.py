"""The author from skill to task: what it declines, what it writes, and that nothing but a real repair is rewarded."""

import json
import shlex
from pathlib import Path

import pytest

from skill2env.authors.code import study as study_module
from skill2env.authors.code.author import CodeAuthor, LicencePolicy
from skill2env.authors.code.bench import BenchFailed, as_object
from skill2env.authors.code.contract import reverse, solution_files, write_files
from skill2env.authors.code.faults.sites import find_sites
from skill2env.authors.code.libraries import choose
from skill2env.authors.code.study import study
from skill2env.authors.code.templates import apply as apply_module
from skill2env.authors.code.understand import Project
from skill2env.authors.protocol import CreateRequest, PlanRequest
from skill2env.axes import Complexity
from skill2env.ingest import load_skill
from skill2env.records import (
    Axes,
    Licence,
    LicenceEvidence,
    Phase,
    Skill,
    Skipped,
    SkipReason,
    TaskContract,
    TaskSpec,
    Workflow,
)
from skill2env.sandbox.session import Sandbox, SandboxSpec


@pytest.fixture(scope="session")
def author(base_layers: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> CodeAuthor:
    del base_layers
    return CodeAuthor(cache=tmp_path_factory.mktemp("kept"))


@pytest.fixture(scope="session")
def flows(author: CodeAuthor, parcel_skill: Skill, parcel_dir: Path) -> list[Workflow]:
    reply = author.plan(PlanRequest(parcel_skill, parcel_dir, 99, "", 0))
    assert reply.skipped is None
    found = [Workflow.model_validate(item) for item in json.loads(reply.text)]
    return [flow for flow in found if flow.suitable["archetype"] == ("repair",)]


def spec_of(skill: Skill, flow: Workflow, complexity: str = Complexity.SHORT, seed: int = 7) -> TaskSpec:
    axes = Axes(
        archetype="repair", verifier_pattern="behavioural", complexity=complexity,
        persona="operator", tone="terse", expertise="practitioner",
    )  # fmt: skip
    return TaskSpec(
        skill_digest=skill.digest,
        skill_slug=skill.slug,
        workflow=flow,
        axes=axes,
        seed=seed,
        variant=0,
        task_name="t/t",
    )


def make(author: CodeAuthor, spec: TaskSpec, skill: Skill, folder: Path, target: Path) -> Path:
    for phase in (Phase.CONTRACT, Phase.SOLUTION):
        reply = author.create(CreateRequest(spec, skill, folder, phase, target, ""))
        assert reply.skipped is None
    return target / "task"


# ------------------------------------------------------------------------------------------------ declining


@pytest.mark.parametrize(
    ("licence", "word"),
    [
        (Licence(), "no licence"),
        (Licence(spdx="GPL-3.0-only", evidence=LicenceEvidence.SKILL_FILE), "not among"),
        (Licence(spdx="LicenseRef-Proprietary", evidence=LicenceEvidence.SKILL_FILE), "not among"),
        (Licence(spdx="MIT AND GPL-2.0-only", evidence=LicenceEvidence.SKILL_FILE), "not among"),
        (Licence(spdx="MIT", evidence=LicenceEvidence.AGGREGATOR), "weak"),
        (Licence(spdx="MIT OR GPL-2.0-only", evidence=LicenceEvidence.REPOSITORY), ""),
        (Licence(spdx="(Apache-2.0 AND BSD-3-Clause)", evidence=LicenceEvidence.FRONT_MATTER), ""),
    ],
)
def test_licences(licence: Licence, word: str, parcel_skill: Skill, parcel_dir: Path) -> None:
    refusal = LicencePolicy().refusal(licence)
    assert (word in refusal) if word else refusal == ""
    if word:
        other = parcel_skill.model_copy(update={"licence": licence})
        reply = CodeAuthor().plan(PlanRequest(other, parcel_dir, 3, "", 0))
        assert reply.skipped is not None
        assert reply.skipped.reason is SkipReason.LICENCE


UNSTABLE = SkipReason.NO_STABLE_BEHAVIOUR


def skill_of(folder: Path, files: dict[str, str]) -> Skill:
    files = {
        "SKILL.md": "---\nname: toy\ndescription: Toy.\nlicense: MIT\n---\n# Toy\nThis toy computes things.\n",
        **files,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return load_skill(folder)


def test_no_python(tmp_path: Path) -> None:
    found = study(skill_of(tmp_path, {"run.sh": "echo hi\n", "tests/test_x.py": "x = 1\n"}), tmp_path, None)
    assert isinstance(found, Skipped)
    assert found.reason is SkipReason.NO_CODE
    assert ".sh" in found.detail


@pytest.mark.sandbox
@pytest.mark.network
@pytest.mark.parametrize(
    ("code", "reason", "word"),
    [
        ("import numpoo\n\ndef f(x): return numpoo.abs(x)\n", SkipReason.CODE_NOT_ALIVE, "numpoo"),
        ("def f(n: int) -> int: return n\n", SkipReason.NO_FAULT_FOUND, "no fault"),
        ("import random\n\ndef f(n: int) -> float: return random.random() + n\n", UNSTABLE, "repeat"),
        ("import time\n\ndef f(n: int) -> int: return int(time.time()) // 86400 + n\n", UNSTABLE, "repeat"),
        ("def f(text: str) -> list: return list(set(text * 3))\n", UNSTABLE, "repeat"),
        ("def f(n: int) -> str: return __file__ * n\n", SkipReason.NO_FAULT_FOUND, "no fault"),
        ("import os\n\ndef f(n: int) -> int: os._exit(n)\n", UNSTABLE, "repeat"),
    ],
)  # fmt: skip
def test_code_that_gives_no_task(
    tmp_path: Path, author: CodeAuthor, code: str, reason: SkipReason, word: str
) -> None:
    del author  # skips where no sandbox starts
    found = study(skill_of(tmp_path, {"m.py": code, "notes.md": "`abc` `a` `b c`\n"}), tmp_path, None)
    assert isinstance(found, Skipped)
    assert (found.reason, word in found.detail) == (reason, True), found.detail


def test_planning_image_needs_no_more_than_the_base() -> None:
    assert study_module.planning_dockerfile(choose(())).startswith("FROM debian-bookworm\nRUN apt-get")


@pytest.mark.parametrize("data", [b"", b"[]", b"1", b"{", b"\xff", b"[" * 100_000])
def test_untrusted_answers(data: bytes) -> None:
    with pytest.raises(BenchFailed):
        as_object(data)


# ------------------------------------------------------------------------------------------------ the solution


def test_the_reverse_change_restores_every_byte(
    parcel_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = parcel_project.modules["parcel_rates.py"]
    sites = [site for site in find_sites(module.file, module.source) if site.function]
    pairs = [(a, b) for a in sites[::5] for b in sites[::7] if a.edit.end < b.edit.start][:20]
    assert pairs
    for number, pair in enumerate(pairs):
        broken = module.source.apply(*(site.edit for site in pair))
        project = tmp_path / str(number)
        back = reverse(parcel_project, {module.file: [site.edit for site in pair]})
        write_files(solution_files(parcel_project, {module.file: broken}, back), project)
        write_files({module.file: broken}, project / "app")
        monkeypatch.setattr(apply_module, "__file__", str(project / "solution" / "apply.py"))
        monkeypatch.setattr("sys.argv", ["apply.py", str(project / "app")])
        apply_module.main()
        assert (project / "app" / module.file).read_text() == module.source.text
        with pytest.raises(SystemExit, match="not the file"):
            apply_module.main()


# ------------------------------------------------------------------------------------------------ whole tasks


@pytest.mark.sandbox
@pytest.mark.network
def test_workflows_are_grounded_and_repeat(
    flows: list[Workflow], author: CodeAuthor, parcel_skill: Skill, parcel_dir: Path, tmp_path: Path
) -> None:
    assert flows
    for flow in flows:
        assert all(sentence in parcel_skill.body for sentence in flow.grounding)
    fresh = CodeAuthor(cache=tmp_path)
    again = fresh.plan(PlanRequest(parcel_skill, parcel_dir, 3, "", 0))
    assert again == author.plan(PlanRequest(parcel_skill, parcel_dir, 3, "", 0))
    for number, one in enumerate((author, fresh, CodeAuthor(cache=tmp_path))):
        make(
            one,
            spec_of(parcel_skill, flows[0], Complexity.MODERATE),
            parcel_skill,
            parcel_dir,
            tmp_path / f"t{number}",
        )
    trees = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / f"t{number}" for number in range(3))
    ]
    assert trees[0] == trees[1] == trees[2]


@pytest.mark.sandbox
@pytest.mark.network
def test_task_files(
    flows: list[Workflow], author: CodeAuthor, parcel_skill: Skill, parcel_dir: Path, tmp_path: Path
) -> None:
    task = make(author, spec_of(parcel_skill, flows[0]), parcel_skill, parcel_dir, tmp_path)
    contract = TaskContract.model_validate_json((task / "contract.json").read_text())
    instruction = (task / "instruction.md").read_text()
    assert all(metric.sentence in instruction for metric in contract.metrics)
    assert contract.artifacts == ("/app/parcel-rates",)
    world = {
        path.relative_to(task / "environment/project").as_posix()
        for path in (task / "environment/project").rglob("*.py")
    }
    assert not any("test" in name for name in world)
    assert "parcel_rates.py" in world
    changes = json.loads((task / "solution/change.json").read_text())
    assert list(changes) == ["parcel_rates.py"]
    assert all(path.parent == task / "tests" for path in (task / "tests").rglob("*"))


def run_verifier(
    layers: tuple[Path, ...], task: Path, prepare: str, delivered: dict[str, str]
) -> dict[str, float]:
    """Rewards after `delivered` was written into the project and `prepare` ran there as the agent."""
    with Sandbox(SandboxSpec(layers=layers)) as box:
        box.exec(["/bin/sh", "-c", "useradd -m agent && mkdir -p /app /logs/verifier"])
        box.put(task / "environment/project", "/app/parcel-rates", owner="agent")
        box.exec(["chown", "agent:agent", "/app/parcel-rates"])
        box.put(task / "solution", "/solution")
        for name, text in delivered.items():
            box.exec(["/bin/sh", "-c", f"cat > /app/parcel-rates/{name}"], stdin=text.encode(), user="agent")
        done = box.exec(["/bin/bash", "-c", prepare], user="agent", cwd="/app/parcel-rates")
        assert done.return_code == 0, done.stderr
        box.put(task / "tests", "/tests")
        graded = box.exec(
            ["/bin/bash", "/tests/test.sh"], cwd="/nowhere" if not prepare else "/tmp", timeout_sec=90
        )
        assert not graded.timed_out
        found = json.loads(box.exec(["cat", "/logs/verifier/reward.json"]).stdout)
        text = box.exec(["cat", "/logs/verifier/reward.txt"]).stdout
        assert float(text) == found["reward"], graded.stderr
        return found


def constants(task: Path) -> str:
    """A project that answers every reported call with what its expected.txt says, and everything else with that too."""
    texts = [
        path.read_text() for path in sorted((task / "environment/project/reports").rglob("expected.txt"))
    ]
    return f"RIGHT = {texts!r}\ndef __getattr__(name):\n    return lambda *a, **k: eval(RIGHT[0])\n"


@pytest.mark.sandbox
@pytest.mark.network
@pytest.mark.slow
def test_only_a_repair_is_rewarded(
    flows: list[Workflow],
    author: CodeAuthor,
    parcel_skill: Skill,
    parcel_dir: Path,
    base_layers: tuple[Path, ...],
    tmp_path: Path,
) -> None:
    task = make(author, spec_of(parcel_skill, flows[0]), parcel_skill, parcel_dir, tmp_path)
    code = (task / "environment/project/parcel_rates.py").read_text()
    spy = (
        "import os, glob\nfor p in glob.glob('/tests/*') + ['/tests']:\n    try: print(open(p).read())\n"
        "    except OSError: pass\n    else: raise SystemExit('open')\n"
    )
    forged = 'import os\n[os.write(n, b\'{"id": "x", "outcome": 1}\\n\' * 9) for n in range(3, 5)]\n'
    tries: dict[str, tuple[str, dict[str, str]]] = {
        "nothing": ("true", {}),
        "empty": ("true", {"parcel_rates.py": ""}),
        "constants": ("true", {"parcel_rates.py": constants(task)}),
        "syntax": ("true", {"parcel_rates.py": "def ("}),
        "gone": ("rm -rf /app/parcel-rates/*", {}),
        "exit": ("true", {"parcel_rates.py": code + "\nimport os\nos._exit(0)\n"}),
        "hang": ("true", {"parcel_rates.py": code + "\nwhile True: pass\n"}),
        "forged": ("true", {"parcel_rates.py": forged + code}),
        "planted": (
            "mkdir -p ~/bin; echo 'echo {}' > ~/bin/python3; (echo 1 > /logs/verifier/reward.txt) || true",
            {"sitecustomize.py": "raise SystemExit", "child.py": "x"},
        ),
        "spy": ("true", {"parcel_rates.py": spy + code}),
    }  # fmt: skip
    for name, (prepare, delivered) in tries.items():
        rewards = run_verifier(base_layers, task, prepare, delivered)
        assert set(rewards.values()) == {0.0}, (name, rewards)
    assert set(run_verifier(base_layers, task, "/solution/solve.sh", {}).values()) == {1.0}
    nosy = "import os\nif os.access('/tests', os.R_OK | os.X_OK): raise SystemExit(1)\n"
    curious = f"/solution/solve.sh && printf %s {shlex.quote(nosy)} | cat - parcel_rates.py > x && mv x parcel_rates.py"
    assert set(run_verifier(base_layers, task, curious, {}).values()) == {1.0}, (
        "the child can read the answers"
    )


@pytest.mark.sandbox
@pytest.mark.network
@pytest.mark.slow
def test_breaking_what_worked_or_mending_only_the_reports_costs(
    flows: list[Workflow],
    author: CodeAuthor,
    parcel_skill: Skill,
    parcel_dir: Path,
    base_layers: tuple[Path, ...],
    tmp_path: Path,
) -> None:
    task = make(author, spec_of(parcel_skill, flows[0]), parcel_skill, parcel_dir, tmp_path)
    broken_too = "/solution/solve.sh && sed -i 's/.*parcels, .*/    print(len(result))/' parcel_rates.py"
    rewards = run_verifier(base_layers, task, broken_too, {})
    assert rewards["kept_behaviour"] == 0.0
    assert rewards["reward"] < 1.0


@pytest.mark.sandbox
@pytest.mark.network
def test_repair_gives_up(
    flows: list[Workflow], author: CodeAuthor, parcel_skill: Skill, parcel_dir: Path, tmp_path: Path
) -> None:
    reply = author.create(
        CreateRequest(spec_of(parcel_skill, flows[0]), parcel_skill, parcel_dir, Phase.REPAIR, tmp_path, "")
    )
    assert reply.skipped is not None
    assert reply.skipped.reason is SkipReason.AUTHOR_GAVE_UP
