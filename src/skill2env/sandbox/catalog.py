"""The base images that we know by name, what is in them, and which public images they stand for."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from skill2env.errors import UserError

REGISTRY_VARIABLE = "SKILL2ENV_REGISTRY"
DEFAULT_REGISTRY = "localhost:5000/skill2env"
"""Where published Dockerfiles say the base lives, unless the setting names another place."""


DEFAULT_BASE = "debian-bookworm"
"""What there is on every machine: trials, builds and authors stand on it unless a Dockerfile names another base."""

COMMON = ("usr-is-merged", "apt", "bash", "ca-certificates", "procps", "python3", "tmux")
"""What agents, the harness and verifiers need in every base."""

_GROUPS = {
    "./etc/gshadow": 42,
    "./etc/shadow": 42,
    "./usr/bin/chage": 42,
    "./usr/bin/expiry": 42,
    "./usr/lib/x86_64-linux-gnu/utempter/utempter": 43,
    "./usr/lib/aarch64-linux-gnu/utempter/utempter": 43,
    "./usr/sbin/unix_chkpwd": 42,
    "./var/local": 50,
    "./var/mail": 8,
}


@dataclass(frozen=True, slots=True)
class Base:
    """One entry of the catalog."""

    name: str
    suite: str
    """Debian suite it is built from."""
    packages: tuple[str, ...]
    """Besides everything essential and required."""
    about: str
    """What it is for, in a few words."""
    megabytes: int
    """Size of its files, about."""
    stands_for: tuple[str, ...] = ()
    """Public references that it may silently take the place of: those whose Dockerfiles cannot tell the difference."""
    groups: Mapping[str, int] = field(default_factory=lambda: _GROUPS)
    """Files whose group is not root, with Debian's static group id."""
    public: str = "debian:bookworm-slim"
    """The public image and tag it is bound to; with its `packages` installed, that is the same system."""


CATALOG: dict[str, Base] = {
    base.name: base
    for base in (
        Base(
            name=DEFAULT_BASE,
            suite="bookworm",
            packages=COMMON,
            about="shell tools and python3",
            megabytes=130,
            stands_for=("debian:bookworm-slim", "debian:bookworm", "debian:12", "debian:12-slim"),
        ),
        Base(
            name="python-bookworm",
            suite="bookworm",
            packages=(*COMMON, "curl", "git", "python3-pip", "python3-venv"),
            about="python3 with pip and venv, git, curl",
            megabytes=250,
        ),
        Base(
            name="node-bookworm",
            suite="bookworm",
            packages=(*COMMON, "curl", "git", "nodejs", "npm"),
            about="node with npm, git, curl",
            megabytes=480,
        ),
        Base(
            name="build-bookworm",
            suite="bookworm",
            packages=(*COMMON, "build-essential", "cmake", "curl", "git", "pkg-config"),
            about="compilers for C and C++, make, cmake, git, curl",
            megabytes=540,
        ),
        Base(
            name="data-bookworm",
            suite="bookworm",
            packages=(*COMMON, "csvkit", "jq", "miller", "python3-pandas", "sqlite3"),
            about="sqlite3, jq, csvkit, miller, python3 with pandas",
            megabytes=390,
        ),
        Base(
            name="office-bookworm",
            suite="bookworm",
            packages=(*COMMON, "pandoc", "poppler-utils", "python3-docx", "python3-openpyxl", "qpdf"),
            about="pandoc, poppler-utils, qpdf, python3 with docx and openpyxl",
            megabytes=370,
        ),
    )
}

_REFERENCE = re.compile(
    r"^(?P<name>[a-z0-9][a-z0-9._:/-]*?)(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?$"
)


def registry() -> str:
    """Host and prefix under which published Dockerfiles name our bases."""
    return os.environ.get(REGISTRY_VARIABLE, DEFAULT_REGISTRY).rstrip("/")


def lookup(name: str) -> Base:
    """The catalog's entry.

    Raises:
        UserError: there is none of that name.
    """
    if name not in CATALOG:
        raise UserError(
            f"no base image {name!r} in the catalog", hint=f"Known: {', '.join(sorted(CATALOG))}."
        )
    return CATALOG[name]


def split_reference(reference: str) -> tuple[str, str, str]:
    """(name with registry, tag, digest) of an image reference; parts that it lacks are empty.

    Raises:
        ValueError: it is no image reference.
    """
    match = _REFERENCE.match(reference)
    if match is None:
        raise ValueError(f"{reference!r} is no image reference")
    return match["name"], match["tag"] or "", match["digest"] or ""


def catalog_name(reference: str, image_map: Mapping[str, str] | None = None) -> str | None:
    """Which catalog entry a reference means, or None.

    It means an entry when the caller's map says so (with or without its tag or digest), when it is the bare catalog
    name, when it is ``REGISTRY/NAME`` of the setting or ``ANYTHING/skill2env/NAME``, or when it is a public image that
    an entry stands for.
    """
    for key in (reference, reference.partition("@")[0]):
        if image_map and key in image_map:
            return lookup(image_map[key]).name
    try:
        name, tag, _ = split_reference(reference)
    except ValueError:
        return None
    if image_map and name in image_map:
        return lookup(image_map[name]).name
    last = name.rpartition("/")[2]
    if last in CATALOG and (
        name == last or name == f"{registry()}/{last}" or name.endswith(f"skill2env/{last}")
    ):
        return last
    bare = name.removeprefix("docker.io/").removeprefix("library/")
    for entry in CATALOG.values():
        if f"{bare}:{tag}" in entry.stands_for:
            return entry.name
    return None
