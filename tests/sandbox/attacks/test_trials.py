# ruff: noqa: E501 (programs keep their lines)
"""Tasks that attack the harness: what the trial's record says of each, and that nothing of the host is changed.

A shared verifier runs where a root agent was: there the agent may decide the reward, which is why tasks that we make
have a verifier of their own. Both are tested.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skill2env.harbor.outcome import TrialOutcome
from skill2env.harbor.sandboxes import SandboxChoice
from skill2env.harbor.trial import run_trial
from skill2env.sandbox.identity import current_identity

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("rootfs")]

TASK = """
schema_version = "1.4"
artifacts = [{artifacts}]
[task]
name = "test/attack"
[agent]
timeout_sec = 20
user = "{user}"
[verifier]
timeout_sec = 20
environment_mode = "{mode}"
network_mode = "no-network"
{collect}
[environment]
network_mode = "no-network"
memory_mb = 300
storage_mb = 80
"""
TEST = '#!/bin/bash\nr=0; [ "$(cat /app/out.txt)" = right ] && r=1\necho "{\\"reward\\": $r}" > /logs/verifier/reward.json\n'


@pytest.fixture
def trial(tmp_path: Path) -> Callable[..., TrialOutcome]:
    """Runs a task of a solution and a verifier, both hostile if they like."""

    def run(
        solve: str, test: str = TEST, *, mode: str = "separate", user: str = "root",
        artifacts: str = '"/app/out.txt"', collect: str = "",
    ) -> TrialOutcome:  # fmt: skip
        task = tmp_path / "task"
        for name in ("environment", "tests", "solution"):
            (task / name).mkdir(parents=True)
        text = TASK.format(mode=mode, user=user, artifacts=artifacts, collect=collect)
        (task / "task.toml").write_text(text)
        (task / "instruction.md").write_text("Do it.\n")
        useradd = "RUN useradd --create-home agent && mkdir /app && chown agent /app\n"
        (task / "environment/Dockerfile").write_text(f"FROM debian-bookworm\n{useradd}WORKDIR /app\n")
        (task / "solution/solve.sh").write_text("#!/bin/bash\n" + solve)
        (task / "tests/test.sh").write_text(test)
        choice = SandboxChoice("namespace", "skill2env.sandbox:NamespaceEnvironment", dict[str, Any]())
        return run_trial(task, "oracle", environment=choice, trials_dir=tmp_path / "trials")

    return run


REPLACE = (
    "for t in /bin/bash /bin/sh /usr/bin/tar /usr/bin/mkdir /usr/bin/cat /usr/bin/python3; do\n"
    "rm -f $(readlink -f $t); printf '#!/usr/bin/perl\\nexit 0;\\n' > $t; /usr/bin/chmod 755 $t; done\n"
)


def test_what_an_agent_replaces_does_not_reach_a_verifier_of_its_own(
    trial: Callable[..., TrialOutcome],
) -> None:
    outcome = trial("echo wrong > out.txt; echo evil > /etc/passwd\n" + REPLACE)
    assert outcome.rewards == {"reward": 0}


def test_in_a_shared_container_a_root_agent_may_decide(trial: Callable[..., TrialOutcome]) -> None:
    """Documented: root where the verifier runs is the verifier's master. The trial ends all the same, in order."""
    outcome = trial("echo wrong > out.txt\n" + REPLACE, mode="shared")
    assert outcome.rewards is None
    assert outcome.failure is not None
    assert outcome.failure.type == "RewardFileNotFoundError"


def test_a_shared_verifier_is_safe_from_an_agent_without_rights(trial: Callable[..., TrialOutcome]) -> None:
    if not current_identity().several_users:
        pytest.skip("one uid")
    evil = "rm -f /bin/bash /tests; echo x > /etc/passwd; kill -9 -1 2>/dev/null; echo wrong > /app/out.txt"
    assert trial(
        f"echo wrong > out.txt; ( {evil} ) 2>/dev/null; exit 0\n", mode="shared", user="agent"
    ).rewards == {"reward": 0}


SOLUTIONS = {
    "memory": ("python3 -c \"x = []\nwhile True: x.append(b'x' * 2**20)\"\n", None),
    "disk": ("head -c 500M /dev/zero > /app/fill\nsleep 6\n", "MiB"),
    "fork bomb": ("f() { f | f & }; f 2>/dev/null; sleep 3\n", None),
    "signals ignored": ("trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM; sleep 99' &); exit 0\n", None),
    "process 1": ("kill -9 1; kill -STOP 1; kill -9 -1\n", None),
}


