"""What every environment of ours does the same way: Harbor's interface on top of a `Box`.

Nothing here blocks the event loop: every call that waits does so in a thread of its own, and cancelling the awaiting
task kills what that thread started.
"""

import asyncio
import contextlib
import json
import tomllib
from abc import abstractmethod
from pathlib import Path
from typing import Any, override

from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.definition import should_use_prebuilt_docker_image
from harbor.environments.options import EnvironmentOptions
from harbor.models.task.config import NetworkMode, NetworkPolicy, TaskConfig
from pydantic import Field

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.sandbox.box import Box
from skill2env.sandbox.box_calls import BoxCalls
from skill2env.sandbox.conditions import Conditions
from skill2env.sandbox.egress import Egress, split_rule
from skill2env.sandbox.images import BuiltImage
from skill2env.sandbox.layout import PROXY_PORT
from skill2env.sandbox.limits import ResourceLimits, default_memory_mb
from skill2env.sandbox.network import trusted_sources
from skill2env.sandbox.off_loop import off_loop
from skill2env.sandbox.session import kill_started_by

TRIAL_PIDS = 512
TRIAL_STORAGE_MB = 10240
"""What a trial may write when its task sets no limit: a runaway program must not fill the machine's disk."""
VERIFIER_SESSION = "__verifier__"
"""Stands in the session ids that Harbor gives to separate verifiers."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
FIRST_FREE_PORT, LAST_PORT = 1024, 65535
"""Ports that need no privilege to listen on, which nothing inside has."""


class BoxOptions(EnvironmentOptions):
    """Settings of every environment of ours (``--ek name=value``)."""

    image_map: dict[str, str] = Field(
        default_factory=dict, description="Image references of other people's tasks -> names of our catalog."
    )
    allow_unlimited: bool = Field(
        default=False, description="Run even when a limit that the task asks for cannot be enforced here."
    )
    keep: bool = Field(default=False, description="Keep what was written when a trial ends.")
    private_hosts: list[str] = Field(
        default_factory=list,
        description="HOST or HOST:PORT of this machine or its private network that a task's network may reach where "
        "its policy names it; 127.0.0.1:PORT leads to that port of this machine, for a model server.",
    )
    agent_dockerfile: str = Field(
        default="",
        description="Dockerfile that puts an agent on top of the image it works in, under the name `task`; a separate "
        "verifier has the task's own. For agents that would install themselves (`--ak skip_install=true`).",
    )
    conditions: Conditions = Field(
        default_factory=Conditions, description="Unusual surroundings, for probes of a task's robustness."
    )


class BoxEnvironment(BoxCalls):
    """One box per trial role."""

    options_model = BoxOptions

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(
            disable_internet=True,
            network_allowlist=True,
            network_allowlist_hostnames=True,
            network_allowlist_wildcard_hostnames=True,
            network_allowlist_ipv4_addresses=True,
            network_allowlist_ipv6_addresses=True,
            network_allowlist_ipv4_cidrs=True,
            network_allowlist_ipv6_cidrs=True,
            dynamic_network_policy=True,
        )

    @classmethod
    @override
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True, fractional_cpus=True)

    # ---------------------------------------------------------------------------------------- what kinds differ in

    @abstractmethod
    def _build(self, *, prebuilt: bool) -> BuiltImage:
        """Build or find the image."""

    @abstractmethod
    def _add_agent(self, image: BuiltImage, file: Path) -> BuiltImage:
        """Build the agent's Dockerfile on top of an image."""

    @abstractmethod
    def _new_box(self, image: BuiltImage) -> Box:
        """A box on an image, not started; opens the network, when a phase of this trial needs one."""

    def _started(self, box: Box, image: BuiltImage) -> None:
        """What is to be done in a box that has just started."""

    @abstractmethod
    def _confinement(self, box: Box) -> dict[str, Any]:
        """How a trial was confined: ``tier``, ``degraded``, and the names of limits by kind."""

    # ---------------------------------------------------------------------------------------- before the start

    @override
    def _usual_env(self) -> dict[str, str]:
        return self._settings.conditions.env

    @override
    def _is_given(self, path: str) -> bool:
        return path.rstrip("/") in self._settings.conditions.folders

    @property
    def _settings(self) -> BoxOptions:
        options = self.options
        return options if isinstance(options, BoxOptions) else BoxOptions()

    @property
    def limits(self) -> ResourceLimits:
        """What the trial may use: what the task asks for, and bounds that protect the machine where it does not."""
        return ResourceLimits(
            cpus=self._effective_cpus,
            memory_mb=self._effective_memory_mb or default_memory_mb(),
            pids=TRIAL_PIDS,
            storage_mb=self._effective_storage_mb or TRIAL_STORAGE_MB,
            visible_cpus=self._settings.conditions.visible_cpus,
        )

    def _task(self) -> TaskConfig | None:
        """The task that this environment belongs to; None when its file cannot be read from here."""
        try:
            text = (self.environment_dir.parent / "task.toml").read_text(encoding="utf-8")
            return TaskConfig.model_validate(tomllib.loads(text))
        except (OSError, ValueError):
            return None

    # ---------------------------------------------------------------------------------------- life

    @override
    async def start(self, force_build: bool) -> None:
        """Build what is not cached, start the sandbox, and make the folders that Harbor expects.

        Raises:
            BuildFailed: the Dockerfile is at fault.
            InfraError: the machine is.
        """
        prebuilt = should_use_prebuilt_docker_image(
            self.environment_dir,
            docker_image=self.task_env_config.docker_image,
            force_build=force_build,
        )
        image = await off_loop(lambda: self._image(prebuilt=prebuilt), on_cancel=kill_started_by)
        self.image = image
        box = await off_loop(lambda: self._new_box(image))
        self._box = box
        await off_loop(box.start)
        await off_loop(lambda: self._started(box, image))
        await off_loop(lambda: self._settings.conditions.make(box))
        folders: dict[str, int | None] = {self.workdir: None}
        folders |= dict.fromkeys(self._mount_targets(writable_only=True), 0o777)
        await off_loop(lambda: box.make_folders(folders))
        await self._upload_environment_dir_after_start()

    def _image(self, *, prebuilt: bool) -> BuiltImage:
        image, file = self._build(prebuilt=prebuilt), self._settings.agent_dockerfile
        if not file or VERIFIER_SESSION in self.session_id:
            return image
        return self._add_agent(image, Path(file).expanduser().resolve())

    @override
    async def stop(self, delete: bool) -> None:
        """Kill everything inside and remove what it wrote; waits for it even when cancelled."""
        box, self._box = self._box, None
        if box is None:
            self._network_life.close()
            return
        keep = self.session_id if self._settings.keep or not delete else ""
        task = asyncio.ensure_future(off_loop(lambda: self._end(box, keep)))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise

    def _end(self, box: Box, keep: str) -> None:
        try:
            kept = box.stop(keep=keep)
            if kept is not None:
                self.logger.info(f"kept what the sandbox wrote: {kept}")
            self._note(box)
        finally:
            self._network_life.close()

    def _note(self, box: Box) -> None:
        """Write beside the trial's results how it was confined."""
        folder, network = self.trial_paths.trial_dir, self._network
        role = self.session_id.removeprefix(f"{folder.name}__").replace("/", "_")
        note = {**self._confinement(box), "breach": box.breach}
        with contextlib.suppress(OSError):
            if folder.is_dir():
                (folder / f"sandbox-{role}.json").write_text(json.dumps(note, indent=2) + "\n")
                if network is not None:
                    (folder / f"network-{role}.jsonl").write_text(network.log_lines())

    # ---------------------------------------------------------------------------------------- network

    @property
    def _offline(self) -> bool:
        """Whether no phase of this trial has a network: it stays as fast as it can be then."""
        return all(policy.network_mode == NetworkMode.NO_NETWORK for policy in self._policies)

    @property
    def _policies(self) -> list[NetworkPolicy]:
        return [self._network_policy, *self._phase_network_policies]

    def _rules(self, policy: NetworkPolicy) -> Egress:
        match policy.network_mode:
            case NetworkMode.PUBLIC:
                return Egress.public([*trusted_sources(), *self._settings.private_hosts])
            case NetworkMode.ALLOWLIST:
                return Egress.allowlist(policy.allowed_hosts, self._settings.private_hosts)
            case NetworkMode.NO_NETWORK:
                return Egress()

    def _forwarded_ports(self) -> list[int]:
        """Ports of this machine that commands inside may reach at the same place.

        Raises:
            UserError: one cannot be had.
        """
        rules = [split_rule(entry) for entry in self._settings.private_hosts]
        ports = sorted({port for host, port in rules if host in LOOPBACK and port})
        bad = [port for port in ports if not FIRST_FREE_PORT <= port <= LAST_PORT or port == PROXY_PORT]
        if bad:
            raise UserError(
                f"port {bad[0]} of this machine cannot be offered inside a sandbox",
                hint=f"Use one of {FIRST_FREE_PORT}-{LAST_PORT} other than {PROXY_PORT}.",
            )
        return ports

    @override
    async def _apply_network_policy(self, network_policy: NetworkPolicy) -> None:
        network = self._network
        if network is None:
            if network_policy.network_mode != NetworkMode.NO_NETWORK:
                raise InfraError(
                    Boundary.SANDBOX,
                    f"the trial was started offline and cannot go {network_policy.network_mode.value} now",
                    transient=False,
                )
            return
        network.proxy.switch(self._rules(network_policy))
