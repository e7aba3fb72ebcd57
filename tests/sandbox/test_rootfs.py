"""Base images: what is in them, that same packages give same bytes, and what is said when one cannot be built."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.sandbox import base_store, catalog, debian, mirrors
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.images import BaseImage, ensure_base, export_base
from skill2env.sandbox.launch import bubblewrap
from skill2env.sandbox.scratch import remove_tree
from skill2env.sandbox.session import Sandbox, SandboxSpec
from skill2env.store.folders import CACHE_VARIABLE

BOOKWORM = catalog.lookup("debian-bookworm")


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="skill2env-test-", dir="/var/tmp"))
    home.chmod(0o755)
    monkeypatch.setenv(CACHE_VARIABLE, str(home))
    bubblewrap.cache_clear()
    yield home
    remove_tree(home, current_identity())
    bubblewrap.cache_clear()


@pytest.fixture
def dead_mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(mirrors.MIRROR_VARIABLE, "http://127.0.0.2:9/debian")
    mirrors.debian_mirror.cache_clear()
    yield
    mirrors.debian_mirror.cache_clear()


# ---------------------------------------------------------------------------------------------- content


@pytest.mark.sandbox
def test_what_a_base_holds_and_what_not(base_image: BaseImage) -> None:
    hosts = [host.partition(":")[0] for host in mirrors.debian_mirror().hosts]
    script = f"""
