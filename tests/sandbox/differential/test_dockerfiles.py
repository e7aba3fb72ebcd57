"""The same Dockerfiles with our builder and with an engine: equal trees, modes, owners, environment and folders."""

import importlib.util
import io
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.errors import UserError
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.images import BuiltImage, build_image
from skill2env.sandbox.session import Sandbox, SandboxSpec

HERE = Path(__file__).parent
pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("base_image")]


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


CASES = _module("dockerfiles").CASES


def _archive(mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, uid, bits in (("in/file", 33, 0o640), ("top", 0, 0o755)):
            info = tarfile.TarInfo(name)
            info.size, info.uid, info.gid, info.mode = 4, uid, uid, bits
            archive.addfile(info, io.BytesIO(b"data"))
    return out.getvalue()


@pytest.fixture
def make_context(tmp_path: Path) -> Callable[..., Path]:
    def make(dockerfile: str, files: dict[str, str]) -> Path:
        folder = tmp_path / "context"
        folder.mkdir()
        modes: dict[Path, int] = {}
        for entry, text in files.items():
            name, _, mode = entry.partition("!")
            name, _, link = name.partition("@")
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith("/"):
                path.mkdir(parents=True, exist_ok=True)
                modes[path] = int(mode, 8)
            elif link:
                path.symlink_to(link)
            elif text == "TAR":
                path.write_bytes(_archive("w:gz" if name.endswith(".gz") else "w"))
            else:
                path.write_text(text)
                path.chmod(int(mode or "0644", 8))
        for path in folder.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(modes.get(path, 0o755))
        (folder / "Dockerfile").write_text(dockerfile)
        return folder

    return make


@pytest.fixture(scope="session")
def buildkit(tmp_path_factory: pytest.TempPathFactory, engine_base: str) -> str:
    """A docker program that builds with BuildKit: newer ones need a plugin for it, Debian 12's has it within."""
    folder = tmp_path_factory.mktemp("probe")
    (folder / "Dockerfile").write_text(f"FROM {engine_base}\n")
    for program in filter(None, (shutil.which("docker"), "/usr/bin/docker")):
        command = [program, "build", "-q", str(folder)]
        environment = {**os.environ, "DOCKER_BUILDKIT": "1"}
        if not subprocess.run(command, env=environment, check=False, capture_output=True).returncode:
            return program
    pytest.skip("no docker program here builds with BuildKit")


@pytest.fixture(scope="session")
def engine_base() -> str:
    """Our default base as the engine knows it."""
    from skill2env.sandbox.engine import Engine
    from skill2env.sandbox.engine_bases import ensure_engine_base, tag_of

    base = ensure_engine_base(Engine("docker"))
    return tag_of(base.name, base.digest)


def _parse(lines: str) -> dict[str, list[str]]:
    return {entry[0]: entry[1:] for entry in map(json.loads, lines.splitlines())}


def ours(context: Path) -> tuple[BuiltImage, dict[str, list[str]]]:
    image = build_image(context)
    with Sandbox(SandboxSpec(layers=image.layers)) as box:
        done = box.exec(
            ["python3", "-I", "-"], stdin=(HERE / "snapshot.py").read_bytes(), output_limit=64 * 2**20
        )
    assert done.return_code == 0, done.stderr.decode()
    return image, _parse(done.stdout.decode())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_our_builder_builds_it(case: object, make_context: Callable[..., Path]) -> None:
    """Without an engine to compare with, at least every case must build and hold the base."""
    context = make_context(case.dockerfile, case.files)  # type: ignore[attr-defined]
    try:
        image, tree = ours(context)
    except UserError as error:
        if current_identity().several_users or "single-uid" not in str(error):
            raise
        pytest.skip("its users need several user ids")
    assert tree["/usr/bin/python3"]
    assert image.config.workdir.startswith("/")


@pytest.mark.docker
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_engine_makes_the_same(
    case: object, make_context: Callable[..., Path], engine_base: str, buildkit: str
) -> None:
    if not current_identity().several_users:
        pytest.skip("owners need several user ids")
    dockerfile = case.dockerfile  # type: ignore[attr-defined]
    context = make_context(dockerfile, case.files)  # type: ignore[attr-defined]
    image, mine = ours(context)
    text = re.sub(r"\bdebian-bookworm\b", engine_base, dockerfile)
    other = context.parent / "Dockerfile.engine"
    other.write_text(text)
    if (context / ".dockerignore").exists():
        shutil.copy(context / ".dockerignore", context.parent / "Dockerfile.engine.dockerignore")
    tag = f"skill2env-differential-{os.getpid()}"
    environment = {**os.environ, "DOCKER_BUILDKIT": "1"}
    try:
        built = subprocess.run(
            [buildkit, "build", "-q", "-t", tag, "-f", str(other), str(context)],
            check=False,
            capture_output=True,
            env=environment,
        )
        if built.returncode and case.newer and b"dockerfile parse error" in built.stderr.lower():  # type: ignore[attr-defined]
            pytest.skip("this engine is too old for it")
        assert built.returncode == 0, built.stderr.decode()
        told = subprocess.run(
            ["docker", "run", "-i", "--rm", "--network=none", "--user=0:0", "--entrypoint=python3", tag, "-I", "-"],
            input=(HERE / "snapshot.py").read_bytes(),
            check=True,
            capture_output=True,
        ).stdout.decode()  # fmt: skip
        (config,) = json.loads(
            subprocess.run(["docker", "image", "inspect", tag], check=True, capture_output=True).stdout
        )
    finally:
        subprocess.run(["docker", "rmi", "-f", tag], check=False, capture_output=True)
    theirs = _parse(told)
    assert {
        k: (mine.get(k), theirs.get(k)) for k in mine.keys() | theirs.keys() if mine.get(k) != theirs.get(k)
    } == {}
    environment = dict(pair.split("=", 1) for pair in config["Config"]["Env"])
    assert environment == dict(image.config.env)
    assert posixpath.normpath(config["Config"]["WorkingDir"] or "/") == image.config.workdir
    assert (config["Config"]["User"] or "") in (image.config.user, "root", "0")
