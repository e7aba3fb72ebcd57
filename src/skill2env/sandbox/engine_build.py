"""Dockerfiles in an engine.

On a base of ours they are built step by step, with the keys that the namespace sandbox gives, so that both mean the
same image; on any other image the engine's own builder does it.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any, override

from filelock import FileLock

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox import scratch
from skill2env.sandbox.build import BUILD_LIMITS, Builder, Ground, Group, Stack
from skill2env.sandbox.context import Context
from skill2env.sandbox.engine import LABEL, Engine, EngineError
from skill2env.sandbox.engine_box import EngineBox
from skill2env.sandbox.engine_network import network_binds, start_relays
from skill2env.sandbox.engine_spec import EngineSpec
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.instructions import BuildFailed
from skill2env.sandbox.layers import Layer
from skill2env.sandbox.network import build_network
from skill2env.sandbox.recipe import ImageConfig
from skill2env.sandbox.running import Bench
from skill2env.store.files import storage
from skill2env.store.folders import cache_home

LAYERS = "skill2env/layer"
"""Repository of built layers; the tag is the start of the key."""
_DIGITS = 24
_BUILT_ID = re.compile(r"\bsha256:[0-9a-f]{64}\b")
_MACHINE = re.compile(
    r"temporary failure|no such host|network is unreachable|i/o timeout|tls handshake|toomanyrequests|dial tcp|"
    r"pull access denied|manifest unknown|manifest for .* not found|failed to resolve|connection refused|"
    r"no space left on device|cannot connect to",
    re.IGNORECASE,
)
Progress = Callable[[str], None]


def layer_tag(key: str) -> str:
    """Name of a built layer in an engine."""
    return f"{LAYERS}:{key.removeprefix('sha256:')[:_DIGITS]}"


@functools.cache
def _known(engine: Engine) -> set[str]:
    """Tags of layers that the engine had when it was first asked, and those built since."""
    told = engine.call("images", "--filter", f"reference={LAYERS}", "--format", "{{.Tag}}")
    return set(told.split())


def forget_layers(engine: Engine) -> None:
    """Ask again which layers there are: one that was thought to be there is not."""
    _known.cache_clear()
    _known(engine)


class EngineBuilder(Builder):
    """`Builder`, with containers instead of sandboxes and images instead of folders.

    Args:
        engine: which one.
        tags: digest of a base -> its name in the engine.
        context: what COPY may copy.
        base_of: image reference -> the base it means.
        timeout_sec: for all commands together.
        progress: told one line per layer that is built.
        known: image reference -> what is built already.
    """

    def __init__(
        self,
        engine: Engine,
        tags: Mapping[str, str],
        context: Context,
        base_of: Callable[[str], Ground],
        *,
        timeout_sec: float,
        progress: Progress,
        known: Mapping[str, Stack] = MappingProxyType({}),
    ) -> None:
        super().__init__(
            context, base_of, current_identity(), timeout_sec=timeout_sec, progress=progress, known=known
        )
        self._engine = engine
        self._tags = tags

    def tag(self, stack: Stack) -> str:
        """Name of a built stack in the engine."""
        return layer_tag(stack.layers[-1].key) if stack.layers else self._tags[stack.ground.digest]

    @override
    def _find(self, key: str) -> Layer | None:
        return Layer(key, Path("/nonexistent")) if key[:_DIGITS] in _known(self._engine) else None

    @override
    def _origin(self, stack: Stack) -> EngineBox:
        return EngineBox(
            self._engine, EngineSpec(self.tag(stack), limits=BUILD_LIMITS, entrypoint=(), build=True)
        )

    @override
    def _layer(self, key: str, group: Group, below: Stack) -> Layer:
        home = cache_home() / "engine"
        with storage("building a layer", home):
            home.mkdir(parents=True, exist_ok=True)
        with FileLock(home / f"{self._engine.name}-{key[:_DIGITS]}.lock"):
            if self._engine.image_id(layer_tag(key)) is None:
                self._build(key, group, below)
        _known(self._engine).add(key[:_DIGITS])
        return Layer(key, Path("/nonexistent"))

    def _build(self, key: str, group: Group, below: Stack) -> None:
        with ExitStack() as stack:
            corner = scratch.Corner.make(self._identity)  # swept when this process is killed
            stack.callback(corner.remove)
            work = corner.path
            network = stack.enter_context(build_network(below.ground.suite)) if group.online else None
            spec = EngineSpec(
                self.tag(below),
                limits=BUILD_LIMITS,
                binds=network_binds(network) if network else (),
                entrypoint=(),
                build=True,
                more=tuple(
                    word for target in group.mounts for word in ("--tmpfs", f"{target}:exec,mode=755")
                ),
                hostname="build",
            )
            box = stack.enter_context(EngineBox(self._engine, spec))
            if network is not None:
                start_relays(box, network)
            bench = Bench(box, network, work, self._deadline)
            for number, step in enumerate(group.steps):
                self._perform(bench, step, group, number)
            plain = [
                "--change",
                "ENTRYPOINT []",
                "--change",
                'CMD ["/bin/bash"]',
                "--change",
                f"LABEL {LABEL}=",
            ]
            try:
                self._engine.call("commit", *plain, box.name, layer_tag(key))
            except EngineError as error:
                raise error.infra("storing a layer", Boundary.BUILD) from error


# ---------------------------------------------------------------------------------------------------- by the engine


def build_by_engine(
    engine: Engine, context: Path, *, dockerfile: str, tags: Mapping[str, str], timeout_sec: float
) -> str:
    """Let the engine build a Dockerfile that is not on a base of ours alone; returns the image's id.

    Args:
        engine: which one.
        context: folder with what COPY copies; it is not changed.
        dockerfile: its name, relative to `context`.
        tags: references of bases of ours in FROM lines -> their names in the engine.
        timeout_sec: for the whole build.

    Raises:
        BuildFailed: the Dockerfile is at fault.
        InfraError: an image or the engine is.
    """
    try:
        text = (context / dockerfile).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BuildFailed("reading", f"{dockerfile} cannot be read: {error}") from error
    with ExitStack() as stack:
        corner = scratch.Corner.make(current_identity())
        stack.callback(corner.remove)
        folder = corner.path
        staged, told = folder / "Dockerfile", folder / "id"
        staged.write_text(rewrite(text, tags), encoding="utf-8")
        ignore = context / f"{dockerfile}.dockerignore"
        if ignore.is_file():
            (folder / "Dockerfile.dockerignore").write_bytes(ignore.read_bytes())
        arguments = [
            "build",
            "--force-rm",
            "--iidfile",
            str(told),
            "--file",
            str(staged),
            str(context.resolve()),
        ]
        try:
            said = engine.call(*arguments, timeout_sec=timeout_sec)
        except EngineError as error:
            if _MACHINE.search(error.told):
                raise error.infra("building an image", Boundary.BUILD) from error
            raise BuildFailed(f"{engine.name} build", error.told, exit_code=error.code) from error
        found = told.read_text().strip() if told.is_file() else (_BUILT_ID.findall(said) or [""])[-1]
    return found if found.startswith("sha256:") else f"sha256:{found}"


def rewrite(text: str, tags: Mapping[str, str]) -> str:
    """A Dockerfile whose FROM lines name the engine's own images; nothing else is changed."""

    def change(match: re.Match[str]) -> str:
        return match[1] + tags.get(match[2], match[2])

    return re.sub(r"(?im)^(\s*FROM\s+(?:--platform=\S+\s+)?)(\S+)", change, text)


def image_config(engine: Engine, image: str) -> ImageConfig:
    """What an image says about how commands run in it.

    Raises:
        InfraError: the engine does not have it.
    """
    try:
        found: dict[str, Any] = json.loads(
            engine.call("image", "inspect", "--format", "{{json .Config}}", image)
        )
    except EngineError as error:
        raise error.infra(f"looking at the image {image}") from error
    except ValueError as error:
        raise InfraError(Boundary.SANDBOX, f"{engine.name} described {image} unreadably") from error
    env = dict(entry.partition("=")[::2] for entry in found.get("Env") or ())
    return ImageConfig(
        env,
        str(found.get("WorkingDir") or "/"),
        str(found.get("User") or ""),
        tuple(found.get("Cmd") or ()),
        tuple(found.get("Entrypoint") or ()),
    )
