"""Base images of the catalog in an engine: loaded from this machine's store, or built by the engine itself.

Where user namespaces are forbidden nothing else of ours could build them. The same packages go through the same scripts
in a container without network, and the same normalisation, so the digest is the one that the namespace sandbox gives.
What was loaded is compared with what it has to be, by the digest of its layer.
"""

import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from filelock import FileLock

from skill2env.errors import Boundary, InfraError
from skill2env.records import digest_bytes
from skill2env.sandbox import catalog, oci
from skill2env.sandbox.base_scripts import CLEAN, CONFIGURE, PACK, SETTINGS
from skill2env.sandbox.base_store import BaseImage, base_home, built_base, recipe_digest
from skill2env.sandbox.debian import architecture
from skill2env.sandbox.engine import LOAD_TIMEOUT_SEC, Engine, EngineError
from skill2env.sandbox.engine_box import EngineBox
from skill2env.sandbox.engine_spec import EngineSpec
from skill2env.sandbox.layout import Bind
from skill2env.sandbox.limits import ResourceLimits
from skill2env.sandbox.rootfs import do_script, normalise, packed_base, unpack_seed
from skill2env.store.files import storage

Progress = Callable[[str], None]
_DIGITS = 12
# The engine mounts files of its own over three of the image's; below them are the files that the scripts mean.
_UNCOVER = (
    'for f in /etc/hosts /etc/hostname /etc/resolv.conf; do umount "$f" || exit 1; done\n'
    "rm -f /.dockerenv /run/.containerenv; [ ! -L /etc/mtab ] || rm -f /etc/mtab"
)
# What the namespace sandbox shows of the places where it mounts something, and of a file that it makes.
_LIKE_SANDBOX = (
    "set -e; chmod 644 /etc/hosts; umount -l -R /sys; mkdir /run/proc\n"
    "chown 65534:65534 /run/proc; chmod 555 /run/proc; mount --bind /run/proc /proc"
)
_FULL_RIGHTS = (
    "--cap-add",
    "SYS_ADMIN",
    "--security-opt",
    "seccomp=unconfined",
    "--security-opt",
    "apparmor=unconfined",
)
"""For packages of the distribution, to uncover the image's own files; never for a build or a trial."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is written down about a base that was once in an engine."""

    digest: str
    layer: str
    recipe: str

    @classmethod
    def read(cls, path: Path) -> "_Known | None":
        try:
            found = json.loads(path.read_text())
            return cls(str(found["digest"]), str(found["layer"]), str(found["recipe"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"digest": self.digest, "layer": self.layer, "recipe": self.recipe}, sort_keys=True)
        temporary = path.with_suffix(".new")
        temporary.write_text(text + "\n")
        temporary.rename(path)


def tag_of(name: str, digest: str) -> str:
    """Name of a base in an engine."""
    return f"skill2env/{name}:{digest.removeprefix('sha256:')[:_DIGITS]}"


def ensure_engine_base(
    engine: Engine, name: str = catalog.DEFAULT_BASE, *, digest: str = "", progress: Progress | None = None
) -> BaseImage:
    """A base, in the engine: loaded or built when it is not there.

    Args:
        engine: where it has to be.
        name: of the catalog.
        digest: of an older version that is wanted if the engine still has it; empty for today's.
        progress: told a line for each thing that is done.

    Raises:
        UserError: no such name.
        InfraError: the engine does not answer, or the base can neither be loaded nor built.
    """
    entry, tell = catalog.lookup(name), progress or _silent
    home = base_home(name)
    if digest:
        known = _Known.read(_record(home, digest))
        if known is not None and _holds(engine, name, known):
            return _base(name, digest)
    current = built_base(name)
    known = _current(home, engine, current.digest if current else "")
    if known is not None and _holds(engine, name, known):
        return _base(name, known.digest)
    with storage("making the folder of base images", home):
        home.mkdir(parents=True, exist_ok=True)
    with FileLock(home / f"engine-{engine.name}.lock"):
        known = _current(home, engine, current.digest if current else "")
        if known is None or not _holds(engine, name, known):
            known = (_from_store(engine, current, tell) if current else None) or _build(
                engine, entry, home, tell
            )
            with storage("noting a base image", home):
                known.write(_record(home, known.digest))
                known.write(home / f"engine-{engine.name}.json")
    return _base(name, known.digest)


def _silent(_: str) -> None:
    """Tell nobody."""


def _base(name: str, digest: str) -> BaseImage:
    return BaseImage(name, digest, Path("/nonexistent"), architecture())


def _record(home: Path, digest: str) -> Path:
    return home / f"layer-{digest.removeprefix('sha256:')[:16]}.json"


def _current(home: Path, engine: Engine, digest: str) -> _Known | None:
    """Today's base: the one that the namespace sandbox has, where there is one, else the engine's own."""
    known = _Known.read(_record(home, digest) if digest else home / f"engine-{engine.name}.json")
    name = home.name.removesuffix(f"-{architecture()}")
    if known is None or known.recipe != recipe_digest(name) or (digest and known.digest != digest):
        return None
    return known


def _holds(engine: Engine, name: str, known: _Known) -> bool:
    """Whether the engine has a base under its name, and it is that one."""
    try:
        told = engine.call(
            "image", "inspect", "--format", "{{json .RootFS.Layers}}", tag_of(name, known.digest)
        )
        return json.loads(told) == [known.layer]
    except (EngineError, ValueError):
        return False


def _from_store(engine: Engine, base: BaseImage, tell: Progress) -> _Known | None:
    """Load a base that the namespace sandbox made; None where that sandbox cannot pack it any more."""
    tell(f"{base.name}: loading into {engine.name}")
    try:
        with packed_base(base) as (archive, layer):
            return _load(engine, base.name, archive, layer)
    except InfraError as error:
        if error.boundary is not Boundary.SANDBOX:
            raise
        return None


def _load(engine: Engine, name: str, archive: Path, layer: oci.Layer) -> _Known:
    """Load a layer as an image, and check that the engine holds what was meant."""
    digest, _, config = oci.manifest(layer, architecture())
    config = _with_history(engine, config)
    tag = tag_of(name, digest)
    with storage("loading a base image", archive), tempfile.TemporaryFile(dir=archive.parent) as bundle:
        _write_bundle(bundle, tag, archive, layer, config)
        bundle.seek(0)
        try:
            engine.call("load", stdin=bundle, timeout_sec=LOAD_TIMEOUT_SEC)
            told = engine.call("image", "inspect", "--format", "{{.Id}} {{json .RootFS.Layers}}", tag)
        except EngineError as error:
            raise error.infra("loading a base image", Boundary.BUILD) from error
    ident, _, layers = told.partition(" ")
    same_config = ident.removeprefix("sha256:") == digest_bytes(config).removeprefix("sha256:")
    if json.loads(layers) != [layer.digest] or not (same_config or _has_store(engine)):
        raise InfraError(
            Boundary.BUILD,
            f"{engine.name} loaded {ident} as {tag}, which is not the base image {digest}",
            transient=False,
        )
    return _Known(digest, layer.digest, recipe_digest(name))


def _with_history(engine: Engine, config: bytes) -> bytes:
    """podman commits nothing on an image whose configuration does not tell where its layers come from."""
    if engine.name != "podman":
        return config
    told = {**json.loads(config), "history": [{"created_by": "skill2env"}]}
    return json.dumps(told, sort_keys=True, separators=(",", ":")).encode()


def _has_store(engine: Engine) -> bool:
    """Whether the engine keeps images by containerd, whose ids are of manifests and not of configurations."""
    try:
        return "containerd" in engine.call("info", "--format", "{{json .DriverStatus}}")
    except EngineError:
        return False


def _write_bundle(target: IO[bytes], tag: str, archive: Path, layer: oci.Layer, config: bytes) -> None:
    """The archive that ``load`` reads: the configuration, the layer, and a list of both."""
    names = [
        f"{hashlib.sha256(config).hexdigest()}.json",
        f"{layer.digest.removeprefix('sha256:')}/layer.tar",
    ]
    told = [{"Config": names[0], "RepoTags": [tag], "Layers": [names[1]]}]
    with tarfile.open(fileobj=target, mode="w") as bundle:
        for name, data in ((names[0], config), ("manifest.json", json.dumps(told).encode())):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            bundle.addfile(info, io.BytesIO(data))
        bundle.add(archive, names[1])


# ---------------------------------------------------------------------------------------------------- building


def _build(engine: Engine, entry: catalog.Base, home: Path, tell: Progress) -> _Known:
    with (
        storage("building a base image", home),
        tempfile.TemporaryDirectory(prefix="building-", dir=home) as name,
    ):
        work = Path(name)
        packages, seed, epoch = unpack_seed(entry, work, tell)
        (work / "out").mkdir()
        tell(f"{entry.name}: configuring them in a container of {engine.name}")
        _configure(engine, seed, packages, work / "out")
        tell(f"{entry.name}: storing")
        known = _load(engine, entry.name, work / "out/layer.tar", normalise(entry, work, epoch))
        tell(f"{entry.name}: ready ({known.digest[:19]})")
        return known


def _configure(engine: Engine, seed: Path, packages: Path, out: Path) -> None:
    packages.chmod(0o755)
    for package in packages.glob("*.deb"):
        package.chmod(0o644)
    image = _import_seed(engine, seed)
    spec = EngineSpec(
        image,
        limits=ResourceLimits(pids=None),
        binds=(Bind(packages, "/run/debs"), Bind(out, "/run/out", writable=True)),
        entrypoint=(),
        build=True,
        more=_FULL_RIGHTS,
        hostname="build",
    )
    try:
        with EngineBox(engine, spec) as box:
            do_script(box, "uncovering", _UNCOVER)
            do_script(box, "preparing", SETTINGS)
            do_script(box, "configuring", CONFIGURE)
            do_script(box, "cleaning", CLEAN)
            do_script(box, "packing", f"{_LIKE_SANDBOX}\n{PACK}")  # in one: nothing starts without /proc
    finally:
        _remove_image(engine, image)


def _import_seed(engine: Engine, seed: Path) -> str:
    """The unpacked packages as an image, owned by root."""
    pack = ["tar", "-cf", "-", "--numeric-owner", "--owner=0", "--group=0", "-C", str(seed), "."]
    with subprocess.Popen(pack, stdout=subprocess.PIPE) as archive:
        assert archive.stdout is not None
        try:
            return engine.call(
                "import", "-", stdin=archive.stdout, timeout_sec=LOAD_TIMEOUT_SEC
            ).splitlines()[-1]  # pyright: ignore[reportArgumentType]
        except EngineError as error:
            raise error.infra("importing unpacked packages", Boundary.BUILD) from error


def _remove_image(engine: Engine, image: str) -> None:
    try:
        engine.call("image", "rm", "--force", image)
    except EngineError:
        return
