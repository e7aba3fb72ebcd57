"""The sandbox as planning uses it: put a tree in, run our helper programs over it, read JSON back.

Everything that comes back was written next to untrusted code, so it is checked for its shape before it is used.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, Self

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.containers import open_box
from skill2env.sandbox.images import BuiltImage
from skill2env.sandbox.limits import ResourceLimits

HELPERS = ("tagged_values.py", "warm.py", "child.py", "recorder.py", "tracer.py")
TOOLS = "/opt/skill2env"
TEST_CPU_SECONDS = 120
TEST_SECONDS = 900
JOB_SECONDS = 3600
CASE_CPU_SECONDS = "2.5"
"""Of one recorded case: a script that imports a large library needs a second for that alone."""
USER = "nobody"


class BenchFailed(Exception):
    """The helper program inside gave no usable answer: the skill's code got in its way. Says why."""


class BenchTimeout(BenchFailed):
    """The helper program did not end in time."""


class Bench(Protocol):
    """What `alive` and `behaviour` need of a sandbox."""

    def put_tree(self, texts: Mapping[str, str | bytes], target: str) -> None:
        """Write files below `target` inside."""
        ...

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, stdin: bytes, timeout_sec: float
    ) -> bytes:
        """Run a command as an unprivileged user; its standard output."""
        ...


class SandboxBench:
    """A `Bench` on one sandbox over an image."""

    def __init__(self, image: BuiltImage) -> None:
        limits = ResourceLimits(memory_mb=2048, pids=512)
        self._sandbox = open_box(image, limits=limits, hostname="planning")

    def __enter__(self) -> Self:
        self._sandbox.start()
        try:
            self.put_tree({name: helper_text(name) for name in HELPERS}, TOOLS)
        except BaseException:
            self._sandbox.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._sandbox.stop()

    def put_tree(self, texts: Mapping[str, str | bytes], target: str) -> None:
        """Write files below `target` inside.

        Raises:
            InfraError: the copy failed.
        """
        with TemporaryDirectory(prefix="skill2env-") as folder:
            for name, text in texts.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text if isinstance(text, bytes) else text.encode())
            for path in [Path(folder), *Path(folder).rglob("*")]:
                path.chmod(0o755 if path.is_dir() else 0o644)
            self._sandbox.put(Path(folder), target)

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, stdin: bytes, timeout_sec: float
    ) -> bytes:
        """Run a command as an unprivileged user; its standard output.

        Raises:
            BenchFailed: it ran out of time.
            InfraError: the sandbox failed.
        """
        user = USER if self._sandbox.several_users else None
        done = self._sandbox.exec(
            argv, cwd=cwd, env=env, user=user, stdin=stdin, timeout_sec=timeout_sec, output_limit=256 * 2**20
        )
        if done.timed_out:
            raise BenchTimeout(f"no answer within {timeout_sec:.0f} s")
        if not done.stdout:
            told = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise BenchFailed(f"exit code {done.return_code}: {''.join(told)[:200]}")
        return done.stdout


def helper_text(name: str) -> str:
    """One of our programs that run inside a sandbox."""
    return resources.files("skill2env.authors.code").joinpath("templates", name).read_text("utf-8")


def ask(bench: Bench, job: Mapping[str, Any], *, timeout_sec: float = JOB_SECONDS) -> dict[str, Any]:
    """Give the recorder one job; its answer.

    Raises:
        BenchFailed: no JSON object came back.
        InfraError: the sandbox failed.
    """
    argv = ["/usr/bin/python3", "-s", f"{TOOLS}/recorder.py"]
    env = {
        "PATH": "/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    env["CPU_SECONDS_A_CASE"] = CASE_CPU_SECONDS
    try:
        return as_object(
            bench.run(argv, env=env, cwd="/tmp", stdin=json.dumps(job).encode(), timeout_sec=timeout_sec)
        )
    except BenchTimeout as error:  # every case inside has limits of its own, so the machine is to blame
        raise InfraError(Boundary.SANDBOX, f"recording behaviour took too long: {error}") from error


def as_object(data: bytes) -> dict[str, Any]:
    """Parse untrusted output.

    Raises:
        BenchFailed: not a JSON object.
    """
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BenchFailed("the answer is not JSON") from error
    if not isinstance(found, dict):
        raise BenchFailed("the answer is not an object")
    return found  # pyright: ignore[reportUnknownVariableType]


def items(found: Mapping[str, Any], key: str) -> Iterable[dict[str, Any]]:
    """The objects of a list in an untrusted answer."""
    value = found.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
