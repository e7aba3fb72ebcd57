"""Gates made of probes: which are asked, and what their answers come to."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from skill2env.errors import Boundary, InfraError
from skill2env.harbor.sandboxes import SandboxChoice
from skill2env.records import GateOutcome, ProbeOutcome
from skill2env.sandbox.conditions import Conditions, NotApplicable
from skill2env.verify.gate import GateContext, Hit, Level, Report, Subject, to_result
from skill2env.verify.probing import Answer, Asking, Probe, gate_of
from skill2env.verify.rules import Profile
from skill2env.verify.trials import judged_trial

FAILING = Answer([Hit("unstable", "it wavers")])


def passing(_: Asking) -> Answer:
    return Answer(values={"looked": 1})


def failing(_: Asking) -> Answer:
    return FAILING


def lost(_: Asking) -> Answer:
    raise InfraError(Boundary.NETWORK, "no mirror")


def inapt(_: Asking) -> Answer:
    raise NotApplicable("no zone files")


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., Report]:
    def run(*probes: Probe, level: Level = Level.STANDARD, every: bool = False, at_once: int = 2) -> Report:
        context = GateContext(
            SandboxChoice("docker"), tmp_path, level=level, every=every, trials_at_once=at_once
        )
        return gate_of("test", lambda _subject, _context: probes)(Subject(tmp_path, Profile.OURS), context)

    return run


def outcomes(report: Report) -> list[tuple[str, ProbeOutcome]]:
    return [(probe.probe, probe.outcome) for probe in report.probes]


def test_answers_come_in_the_order_of_the_probes(ask: Callable[..., Report]) -> None:
    report = ask(Probe("one", passing), Probe("two", inapt), Probe("three", passing))
    assert outcomes(report) == [
        ("one", ProbeOutcome.PASSED),
        ("two", ProbeOutcome.NOT_APPLICABLE),
        ("three", ProbeOutcome.PASSED),
    ]
    assert report.probes[1].message == "no zone files"
    assert dict(report.values) == {"passed": 2, "not_applicable": 1}
    assert to_result("test", report, Profile.OURS).outcome is GateOutcome.PASSED


def test_the_first_failure_ends_the_gate_unless_all_are_wanted(ask: Callable[..., Report]) -> None:
    probes = [Probe("one", passing), Probe("two", failing), Probe("three", failing)]
    assert outcomes(ask(*probes)) == [("one", ProbeOutcome.PASSED), ("two", ProbeOutcome.FAILED)]
    assert len(ask(*probes, every=True).probes) == 3
    result = to_result("test", ask(*probes), Profile.OURS)
    assert (result.outcome, result.message.split(";")[0]) == (GateOutcome.REJECTED, "it wavers")
    assert len(result.probes) == 2


def test_what_could_not_be_asked_is_no_pass(ask: Callable[..., Report]) -> None:
    with pytest.raises(InfraError, match="no mirror"):
        ask(Probe("one", passing), Probe("two", lost))


def test_a_failure_counts_even_where_another_probe_was_lost(ask: Callable[..., Report]) -> None:
    report = ask(Probe("one", lost), Probe("two", failing))
    assert outcomes(report) == [("one", ProbeOutcome.ERROR), ("two", ProbeOutcome.FAILED)]


def test_probes_of_a_level(ask: Callable[..., Report]) -> None:
    strict = Probe("two", passing, levels=frozenset({Level.STRICT}))
    assert len(ask(Probe("one", passing), strict).probes) == 1
    assert len(ask(Probe("one", passing), strict, level=Level.STRICT).probes) == 2
    assert ask(strict).not_run


def test_probes_run_beside_each_other(ask: Callable[..., Report]) -> None:
    together = threading.Barrier(2, timeout=10)

    def meet(_: Asking) -> Answer:
        together.wait()
        return Answer()

    ask(Probe("one", meet), Probe("two", meet))


def test_conditions_need_a_sandbox_of_ours(tmp_path: Path) -> None:
    context = GateContext(SandboxChoice("daytona"), tmp_path)
    with pytest.raises(NotApplicable, match="daytona"):
        judged_trial(
            Subject(tmp_path, Profile.OURS), context, "nop", folder="x", label="y",
            conditions=Conditions(env={"TZ": "Asia/Tokyo"}),
        )  # fmt: skip
