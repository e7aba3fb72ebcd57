import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.store.ledger import Ledger
from skill2env.store.run_folder import RunFolder, find_runs

HOLDER = """
import sys, time
from pathlib import Path
from skill2env.store.run_folder import RunFolder
with RunFolder(Path(sys.argv[1])).locked():
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_told_who_works_there(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    child = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder.path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    try:
        with pytest.raises(InfraError) as caught, folder.locked():
            pytest.fail("locked twice")
        assert caught.value.boundary is Boundary.STORAGE
        assert f"process {child.pid} on " in caught.value.message
        assert "--run" in caught.value.hint
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    with folder.locked():  # the kernel gave the lock back, although RUN.pid still lies there
        assert folder.holder() == {"pid": os.getpid(), "host": os.uname().nodename}
    assert folder.holder() is None


def test_locking_sweeps_unfinished_work(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with folder.locked():
        (folder.work / "half").mkdir()
        (folder.candidates / ".tmp-x").mkdir()
        (folder.candidates / "done").mkdir()
    with folder.locked():
        assert not list(folder.work.iterdir())
        assert [path.name for path in folder.candidates.iterdir()] == ["done"]


def test_find_runs_and_require(tmp_path: Path) -> None:
    for name in ("b", "a/deep"):
        folder = RunFolder(tmp_path / name)
        folder.path.mkdir(parents=True)
        Ledger.open(folder.ledger).close()
    assert [run.path.relative_to(tmp_path).as_posix() for run in find_runs(tmp_path)] == ["a/deep", "b"]
    RunFolder(tmp_path / "b").require()
    with pytest.raises(UserError, match="not a run folder"):
        RunFolder(tmp_path / "a").require()


def test_damaged_pid_file_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "RUN.pid").write_text("[1")
    assert RunFolder(tmp_path).holder() is None


def test_a_work_folder_of_somebody_else_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/thesis.tex").write_text("x")
    with pytest.raises(UserError, match="would be emptied"), RunFolder(tmp_path).locked():
        pass
    assert (tmp_path / "work/thesis.tex").is_file()
