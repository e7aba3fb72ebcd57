"""A recipe -> layers: each group of steps is run once in a sandbox and kept, named by everything that went into it.

Neighbouring COPY, ADD and WORKDIR steps share a layer; each RUN has its own. A command is at fault only when the
network and the disk worked: their failures are infrastructure, never the Dockerfile's.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.records import digest_of
from skill2env.sandbox import context as ctx
from skill2env.sandbox.command import log_tail
from skill2env.sandbox.copying import copy_into
from skill2env.sandbox.dockerfile import BuildFailed, Place
from skill2env.sandbox.identity import Identity
from skill2env.sandbox.layers import Layer, building, find
from skill2env.sandbox.network import Network, build_network
from skill2env.sandbox.recipe import CopyStep, Recipe, RunStep, Step, WorkdirStep
from skill2env.sandbox.session import ExecOutcome, ResourceLimits, Sandbox, SandboxSpec
from skill2env.store.files import storage

Progress = Callable[[str], None]
_LOG_LIMIT_BYTES = 4 * 2**20
_FULL_DISK_BYTES = 100 * 2**20
_LAYERS_AT_MOST = 32
_LIMITS = ResourceLimits(memory_mb=8192, pids=4096, storage_mb=16384)
"""What one layer may use: generous for compilers, far from what would hurt the machine."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What layers are put on."""

    rootfs: Path
    digest: str
    suite: str
    """Debian suite of the base, for the package sources."""


@dataclass(frozen=True, slots=True)
class _Bench:
    """Where the steps of one layer are performed."""

    box: Sandbox
    network: Network | None
    work: Path
    deadline: float
    """On the monotonic clock."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Steps of one layer, with the files that they copy."""

    steps: tuple[Step, ...]
    sources: dict[int, list[ctx.Source]]
    """Index of a copy step -> what it copies."""

    @property
    def online(self) -> bool:
        return any(isinstance(step, RunStep) and not step.offline for step in self.steps)

    def describe(self) -> list[object]:
        """Everything that decides what the layer holds, as plain data."""
        told: list[object] = []
        for number, step in enumerate(self.steps):
            match step:
                case RunStep():
                    told.append(
                        ["run", list(step.argv), dict(step.env), step.workdir, step.user, step.offline]
                    )
                case CopyStep():
                    files = list(ctx.fingerprint(self.sources[number]))
                    told.append(["copy", files, list(step.files), step.target, step.owner, step.mode])
                case WorkdirStep():
                    told.append(["workdir", step.path])
        return told


def build_layers(
    recipe: Recipe,
    context: ctx.Context,
    ground: Ground,
    identity: Identity,
    *,
    timeout_sec: float,
    progress: Progress,
) -> tuple[str, tuple[Layer, ...]]:
    """Find or build every layer of a recipe.

    Args:
        recipe: from `recipe.resolve`.
        context: what COPY may copy.
        ground: the base.
        identity: how ids map.
        timeout_sec: for all commands together.
        progress: told one line per layer that is built.

    Returns:
        (key of the whole, layers bottom first).

    Raises:
        BuildFailed: the Dockerfile is at fault.
        InfraError: the network, the disk or the sandbox is.
    """
    key, layers = digest_of({"base": ground.digest}), list[Layer]()
    deadline = time.monotonic() + timeout_sec
    for group in _groups(recipe.steps, context):
        with storage("reading the build context", context.root):
            key = digest_of({"parent": key, "steps": group.describe()})
        short = key.removeprefix("sha256:")
        layer = find(short, identity)
        if layer is None:
            progress(str(group.steps[-1].place))
            layer = _build(short, group, layers, ground=ground, identity=identity, deadline=deadline)
        layers.append(layer)
    return key, tuple(layers)


