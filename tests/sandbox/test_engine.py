"""docker and podman beside the conformance suite: images, keys, leftovers, and whole trials."""

import os
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.cli.main import run
from skill2env.errors import InfraError
from skill2env.harbor.sandboxes import engine_sandbox
from skill2env.harbor.trial import run_trial
from skill2env.sandbox import catalog, containers, scratch
from skill2env.sandbox.base_store import built_base
from skill2env.sandbox.engine import Engine, EngineError, engine
from skill2env.sandbox.engine_bases import ensure_engine_base, tag_of
from skill2env.sandbox.engine_box import EngineBox
from skill2env.sandbox.engine_build import rewrite
from skill2env.sandbox.engine_command import passed
from skill2env.sandbox.engine_images import engine_images
from skill2env.sandbox.engine_push import push_image
from skill2env.sandbox.engine_spec import EngineSpec, run_options
from skill2env.sandbox.engine_sweep import is_orphan, owner_label, sweep
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.images import build_image
from skill2env.sandbox.instructions import BuildFailed
from skill2env.sandbox.limits import ResourceLimits

DOCKERFILE = """\
FROM debian-bookworm AS made
RUN echo stage > /made
FROM debian-bookworm
ENV GREETING=hello
COPY --from=made /made /made
COPY . /app/
RUN useradd agent && cat <<'END' > /app/doc
from a heredoc
END
WORKDIR /app
USER agent
"""


def context(folder: Path, dockerfile: str = DOCKERFILE) -> Path:
    folder.mkdir()
    (folder / "Dockerfile").write_text(dockerfile)
    (folder / "data.txt").write_text("data\n")
    return folder


# ---------------------------------------------------------------------------------------- without an engine


def test_variables_are_not_seen_in_the_process_list() -> None:
    options, environment = passed(
        {"API_KEY": "secret", "PATH": "/bin", "DOCKER_HOST": "x", "HTTPS_PROXY": "p"}
    )
    assert options == [
        "--env", "API_KEY", "--env", "PATH=/bin", "--env", "DOCKER_HOST=x", "--env", "HTTPS_PROXY=p",
    ]  # fmt: skip
    assert environment["API_KEY"] == "secret"
    assert environment.get("DOCKER_HOST") == os.environ.get("DOCKER_HOST")


def test_options_of_a_container() -> None:
    spec = EngineSpec(
        "image", limits=ResourceLimits(0.5, 256, 100, 10), entrypoint=("/entry", "-x"), user="agent"
    )
    options = run_options(Engine("docker"), spec, "name")
    told = " ".join(options)
    assert "--network none" in told
    assert "--pull never" in told
    assert "--cpus 0.5 --memory 256m --memory-swap 256m --pids-limit 100 --ulimit fsize=10485760" in told
    assert options[options.index("--entrypoint") :][:4] == ["--entrypoint", "/entry", "image", "-x"]
    assert options[-3:-1] == ["sh", "-c"]


def test_whose_containers_are_orphans() -> None:
    machine, boot, namespace, owner = owner_label().split(".")
    assert not is_orphan(owner_label())
    assert is_orphan(f"{machine}.{boot}.{namespace}.999999999-1")
    assert is_orphan(f"{machine}.other.{namespace}.{owner}")
    for unknown in (f"other.{boot}.{namespace}.1-1", f"{machine}.{boot}.other.999999999-1", "", "x"):
        assert not is_orphan(unknown)


def test_only_from_lines_are_rewritten() -> None:
    text = (
        "ARG A=1\nFROM --platform=linux/amd64 ours@sha256:1 AS x\nfrom other\nRUN echo FROM ours@sha256:1\n"
    )
    assert rewrite(text, {"ours@sha256:1": "tag:1"}) == text.replace("ours@sha256:1 AS", "tag:1 AS")


@pytest.mark.parametrize(
    ("told", "boundary", "transient"),
    [
        ("Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", "sandbox", False),
        ("write /x: no space left on device", "storage", True),
        ("Get https://registry: dial tcp: lookup registry: no such host", "network", True),
        ("something else", "sandbox", True),
    ],
)
def test_failures_of_an_engine(told: str, boundary: str, transient: bool) -> None:
    error = EngineError("docker", ["run"], 125, told).infra("starting")
    assert (error.boundary, error.transient) == (boundary, transient)
    assert told in error.message


def test_an_engine_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InfraError, match="not installed"):
        Engine("docker").call("version")


