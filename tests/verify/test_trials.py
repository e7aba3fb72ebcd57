"""What a trial says about a task, without running one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from skill2env.harbor.outcome import TrialFailure, TrialOutcome, TrialPhase
from skill2env.harbor.sandboxes import ENGINE_ENVIRONMENTS, SandboxChoice
from skill2env.sandbox.conditions import Conditions, NotApplicable
from skill2env.verify.gate import GateContext, Subject, rejecting
from skill2env.verify.rules import Profile
from skill2env.verify.trials import failure_hits, judged_trial

REFUSED = TrialFailure("VerifierOutputParseError", "Non-finite reward inf", TrialPhase.VERIFIER)


@pytest.mark.parametrize("text", [b"inf", b"one", b"1" * 70_000])
def test_a_reward_that_only_the_text_holds_and_nobody_can_read_rejects(tmp_path: Path, text: bytes) -> None:
    outcome = TrialOutcome("nop", tmp_path, failure=REFUSED, reward_txt=text)
    hits = failure_hits(outcome, outcome.reward(), otherwise="nop-failed")
    for profile in Profile:
        assert rejecting(hits, profile)


def test_the_same_text_beside_a_good_reward_is_mild(tmp_path: Path) -> None:
    outcome = TrialOutcome("nop", tmp_path, valid=True, reward_json=b'{"reward": 0}', reward_txt=b"one")
    hits = failure_hits(outcome, outcome.reward(), otherwise="nop-failed")
    assert [hit.code for hit in hits] == ["reward-text-unreadable"]
    assert not rejecting(hits, Profile.FOREIGN)


@pytest.mark.parametrize(
    ("choice", "compose", "why"),
    [
        (SandboxChoice("daytona"), False, "daytona has no way"),
        (
            SandboxChoice("docker", ENGINE_ENVIRONMENTS["docker"]),
            True,
            "compose services run in Harbor's own",
        ),
    ],
)
def test_conditions_that_nobody_would_make(
    make_task: Callable[..., Path], tmp_path: Path, choice: SandboxChoice, compose: bool, why: str
) -> None:
    task = make_task()
    if compose:
        (task / "environment/docker-compose.yaml").write_text("services: {}\n")
    context = GateContext(choice, tmp_path / "evidence")
    with pytest.raises(NotApplicable, match=why):
        judged_trial(
            Subject(task, Profile.OURS),
            context,
            "nop",
            folder="x",
            label="y",
            conditions=Conditions(hostname="other"),
        )
