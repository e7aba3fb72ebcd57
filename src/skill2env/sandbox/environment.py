"""`NamespaceEnvironment`: Harbor's environment interface on top of `Sandbox`.

    harbor run -p TASK -a oracle -e skill2env.sandbox:NamespaceEnvironment

Covers: shared and separate verifiers (a fresh copy of environment/ or tests/Dockerfile), prebuilt catalog images, users, working
directory, environment variables, limits, health checks, artifacts, no-network. Does not cover yet: compose services, public and allowlist
networks in trials, GPUs.
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, override

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.options import EnvironmentOptions
from harbor.models.task.config import NetworkMode
from pydantic import Field

from skill2env.errors import UserError
from skill2env.sandbox.images import BuiltImage, build_image, resolve_image
from skill2env.sandbox.session import ResourceLimits, Sandbox, SandboxSpec

TRIAL_PIDS = 512
TIMEOUT_EXIT_CODE = 124
_pool_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def _threads() -> ThreadPoolExecutor:
    """One wide pool for all sandboxes: its threads only wait for pipes."""
    global _pool  # noqa: PLW0603 (made on first use, lives as long as the process)
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max_workers=256, thread_name_prefix="sandbox")
        return _pool


async def _off_loop[**P, R](function: "Any", *args: Any, **kwargs: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(_threads(), lambda: function(*args, **kwargs))


class NamespaceOptions(EnvironmentOptions):
    """Settings of the namespace sandbox (``--ek name=value``)."""

    image_map: dict[str, str] = Field(
        default_factory=dict, description="Image references of other people's tasks -> names of our catalog."
    )


class NamespaceEnvironment(BaseEnvironment):
    """One sandbox per trial role, without an engine, a registry or a daemon."""

    options_model = NamespaceOptions

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sandbox: Sandbox | None = None
        self.image: BuiltImage | None = None

    @staticmethod
    @override
    def type() -> str:
        return "skill2env-namespace"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    @classmethod
    @override
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True, fractional_cpus=True)

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
        if self._network_policy.network_mode != NetworkMode.NO_NETWORK:
            raise UserError(
                f"the namespace sandbox runs tasks without a network; this one asks for {self._network_policy.network_mode.value}",
                hint='Set network_mode = "no-network" in task.toml, or run with `--sandbox docker`.',
            )

    def _image_map(self) -> dict[str, str]:
        options = self.options
        return dict(options.image_map) if isinstance(options, NamespaceOptions) else {}

    def _build(self) -> BuiltImage:
        prebuilt = self.task_env_config.docker_image
        if prebuilt and not (self.environment_dir / "Dockerfile").exists():
            return resolve_image(prebuilt, image_map=self._image_map())
        return build_image(
            self.environment_dir,
            image_map=self._image_map(),
            timeout_sec=self.task_env_config.build_timeout_sec,
        )

    @override
    async def start(self, force_build: bool) -> None:
        self.image = await _off_loop(self._build)
        limits = ResourceLimits(
            cpus=self._effective_cpus,
            memory_mb=self._effective_memory_mb,
            pids=TRIAL_PIDS,
            storage_mb=self._effective_storage_mb,
        )
        self._sandbox = Sandbox(
            SandboxSpec(
                layers=self.image.layers, limits=limits, hostname=self.environment_name[:60] or "task"
            )
        )
        await _off_loop(self._sandbox.start)
        workdir = self._workdir()
        if workdir != "/":
            await _off_loop(self._sandbox.exec, ["/bin/mkdir", "-p", "--", workdir])
        await self._upload_environment_dir_after_start()
        await self.ensure_dirs(self._mount_targets(writable_only=True))

    def _workdir(self) -> str:
        return self.task_env_config.workdir or (self.image.config.workdir if self.image else "") or "/"

    @override
    async def stop(self, delete: bool) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            await asyncio.shield(_off_loop(sandbox.stop))

    def _running(self) -> Sandbox:
        if self._sandbox is None:
            raise RuntimeError("the sandbox is not running")
        return self._sandbox

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        assert self.image is not None
        who = self._resolve_user(user)
        done = await _off_loop(
            self._running().exec,
            ["/bin/bash", "-c", command],
            cwd=cwd or self._workdir(),
            env={**self.image.config.env, **(self._merge_env(env) or {})},
            user=who if who is not None else self.image.config.user or None,
            timeout_sec=timeout_sec,
        )
        if done.timed_out:
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds")
        return ExecResult(
            stdout=done.stdout.decode(errors="replace"),
            stderr=done.stderr.decode(errors="replace"),
            return_code=done.return_code,
        )

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await _off_loop(self._running().put, Path(source_path), target_path)

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await _off_loop(self._running().put, Path(source_dir), target_dir)

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        await _off_loop(self._running().get, source_path, Path(target_path))

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        await _off_loop(self._running().get, source_dir, Path(target_dir))