KILLED_BUILD = """
import sys
from pathlib import Path
from skill2env.sandbox.engine import Engine
from skill2env.sandbox.engine_build import build_by_engine
build_by_engine(Engine("docker"), Path(sys.argv[1]), dockerfile="Dockerfile", tags={}, timeout_sec=600)
"""


def test_a_killed_build_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docker").write_text('#!/bin/sh\necho $$ > "$MARK"; exec sleep 600\n')
    (tmp_path / "docker").chmod(0o755)
    mark, temporary = tmp_path / "mark", tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("SKILL2ENV_CACHE", str(tmp_path / "cache"))
    env = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "MARK": str(mark),
        "TMPDIR": str(temporary),
    }
    folder = context(tmp_path / "context", "FROM example.org/image:1\n")
    with subprocess.Popen([sys.executable, "-c", KILLED_BUILD, str(folder)], env=env) as process:
        while not (mark.is_file() and mark.read_text()):
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    os.kill(int(mark.read_text()), 9)
    left = list((tmp_path / "cache/run").glob("*/Dockerfile"))
    assert [path.read_text() for path in left] == ["FROM example.org/image:1\n"]
    assert scratch.sweep(current_identity()) == 1
    assert not list((tmp_path / "cache/run").iterdir())
    assert not list(temporary.iterdir())


# ---------------------------------------------------------------------------------------- with docker


@pytest.fixture
def docker() -> Engine:
    return engine("docker")


@pytest.mark.docker
def test_bases_and_builds_are_the_same_as_in_the_namespace_sandbox(
    docker: Engine, rootfs: Path, tmp_path: Path
) -> None:
    folder = context(tmp_path / "context")
    ours, theirs = build_image(folder), engine_images(docker).build(folder)
    assert (theirs.key, theirs.base.digest, theirs.config) == (ours.key, ours.base.digest, ours.config)
    assert theirs.height == ours.height
    look = ["sh", "-c", "cat /made /app/data.txt /app/doc; stat -c '%U %a' /app/doc; ls /run; ls -A /app"]
    with containers.open_box(ours, limits=ResourceLimits()) as box:
        expected = box.exec(look).stdout
    containers.use("docker")
    with containers.open_box(theirs, limits=ResourceLimits()) as box:
        assert box.exec(look).stdout == expected.replace(b"skill2env\n", b"")


