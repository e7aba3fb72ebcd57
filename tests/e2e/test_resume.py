import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sandbox

KILLS = int(os.environ.get("SKILL2ENV_TEST_KILLS", "6"))
SEED = int(os.environ.get("SKILL2ENV_TEST_SEED", "11"))


def stop(process: "subprocess.Popen[str]", number: int) -> int:
    """Send a signal to the program alone, as a scheduler would, and wait for its end."""
    process.send_signal(number)
    process.communicate(timeout=120)
    return process.returncode


@pytest.mark.slow
def test_kill_at_any_moment_and_finish_with_the_same_bytes(
    shell: Any, bytes_of: Callable[[Path], Any]
) -> None:
    """Nothing finished is redone, nothing is lost or doubled, and the dataset is the one of an undisturbed run."""
    begun = time.monotonic()
    shell(*shell.demo(out="clean/demo"))
    whole = time.monotonic() - begun
    rng = random.Random(SEED)
    ended: list[int] = []
    for _ in range(KILLS):
        process = shell.start(*shell.demo(out="killed/demo"))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0.1, whole))
        ended.append(stop(process, signal.SIGKILL))
    assert -signal.SIGKILL in ended
    shell(*shell.demo(out="killed/demo"))
    assert bytes_of(shell.folder / "killed/demo") == bytes_of(shell.folder / "clean/demo")
    said = shell("run", "audit", "killed/runs/demo").stdout
    assert "consistent" in said
    clean, killed = (
        json.loads(shell("run", "show", f"{name}/runs/demo", "--json").stdout) for name in ("clean", "killed")
    )
    assert killed["spend"]["sessions"] == clean["spend"]["sessions"], "no session is held or paid for twice"
    assert killed["counts"] == clean["counts"] == {"published": 3, "rejected": 0, "skipped": 0, "infra": 0}
    assert not list((shell.folder / "killed/runs/demo/work").iterdir())


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=[pytest.mark.slow, pytest.mark.vast])],
)
def test_an_interrupt_leaves_a_resumable_run(shell: Any, number: int) -> None:
    process = shell.start(*shell.demo("--workers", 1))
    ledger = shell.folder / "out/runs/demo/ledger.sqlite"
    deadline = time.monotonic() + 60
    while not ledger.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(1.0)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, f"{out}\n{err}"
    assert "Traceback" not in err
    assert "interrupted: run the same command again to go on" in out
    assert json.loads(shell("run", "list", "--json").stdout)[0]["status"] == "interrupted"
    shell(*shell.demo())
    assert "consistent" in shell("run", "audit", "out/runs/demo").stdout


def test_two_runs_into_one_folder_at_once(shell: Any) -> None:
    first = shell.start(*shell.demo())
    pid = shell.folder / "out/runs/demo/RUN.pid"
    deadline = time.monotonic() + 60
    while not pid.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    second = shell(*shell.demo(), code=3)
    assert f"is in use by process {first.pid} on" in second.stderr
    assert "--run" in second.stderr
    out, err = first.communicate(timeout=200)
    assert first.returncode == 0, f"{out}\n{err}"
    assert "3 tasks in" in out


def test_a_read_only_output_folder(shell: Any, small_disk: Callable[[str], Path]) -> None:
    folder = small_disk("ro")
    done = shell(*shell.demo(out=folder / "demo"), code=3)
    assert "Read-only file system" in done.stderr
    assert "--out" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_full_disk_loses_nothing(shell: Any, small_disk: Callable[[str], Path]) -> None:
    """The disk fills up under a run; after making room the same command goes on."""
    folder = small_disk("size=700k")
    arguments = shell.demo("--run", folder / "run", "--workers", 1)
    done = shell(*arguments, code=3)
    assert "No space left" in done.stderr + done.stdout or "full" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
    shell(*arguments)
    assert "consistent" in shell("run", "audit", folder / "run").stdout
    assert len((shell.folder / "out/demo/manifest.jsonl").read_text().splitlines()) == 3


@pytest.mark.slow
@pytest.mark.vast
def test_a_full_dataset_disk_loses_nothing(shell: Any, small_disk: Callable[[str], Path]) -> None:
    folder = small_disk("size=40k")
    arguments = shell.demo("--run", "run", out=folder / "data/demo")
    done = shell(*arguments, code=3)
    assert "No space left" in done.stderr
    assert not (folder / "data/demo/dataset.toml").exists(), "nothing is published by half"
    subprocess.run(["mount", "-o", "remount,size=16m", folder], check=True)
    shell(*arguments)
    assert "consistent" in shell("run", "audit", "run").stdout
