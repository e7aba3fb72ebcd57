"""Containers whose process died without removing them: whose they are, and the sweep that ends them."""

import functools
import hashlib
import os
from contextlib import suppress
from pathlib import Path

from skill2env.errors import InfraError
from skill2env.sandbox.engine import LABEL, Engine, EngineError
from skill2env.sandbox.scratch import is_alive, owner_name


@functools.cache
def _place() -> tuple[str, str, str]:
    """(this machine, this start of it, this process namespace): who of them can tell whether a process lives."""

    def read(path: str) -> str:
        with suppress(OSError):
            return Path(path).read_text().strip()
        return ""

    machine = hashlib.sha256((read("/etc/machine-id") or os.uname().nodename).encode()).hexdigest()[:12]
    namespace = ""
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    return machine, read("/proc/sys/kernel/random/boot_id")[:8], namespace


def owner_label() -> str:
    """This process, as a label that other processes, machines and namespaces read right."""
    return ".".join((*_place(), owner_name()))


def is_orphan(label: str) -> bool:
    """Whether the process of a label is certainly gone; one that cannot be seen from here is not."""
    parts = label.split(".")
    if len(parts) != 4:
        return False
    machine, boot, namespace, owner = parts
    here = _place()
    if machine != here[0]:
        return False
    if boot != here[1]:
        return True
    return namespace == here[2] and not is_alive(owner)


def sweep(engine: Engine) -> int:
    """Remove containers whose process is gone; returns how many."""
    told = engine.call(
        "ps", "--all", "--filter", f"label={LABEL}", "--format", '{{.ID}} {{index .Labels "' + LABEL + '"}}'
        if engine.name == "podman" else '{{.ID}} {{.Label "' + LABEL + '"}}'
    )  # fmt: skip
    rows = [line.split() for line in told.splitlines()]
    orphans = [row[0] for row in rows if len(row) == 2 and is_orphan(row[1])]
    if orphans:
        engine.call("rm", "--force", "--volumes", *orphans)
    return len(orphans)


@functools.cache
def _sweep_once(engine: Engine, _pid: int) -> None:
    with suppress(EngineError, InfraError):
        sweep(engine)


def sweep_once(engine: Engine) -> None:
    """The sweep, at the first container of a process."""
    _sweep_once(engine, os.getpid())