@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_solution_that_attacks_fails_as_a_solution(trial: Callable[..., TrialOutcome], name: str) -> None:
    solve, breach = SOLUTIONS[name]
    outcome = trial("echo wrong > out.txt\n" + solve)
    assert outcome.rewards in (None, {"reward": 0}), outcome
    if breach is not None:
        assert breach in " ".join(outcome.breaches), outcome
    if outcome.failure is not None:
        assert not outcome.suspect or outcome.breaches, outcome.failure


VERIFIERS = {
    "a gigabyte of reward": "truncate -s 900M /logs/verifier/reward.json",
    "a terabyte of reward": "truncate -s 1T /logs/verifier/reward.json 2>/dev/null || truncate -s 79M /logs/verifier/x",
    "a folder for a reward": "mkdir /logs/verifier/reward.json",
    "a pipe for a reward": "mkfifo /logs/verifier/reward.json",
    "a link out for a reward": "ln -s /etc/hostname /logs/verifier/reward.txt",
    "a link to itself": "ln -s reward.json /logs/verifier/reward.json",
    "nested without end": "python3 -c \"print('[' * 100000)\" > /logs/verifier/reward.json",
    "folders without end": (
        "python3 -c \"import os; os.chdir('/logs/verifier')\nfor _ in range(400): os.mkdir('d'); os.chdir('d')\""
    ),
    "not a number": "echo '{\"reward\": NaN}' > /logs/verifier/reward.json",
    "odd names": "python3 -c \"open(b'/logs/verifier/\\\\xff\\\\n', 'w')\"; echo '{\"reward\": 2}' > /logs/verifier/reward.json",
    "output without end": "yes | head -c 300M; exit 3",
}


@pytest.mark.parametrize("name", VERIFIERS)
def test_a_verifier_that_attacks_gives_no_reward(trial: Callable[..., TrialOutcome], name: str) -> None:
    outcome = trial("echo right > out.txt\n", f"#!/bin/bash\n{VERIFIERS[name]}\n")
    assert not outcome.reward().metrics or outcome.reward().problems, outcome
    assert outcome.failure is not None or outcome.reward().problems
    verifier = outcome.folder / "verifier"
    assert all(path.lstat().st_size <= 2**20 for path in verifier.glob("reward.*"))


def test_artifacts_with_exclusions_are_not_unpacked_by_the_images_tar(
    trial: Callable[..., TrialOutcome], tmp_path: Path
) -> None:
    """An archive of the agent's tar could hold any name, any link and any size."""
    solve = (
        "mkdir -p tree/keep tree/skip; echo right > tree/keep/f; echo x > tree/skip/g; echo x > tree/a.log\n"
        "cat > /usr/bin/tar <<'END'\n#!/usr/bin/python3\nimport io, sys, tarfile\n"
        "with tarfile.open(sys.argv[2], 'w:gz') as t:\n"
        "    i = tarfile.TarInfo('bomb'); i.size = 5 * 2**30; t.addfile(i, open('/dev/zero', 'rb'))\nEND\n"
    )
    test = TEST.replace("/app/out.txt", "/app/tree/keep/f") + "ls -R /app/tree\n"
    artifacts = '{ source = "/app/tree", exclude = ["skip", "*.log"] }'
    outcome = trial(solve, test, artifacts=artifacts)
    assert outcome.rewards == {"reward": 1}, outcome
    assert "bomb" not in outcome.verifier_output
    assert "skip" not in outcome.verifier_output
    assert "a.log" not in outcome.verifier_output


def test_every_kind_of_command_is_confined(trial: Callable[..., TrialOutcome]) -> None:
    """exec (the solution), healthcheck, collect and verifier: /proc/self/status says the same in each."""
    look = "grep -E '^(Seccomp|NoNewPrivs|CapBnd):' /proc/self/status"
    collect = f'[[verifier.collect]]\ncommand = "{look} > /app/collect.txt"\n'
    collect += (
        '[environment.healthcheck]\ncommand = "' + look + ' > /health.txt"\ninterval_sec = 0.1\nretries = 2\n'
    )
    test = f"#!/bin/bash\n{look} > /tmp/v\nfor f in /app/*.txt /tmp/v; do echo $f $(cat $f); done\n"
    artifacts = '"/app/exec.txt", "/app/collect.txt", "/app/health.txt"'
    solve = f"{look} > exec.txt; cp /health.txt .\n"
    outcome = trial(solve, test, collect=collect, artifacts=artifacts)
    lines = [line.split(" ", 1) for line in outcome.verifier_output.splitlines()]
    assert [name for name, _ in lines] == ["/app/collect.txt", "/app/exec.txt", "/app/health.txt", "/tmp/v"]
    wanted = "NoNewPrivs: 1 CapBnd: 00000000000000fb Seccomp: 2"
    assert all(sorted(text.split()) == sorted(wanted.split()) for _, text in lines), lines
