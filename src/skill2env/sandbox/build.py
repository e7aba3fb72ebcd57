"""A recipe -> layers: each group of steps is run once in a sandbox and kept, named by everything that went into it.

Neighbouring COPY, ADD and WORKDIR steps share a layer; each RUN has its own. A command is at fault only when the
network and the disk worked: their failures are infrastructure, never the Dockerfile's.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from skill2env.errors import Boundary, InfraError
from skill2env.records import digest_of
from skill2env.sandbox import context as ctx
from skill2env.sandbox.box import Box
from skill2env.sandbox.copying import copy_across, copy_into, make_folder
from skill2env.sandbox.identity import Identity, Tier
from skill2env.sandbox.layers import Layer, building, find
from skill2env.sandbox.network import build_network
from skill2env.sandbox.recipe import CopyStep, Recipe, RunStep, Stage, Step, WorkdirStep
from skill2env.sandbox.running import Bench, run_command
from skill2env.sandbox.scratch import remove_tree
from skill2env.sandbox.session import Bind, ResourceLimits, Sandbox, SandboxSpec
from skill2env.store.files import storage

Progress = Callable[[str], None]
_LAYERS_AT_MOST = 32
_MOUNTS = "mounts"
_BUILDER = 2
"""Raised when the same Dockerfile comes to make something else, so that no older layer is taken for it."""
BUILD_LIMITS = ResourceLimits(memory_mb=8192, pids=4096, storage_mb=16384)
"""What one layer may use: generous for compilers, far from what would hurt the machine."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What layers are put on."""

    rootfs: Path
    digest: str
    suite: str
    """Debian suite of the base, for the package sources."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A built image or stage: layers on a base."""

    ground: Ground
    key: str
    """Digest of everything that went into it."""
    layers: tuple[Layer, ...] = ()

    @property
    def folders(self) -> tuple[Path, ...]:
        """Lower directories of its file system, bottom first."""
        return (self.ground.rootfs, *(layer.files for layer in self.layers))


@dataclass(frozen=True, slots=True)
class Group:
    """Steps of one layer, with the files that they copy."""

    steps: tuple[Step, ...]
    sources: dict[int, list[ctx.Source]]
    """Index of a step that copies from the build context -> what it copies."""
    origins: dict[int, Stack]
    """Index of a step that copies from elsewhere -> from where."""

    @property
    def online(self) -> bool:
        """Whether one of its commands may use the network."""
        return any(isinstance(step, RunStep) and not step.offline for step in self.steps)

    @property
    def mounts(self) -> tuple[str, ...]:
        """Folders that its commands find empty, and that the layer does not keep."""
        return tuple(
            dict.fromkeys(path for step in self.steps if isinstance(step, RunStep) for path in step.mounts)
        )

    def describe(self) -> list[object]:
        """Everything that decides what the layer holds, as plain data."""
        return [self._describe(number, step) for number, step in enumerate(self.steps)]

    def _describe(self, number: int, step: Step) -> list[object]:
        match step:
            case RunStep():
                told: list[object] = [
                    "run",
                    list(step.argv),
                    dict(step.env),
                    step.workdir,
                    step.user,
                    step.offline,
                ]
                return [*told, list(step.mounts)] if step.mounts else told
            case CopyStep():
                origin = self.origins.get(number)
                if origin is not None:
                    return ["copy", origin.key, list(step.sources), step.target, step.owner, step.mode]
                files = list(ctx.fingerprint(self.sources[number]))
                told = ["copy", files, list(step.files), step.target, step.owner, step.mode]
                return [*told, "unpack"] if step.unpack else told
            case WorkdirStep():
                return ["workdir", step.path, *([step.user] if step.user else [])]