def _groups(steps: Sequence[Step], context: ctx.Context) -> Iterator[_Group]:
    """Split steps into layers; copied files are looked up here, so that a missing one fails before anything runs."""
    bundles: list[list[Step]] = []
    for step in steps:
        open_bundle = bundles and not any(isinstance(s, RunStep) for s in bundles[-1])
        joins = open_bundle and (
            not isinstance(step, RunStep) or all(isinstance(s, WorkdirStep) for s in bundles[-1])
        )
        if joins or len(bundles) >= _LAYERS_AT_MOST:
            bundles[-1].append(step)
        else:
            bundles.append([step])
    groups: list[_Group] = []
    for bundle in bundles:
        sources = {
            number: [found for word in step.sources for found in context.select(word, step.place)]
            for number, step in enumerate(bundle)
            if isinstance(step, CopyStep)
        }
        groups.append(_Group(tuple(bundle), sources))
    return iter(groups)


def _build(
    key: str, group: _Group, below: Sequence[Layer], *, ground: Ground, identity: Identity, deadline: float
) -> Layer:
    description: dict[str, object] = {
        "steps": [str(step.place) for step in group.steps],
        "base": ground.digest,
    }
    with building(key, identity, description) as (found, work), ExitStack() as stack:
        if found is not None:
            return found
        network = stack.enter_context(build_network(ground.suite)) if group.online else None
        spec = SandboxSpec(
            layers=(ground.rootfs, *(layer.files for layer in below)),
            upper=work / "fs",
            binds=network.binds if network else (),
            proxy_socket=network.proxy.socket_path if network else None,
            limits=_LIMITS,
            build=True,
            hostname="build",
        )
        with Sandbox(spec, identity=identity) as box:
            bench = _Bench(box, network, work, deadline)
            for number, step in enumerate(group.steps):
                _perform(bench, step, group.sources.get(number, []))
        if network is not None and network.proxy.log:
            (work / "network.jsonl").write_text(network.log_lines())
    layer = find(key, identity)
    if layer is None:
        raise InfraError(Boundary.STORAGE, f"layer {key[:12]} vanished right after it was built")
    return layer


def _perform(bench: _Bench, step: Step, sources: list[ctx.Source]) -> None:
    match step:
        case RunStep():
            _run(bench, step)
        case CopyStep():
            copy_into(bench.box, step, sources)
        case WorkdirStep():
            done = bench.box.exec(["/bin/mkdir", "-p", "--", step.path], merge_stderr=True)
            if done.return_code:
                raise BuildFailed(str(step.place), log_tail(done.stdout))


def _run(bench: _Bench, step: RunStep) -> None:
    network = bench.network
    left = bench.deadline - time.monotonic()
    if left <= 0:
        raise _too_long(step.place)
    done = bench.box.exec(
        step.argv,
        cwd=step.workdir,
        env={**(_network_env(network) if network and not step.offline else {}), **step.env},
        user=step.user or None,
        timeout_sec=left,
        output_limit=_LOG_LIMIT_BYTES,
        merge_stderr=True,
    )
    with (bench.work / "build.log").open("ab") as log:
        log.write(f"# {step.place}\n".encode() + done.stdout)
    if done.timed_out:
        raise _too_long(step.place)
    if done.return_code:
        _blame(bench, step, done)


def _network_env(network: Network) -> dict[str, str]:
    return {**network.env, **network.package_env}


def _too_long(place: Place) -> InfraError:
    return InfraError(
        Boundary.BUILD,
        f"the build ran out of time at {place}",
        hint="Raise build_timeout_sec, or run fewer builds at once.",
    )


def _blame(bench: _Bench, step: RunStep, done: ExecOutcome) -> None:
    """Raise the error that says whose fault a failed command is."""
    log = (log_tail(done.stdout) or log_tail(done.stderr)) + (f"\n{done.breach}" if done.breach else "")
    if shutil.disk_usage(bench.work).free < _FULL_DISK_BYTES:
        raise InfraError(
            Boundary.STORAGE,
            f"the disk is full at {step.place}",
            hint="Make room (`skill2env cache prune`), then run again.",
        )
    network = bench.network
    failures = network.failures() if network else []
    if failures:
        first = failures[0]
        raise InfraError(
            Boundary.NETWORK,
            f"{first.host}:{first.port} could not be reached at {step.place}: {first.detail}",
            hint="Check the network and the machine's package settings, then run again.",
        )
    refused = network.refused_hosts() if network else []
    hint = f"Builds reach package sources only; asked for: {', '.join(refused[:5])}." if refused else ""
    raise BuildFailed(str(step.place), log, exit_code=done.return_code, hint=hint)
