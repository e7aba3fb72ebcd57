"""One whole task of each family: nothing and tricks earn nothing, the reference solution earns everything."""

import json
import re
from pathlib import Path

import pytest

from skill2env.authors.code.author import CodeAuthor
from skill2env.authors.code.families.table import FAMILIES, all_offers
from skill2env.authors.code.study import Study, study
from skill2env.authors.protocol import CreateRequest, PlanRequest
from skill2env.axes import Complexity
from skill2env.records import Axes, Phase, Skill, TaskContract, TaskSpec, Workflow
from skill2env.sandbox.session import Sandbox, SandboxSpec

pytestmark = [pytest.mark.sandbox, pytest.mark.network]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def author(base_layers: tuple[Path, ...], cache: Path) -> CodeAuthor:
    del base_layers
    return CodeAuthor(cache=cache)


@pytest.fixture(scope="module")
def flows(author: CodeAuthor, parcel_skill: Skill, parcel_dir: Path) -> list[Workflow]:
    reply = author.plan(PlanRequest(parcel_skill, parcel_dir, 99, "", 0))
    assert reply.skipped is None
    return [Workflow.model_validate(item) for item in json.loads(reply.text)]


PREFIX = {
    "repair": "wrong-results",
    "rebuild": "rebuild",
    "migrate": "migrate",
    "author-tests": "write-tests",
    "operate": "operate",
}


def make(author: CodeAuthor, flow: Workflow, skill: Skill, folder: Path, target: Path) -> Path:
    axes = Axes(
        archetype=flow.suitable["archetype"][0], verifier_pattern=flow.suitable["verifier_pattern"][0],
        complexity=Complexity.SHORT, persona="operator", tone="sceptical", expertise="practitioner",
    )  # fmt: skip
    spec = TaskSpec(
        skill_digest=skill.digest, skill_slug=skill.slug, workflow=flow, axes=axes, seed=7, variant=0, task_name="t/t"
    )  # fmt: skip
    for phase in (Phase.CONTRACT, Phase.SOLUTION):
        reply = author.create(CreateRequest(spec, skill, folder, phase, target, ""))
        assert reply.skipped is None
    return target / "task"


def graded(layers: tuple[Path, ...], task: Path, prepare: str) -> dict[str, float]:
    """Metrics after `prepare` ran in the project as the agent."""
    with Sandbox(SandboxSpec(layers=layers)) as box:
        box.exec(["/bin/sh", "-c", "useradd -m agent && mkdir -p /app /logs/verifier"])
        box.put(task / "environment/project", "/app/parcel-rates", owner="agent")
        box.exec(["chown", "agent:agent", "/app/parcel-rates"])
        box.put(task / "solution", "/solution")
        done = box.exec(["/bin/bash", "-c", prepare], user="agent", cwd="/app/parcel-rates")
        assert done.return_code == 0, done.stderr
        box.put(task / "tests", "/tests")
        assert not box.exec(["/bin/bash", "/tests/test.sh"], cwd="/tmp", timeout_sec=110).timed_out
        return json.loads(box.exec(["cat", "/logs/verifier/reward.json"]).stdout)


def checks(body: str, head: str = "import hashlib, os, unittest") -> str:
    """Shell command that delivers one test."""
    lines = [
        head,
        "class T(unittest.TestCase):",
        "    def test(self):",
        *(f"        {line}" for line in body.split("; ")),
    ]
    text = "\n".join(lines)
    return f"mkdir -p checks && cat > checks/test_x.py <<E\n{text}\nE"


BY_TEXT = "self.assertEqual('$H', hashlib.sha256(open('parcel_rates.py', 'rb').read()).hexdigest())"
ONCE = "seen = os.path.exists('/tmp/seen'); open('/tmp/seen', 'a').close(); self.assertFalse(seen)"
TRICKS: dict[str, list[str]] = {
    "author-tests": [
        checks("self.fail()"),
        checks("pass"),
        f"H=$(sha256sum parcel_rates.py | cut -c-64); {checks(BY_TEXT)}",
        checks(ONCE),
    ],
    "operate": [
        "cp -r inbox outbox",
        "mkdir outbox && ln -s /tests/truth.json outbox/results.json && ln -s /etc/passwd outbox/summary.json",
    ],
    "rebuild": ["sed -i 's/raise NotImplementedError.*/return None/' parcel_rates.py"],
    "migrate": ["printf 'def __getattr__(name): return lambda *a, **k: {}\\n' >> parcel_rates.py"],
    "repair": ["rm -rf reports && mkdir reports"],
}


@pytest.mark.slow
@pytest.mark.parametrize("family", [family.name for family in FAMILIES])
def test_the_reference_earns_all_and_tricks_earn_nothing(
    family: str,
    flows: list[Workflow],
    author: CodeAuthor,
    parcel_skill: Skill,
    parcel_dir: Path,
    base_layers: tuple[Path, ...],
    tmp_path: Path,
) -> None:
    flow = next(flow for flow in flows if flow.name.startswith(PREFIX[family]))
    assert all(sentence in parcel_skill.body for sentence in flow.grounding)
    task = make(author, flow, parcel_skill, parcel_dir, tmp_path)
    contract = TaskContract.model_validate_json((task / "contract.json").read_text())
    instruction = (task / "instruction.md").read_text()
    assert all(metric.sentence in instruction for metric in contract.metrics)
    assert not re.search(r"\{[a-z_]+\}", instruction)
    for trick in ["true", *TRICKS[family]]:
        assert set(graded(base_layers, task, trick).values()) == {0.0}, trick
    rewards = graded(base_layers, task, "/solution/solve.sh")
    assert set(rewards) == {"reward", *(metric.name for metric in contract.metrics)}
    assert set(rewards.values()) == {1.0}, rewards


def test_families_take_turns_and_names_are_their_own(
    parcel_skill: Skill, parcel_dir: Path, author: CodeAuthor, flows: list[Workflow], cache: Path
) -> None:
    del author
    found = study(parcel_skill, parcel_dir, cache)
    assert isinstance(found, Study)
    offers = all_offers(parcel_skill, found)
    assert [offer.workflow for _, offer in offers] == flows
    assert {family.name for family, _ in offers[: len(FAMILIES)]} == {family.name for family in FAMILIES}
    assert len({flow.name for flow in flows}) == len(flows)
