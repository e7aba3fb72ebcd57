"""Byte code of the programs that run inside, made once by a base's own python3 and kept beside them.

Without it every start of a sandbox compiles them, which takes longer than the start of python3 itself. Python takes
the byte code of its own version and ignores any other: an image with another python3 starts more slowly, and works.
"""

import base64
import contextlib
import json
import os
from pathlib import Path

from skill2env.errors import InfraError
from skill2env.sandbox.base_store import BaseImage
from skill2env.sandbox.identity import Identity, current_identity
from skill2env.sandbox.layout import INSIDE
from skill2env.sandbox.scratch import guest_folder
from skill2env.sandbox.session import Sandbox, SandboxSpec

_TIMEOUT_SEC = 60.0
_COMPILE = r"""
import base64, importlib._bootstrap_external as files, importlib.util, json, os, sys
found = {}
for name in sorted(os.listdir(sys.argv[1])):
    if name.endswith(".py"):
        path = os.path.join(sys.argv[1], name)
        with open(path, "rb") as file:
            source = file.read()
        code = compile(source, path, "exec", dont_inherit=True)
        data = files._code_to_hash_pyc(code, importlib.util.source_hash(source), False)
        target = os.path.basename(importlib.util.cache_from_source(path))
        found[target] = base64.b64encode(bytes(data)).decode()
print(json.dumps(found))
"""
_done: set[tuple[Path, str]] = set()


def precompile(base: BaseImage) -> None:
    """Make the byte code for a base's python3 where it is missing; any failure only costs time later."""
    identity = current_identity()
    with contextlib.suppress(OSError, InfraError, ValueError):
        folder = guest_folder(identity)
        if (folder, base.digest) in _done:
            return
        _done.add((folder, base.digest))
        mark = folder / "__pycache__" / f"{base.digest.removeprefix('sha256:')[:16]}.done"
        if not mark.exists():
            _write(mark, _compile(base, identity))


def _compile(base: BaseImage, identity: Identity) -> dict[str, str]:
    with Sandbox(SandboxSpec(layers=(base.rootfs,)), identity=identity) as box:
        command = ["/usr/bin/python3", "-I", "-S", "-c", _COMPILE, f"{INSIDE}/guest"]
        done = box.exec(command, timeout_sec=_TIMEOUT_SEC)
    return json.loads(done.stdout)


def _write(mark: Path, found: dict[str, str]) -> None:
    """Store the files whole or not at all, one by one: other processes read and write here, too."""
    mark.parent.mkdir(mode=0o755, exist_ok=True)
    mark.parent.chmod(0o755)
    for name, data in found.items():
        if "/" in name or not name.endswith(".pyc"):
            raise ValueError(name)
        fresh = mark.with_name(f".{name}.{os.getpid()}")
        fresh.write_bytes(base64.b64decode(data, validate=True))
        fresh.chmod(0o644)
        fresh.rename(mark.with_name(name))
    mark.touch()
