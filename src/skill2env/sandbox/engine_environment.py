"""`DockerEnvironment` and `PodmanEnvironment`: Harbor's environment interface on plain calls of an engine.

    harbor run -p TASK -a oracle -e skill2env.sandbox:DockerEnvironment

Covers what `NamespaceEnvironment` covers, and images of anybody: those that the engine has, can pull or can build. A
task without network gets none at all, a public one the engine's own network; an allowlist, and a network that changes
between phases, go through our logged proxy, which needs python3 in the image and an engine on this machine. Does not
cover: compose services, GPUs, Windows; Harbor's own environments do.
"""

from pathlib import Path
from typing import Any, override

from harbor.models.task.config import NetworkMode

from skill2env.errors import Skill2EnvError, UserError
from skill2env.sandbox import catalog
from skill2env.sandbox.box import Box
from skill2env.sandbox.box_environment import BoxEnvironment
from skill2env.sandbox.engine import Engine, engine
from skill2env.sandbox.engine_box import EngineBox
from skill2env.sandbox.engine_images import EngineImages, engine_images
from skill2env.sandbox.engine_limits import absent_of
from skill2env.sandbox.engine_network import network_binds, start_relays
from skill2env.sandbox.engine_spec import EngineSpec
from skill2env.sandbox.images import BuiltImage
from skill2env.sandbox.limits import ResourceLimits
from skill2env.sandbox.network import trial_network
from skill2env.sandbox.session import HOSTNAME


class EngineEnvironment(BoxEnvironment):
    """One container per trial role, without compose."""

    ENGINE: str = ""
    """Name of the engine."""

    @staticmethod
    @override
    def type() -> str:
        return "skill2env-engine"

    @classmethod
    @override
    def preflight(cls, kwargs: dict[str, Any] | None = None) -> None:
        """Say before the first trial when there is no engine."""
        super().preflight(kwargs)
        try:
            engine(cls.ENGINE).call("version")
        except Skill2EnvError as error:
            raise SystemExit(f"{error.message}. {error.hint}") from error

    @property
    def engine(self) -> Engine:
        """The engine.

        Raises:
            InfraError: it is not installed.
        """
        return engine(self.ENGINE)

    @property
    def _images(self) -> EngineImages:
        return engine_images(self.engine)

    @override
    def _validate_definition(self) -> None:
        if (self.environment_dir / "docker-compose.yaml").exists():
            raise UserError(
                f"{self.type()} runs one container and no compose services",
                hint=f"`--sandbox {self.ENGINE}` gives such a task to Harbor's own environment.",
            )
        if not self.task_env_config.docker_image and not (self.environment_dir / "Dockerfile").exists():
            raise FileNotFoundError(
                f"{self.environment_dir} has no Dockerfile and the task names no docker_image"
            )
        self._forwarded_ports()
        self._validate_limits()

    def _validate_limits(self) -> None:
        if self._settings.allow_unlimited:
            return
        asked = ResourceLimits(cpus=self._effective_cpus, memory_mb=self._effective_memory_mb, pids=None)
        absent = absent_of(self.engine, asked)
        if absent:
            raise UserError(
                f"{self.ENGINE} cannot enforce the task's limit on {', '.join(absent)} here",
                hint="Run as root or with delegated control groups, or allow it with --allow-unlimited.",
            )

    @override
    def _build(self, *, prebuilt: bool) -> BuiltImage:
        image_map = dict(self._settings.image_map)
        if prebuilt and self.task_env_config.docker_image:
            return self._images.resolve(self.task_env_config.docker_image, image_map=image_map)
        return self._images.build(
            self.environment_dir, image_map=image_map, timeout_sec=self.task_env_config.build_timeout_sec
        )

    @override
    def _add_agent(self, image: BuiltImage, file: Path) -> BuiltImage:
        return self._images.add_agent(
            image,
            file,
            image_map=dict(self._settings.image_map),
            timeout_sec=self.task_env_config.build_timeout_sec,
        )

    @property
    def _bridged(self) -> bool:
        """Whether all phases are public: then the engine's own network will do."""
        return all(policy.network_mode == NetworkMode.PUBLIC for policy in self._policies)

    @override
    def _new_box(self, image: BuiltImage) -> EngineBox:
        if not self._offline and not self._bridged:
            suite = catalog.lookup(image.base.name or catalog.DEFAULT_BASE).suite
            rules, ports = self._rules(self._network_policy), self._forwarded_ports()
            self._network = self._network_life.enter_context(trial_network(rules, suite, ports))
        config, conditions = image.config, self._settings.conditions
        spec = EngineSpec(
            image.tag,
            limits=self.limits,
            network="bridge" if self._bridged else "none",
            binds=(*(network_binds(self._network) if self._network else ()), *conditions.binds),
            hostname=conditions.hostname or HOSTNAME,
            entrypoint=config.entrypoint,
            env={**config.env, **self._persistent_env},
            user=config.user,
            workdir=config.workdir,
        )
        return EngineBox(self.engine, spec)

    @override
    def _started(self, box: Box, image: BuiltImage) -> None:
        if self._network is not None:
            assert isinstance(box, EngineBox)
            start_relays(box, self._network)

    @override
    def _confinement(self, box: Box) -> dict[str, Any]:
        assert isinstance(box, EngineBox)
        enforced = box.enforced
        return {
            "tier": self.ENGINE,
            "degraded": "",
            "hard": enforced.hard,
            "watched": enforced.watched,
            "absent": enforced.absent,
        }


class DockerEnvironment(EngineEnvironment):
    """Trials in docker."""

    ENGINE: str = "docker"

    @staticmethod
    @override
    def type() -> str:
        return "skill2env-docker"


class PodmanEnvironment(EngineEnvironment):
    """Trials in podman."""

    ENGINE: str = "podman"

    @staticmethod
    @override
    def type() -> str:
        return "skill2env-podman"
