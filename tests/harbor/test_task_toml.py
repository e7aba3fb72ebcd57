import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill2env.errors import UserError
from skill2env.harbor.task import read_task
from skill2env.harbor.task_toml import Provenance, render_task_toml, strip_metadata
from skill2env.records import (
    AuthorIdentity,
    GateOutcome,
    GateResult,
    Metric,
    Skill,
    TaskContract,
)


def _render(builder: ModuleType, contract: TaskContract | None = None, *, final: bool = True) -> str:
    provenance = builder.PROVENANCE if final else None
    return render_task_toml(builder.SPEC, contract or builder.CONTRACT, builder.SKILL, provenance)


def test_settings_are_what_the_task_format_asks_for(builder: ModuleType) -> None:
    data = tomllib.loads(_render(builder, final=False))
    assert "metadata" not in data
    assert data["schema_version"] == "1.4"
    assert data["task"]["name"] == "skill2env/count-crates"
    assert data["artifacts"] == ["/app/out"]
    assert data["agent"] | {"timeout_sec": 0} == {
        "network_mode": "no-network",
        "timeout_sec": 0,
        "user": "agent",
    }
    assert data["verifier"]["environment_mode"] == "separate"
    assert {data[part]["network_mode"] for part in ("agent", "verifier", "environment")} == {"no-network"}
    assert data["environment"]["memory_mb"] == builder.CONTRACT.limits.memory_mb


def test_provenance_is_complete(builder: ModuleType) -> None:
    gate = GateResult(gate="nop", outcome=GateOutcome.PASSED, values={"metric:sum": 0.0})
    provenance = Provenance(
        author=AuthorIdentity(name="builtin", model="m", version="1", digest="sha256:aa"),
        freeze_digest="sha256:bb",
        prompt_digests=("sha256:cc",),
        base_image="debian-bookworm@sha256:dd",
        gates=(gate,),
    )
    text = render_task_toml(builder.SPEC, builder.CONTRACT, builder.SKILL, provenance)
    ours = tomllib.loads(text)["metadata"]["skill2env"]
    assert ours["skill"]["digest"] == builder.SKILL.digest
    assert ours["author"] == {"name": "builtin", "model": "m", "version": "1", "digest": "sha256:aa"}
    assert ours["freeze_digest"] == "sha256:bb"
    assert ours["prompt_digests"] == ["sha256:cc"]
    assert ours["base_image"] == "debian-bookworm@sha256:dd"
    assert ours["gates"] == [{"gate": "nop", "outcome": "passed", "evidence": gate.evidence_digest()}]
    assert ours["metric_sources"] == {metric.name: metric.sentence for metric in builder.CONTRACT.metrics}
    assert ours["axes"]["persona"] == "clerk"
    assert ours["seed"] == 7
    assert ours["workflow"]["name"] == "count-crates"


def test_same_input_gives_same_bytes(builder: ModuleType) -> None:
    assert _render(builder) == _render(builder)


def test_metadata_is_all_that_the_seal_leaves_out(builder: ModuleType) -> None:
    assert strip_metadata(_render(builder)) == _render(builder, final=False)


TEXTS = st.text(
    st.characters(
        codec="utf-8",
    ),
    min_size=3,
    max_size=60,
)


@settings(max_examples=200)
@given(title=TEXTS, sentence=TEXTS, keyword=TEXTS)
def test_any_text_survives(builder: ModuleType, title: str, sentence: str, keyword: str) -> None:
    contract = TaskContract(
        title=title,
        metrics=(Metric(name="a", sentence=sentence), Metric(name="b", sentence="B")),
        artifacts=("/app/out",),
        keywords=(keyword,),
    )
    text = _render(builder, contract)
    data = tomllib.loads(text)
    assert data["task"]["description"] == title
    assert data["metadata"]["skill2env"]["metric_sources"]["a"] == sentence
    assert strip_metadata(text) == _render(builder, contract, final=False)


def test_bad_artifact_is_the_contracts_fault(builder: ModuleType) -> None:
    contract = builder.CONTRACT.model_copy(update={"artifacts": ("/app/../etc",)})
    with pytest.raises(UserError) as caught:
        _render(builder, contract)
    assert "contract.json" in caught.value.hint


def test_facts_of_our_own_task(builder: ModuleType, tmp_path: object) -> None:
    task = builder.build_task(tmp_path, reference="x")
    facts = read_task(task)
    assert (facts.mode, facts.agent_user, facts.artifacts) == ("separate", "agent", ("/app/out",))
    assert facts.networks == {"environment": "no-network", "agent": "no-network", "verifier": "no-network"}
    assert facts.metadata["seed"] == 7
    assert facts.host_variables == ()


def test_host_variables_are_found_wherever_they_hide(
    builder: ModuleType, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def config(text: str) -> str:
        sections = ("verifier", "environment", "solution")
        return text + "".join(f'\n[{name}.env]\nA = "x${{TOKEN_OF_THIS_TEST:-y}}"\n' for name in sections)

    task = builder.build_task(tmp_path, reference="x", config=config)
    found = read_task(task).host_variables
    assert [item.where for item in found] == ["environment.env.A", "verifier.env.A", "solution.env.A"]
    assert all(item.has_default and not item.is_set for item in found)
    monkeypatch.setenv("TOKEN_OF_THIS_TEST", "secret")
    assert all(item.is_set for item in found)


@pytest.mark.parametrize(
    "content", [None, b"\xff", "x = ", "[verifier]\ntimeout_sec = 'soon'\n", "a" * (2**20 + 1)]
)
def test_unreadable_settings_are_one_sentence(
    content: str | bytes | None, builder: ModuleType, tmp_path: object
) -> None:
    task = builder.build_task(tmp_path, reference="x", changes={"task.toml": content})
    with pytest.raises(ValueError, match=r"."):
        read_task(task)


def test_origin_of_the_skill_is_recorded(builder: ModuleType) -> None:
    skill: Skill = builder.SKILL.model_copy(update={"origin": "package 1.0"})
    text = render_task_toml(builder.SPEC, builder.CONTRACT, skill, builder.PROVENANCE)
    assert tomllib.loads(text)["metadata"]["skill2env"]["skill"]["source"] == "package 1.0"


@pytest.mark.parametrize("part", ["agent", "verifier", "environment"])
@pytest.mark.parametrize("seconds", ["nan", "inf", "-1.0", "0.0"])
def test_a_time_limit_is_a_time(tmp_path: Path, part: str, seconds: str) -> None:
    name = "build_timeout_sec" if part == "environment" else "timeout_sec"
    (tmp_path / "task.toml").write_text(f"[{part}]\n{name} = {seconds}\n")
    with pytest.raises(ValueError, match="not a positive number of seconds"):
        read_task(tmp_path)
