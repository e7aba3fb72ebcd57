"""Days to which the clock is moved, and what a trial in each of the worlds sees, whatever runs it."""

import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from skill2env.harbor.sandboxes import SandboxChoice, engine_sandbox, namespace_sandbox
from skill2env.sandbox.conditions import Conditions, NotApplicable
from skill2env.verify import worlds
from skill2env.verify.gate import GateContext, Subject
from skill2env.verify.rules import Profile
from skill2env.verify.trials import judged_trial
from skill2env.verify.worlds import days_ahead, saturday_next_year

DATES = some.dates(date(2024, 1, 1), date(2110, 12, 31))


@given(DATES)
def test_all_days_lie_ahead_and_have_the_same_names(today: date) -> None:
    found = days_ahead(today)
    assert list(found) == list(days_ahead(date(2026, 11, 30)))
    assert all(0 < number <= 366 * 9 for number in found.values())
    days = {name: today + timedelta(number) for name, number in found.items()}
    assert days["saturday"].strftime("%A") == "Saturday"
    assert (days["leap-day"].month, days["leap-day"].day) == (2, 29)
    assert (days["month-end"] + timedelta(1)).day == 1
    assert (days["year-end"].month, days["year-end"].day) == (12, 31)
    assert (days["clocks-forward"].month, days["clocks-forward"].weekday()) == (3, 6)


@pytest.mark.parametrize("today", [date(2026, 11, 30), date(2027, 12, 31), date(2028, 2, 29)])
def test_a_saturday_about_a_year_ahead(today: date) -> None:
    day = today + timedelta(saturday_next_year(today))
    assert day.strftime("%A") == "Saturday"
    assert 365 <= (day - today).days < 372


WORLDS: dict[str, tuple[Callable[[], Conditions], str, str]] = {
    "clock": (lambda: worlds.clock(40 * worlds.DAY_SEC), "echo $(( ($(date +%s) - BEGAN) / 86400 ))", "40"),
    "zone": (lambda: worlds.zone("Asia/Tokyo"), "date +%z", "+0900"),
    "locale": (lambda: worlds.locale("de_DE"), "printf %.1f 1,5", "1,5"),
    "machine": (
        lambda: worlds.machine(one_core=True),
        "echo $(uname -n) $(nproc) $(grep MemTotal /proc/meminfo | tr -dc 0-9) $(grep -c processor /proc/cpuinfo)",
        f"{worlds.HOST_NAME} 1 3276800 1",
    ),
    "tools": (worlds.broken_package_tools, "apt-get --version >/dev/null 2>&1; echo $?", "100"),
    "hashes": (lambda: worlds.hash_seed(7), "echo $PYTHONHASHSEED", "7"),
    "folders": (
        worlds.folder_order,
        'python3 -c \'import os; print(os.listdir("/etc")[::-1] == os.popen("ls -AU /etc").read().split())\'',
        "True",
    ),
}


@pytest.mark.sandbox
@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(
    "choose",
    [
        namespace_sandbox,
        pytest.param(lambda: engine_sandbox("docker"), marks=pytest.mark.docker, id="docker"),
    ],
)
@pytest.mark.parametrize("world", WORLDS)
def test_a_trial_sees_the_world_or_says_why_not(
    runnable_task: Callable[..., Path], tmp_path: Path, world: str, choose: Callable[[], SandboxChoice]
) -> None:
    make, look, seen = WORLDS[world]
    script = f"#!/bin/bash\nBEGAN={int(time.time())}\n{look}\n"
    subject = Subject(runnable_task(changes={"solution/solve.sh": script}), Profile.OURS)
    context = GateContext(choose(), tmp_path / "evidence", infra_retries=0)

    def told(conditions: Conditions, label: str) -> str:
        outcome = judged_trial(subject, context, "oracle", folder="x", label=label, conditions=conditions)
        return outcome.agent_output.strip()

    assert told(Conditions(), "usual") != seen, "the usual surroundings are others"
    try:
        found = told(make(), "other")
    except NotApplicable as reason:
        pytest.skip(f"not applicable: {reason.why}")
    assert found == seen
