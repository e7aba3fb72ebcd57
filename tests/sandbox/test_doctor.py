"""What doctor says about machines of every kind, and that it says the truth about this one."""

import subprocess
import sys
from pathlib import Path

import pytest

from skill2env.sandbox import doctor
from skill2env.sandbox.engine_limits import enforceable
from skill2env.sandbox.identity import Identity, Tier, current_identity
from skill2env.sandbox.machine import Check, Machine, Status, check_platform, explain_failure


def machine(**facts: object) -> Machine:
    plain: dict[str, object] = {
        "system": "Linux",
        "release": "6.1.0-13-amd64",
        "architecture": "x86_64",
        "euid": 1000,
        "container": "",
        "settings": {"user/max_user_namespaces": "15000"},
    }
    return Machine(**{**plain, **facts})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("facts", "status", "told", "fix"),
    [
        ({}, Status.OK, "6.1.0", ""),
        ({"architecture": "aarch64"}, Status.OK, "arm64", ""),
        ({"architecture": "riscv64"}, Status.WARN, "tested", ""),
        ({"system": "Darwin", "release": "24.1"}, Status.WARN, "--sandbox docker", "colima"),
        ({"system": "Windows"}, Status.FAIL, "WSL2", "wsl --install"),
        ({"release": "4.4.0-19041-Microsoft"}, Status.FAIL, "WSL1", "wsl --set-version"),
        ({"release": "5.15.153.1-microsoft-standard-WSL2"}, Status.OK, "WSL2", ""),
        ({"release": "5.4.0-90-generic"}, Status.FAIL, "Linux 5.11", ""),
        ({"release": "5.4.0-90-generic", "euid": 0}, Status.WARN, "--sandbox docker", ""),
        ({"container": "docker"}, Status.OK, "inside docker", ""),
    ],
)
def test_platforms(facts: dict[str, object], status: Status, told: str, fix: str) -> None:
    check = check_platform(machine(**facts))
    assert check.status is status
    assert told in check.told
    assert fix in check.fix
    assert bool(fix) == bool(check.fix)


_CLONE = "bwrap: Creating new namespace failed: Operation not permitted"


@pytest.mark.parametrize(
    ("problem", "facts", "why", "fix"),
    [
        (
            _CLONE,
            {"settings": {"user/max_user_namespaces": "0"}},
            "allows no user namespaces",
            "max_user_namespaces=15000",
        ),
        (
            _CLONE,
            {"settings": {"kernel/unprivileged_userns_clone": "0"}},
            "to root",
            "unprivileged_userns_clone=1",
        ),
        (
            "bwrap: setting up uid map: Permission denied",
            {"settings": {"kernel/apparmor_restrict_unprivileged_userns": "1"}},
            "AppArmor",
            "apparmor_restrict_unprivileged_userns=0",
        ),
        (
            "bwrap: Can't mount proc on /newroot/proc",
            {"container": "docker"},
            "profile",
            "systempaths=unconfined",
        ),
        ("bwrap: Can't make overlay mount on /newroot/", {}, "cannot carry an overlay", "SKILL2ENV_CACHE="),
        ("bwrap: execvp /x: Permission denied", {}, "noexec", "SKILL2ENV_CACHE="),
        ("something new", {}, "--sandbox auto uses docker", ""),
    ],
)
def test_failures_are_explained(problem: str, facts: dict[str, object], why: str, fix: str) -> None:
    check = explain_failure(problem, machine(**facts))
    assert check.status is Status.FAIL
    assert problem in check.told
    assert why in check.told
    assert fix in check.fix
    assert bool(fix) == bool(check.fix)


def test_settings_that_bind_users_do_not_blame_root() -> None:
    facts = {"euid": 0, "settings": {"kernel/apparmor_restrict_unprivileged_userns": "1"}}
    assert "AppArmor" not in explain_failure(_CLONE, machine(**facts)).told


def test_tiers_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SKILL2ENV_SANDBOX_TIER", raising=False)
    monkeypatch.setattr(doctor.ids, "helpers_work", lambda: False)
    monkeypatch.setattr(doctor.ids, "subordinate", lambda *_: None)
    single = doctor.check_tier(Identity(Tier.SINGLE, 7, 7, 7, 7, 1))
    assert single.status is Status.WARN
    assert "newuidmap (package uidmap) is missing, and /etc/subuid has no range" in single.told
    assert "apt-get install -y uidmap" in single.fix
    assert doctor.check_tier(Identity(Tier.SUBUID, 7, 7, 9, 9, 65536)).status is Status.OK
    root = doctor.check_tier(Identity(Tier.ROOT, 100000, 100000, 100001, 100001, 65536))
    assert "100000 to 165535" in root.told
    monkeypatch.setenv("SKILL2ENV_SANDBOX_TIER", "single-uid")
    forced = doctor.check_tier(Identity(Tier.SINGLE, 7, 7, 7, 7, 1))
    assert "set by SKILL2ENV_SANDBOX_TIER" in forced.told
    assert forced.fix == ""


