"""Tasks made by others: what is only a warning there, and what rejects everybody's tasks."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from skill2env.harbor.sandboxes import choose_sandbox
from skill2env.records import GateOutcome, ProbeOutcome, Reason, Severity, VerdictStatus
from skill2env.sandbox.images import BaseImage
from skill2env.verify.gate import GateContext, Level
from skill2env.verify.rules import Profile
from skill2env.verify.verify import verify

pytestmark = pytest.mark.sandbox
Make = Callable[..., Path]
NOT_ASKED = ProbeOutcome.NOT_APPLICABLE

FOREIGN_CONFIG = """\
schema_version = "1.4"

[environment]
network_mode = "no-network"

[agent]
network_mode = "no-network"

[verifier]
network_mode = "no-network"
timeout_sec = 20.0
"""
SINGLE = """\
#!/bin/bash
if [ "$(cat /app/out/sum.txt 2>/dev/null)" = 193 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


@pytest.fixture
def foreign(builder: ModuleType, base: BaseImage, runnable_task: Make) -> Make:
    """Shared verifier, root agent, no metric map, no rubric, unpinned image, one number in reward.txt."""

    def make(**changes: str | bytes | None) -> Path:
        files: dict[str, Any] = {
            "task.toml": FOREIGN_CONFIG,
            "tests/rubric.md": None,
            "tests/test.sh": SINGLE,
            "environment/Dockerfile": "FROM debian-bookworm\nCOPY numbers.txt /app/\nRUN mkdir /app/out\n",
        }
        return runnable_task(
            changes={**files, **{name.replace("__", "/"): text for name, text in changes.items()}}
        )

    return make


def test_another_houses_style_is_accepted_with_warnings(foreign: Make, context: GateContext) -> None:
    verdict = verify(foreign(), profile=Profile.FOREIGN, context=context)
    assert verdict.status is VerdictStatus.ACCEPTED, verdict.message
    warnings = {finding.code for finding in verdict.findings if finding.severity is Severity.WARN}
    assert {
        "verifier-shared",
        "agent-root",
        "rubric-missing",
        "metric-map-missing",
        "dockerfile-unpinned",
    } <= warnings
    assert "harbor-lint:root-agent" in warnings


def test_the_same_task_is_rejected_as_ours(foreign: Make, context: GateContext) -> None:
    assert verify(foreign(), profile=Profile.OURS, context=context).status is VerdictStatus.REJECTED


def test_boolean_rewards_are_a_warning(foreign: Make, context: GateContext) -> None:
    script = SINGLE.replace("echo 1;", "echo '{\"sum\": true}';").replace(
        "echo 0;", "echo '{\"sum\": false}';"
    )
    verdict = verify(
        foreign(**{"tests/test.sh": script.replace("reward.txt", "reward.json")}),
        profile=Profile.FOREIGN,
        context=context,
    )
    assert verdict.status is VerdictStatus.ACCEPTED, verdict.message
    assert "reward-boolean" in {finding.code for finding in verdict.findings}


@pytest.mark.parametrize(
    ("solved", "otherwise", "reason"),
    [
        ('{"sum": 1, "extra": 1}', '{"sum": 0}', Reason.REWARD_DISAGREES),
        ('{"sum": NaN}', '{"sum": 0}', Reason.REWARD_INVALID),
        ('{"sum": 1.5}', '{"sum": 0}', Reason.REWARD_INVALID),
        ('{"sum": 0.999}', '{"sum": 0}', Reason.ORACLE_FAILED),
        ('{"sum": 1}', '{"sum": 0.001}', Reason.NOP_REWARDED),
    ],
)
def test_what_rejects_everybody(
    solved: str, otherwise: str, reason: Reason, builder: ModuleType, foreign: Make, context: GateContext
) -> None:
    script = builder.rewarding_when_solved(solved, otherwise)
    verdict = verify(
        foreign(**{"tests/test.sh": script}), profile=Profile.FOREIGN, context=context, level=Level.PAPER
    )
    assert verdict.reason is reason, verdict.message


def test_open_network_is_run_without_one(foreign: Make, context: GateContext) -> None:
    task = foreign(**{"task.toml": FOREIGN_CONFIG.replace("no-network", "public")})
    verdict = verify(task, profile=Profile.FOREIGN, context=context)
    assert verdict.status is VerdictStatus.ACCEPTED, verdict.message
    assert "network-open" in {finding.code for finding in verdict.findings}


RAW = "#!/bin/bash\nset -e\nexec 3<>/dev/tcp/example.org/80\n"
FETCH = """#!/bin/bash
set -e
python3 -c "import urllib.request as u; u.urlopen('http://no-such-host.invalid/')"
"""


@pytest.mark.parametrize(
    ("solve", "network", "boundary", "told"),
    [
        (RAW, True, "sandbox", "--sandbox docker"),
        (FETCH, True, "network", "could not reach no-such-host.invalid:80"),
        (FETCH, False, "sandbox", "--offline"),
    ],
)
def test_task_that_may_need_its_network_gets_no_verdict(
    foreign: Make,
    context: GateContext,
    monkeypatch: pytest.MonkeyPatch,
    solve: str,
    network: bool,
    boundary: str,
    told: str,
) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    task = foreign(
        **{"task.toml": FOREIGN_CONFIG.replace("no-network", "public"), "solution/solve.sh": solve}
    )
    verdict = verify(task, profile=Profile.FOREIGN, context=replace(context, network=network))
    assert (verdict.status, verdict.boundary) == (VerdictStatus.INFRA, boundary), verdict.message
    assert told in verdict.message


def test_a_task_that_fails_with_its_network_too_is_rejected(foreign: Make, context: GateContext) -> None:
    """Its request was answered (by a refusal: the address is private), so the network is not to blame."""
    task = foreign(
        **{
            "task.toml": FOREIGN_CONFIG.replace("no-network", "public"),
            "solution/solve.sh": FETCH.replace("no-such-host.invalid", "192.168.0.1"),
        }
    )
    verdict = verify(task, profile=Profile.FOREIGN, context=context)
    assert (verdict.status, verdict.reason) == (VerdictStatus.REJECTED, Reason.ORACLE_ERROR), verdict.message


def test_what_our_builder_lacks_gets_no_verdict(foreign: Make, context: GateContext) -> None:
    stages = "FROM debian-bookworm\nRUN --mount=type=secret,id=key true\n"
    for level in Level:
        verdict = verify(
            foreign(**{"environment/Dockerfile": stages}),
            profile=Profile.FOREIGN,
            context=context,
            level=level,
        )
        assert (verdict.status, verdict.boundary) == (VerdictStatus.INFRA, "sandbox"), verdict.message


def test_unknown_image_gets_no_verdict(foreign: Make, context: GateContext) -> None:
    verdict = verify(
        foreign(**{"environment/Dockerfile": "FROM python:3.12\n"}), profile=Profile.FOREIGN, context=context
    )
    assert (verdict.status, verdict.boundary) == (VerdictStatus.INFRA, "build")


def test_host_variables_never_reach_a_trial(
    foreign: Make, context: GateContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THIS_TEST", "s3cr3t")
    config = FOREIGN_CONFIG + '\n[verifier.env]\nKEY = "${SECRET_OF_THIS_TEST:-none}"\n'
    script = '#!/bin/bash\necho "key is $KEY"\necho 0 > /logs/verifier/reward.txt\n'
    task = foreign(**{"task.toml": config, "tests/test.sh": script})
    assert verify(task, profile=Profile.FOREIGN, context=context).reason is Reason.CONFIG_RULE
    paper = verify(task, profile=Profile.FOREIGN, context=context, level=Level.PAPER)
    assert paper.status is VerdictStatus.INFRA
    kept = [path for path in context.evidence.rglob("*") if path.is_file()]
    assert not any(b"s3cr3t" in path.read_bytes() for path in kept)


def test_verifier_with_an_image_of_its_own(foreign: Make, context: GateContext) -> None:
    own = "FROM debian-bookworm\nRUN echo 193 > /truth\nCOPY . /tests/\nRUN chmod 755 /tests/test.sh\n"
    config = (
        FOREIGN_CONFIG.replace("[environment]", 'artifacts = ["/app/out"]\n\n[environment]', 1)
        + 'environment_mode = "separate"\n'
    )
    script = SINGLE.replace("= 193", '= "$(cat /truth)"')
    task = foreign(**{"tests/Dockerfile": own, "task.toml": config, "tests/test.sh": script})
    verdict = verify(task, profile=Profile.FOREIGN, context=context)
    assert verdict.status is VerdictStatus.ACCEPTED, verdict.message
    build = next(gate for gate in verdict.gates if gate.gate == "build")
    assert "verifier_base" in build.values


def test_folder_that_is_no_task(tmp_path: Path, context: GateContext) -> None:
    empty = tmp_path / "nothing"
    empty.mkdir()
    verdict = verify(empty, profile=Profile.FOREIGN, context=context, all_gates=True)
    assert verdict.reason is Reason.MALFORMED
    paper = verify(empty, profile=Profile.FOREIGN, context=context, level=Level.PAPER)
    assert paper.reason is Reason.MALFORMED


def test_engine_that_is_not_running_gets_no_verdict(
    foreign: Make, context: GateContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    choice = choose_sandbox("docker")
    broken = GateContext(choice, context.evidence, infra_retries=0)
    verdict = verify(foreign(), profile=Profile.FOREIGN, context=broken)
    assert (verdict.status, verdict.boundary) == (VerdictStatus.INFRA, "sandbox"), verdict.message
    outcomes = {gate.gate: gate.outcome for gate in verdict.gates}
    assert outcomes["build"] is GateOutcome.INFRA


def test_evidence_of_a_rejection_is_kept(foreign: Make, context: GateContext) -> None:
    verdict = verify(
        foreign(**{"solution/solve.sh": "#!/bin/bash\nexit 2\n"}), profile=Profile.FOREIGN, context=context
    )
    assert verdict.reason is Reason.ORACLE_ERROR
    oracle = context.evidence / "oracle"
    assert json.loads((oracle / "result.json").read_text())["reason"] == "oracle_error"
    assert (oracle / "trial" / "agent" / "exit-code.txt").read_text() == "2"


@pytest.mark.parametrize("level", [Level.STANDARD, pytest.param(Level.STRICT, marks=pytest.mark.slow)])
def test_task_of_two_steps(builder: ModuleType, foreign: Make, context: GateContext, level: Level) -> None:
    steps = "".join(f'\n[[steps]]\nname = "{name}"\n' for name in ("one", "two"))
    files: dict[str, str | bytes | None] = {
        "instruction.md": None,
        "tests/test.sh": None,
        "tests/grade.py": None,
        "solution/solve.sh": None,
        "task.toml": FOREIGN_CONFIG + steps,
    }
    for name in ("one", "two"):
        files[f"steps/{name}/instruction.md"] = builder.INSTRUCTION
        files[f"steps/{name}/tests/test.sh"] = SINGLE
        files[f"steps/{name}/solution/solve.sh"] = builder.SOLVE_SH
    verdict = verify(foreign(**files), profile=Profile.FOREIGN, context=context, level=level)
    # The second step finds what the first one delivered, which is as it should be.
    assert verdict.status is VerdictStatus.ACCEPTED, verdict.message
    assert "config-steps" in {finding.code for finding in verdict.findings}
    unasked = {probe.message for gate in verdict.gates for probe in gate.probes if probe.outcome is NOT_ASKED}
    assert "the task has several steps" in unasked, "what cannot be asked is said"
    files["steps/two/solution/solve.sh"] = "#!/bin/bash\nexit 9\n"
    failing = verify(foreign(**files), profile=Profile.FOREIGN, context=context, level=level)
    assert failing.reason is Reason.ORACLE_ERROR, failing.message
