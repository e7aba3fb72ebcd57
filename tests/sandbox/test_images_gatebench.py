"""Every world of the shared benchmark builds, except the one that is meant to fail; packages install while building."""

import shutil
from pathlib import Path

import pytest

from skill2env.sandbox import mirrors
from skill2env.sandbox.images import BaseImage, BuildFailed, BuiltImage, build_image
from skill2env.sandbox.session import Sandbox, SandboxSpec

pytestmark = pytest.mark.sandbox

STRANGERS = {"localhost/s2e-base": "debian-bookworm"}
"""Of the tasks that name an unpinned image on purpose."""


def world(shared: Path, task: str, part: str, base: BaseImage, target: Path) -> Path:
    shutil.copytree(shared / "gatebench/tasks" / task / part, target / part)
    dockerfile = target / part / "Dockerfile"
    dockerfile.chmod(0o644)
    dockerfile.write_text(dockerfile.read_text().replace("@BASE@", base.reference))
    return target / part


def look(image: BuiltImage, script: str) -> str:
    with Sandbox(SandboxSpec(layers=image.layers)) as box:
        done = box.exec(["/bin/sh", "-c", script], merge_stderr=True)
    assert done.return_code == 0, done.stdout.decode()
    return done.stdout.decode().strip()


def test_all_worlds_build(shared: Path, base_image: BaseImage, tmp_path: Path) -> None:
    failed: dict[str, str] = {}
    built = 0
    for dockerfile in sorted(shared.glob("gatebench/tasks/*/*/Dockerfile")):
        task, part = dockerfile.parts[-3], dockerfile.parts[-2]
        if "apt-get" in dockerfile.read_text():
            continue  # below
        try:
            image = build_image(world(shared, task, part, base_image, tmp_path / task), image_map=STRANGERS)
        except BuildFailed as error:
            failed[task] = str(error)
            continue
        built += 1
        assert image.base.digest == base_image.digest
        if part == "environment":
            assert image.config.workdir == "/app"
    assert list(failed) == ["tide-table"]
    assert (
        "COPY ../tests/pristine/ /opt/reference/: ../tests/pristine/: forbidden path" in failed["tide-table"]
    )
    assert built >= 49


@pytest.mark.network
@pytest.mark.slow
def test_packages_install_and_leave_no_trace_of_the_machine(
    shared: Path, base_image: BaseImage, tmp_path: Path
) -> None:
    image = build_image(world(shared, "card-checksum", "environment", base_image, tmp_path))
    assert (
        look(image, "cd /app/cards && git -c safe.directory=* log --format=%s").split("\n")[0] == "refactor"
    )
    hosts = " ".join(f"-e {host.partition(':')[0]}" for host in mirrors.debian_mirror().hosts)
    assert look(image, f"grep -rlF {hosts} -e 127.0.0.1:3128 /etc /var /root /tmp || true") == ""
    assert look(image, "find /etc/apt/sources.list* /var/lib/apt/lists -type f 2>/dev/null || true") == ""