def test_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SKILL2ENV_CACHE", str(tmp_path / "file" / "cache"))
    check = doctor.check_cache()
    assert check.status is Status.FAIL
    assert check.fix.startswith("export SKILL2ENV_CACHE=")


def test_small_disks(small_disk: object, monkeypatch: pytest.MonkeyPatch) -> None:
    for size, status in (("100m", Status.FAIL), ("2g", Status.WARN), ("20g", Status.OK)):
        monkeypatch.setenv("SKILL2ENV_CACHE", str(small_disk(f"size={size}")))  # pyright: ignore[reportCallIssue]
        check = doctor.check_cache()
        assert check.status is status, size
        assert check.fix == ("" if status is Status.OK else "skill2env cache prune")


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.check_engine("docker") == Check(
        "docker", Status.ABSENT, "docker is not installed; only --sandbox docker needs it"
    )
    info = '{"MemoryLimit": true, "CpuCfsQuota": true, "PidsLimit": true}'
    program(tmp_path, "docker", f"case $1 in info) echo '{info}' ;; *) echo 27.1 ;; esac")
    assert doctor.check_engine("docker") == Check("docker", Status.OK, "docker 27.1 answers")
    enforceable.cache_clear()
    program(tmp_path, "docker", "case $1 in info) echo '{\"PidsLimit\": true}' ;; *) echo 27.1 ;; esac")
    unlimited = doctor.check_engine("docker")
    assert unlimited.status is Status.WARN
    assert "cannot enforce here: cpus, memory_mb." in unlimited.told
    enforceable.cache_clear()
    program(tmp_path, "docker", "case $1 in info) exit 1 ;; *) echo 27.1 ;; esac")
    assert "not about its limits" in doctor.check_engine("docker").told
    program(tmp_path, "docker", "echo 'dial unix: permission denied' >&2; exit 1")
    refused = doctor.check_engine("docker")
    assert refused.status is Status.WARN
    assert "usermod -aG docker" in refused.fix
    program(tmp_path, "podman", "exit 125")
    assert doctor.check_engine("podman").status is Status.WARN


def test_machines_without_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    check = doctor.check_packages()
    assert check.status is Status.WARN
    assert "apt-get, dpkg-deb, tar" in check.told
    for name in ("apt-get", "dpkg-deb", "tar"):
        program(tmp_path, name, "true")
    assert doctor.check_packages().status is Status.OK


def test_a_missing_bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "bwrap", "exit 1")
    monkeypatch.setattr(doctor, "bubblewrap", lambda: tmp_path / "bwrap")
    assert doctor.check_bubblewrap().status is Status.FAIL


@pytest.mark.sandbox
def test_this_machine(rootfs: Path) -> None:
    checks = {check.name: check for check in doctor.examine()}
    assert list(checks)[:4] == ["platform", "python", "cache", "bubblewrap"]
    assert checks["sandbox"].status is Status.OK
    assert current_identity().tier.value in checks["tier"].told
    assert "pids" in checks["limits"].told
    assert checks["bubblewrap"].told.startswith("bubblewrap 0.")
    for check in checks.values():
        assert check.told
        assert check.status is not Status.OK or not check.fix
    assert doctor.namespace_works()


ASK = """
from skill2env.sandbox import doctor
for check in doctor.examine():
    if check.name in ("sandbox", "tier"):
        print(check.status.value, check.told, check.fix)
"""


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("echo 0 > /proc/sys/user/max_user_namespaces", "fail namespace sandboxes do not start here"),
        ("true", "warn single-uid"),
    ],
)
def test_inside_a_user_namespace(rootfs: Path, before: str, told: str) -> None:
    """The root of a namespace with one uid: an honest answer where nesting is forbidden, and work where it is not."""
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", f'{before} && exec "$@"', "sh"]
    done = subprocess.run(
        [*command, sys.executable, "-c", ASK], capture_output=True, text=True, check=False, timeout=60
    )
    assert told in done.stdout, done.stderr
    if before != "true":
        assert "the kernel allows no user namespaces" in done.stdout
        assert "sysctl -w user.max_user_namespaces=15000" in done.stdout
