"""Packages of PyPI and npm as data: downloaded by the machine's own clients, unpacked, never built, installed or run.

Registries, proxies, certificates and credentials are those of the machine's pip and npm settings. A package is pinned
by its version, and by the sha256 of the file once that is known.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.hub.folder import Hub
from skill2env.hub.records import Fetched, SourceKind, SourceSpec
from skill2env.hub.sources import simple_index
from skill2env.hub.sources.archive_file import check_pin, file_sha256, unpacked
from skill2env.hub.sources.base import Place
from skill2env.hub.sources.download import held, keep, not_held
from skill2env.store.files import storage

_PYPI_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_NPM_NAME = re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]{0,80}")
_TIMEOUT_SEC = 1800


@dataclass(frozen=True, slots=True)
class PackageSource:
    """One version of one package."""

    hub: Hub
    spec: SourceSpec

    def state(self) -> str:
        """See `Source.state`. A published version never changes, so its name is its state."""
        self._check()
        return self._origin()

    def fetch(self, place: Place) -> Fetched:
        """See `Source.fetch`."""
        self._check()
        archive = held(self._folder, self.spec.sha256)
        if archive is None:
            if place.offline:
                raise not_held(self.spec, self._wanted())
            place.tell(f"downloading {self._wanted()}")
            archive = self._bring(place.scratch)
        return unpacked(self.spec, archive, place, revision=self._wanted(), origin=self._origin())

    def _wanted(self) -> str:
        joint = "==" if self.spec.kind is SourceKind.PYPI else "@"
        return f"{self.spec.location}{joint}{self.spec.revision}"

    def _origin(self) -> str:
        return f"{self.spec.kind.value}:{self._wanted()}"

    def _check(self) -> None:
        pattern = _PYPI_NAME if self.spec.kind is SourceKind.PYPI else _NPM_NAME
        if not pattern.fullmatch(self.spec.location):
            raise UserError(
                f"source {self.spec.id}: {self.spec.location!r} is no name of a package", hint="mend hub.toml"
            )
        if not _VERSION.fullmatch(self.spec.revision):
            raise UserError(
                f"source {self.spec.id}: {self.spec.location} has no pinned version",
                hint="give pypi:NAME==VERSION or npm:NAME@VERSION; clients choose surprising ones by themselves",
            )

    @property
    def _folder(self) -> Path:
        name = re.sub(r"[^a-z0-9.-]+", "_", self.spec.location.lower())
        return self.hub.downloads / self.spec.kind.value / f"{name}-{self.spec.revision}"

    def _bring(self, scratch: Path) -> Path:
        target = scratch / "download"
        target.mkdir()
        if self.spec.kind is SourceKind.PYPI:
            self._from_pypi(target, scratch)
        else:
            self._from_npm(target, scratch)
        files = sorted(path for path in target.iterdir() if path.is_file() and not path.is_symlink())
        if len(files) != 1:
            raise self._failed(f"the client delivered {len(files)} files")
        sha256 = file_sha256(files[0])
        check_pin(self.spec, sha256, files[0].name)
        keep(target, self._folder, sha256)
        return self._folder / files[0].name

    def _from_pypi(self, target: Path, scratch: Path) -> None:
        """A wheel through pip; where there is none, or no pip, a file straight from the index.

        pip never gets to see a source archive, because it would run its build script just to learn its name.
        """
        python = python_with_pip()
        if python:
            pin = f" --hash=sha256:{self.spec.sha256}" if self.spec.sha256 else ""
            requirements = scratch / "requirements.txt"
            with storage("writing", requirements):
                requirements.write_text(f"{self._wanted()}{pin}\n", encoding="utf-8")
            command = [
                python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps",
                "--only-binary=:all:", "--ignore-requires-python", "--python-version=3.12", "--dest", str(target),
                "--requirement", str(requirements),
            ]  # fmt: skip
            done = self._run(command, scratch, _pip_env())
            if done.returncode == 0:
                return
            said = done.stdout + done.stderr
            if not re.search(r"no matching distribution|do not match the hashes", said, re.IGNORECASE):
                raise self._failed(_complaint(said))
        simple_index.download(self.spec, target)

    def _from_npm(self, target: Path, scratch: Path) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise UserError(
                f"source {self.spec.id} needs npm, which is not installed", hint="install Node.js"
            )
        command = [
            npm,
            "pack",
            self._wanted(),
            "--ignore-scripts",
            "--json",
            "--pack-destination",
            str(target),
        ]
        # An empty folder of its own, so that no .npmrc or package.json around us has a say.
        where = scratch / "npm"
        where.mkdir()
        done = self._run(command, where, {"npm_config_update_notifier": "false", "npm_config_fund": "false"})
        if done.returncode:
            raise self._failed(_complaint(done.stderr))
        try:
            told: Any = json.loads(done.stdout)
            version = str(told[0]["version"])
        except (ValueError, LookupError, TypeError):
            version = ""
        if version != self.spec.revision:  # old engines are silently given an older version
            raise self._failed(f"npm delivered version {version or 'unknown'}")

    def _run(
        self, command: list[str], cwd: Path, extra: dict[str, str]
    ) -> "subprocess.CompletedProcess[str]":
        try:
            return subprocess.run(
                command,
                cwd=cwd,
                env={**os.environ, **extra},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=_TIMEOUT_SEC,
            )
        except subprocess.TimeoutExpired:
            raise self._failed("no answer in time") from None
        except OSError as error:
            raise self._failed(f"{command[0]} cannot be started: {error.strerror}") from None

    def _failed(self, why: str) -> InfraError:
        return InfraError(
            Boundary.NETWORK,
            f"source {self.spec.id}: downloading {self._wanted()} failed: {why}",
            hint="what is stored is kept; run the same command again",
        )


def _complaint(said: str) -> str:
    """The telling line of a client's output, without addresses that may hold a password."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(?:ERROR|npm (?:ERR!|error))", line)]
    told = " ".join((errors or lines or ["no output"])[:3])
    return re.sub(r"(?<=//)[^/@\s]*@", "", told)[:400]


def _pip_env() -> dict[str, str]:
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    if "PIP_INDEX_URL" not in os.environ and "UV_DEFAULT_INDEX" in os.environ:
        env["PIP_INDEX_URL"] = os.environ["UV_DEFAULT_INDEX"]
    return env


def python_with_pip() -> str:
    """A Python that has pip: ours, else the system's; empty when there is none."""
    for python in (sys.executable, shutil.which("python3", path=os.defpath), shutil.which("python3")):
        if not python:
            continue
        asked = subprocess.run(
            [
                python,
                "-I",
                "-c",
                "import importlib.util, sys; sys.exit(importlib.util.find_spec('pip') is None)",
            ],
            capture_output=True,
            check=False,
        )
        if asked.returncode == 0:
            return python
    return ""
