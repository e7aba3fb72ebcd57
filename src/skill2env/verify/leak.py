"""Gate `leak`: the built agent image holds nothing private.

Covers: copies and near-copies of the verifier, the solution, the rubric and files named like answers; the places where
they would be put; git repositories, with a look at what their commits hold; shell histories; files that a later layer
deletes. Does not cover: answers in another form (encoded, compiled, paraphrased).

The scan runs in a sandbox whose root is the base image, with the layers above it bound read-only as data, so an image
that replaces its own tools cannot hide anything.
"""

import json
from importlib.resources import files
from typing import Any

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.containers import open_layers
from skill2env.sandbox.limits import ResourceLimits
from skill2env.verify.gate import BUILDING, GateContext, Hit, Report, Subject
from skill2env.verify.private import private_files, to_json

TIMEOUT_SEC = 300.0
MEMORY_MB = 2048
_CODES = frozenset(
    {
        "leak-answer-name",
        "leak-content",
        "leak-lines",
        "leak-path",
        "leak-history",
        "leak-hidden-layer",
        "history",
    }
)


def check(subject: Subject, context: GateContext) -> Report:
    """Scan the layers above the base."""
    if subject.image is None:
        if context.sandbox.name in BUILDING:
            return Report(not_run="there is no image to scan")
        return Report([Hit("leak-not-scanned", f"images of {context.sandbox.name} are not scanned")])
    if not subject.image.base.name:
        return Report([Hit("leak-not-scanned", "which layers belong to a foreign base image is not known")])
    script = files("skill2env.verify").joinpath("leak_scanner.py").read_text(encoding="utf-8")
    limits = ResourceLimits(memory_mb=MEMORY_MB)
    kind = context.sandbox.name
    with open_layers(subject.image, limits=limits, hostname="leak-scan", kind=kind) as (box, layers):
        request = {"layers": layers, "private": to_json(private_files(subject.task_dir))}
        done = box.exec(
            ["/usr/bin/python3", "-I", "-S", "-B", "-c", script],
            stdin=json.dumps(request).encode(),
            timeout_sec=TIMEOUT_SEC,
        )
    if done.return_code:
        tail = done.stderr.decode("utf-8", errors="replace").strip().splitlines()[-1:]
        raise InfraError(Boundary.SANDBOX, f"the leak scan failed ({done.return_code}): {''.join(tail)}")
    return Report(_hits(json.loads(done.stdout)), {"layers": subject.image.height})


def _hits(found: Any) -> list[Hit]:
    return [Hit(str(code), str(message), str(where)) for code, message, where in found if code in _CODES]