@pytest.mark.docker
@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_base_that_the_engine_builds_has_the_same_digest(
    docker: Engine, base_image: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = base_image.digest  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setenv("SKILL2ENV_CACHE", str(tmp_path / "cache"))
    assert built_base(catalog.DEFAULT_BASE) is None
    assert ensure_engine_base(docker).digest == digest
    assert not list((tmp_path / "cache/bases").glob("*/building-*"))


@pytest.mark.docker
def test_an_image_that_is_not_the_base_is_replaced(docker: Engine) -> None:
    base = ensure_engine_base(docker)
    tag = tag_of(base.name, base.digest)
    right = docker.image_id(tag)
    docker.call("build", "-t", tag, "-", stdin=f"FROM {tag}\nRUN touch /changed\n".encode())
    assert docker.image_id(tag) != right
    ensure_engine_base(docker)
    assert docker.image_id(tag) == right


@pytest.mark.docker
def test_other_images_are_built_by_the_engine(docker: Engine, tmp_path: Path) -> None:
    base = ensure_engine_base(docker)
    docker.call("tag", tag_of(base.name, base.digest), "example.org/somebody/image:1")
    try:
        folder = context(
            tmp_path / "one", "FROM example.org/somebody/image:1\nENV A=b\nWORKDIR /deep\nCOPY data.txt .\n"
        )
        built = engine_images(docker).build(folder)
        assert (built.base.name, built.config.workdir, built.config.env["A"]) == ("", "/deep", "b")
        with pytest.raises(BuildFailed, match=r"exit 7|code: 7"):
            engine_images(docker).build(
                context(tmp_path / "two", "FROM example.org/somebody/image:1\nRUN exit 7\n")
            )
        with pytest.raises(InfraError):
            engine_images(docker).build(context(tmp_path / "three", "FROM example.invalid/nothing:1\n"))
    finally:
        docker.call("rmi", "example.org/somebody/image:1")


@pytest.mark.docker
def test_containers_of_a_killed_process_are_swept(docker: Engine) -> None:
    base = ensure_engine_base(docker)
    code = (
        "import time\nfrom skill2env.sandbox.engine import engine\nfrom skill2env.sandbox.engine_box import EngineBox\n"
        "from skill2env.sandbox.engine_spec import EngineSpec\n"
        f"box = EngineBox(engine('docker'), EngineSpec({tag_of(base.name, base.digest)!r}))\n"
        "box.start()\nprint(box.name, flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert name in docker.call("ps", "--format", "{{.Names}}")
        sweep(docker)
        assert name in docker.call("ps", "--format", "{{.Names}}")
        process.kill()
    assert sweep(docker) >= 1
    assert name not in docker.call("ps", "--all", "--format", "{{.Names}}")


@pytest.mark.docker
def test_what_is_written_is_watched(docker: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skill2env.sandbox.engine_box.WATCH_SEC", 0.2)
    base = ensure_engine_base(docker)
    spec = EngineSpec(tag_of(base.name, base.digest), limits=ResourceLimits(storage_mb=20))
    with EngineBox(docker, spec) as box:
        done = box.exec(
            ["sh", "-c", "for n in 1 2 3 4; do head -c 10M /dev/zero > /f$n; done; sleep 20"], timeout_sec=30
        )
        assert done.return_code == 137
        assert box.breach == "more than 20 MiB were written"


@pytest.mark.docker
@pytest.mark.parametrize("mode", ["shared", "separate"])
def test_whole_trials(builder: object, docker: Engine, tmp_path: Path, mode: str) -> None:
    base = ensure_engine_base(docker)
    task = builder.build_task(tmp_path / "task", reference=base.reference)  # pyright: ignore[reportAttributeAccessIssue]
    before = docker.call("ps", "--all", "--quiet", "--filter", f"label=skill2env.owner={owner_label()}")
    began = time.monotonic()
    oracle, nop = (
        run_trial(
            task, agent, environment=engine_sandbox("docker"), trials_dir=tmp_path / "trials", mode=mode
        )
        for agent in ("oracle", "nop")
    )
    assert (oracle.failure, nop.failure) == (None, None)
    assert oracle.rewards == {"sum": 1.0, "largest": 1.0, "reward": 1.0}
    assert nop.rewards == {"sum": 0.0, "largest": 0.0, "reward": 0.0}
    assert time.monotonic() - began < 60
    assert (
        docker.call("ps", "--all", "--quiet", "--filter", f"label=skill2env.owner={owner_label()}") == before
    )


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """A registry on this machine."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("docker-registry is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = tmp_path / "registry.yml"
    settings.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {tmp_path}/registry}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\nlog: {{level: error}}\n"
    )
    with subprocess.Popen(
        [program, "serve", str(settings)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"localhost:{port}"
        process.terminate()


@pytest.mark.docker
def test_a_pushed_image_runs_as_it_was_built(docker: Engine, registry: str, tmp_path: Path) -> None:
    config = 'ENV A="quote \\" dollar \\$x"\nENTRYPOINT ["/usr/bin/env"]\nCMD ["true"]\n'
    built = engine_images(docker).build(context(tmp_path / "context", DOCKERFILE + config))
    reference = push_image(docker, built, f"{registry}/tasks/one")
    assert reference.startswith(f"{registry}/tasks/one@sha256:")
    docker.call("rmi", f"{registry}/tasks/one:{built.key.removeprefix('sha256:')[:16]}")
    pulled = engine_images(docker).resolve(reference)
    assert (pulled.config.user, pulled.config.workdir) == ("agent", "/app")
    assert pulled.config.entrypoint == ("/usr/bin/env",)
    assert {**pulled.config.env, **built.config.env} == pulled.config.env
    assert built.config.env["A"] == 'quote " dollar $x'
    with EngineBox(docker, EngineSpec(pulled.tag)) as box:
        assert box.exec(["cat", "/app/data.txt"]).stdout == b"data\n"


@pytest.mark.docker
def test_tasks_that_name_their_images(
    builder: ModuleType, docker: Engine, registry: str, tmp_path: Path
) -> None:
    base = ensure_engine_base(docker)
    task = builder.build_task(tmp_path / "tasks/one", reference=base.reference)
    assert (
        run(
            [
                "dataset",
                "push-images",
                str(tmp_path / "tasks"),
                f"{registry}/t",
                "--out",
                str(tmp_path / "out"),
            ]
        )
        == 0
    )
    copy = tmp_path / "out/one"
    reference = tomllib.loads((copy / "task.toml").read_text())["environment"]["docker_image"]
    assert reference.startswith(f"{registry}/t/one@sha256:")
    assert "docker_image" not in (task / "task.toml").read_text()
    outcome = run_trial(copy, "oracle", environment=engine_sandbox("docker"), trials_dir=tmp_path / "trials")
    assert outcome.rewards == {"sum": 1.0, "largest": 1.0, "reward": 1.0}
