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
from skill2env.sandbox.images import BuiltImage
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
    found = scan(subject.image, context, to_json(private_files(subject.task_dir)))
    return Report([hit for hit in found if hit.code in _CODES], {"layers": subject.image.height})


def scan(image: BuiltImage, context: GateContext, private: list[dict[str, Any]]) -> list[Hit]:
    """Look for private content in the layers of an image above its base.

    Args:
        image: which one; its base is of the catalog.
        context: where boxes run.
        private: what to look for, see `private.to_json`.

    Raises:
        InfraError: the scan failed.
    """
    script = files("skill2env.verify").joinpath("leak_scanner.py").read_text(encoding="utf-8")
    limits = ResourceLimits(memory_mb=MEMORY_MB)
    kind = context.sandbox.name
    with open_layers(image, limits=limits, hostname="leak-scan", kind=kind) as (box, layers):
        request = {"layers": layers, "private": private}
        done = box.exec(
            ["/usr/bin/python3", "-I", "-S", "-B", "-c", script],
            stdin=json.dumps(request).encode(),
            timeout_sec=TIMEOUT_SEC,
        )
    if done.return_code:
        tail = done.stderr.decode("utf-8", errors="replace").strip().splitlines()[-1:]
        raise InfraError(Boundary.SANDBOX, f"the leak scan failed ({done.return_code}): {''.join(tail)}")
    return [Hit(str(code), str(message), str(where)) for code, message, where in json.loads(done.stdout)]
