"""The floor of the benchmarks: a Harbor environment that does nothing, at once."""

from pathlib import Path
from typing import Any, override

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities


class EmptyEnvironment(BaseEnvironment):
    """Answers everything with success and every verifier with 1: what is left of a trial is Harbor's own."""

    @staticmethod
    @override
    def type() -> str:
        return "empty"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    @classmethod
    @override
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True)

    @override
    def _validate_definition(self) -> None: ...

    @override
    async def start(self, force_build: bool) -> None: ...

    @override
    async def stop(self, delete: bool) -> None: ...

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None: ...

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None: ...

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        Path(target_path).touch()

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        if source_dir.rstrip("/").endswith("verifier"):
            (Path(target_dir) / "reward.txt").write_text("1")

    @override
    async def exec(self, command: str, *_: Any, **__: Any) -> ExecResult:
        return ExecResult(stdout="/", stderr="", return_code=0)
