"""Control groups of both versions, on copies of their trees; the real thing runs in test_session."""

import subprocess
from pathlib import Path

import pytest

from skill2env.sandbox import cgroups
from skill2env.sandbox.cgroups import PREFIX, Wanted, make_group, own_paths

ALL = Wanted(cpus=1.5, memory_bytes=2**28, pids=100)


def values(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}


def test_own_paths() -> None:
    text = "7:cpu,cpuacct:/a\n3:pids:/b:c\n1:name=systemd:/d\n0::/user.slice\n"
    assert own_paths(text) == {
        "cpu": "/a",
        "cpuacct": "/a",
        "pids": "/b:c",
        "name=systemd": "/d",
        "": "/user.slice",
    }


def test_version_1_below_the_own_group(tmp_path: Path) -> None:
    for controller in ("pids", "memory", "cpu"):
        (tmp_path / controller / "job").mkdir(parents=True)
    group = make_group(ALL, root=tmp_path, own="1:memory:/job\n2:cpu,cpuacct:/job\n3:pids:/gone\n")
    assert group.enforced == {"cpus", "memory_mb", "pids"}
    folders = {folder.parent.relative_to(tmp_path).as_posix(): values(folder) for folder in group.folders}
    assert folders == {
        "pids": {"pids.max": "101"},  # one for bubblewrap, which is outside the sandbox and in its group
        "memory/job": {"memory.limit_in_bytes": "268435456", "memory.memsw.limit_in_bytes": "268435456"},
        "cpu/job": {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000"},
    }
    group.add(1234)
    assert {(folder / "cgroup.procs").read_text() for folder in group.folders} == {"1234"}


def test_version_1_a_thread_that_starts_something_goes_in_and_comes_back(tmp_path: Path) -> None:
    (tmp_path / "pids").mkdir()
    group = make_group(Wanted(pids=5), root=tmp_path, own="")
    inside, outside = group.folders[0] / "tasks", tmp_path / "pids/tasks"
    inside.write_text("")
    with group.entered():
        assert inside.read_text() == "0"
        assert not outside.exists()
    assert outside.read_text() == "0"
    group.add(1234)
    assert not (group.folders[0] / "cgroup.procs").exists()


def test_version_1_what_did_not_start_is_not_inside(tmp_path: Path) -> None:
    (tmp_path / "pids").mkdir()
    group = make_group(Wanted(pids=5), root=tmp_path, own="")
    (group.folders[0] / "tasks").write_text("")
    with pytest.raises(OSError, match="no program"), group.entered():
        raise OSError("no program")
    assert (tmp_path / "pids/tasks").read_text() == "0"
    group.add(1234)
    assert (group.folders[0] / "cgroup.procs").read_text() == "1234"


def test_version_2_moves_the_process(tmp_path: Path) -> None:
    unified(tmp_path, "", "cpu memory pids")
    group = make_group(ALL, root=tmp_path, own="0::/")
    with group.entered():
        assert not (group.folders[0] / "tasks").exists()
    group.add(1234)
    assert (group.folders[0] / "cgroup.procs").read_text() == "1234"


@pytest.mark.skipif(not Path("/sys/fs/cgroup/pids").is_dir(), reason="no control groups of version 1 here")
def test_a_child_of_a_thread_inside_begins_there() -> None:
    group = make_group(Wanted(pids=50))
    if not group.folders:
        pytest.skip("this user cannot make control groups")
    name = group.folders[0].name
    try:
        with group.entered():
            child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        with child:
            assert f"/{name}\n" in Path(f"/proc/{child.pid}/cgroup").read_text()
            assert name not in Path("/proc/thread-self/cgroup").read_text()
    finally:
        group.remove()
    assert not any(folder.exists() for folder in group.folders)


def test_version_1_without_rights(tmp_path: Path) -> None:
    (tmp_path / "pids").mkdir()
    group = make_group(ALL, root=tmp_path, own="")
    assert group.enforced == {"pids"}


def unified(tmp_path: Path, path: str, controllers: str, processes: str = "") -> Path:
    folder = tmp_path / path
    folder.mkdir(parents=True, exist_ok=True)
    if path:
        (folder / "cgroup.type").write_text("domain\n")
    (folder / "cgroup.procs").write_text(processes)
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (folder / "cgroup.subtree_control").write_text(controllers)
    return folder


def test_version_2_in_a_delegated_group(tmp_path: Path) -> None:
    unified(tmp_path, "", "cpu memory pids")
    parent = unified(tmp_path, "user/scope", "cpu memory pids")
    group = make_group(ALL, root=tmp_path, own="0::/user/scope\n")
    assert group.enforced == {"cpus", "memory_mb", "pids"}
    [folder] = group.folders
    assert folder.parent == parent
    assert values(folder) == {
        "cpu.max": "150000 100000",
        "memory.max": "268435456",
        "memory.swap.max": "0",
        "pids.max": "100",
    }


def test_version_2_leaves_groups_with_processes_alone(tmp_path: Path) -> None:
    unified(tmp_path, "", "cpu memory pids", "1\n2\n")
    above = unified(tmp_path, "user", "memory pids")
    own = unified(tmp_path, "user/scope", "", "1234\n")
    group = make_group(Wanted(memory_bytes=2**28, pids=100), root=tmp_path, own="0::/user/scope\n")
    assert group.enforced == {"memory_mb", "pids"}
    assert [folder.parent for folder in group.folders] == [above]
    assert (own / "cgroup.subtree_control").read_text() == ""


def test_version_2_asks_for_what_is_missing(tmp_path: Path) -> None:
    top = unified(tmp_path, "", "", "1\n")  # the true root may hold processes
    real = Path.write_text

    def kernel(path: Path, text: str) -> int:
        if path.name == "cgroup.subtree_control":
            if text == "+cpu":
                raise OSError(22, "Invalid argument")
            text = path.read_text() + " " + text.removeprefix("+")
        return real(path, text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "write_text", kernel)
        group = make_group(ALL, root=tmp_path, own="0::/\n")
    assert group.enforced == {"memory_mb", "pids"}
    assert (top / "cgroup.subtree_control").read_text().split() == ["memory", "pids"]


def test_nothing_wanted_makes_nothing(tmp_path: Path) -> None:
    (tmp_path / "pids").mkdir()
    group = make_group(Wanted(), root=tmp_path, own="")
    assert (group.folders, group.enforced) == ([], set())
    assert list((tmp_path / "pids").iterdir()) == []


def test_tiny_shares_are_what_the_kernel_takes(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    group = make_group(Wanted(cpus=0.001), root=tmp_path, own="")
    assert values(group.folders[0])["cpu.cfs_quota_us"] == "1000"


def test_sweep_removes_groups_of_dead_processes(tmp_path: Path) -> None:
    (tmp_path / "pids").mkdir()
    own = make_group(Wanted(pids=5), root=tmp_path, own="").folders[0]
    (own / "pids.max").unlink()
    dead, foreign = tmp_path / "pids" / f"{PREFIX}1-99999999999-1", tmp_path / "pids" / "other"
    for folder in (dead, foreign):
        folder.mkdir()
    assert cgroups.sweep(tmp_path) == 1
    assert sorted((tmp_path / "pids").iterdir()) == sorted((own, foreign))