set -e
python3 -c 'import ssl, sqlite3, ctypes, venv, unittest, zoneinfo'
for tool in bash tmux ps apt-get update-ca-certificates; do command -v $tool > /dev/null; done
test -s /etc/ssl/certs/ca-certificates.crt
test -z "$(dpkg --audit)"
test -e /etc/machine-id && ! test -s /etc/machine-id
awk -F: '$3 >= 1000 && $3 < 65534' /etc/passwd
find /etc/apt/sources.list* /var/lib/apt/lists /var/log /tmp -type f 2> /dev/null || true
find / -xdev -newermt '2100-01-01'
find / -xdev -nouser -o -xdev -nogroup
grep -rlF {" ".join(f"-e {host}" for host in hosts)} /etc /var || true
getent hosts localhost > /dev/null
"""
    with Sandbox(SandboxSpec(layers=(base_image.rootfs,))) as box:
        done = box.exec(["/bin/sh", "-c", script], merge_stderr=True)
        assert (done.return_code, done.stdout.decode()) == (0, "")
        owners = box.exec(
            ["stat", "-c", "%U:%G %a", "/etc/shadow", "/usr/bin/chage", "/var/mail", "/tmp"]
        ).stdout
    if current_identity().several_users:
        assert owners.decode().split("\n")[:4] == [
            "root:shadow 640", "root:shadow 2755", "root:mail 2775", "root:root 1777",
        ]  # fmt: skip


@pytest.mark.sandbox
def test_python_starts_from_byte_code_whatever_the_times_are(base_image: BaseImage) -> None:
    code = "import json, importlib.util as u; print(open(json.__cached__, 'rb').read(8)[4])"
    with Sandbox(SandboxSpec(layers=(base_image.rootfs,))) as box:
        assert box.exec(["python3", "-c", code]).stdout.split() == [b"1"], "1: keyed by content, not checked"


@pytest.mark.sandbox
def test_files_on_disk_have_the_digest_of_the_base(base_image: BaseImage, tmp_path: Path) -> None:
    assert export_base(base_image.name, tmp_path / "layout") == base_image.digest
    index = json.loads((tmp_path / "layout/index.json").read_text())
    assert index["manifests"][0]["digest"] == base_image.digest
    assert index["manifests"][0]["platform"]["architecture"] == base_image.architecture
    assert base_image.reference == f"{catalog.registry()}/debian-bookworm@{base_image.digest}"


# ---------------------------------------------------------------------------------------------- building

BUILD = "from skill2env.sandbox.rootfs import ensure_base; print(ensure_base(progress=print).digest)"


def start_build() -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-u", "-c", BUILD], stdout=subprocess.PIPE, text=True)


@pytest.mark.sandbox
@pytest.mark.network
@pytest.mark.slow
@pytest.mark.vast
@pytest.mark.timeout(900)
def test_same_packages_same_bytes_and_a_kill_in_between_does_no_harm(
    base_image: BaseImage, empty_cache: Path
) -> None:
    killed = start_build()
    end = time.monotonic() + 300
    while not list(empty_cache.glob("bases/*/building-*/seed")):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert list(empty_cache.glob("bases/*/*.json")) == []
    pair = [start_build() for _ in range(2)]
    told = [process.communicate(timeout=600)[0] for process in pair]
    assert [text.splitlines()[-1] for text in told] == [base_image.digest, base_image.digest]
    assert sorted("waiting for another process" in text for text in told) == [False, True]
    assert list(empty_cache.glob("bases/*/building-*")) == []


def test_a_known_base_is_found_without_any_work(base_image: BaseImage) -> None:
    started = time.monotonic()
    assert ensure_base() == base_image
    assert time.monotonic() - started < 0.05


def test_a_base_of_an_older_recipe_or_without_files_is_not_used(empty_cache: Path) -> None:
    identity = current_identity()
    home = empty_cache / "bases" / f"debian-bookworm-{debian.architecture()}"
    python = home / "f/rootfs/usr/bin/python3"
    python.parent.mkdir(parents=True)
    python.symlink_to("python3.11")
    index = base_store.index_file("debian-bookworm", identity)

    def known(**changes: object) -> bool:
        record = {
            "digest": "sha256:1",
            "folder": "f",
            "epoch": 1,
            "recipe": base_store.recipe_digest("debian-bookworm"),
            **changes,
        }
        index.write_text(json.dumps(record))
        return base_store.built_base("debian-bookworm") is not None

    assert known()
    assert not known(recipe="sha256:0")
    assert not known(folder="gone")
    assert not known(epoch="never")
    index.write_text("{")
    assert base_store.built_base("debian-bookworm") is None


# ---------------------------------------------------------------------------------------------- failures


def test_unknown_base() -> None:
    with pytest.raises(UserError, match="no base image 'debian-buzz'") as caught:
        ensure_base("debian-buzz")
    assert "debian-bookworm" in caught.value.hint


@pytest.mark.usefixtures("dead_mirror")
def test_a_dead_network_is_said_and_leaves_nothing(empty_cache: Path) -> None:
    told: list[str] = []
    with pytest.raises(InfraError, match="could not fetch Debian packages") as caught:
        ensure_base(progress=told.append)
    assert caught.value.boundary is Boundary.NETWORK
    assert mirrors.MIRROR_VARIABLE in caught.value.hint
    assert told == ["debian-bookworm: downloading Debian packages"]
    assert list(empty_cache.glob("bases/*/*/")) == []


def test_machines_without_apt_or_keyring_are_told_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "KEYRING", tmp_path / "none.gpg")
    with pytest.raises(InfraError, match="cannot be trusted") as caught:
        debian.download(BOOKWORM, tmp_path)
    assert "debian-archive-keyring" in caught.value.hint
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InfraError, match="no apt-get") as caught:
        debian.download(BOOKWORM, tmp_path)
    assert "--sandbox docker" in caught.value.hint
    assert not caught.value.transient


def test_too_little_room_is_said_before_anything_is_downloaded(
    small_disk: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = small_disk("size=20m")
    monkeypatch.setenv(CACHE_VARIABLE, str(disk))
    told: list[str] = []
    with pytest.raises(InfraError, match="MB are free") as caught:
        ensure_base(progress=told.append)
    assert caught.value.boundary is Boundary.STORAGE
    assert told == []


def test_a_cache_that_cannot_be_written_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, "/proc/self/nowhere")
    with pytest.raises(InfraError, match="making the folder of base images failed") as caught:
        ensure_base()
    assert caught.value.boundary is Boundary.STORAGE


# ---------------------------------------------------------------------------------------------- packages


def make_package(folder: Path, name: str, files: dict[str, str], *, folders: int = 1_000_000) -> Path:
    tree = folder / f"{name}-tree"
    (tree / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: nobody <n@example.org>\nDescription: x\n"
    (tree / "DEBIAN/control").write_text(control)
    for path, text in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
        os.utime(tree / path, (1_000_000, 1_000_000))
    for parent, _, _ in tree.walk(top_down=False):
        os.utime(parent, (folders, folders))
    package = folder / f"{name}.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-b", str(tree), str(package)], check=True, capture_output=True
    )
    shutil.rmtree(tree)
    return package


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb on this machine")
def test_unpacking_goes_through_the_merged_folders(tmp_path: Path) -> None:
    packages = tmp_path / "debs"
    packages.mkdir()
    make_package(packages, "one", {"bin/tool": "1", "usr/lib/a": "a"})
    make_package(packages, "two", {"lib/b": "b", "dev/null": "no"})
    assert debian.unpack(packages, tmp_path / "tree") == 1_000_000
    tree = tmp_path / "tree"
    assert (tree / "bin").is_symlink()
    assert (tree / "lib").is_symlink()
    assert [(tree / name).read_text() for name in ("usr/bin/tool", "usr/lib/a", "usr/lib/b")] == [
        "1",
        "a",
        "b",
    ]
    assert not (tree / "dev/null").exists()


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb on this machine")
def test_a_folder_of_several_packages_has_the_time_of_the_last_by_name(tmp_path: Path) -> None:
    # Two megabytes make the first package the slower one, so that nothing but order decides.
    make_package(tmp_path, "one", {"usr/share/doc/one/a": os.urandom(1 << 20).hex()}, folders=2_000_000)
    make_package(tmp_path, "two", {"usr/share/doc/two/b": "b"}, folders=3_000_000)
    debian.unpack(tmp_path, tmp_path / "tree")
    assert (tmp_path / "tree/usr/share/doc").stat().st_mtime == 3_000_000


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb on this machine")
def test_a_damaged_package_is_named(tmp_path: Path) -> None:
    package = make_package(tmp_path, "one", {"bin/tool": "x" * 100_000})
    package.write_bytes(package.read_bytes()[:-200])
    with pytest.raises(InfraError, match=r"one\.deb could not be unpacked"):
        debian.unpack(tmp_path, tmp_path / "tree")
