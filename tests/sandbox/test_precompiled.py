"""Byte code of the programs inside: made once, used where it fits, ignored where it does not."""

from pathlib import Path

import pytest

from skill2env.sandbox import precompiled
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.images import BaseImage
from skill2env.sandbox.scratch import guest_folder
from skill2env.sandbox.session import Sandbox, SandboxSpec

pytestmark = pytest.mark.sandbox


@pytest.fixture
def folder(base_image: BaseImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the programs without byte code, used by every sandbox of the test."""
    import shutil

    from skill2env.sandbox import session

    del base_image
    here = guest_folder(current_identity())
    copy = here.with_name(f"{here.name}-test-{tmp_path.name}")
    shutil.copytree(here, copy, ignore=shutil.ignore_patterns("__pycache__"))
    copy.chmod(0o755)
    for module in (precompiled, session.scratch):
        monkeypatch.setattr(module, "guest_folder", lambda _identity: copy)
    monkeypatch.setattr(precompiled, "_done", set())
    yield copy  # type: ignore[misc]
    shutil.rmtree(copy)


def works(base: BaseImage) -> bool:
    with Sandbox(SandboxSpec(layers=(base.rootfs,))) as box:
        return box.exec(["echo", "ok"]).stdout == b"ok\n"


def test_it_is_made_once_and_used(base_image: BaseImage, folder: Path) -> None:
    precompiled.precompile(base_image)
    made = {path.name: path.stat().st_mtime_ns for path in (folder / "__pycache__").glob("*.pyc")}
    assert {name.partition(".")[0] for name in made} >= {"init", "run", "place", "files"}
    precompiled._done.clear()
    precompiled.precompile(base_image)
    assert made == {path.name: path.stat().st_mtime_ns for path in (folder / "__pycache__").glob("*.pyc")}
    for source in ("place.py", "run.py"):  # proves that the byte code is what runs
        (folder / source).write_text("raise SystemExit(9)\n")
    assert works(base_image)


def test_byte_code_of_another_version_is_ignored(base_image: BaseImage, folder: Path) -> None:
    (folder / "__pycache__").mkdir()
    for name in ("init", "run", "place"):
        (folder / "__pycache__" / f"{name}.cpython-399.pyc").write_bytes(b"junk")
        (folder / "__pycache__" / f"{name}.cpython-311.pyc").write_bytes(
            b"\x00\x00\r\n junk of another magic"
        )
    assert works(base_image)


def test_a_folder_that_cannot_be_written_only_costs_time(
    base_image: BaseImage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(precompiled, "_write", full)
    precompiled.precompile(base_image)
    assert not (folder / "__pycache__").exists()
    assert works(base_image)