class Builder:
    """Finds or builds the layers of recipes.

    Args:
        context: what COPY may copy.
        base_of: image reference -> the base it means; raises what `images` says.
        identity: how ids map.
        timeout_sec: for all commands together.
        progress: told one line per layer that is built.
        known: image reference -> what is built already.
    """

    def __init__(
        self,
        context: ctx.Context,
        base_of: Callable[[str], Ground],
        identity: Identity,
        *,
        timeout_sec: float,
        progress: Progress,
        known: Mapping[str, "Stack"] = MappingProxyType({}),
    ) -> None:
        self._context = context
        self._base_of = base_of
        self._identity = identity
        self._deadline = time.monotonic() + timeout_sec
        self._progress = progress
        self._known = known

    def build(self, recipe: Recipe) -> Stack:
        """The last stage, and before it the earlier stages that it needs.

        Raises:
            BuildFailed: the Dockerfile is at fault.
            InfraError: the network, the disk or the sandbox is.
        """
        built: dict[int, Stack] = {}
        for number in sorted(_needed(recipe)):
            stage = recipe.stages[number]
            below = built[stage.base] if isinstance(stage.base, int) else self._image(stage.base)
            built[number] = self._stage(stage, below, built)
        return built[len(recipe.stages) - 1]

    def _image(self, reference: str) -> Stack:
        if reference in self._known:
            return self._known[reference]
        ground = self._base_of(reference)
        return Stack(ground, digest_of({"base": ground.digest, "builder": _BUILDER}))

    def _stage(self, stage: Stage, stack: Stack, built: Mapping[int, Stack]) -> Stack:
        for group in self._groups(stage.steps, built, room=max(_LAYERS_AT_MOST - len(stack.layers), 1)):
            with storage("reading the build context", self._context.root):
                key = digest_of({"parent": stack.key, "steps": group.describe()})
            layer = self._find(key.removeprefix("sha256:"))
            if layer is None:
                self._progress(str(group.steps[-1].place))
                layer = self._layer(key.removeprefix("sha256:"), group, stack)
            stack = Stack(stack.ground, key, (*stack.layers, layer))
        return stack

    def _groups(self, steps: Sequence[Step], built: Mapping[int, Stack], room: int) -> list[Group]:
        """Steps by layer; files are looked up here, so that a missing one fails before anything of the stage runs."""
        groups: list[Group] = []
        for bundle in _bundles(steps, room):
            sources: dict[int, list[ctx.Source]] = {}
            origins: dict[int, Stack] = {}
            for number, step in enumerate(bundle):
                match step:
                    case CopyStep(origin=None):
                        sources[number] = [
                            found for word in step.sources for found in self._context.select(word, step.place)
                        ]
                    case CopyStep(origin=int(earlier)):
                        origins[number] = built[earlier]
                    case CopyStep(origin=str(reference)):
                        origins[number] = self._image(reference)
                    case _:
                        pass
            groups.append(Group(tuple(bundle), sources, origins))
        return groups

    def _find(self, key: str) -> Layer | None:
        """The layer of that key, if it is built."""
        return find(key, self._identity)

    def _layer(self, key: str, group: Group, below: Stack) -> Layer:
        description: dict[str, object] = {
            "steps": [str(step.place) for step in group.steps],
            "base": below.ground.digest,
        }
        with building(key, self._identity, description) as (found, work), ExitStack() as stack:
            if found is not None:
                return found
            network = stack.enter_context(build_network(below.ground.suite)) if group.online else None
            mounts = tuple(_mounts(work, group.mounts, self._identity))
            spec = SandboxSpec(
                layers=below.folders,
                upper=work / "fs",
                binds=(*(network.binds if network else ()), *mounts),
                proxy_socket=network.proxy.socket_path if network else None,
                limits=BUILD_LIMITS,
                build=True,
                hostname="build",
            )
            with Sandbox(spec, identity=self._identity) as box:
                bench = Bench(box, network, work, self._deadline)
                for number, step in enumerate(group.steps):
                    self._perform(bench, step, group, number)
            if mounts:
                remove_tree(work / _MOUNTS, self._identity)
            if network is not None and network.proxy.log:
                (work / "network.jsonl").write_text(network.log_lines())
        layer = find(key, self._identity)
        if layer is None:
            raise InfraError(Boundary.STORAGE, f"layer {key[:12]} vanished right after it was built")
        return layer

    def _origin(self, stack: Stack) -> Box:
        """A box on a finished stage or image, to copy from."""
        return Sandbox(
            SandboxSpec(layers=stack.folders, limits=BUILD_LIMITS, build=True), identity=self._identity
        )

    def _perform(self, bench: Bench, step: Step, group: Group, number: int) -> None:
        match step:
            case RunStep():
                run_command(bench, step)
            case CopyStep() if number in group.origins:
                with self._origin(group.origins[number]) as origin:
                    copy_across(bench.box, step, origin)
            case CopyStep():
                copy_into(bench.box, step, group.sources[number])
            case WorkdirStep():
                make_folder(bench.box, step)


def _needed(recipe: Recipe) -> set[int]:
    """Numbers of the stages that the last one rests on or copies from, itself included."""
    needed: set[int] = set()
    waiting = [len(recipe.stages) - 1]
    while waiting:
        number = waiting.pop()
        if number in needed:
            continue
        needed.add(number)
        stage = recipe.stages[number]
        origins = [step.origin for step in stage.steps if isinstance(step, CopyStep)]
        waiting += [one for one in (stage.base, *origins) if isinstance(one, int)]
    return needed


def _bundles(steps: Sequence[Step], room: int) -> list[list[Step]]:
    """Steps by layer: neighbouring copies together, each command alone, as long as there is room for layers."""
    bundles: list[list[Step]] = []
    for step in steps:
        open_bundle = bundles and not any(isinstance(s, RunStep) for s in bundles[-1])
        joins = open_bundle and (
            not isinstance(step, RunStep) or all(isinstance(s, WorkdirStep) for s in bundles[-1])
        )
        # What a mounted folder hides, a neighbour in the same sandbox would miss.
        apart = any(isinstance(s, RunStep) and s.mounts for s in (step, *(bundles[-1] if bundles else ())))
        if joins or (len(bundles) >= room and not apart):
            bundles[-1].append(step)
        else:
            bundles.append([step])
    return bundles


def _mounts(work: Path, targets: Sequence[str], identity: Identity) -> Iterator[Bind]:
    """An empty folder of the host for each target, owned by root inside."""
    for number, target in enumerate(targets):
        folder = work / _MOUNTS / str(number)
        folder.mkdir(parents=True)
        if identity.tier is Tier.ROOT:
            os.chown(folder, identity.root_uid, identity.root_gid)
        yield Bind(folder, target, writable=True)
