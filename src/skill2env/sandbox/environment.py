"""`NamespaceEnvironment`: Harbor's environment interface on top of `Sandbox`.

    harbor run -p TASK -a oracle -e skill2env.sandbox:NamespaceEnvironment

Covers: shared and separate verifiers (a fresh copy of environment/ or tests/Dockerfile), prebuilt catalog images,
users, working directory, environment variables, limits, health checks, artifacts, and every network mode, switched
between phases: what is not offline goes through a logged proxy on the host, so it covers HTTP and what HTTP's CONNECT
carries, and nothing else. Does not cover: compose services, GPUs, Windows.

Nothing here blocks the event loop: every call that waits does so in a thread of its own, and cancelling the awaiting
task kills what that thread started.
"""

import asyncio
import contextlib
import json
import threading
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, override

from harbor.environments.base import BaseEnvironment, EnvironmentPath, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.definition import should_use_prebuilt_docker_image
from harbor.environments.options import EnvironmentOptions
from harbor.models.task.config import NetworkMode, NetworkPolicy, TaskConfig
from harbor.models.task.verifier_mode import task_has_any_shared_verifier
from pydantic import Field

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.sandbox import catalog
from skill2env.sandbox.egress import Egress, split_rule
from skill2env.sandbox.identity import Identity, Tier, current_identity, find_identity, subuid_fix, user_name
from skill2env.sandbox.images import BuiltImage, build_image, resolve_image
from skill2env.sandbox.layout import PROXY_PORT
from skill2env.sandbox.limits import absent_limits, default_memory_mb
from skill2env.sandbox.network import Network, trial_network, trusted_sources
from skill2env.sandbox.off_loop import off_loop
from skill2env.sandbox.session import (
    Command,
    ExecOutcome,
    PathKind,
    ResourceLimits,
    Sandbox,
    SandboxSpec,
    kill_started_by,
)

TRIAL_PIDS = 512
TRIAL_STORAGE_MB = 10240
"""What a trial may write when its task sets no limit: a runaway program must not fill the machine's disk."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
FIRST_FREE_PORT, LAST_PORT = 1024, 65535
"""Ports that need no privilege to listen on, which nothing inside has."""
ROOT_USERS = frozenset({None, "", "root", "0", 0})


class NamespaceOptions(EnvironmentOptions):
    """Settings of the namespace sandbox (``--ek name=value``)."""

    image_map: dict[str, str] = Field(
        default_factory=dict, description="Image references of other people's tasks -> names of our catalog."
    )
    tier: str = Field(
        default="", description="Identity tier: root, subuid or single-uid; empty for the best."
    )
    allow_unlimited: bool = Field(
        default=False, description="Run even when a limit that the task asks for cannot be enforced here."
    )
    keep: bool = Field(
        default=False, description="Keep what was written, below the cache folder's kept/, when a trial ends."
    )
    private_hosts: list[str] = Field(
        default_factory=list,
        description="HOST or HOST:PORT of this machine or its private network that a task's network may reach where "
        "its policy names it; 127.0.0.1:PORT leads to that port of this machine, for a model server.",
    )


class NamespaceEnvironment(BaseEnvironment):
    """One sandbox per trial role, without an engine, a registry or a daemon."""

    options_model = NamespaceOptions

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._sandbox: Sandbox | None = None
        self._network: Network | None = None
        self._network_life = contextlib.ExitStack()
        self.image: BuiltImage | None = None
        super().__init__(*args, **kwargs)

    @staticmethod
    @override
    def type() -> str:
        return "skill2env-namespace"

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

    # ---------------------------------------------------------------------------------------- before the start

    @property
    def _settings(self) -> NamespaceOptions:
        options = self.options
        return options if isinstance(options, NamespaceOptions) else NamespaceOptions()

    @property
    def identity(self) -> Identity:
        """How ids map in this sandbox.

        Raises:
            UserError: the tier of the options is not possible here.
        """
        return find_identity(self._settings.tier) if self._settings.tier else current_identity()

    @property
    def limits(self) -> ResourceLimits:
        """What the trial may use: what the task asks for, and bounds that protect the machine where it does not."""
        return ResourceLimits(
            cpus=self._effective_cpus,
            memory_mb=self._effective_memory_mb or default_memory_mb(),
            pids=TRIAL_PIDS,
            storage_mb=self._effective_storage_mb or TRIAL_STORAGE_MB,
        )

    @override
    def _validate_definition(self) -> None:
        if (self.environment_dir / "docker-compose.yaml").exists():
            raise UserError(
                "the namespace sandbox cannot run compose services",
                hint="Run this task with `--sandbox docker`.",
            )
        if not self.task_env_config.docker_image and not (self.environment_dir / "Dockerfile").exists():
            raise FileNotFoundError(
                f"{self.environment_dir} has no Dockerfile and the task names no docker_image"
            )
        self._forwarded_ports()
        self._validate_users()
        self._validate_limits()

    def _validate_users(self) -> None:
        """With a single uid, an agent could read and rewrite what root puts beside it for the verifier."""
        if self.identity.several_users:
            return
        task = self._task()
        if task is not None and task.agent.user not in ROOT_USERS and task_has_any_shared_verifier(task):
            raise UserError(
                f"agent user {task.agent.user!r} and a shared verifier need several user ids, and this machine gives "
                f"{user_name()!r} one",
                hint=subuid_fix(),
            )

    def _validate_limits(self) -> None:
        absent = absent_limits(self.limits, self.identity)
        if absent and not self._settings.allow_unlimited:
            raise UserError(
                f"this machine cannot enforce the task's limit on {', '.join(absent)}",
                hint="Run as root or with delegated control groups, or allow it with --allow-unlimited.",
            )

    def _task(self) -> TaskConfig | None:
        """The task that this environment belongs to; None when its file cannot be read from here."""
        try:
            text = (self.environment_dir.parent / "task.toml").read_text(encoding="utf-8")
            return TaskConfig.model_validate(tomllib.loads(text))
        except (OSError, ValueError):
            return None

    # ---------------------------------------------------------------------------------------- life

    def _build(self, *, prebuilt: bool) -> BuiltImage:
        image_map = dict(self._settings.image_map)
        if prebuilt and self.task_env_config.docker_image:
            return resolve_image(self.task_env_config.docker_image, image_map=image_map)
        return build_image(
            self.environment_dir,
            image_map=image_map,
            timeout_sec=self.task_env_config.build_timeout_sec,
        )

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
        image = await off_loop(lambda: self._build(prebuilt=prebuilt), on_cancel=kill_started_by)
        self.image = image
        network = await off_loop(lambda: self._open_network(image))
        spec = SandboxSpec(
            layers=image.layers,
            limits=self.limits,
            binds=network.binds if network else (),
            proxy_socket=network.proxy.socket_path if network else None,
            forwards=network.forwards if network else {},
        )
        sandbox = Sandbox(spec, identity=self.identity)
        self._sandbox = sandbox
        await off_loop(sandbox.start)
        folders: dict[str, int | None] = {self.workdir: None}
        folders |= dict.fromkeys(self._mount_targets(writable_only=True), 0o777)
        await off_loop(lambda: sandbox.make_folders(folders))
        await self._upload_environment_dir_after_start()

    @property
    def workdir(self) -> str:
        """Where commands run that name no folder."""
        return self.task_env_config.workdir or (self.image.config.workdir if self.image else "") or "/"

    @override
    async def stop(self, delete: bool) -> None:
        """Kill everything inside and remove what it wrote; waits for it even when cancelled."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is None:
            self._network_life.close()
            return
        keep = self.session_id if self._settings.keep or not delete else ""
        task = asyncio.ensure_future(off_loop(lambda: self._end(sandbox, keep)))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise

    def _end(self, sandbox: Sandbox, keep: str) -> None:
        try:
            kept = sandbox.stop(keep=keep)
            if kept is not None:
                self.logger.info(f"kept what the sandbox wrote: {kept}")
            self._note(sandbox)
        finally:
            self._network_life.close()

    def _note(self, sandbox: Sandbox) -> None:
        """Write beside the trial's results how it was confined."""
        folder, network = self.trial_paths.trial_dir, self._network
        role = self.session_id.removeprefix(f"{folder.name}__").replace("/", "_")
        note = {
            "tier": sandbox.identity.tier.value,
            "degraded": "" if sandbox.identity.several_users else "single-uid",
            "hard": sandbox.enforced.hard,
            "watched": sandbox.enforced.watched,
            "absent": sandbox.enforced.absent,
            "breach": sandbox.breach,
        }
        with contextlib.suppress(OSError):
            if folder.is_dir():
                (folder / f"sandbox-{role}.json").write_text(json.dumps(note, indent=2) + "\n")
                if network is not None:
                    (folder / f"network-{role}.jsonl").write_text(network.log_lines())

    def _running(self) -> Sandbox:
        if self._sandbox is None:
            raise InfraError(Boundary.SANDBOX, "the sandbox is not running", transient=False)
        return self._sandbox

    # ---------------------------------------------------------------------------------------- network

    def _open_network(self, image: BuiltImage) -> Network | None:
        """A proxy, when a phase of this trial needs one; None keeps an offline trial as fast as it can be."""
        if all(
            policy.network_mode == NetworkMode.NO_NETWORK
            for policy in (self._network_policy, *self._phase_network_policies)
        ):
            return None
        suite = catalog.lookup(image.base.name).suite
        network = trial_network(self._rules(self._network_policy), suite, self._forwarded_ports())
        self._network = self._network_life.enter_context(network)
        return self._network

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

    def _network_env(self) -> dict[str, str]:
        network = self._network
        if network is None:
            return {}
        public = self._network_policy.network_mode == NetworkMode.PUBLIC
        return {**network.env, **(network.package_env if public else {})}

    # ---------------------------------------------------------------------------------------- commands

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a command line with bash; see the base class.

        Raises:
            RuntimeError: the time ran out; the command and all its descendants are dead.
            InfraError: the sandbox ended.
        """
        who = self._resolve_user(user)
        if who is None and self.image is not None:
            who = self.image.config.user or None
        done = await self._run(
            ["/bin/bash", "-c", command], user=who, cwd=cwd or self.workdir, env=env, timeout_sec=timeout_sec
        )
        if done.timed_out:
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds")
        return ExecResult(
            stdout=done.stdout.decode(errors="replace"),
            stderr=done.stderr.decode(errors="replace"),
            return_code=done.return_code,
        )

    async def _run(
        self,
        argv: list[str],
        *,
        user: str | int | None,
        cwd: str,
        env: dict[str, str] | None = None,
        timeout_sec: float | None = None,
    ) -> ExecOutcome:
        sandbox = self._running()
        if sandbox.identity.tier is Tier.SINGLE:
            user = None  # `_validate_users` has refused what this would make unsafe
        image_env = dict(self.image.config.env) if self.image else {}
        variables = {**image_env, **self._network_env(), **(self._merge_env(env) or {})}
        started: list[Command] = []
        cancelled = threading.Event()

        def work() -> ExecOutcome:
            command = sandbox.start_command(argv, cwd=cwd, env=variables, user=user)
            started.append(command)
            if cancelled.is_set():
                command.kill()
            return command.wait(timeout_sec)

        def kill(_thread: int) -> None:
            cancelled.set()
            for command in started:
                command.kill()

        return await off_loop(work, on_cancel=kill)

    # ---------------------------------------------------------------------------------------- files
    # What the base class does with a shell each time, process 1 does by itself: a third of a trial's commands.

    @override
    async def ensure_dirs(self, dirs: Sequence[EnvironmentPath], *, chmod: bool = True) -> ExecResult | None:
        if not dirs or not chmod:
            return await super().ensure_dirs(dirs, chmod=chmod)
        sandbox, folders = self._running(), dict.fromkeys(map(str, dirs), 0o777)
        await off_loop(lambda: sandbox.make_folders(folders))
        return ExecResult(stdout="", stderr="", return_code=0)

    @override
    async def empty_dirs(self, dirs: Sequence[EnvironmentPath], *, chmod: bool = True) -> ExecResult | None:
        if not dirs or not chmod:
            return await super().empty_dirs(dirs, chmod=chmod)
        sandbox, folders = self._running(), list(map(str, dirs))
        await off_loop(lambda: sandbox.empty_folders(folders))
        return ExecResult(stdout="", stderr="", return_code=0)

    @override
    async def is_dir(self, path: str, user: str | int | None = None) -> bool:
        if self._resolve_user(user) not in ROOT_USERS:
            return await super().is_dir(path, user=user)
        sandbox = self._running()
        return await off_loop(lambda: sandbox.kind(path)) is PathKind.FOLDER

    @override
    async def is_file(self, path: str, user: str | int | None = None) -> bool:
        if self._resolve_user(user) not in ROOT_USERS:
            return await super().is_file(path, user=user)
        sandbox = self._running()
        return await off_loop(lambda: sandbox.kind(path)) is PathKind.FILE

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        sandbox = self._running()
        await off_loop(lambda: sandbox.put(Path(source_path), target_path))

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        sandbox = self._running()
        await off_loop(lambda: sandbox.put(Path(source_dir), target_dir))

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        sandbox = self._running()
        await off_loop(lambda: sandbox.get(source_path, Path(target_path)))

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        sandbox = self._running()
        await off_loop(lambda: sandbox.get(source_dir, Path(target_dir), links=True))
