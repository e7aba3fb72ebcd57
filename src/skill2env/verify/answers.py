"""Gate `answers`: the image holds no file that says what the reference solution delivers.

What the solution leaves is looked for in the layers of the image, by content and without regard to layout, whatever the
file is called and wherever it lies. A file that the instruction names, or that the solution itself uses, is part of the
work (a backup to restore, files to be sorted into folders).
"""

import hashlib
import re
from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Any

from skill2env.sandbox.conditions import NotApplicable
from skill2env.verify.delivery import delivery_of
from skill2env.verify.gate import GateContext, Hit, Report, Subject
from skill2env.verify.leak import scan
from skill2env.verify.leak_scanner import canonical_digest
from skill2env.verify.private import TRUTH
from skill2env.verify.static.programs import Role, programs
from skill2env.verify.static.world import world_of

LEAST_BYTES = 24
"""Shorter results (a number, a word) are equal to something by chance."""
LEAST_VALUES = 3
"""So many computed values, of three characters on average, stand together in no other file by chance."""


def check(subject: Subject, context: GateContext) -> Report:
    """Compare what the reference solution delivers with the layers above the base."""
    if subject.image is None or not subject.image.base.name:
        return Report(not_run="there is no image whose layers are known")
    try:
        delivery = delivery_of(subject, context)
    except NotApplicable as reason:
        return Report(not_run=reason.why)
    used = "\n".join(program.text for program in programs(subject.task_dir, Role.SOLUTION))
    text = "\n".join([world_of(subject).instruction, used])
    inputs: set[bytes] = set()
    for path, file in {**delivery.study.fixtures, **delivery.study.originals}.items():
        if file.data is not None and _is_named(path, text, delivery.files):
            inputs |= _values(file.data)
    wanted = [
        _result(path, data, inputs)
        for path, data in delivery.files.items()
        if len(data) >= LEAST_BYTES and not _is_a_fixture(data, delivery.study.originals.values())
    ]
    if not wanted:
        return Report(values={"results": 0})
    hits = [
        Hit("answer-in-image", f"holds what the solution delivers as {hit.message}", hit.where)
        for hit in scan(subject.image, context, wanted)
        if hit.code == "answer" and not _is_named(hit.where, text, delivery.files)
    ]
    return Report(hits, {"results": len(wanted)})


def _result(path: str, data: bytes, inputs: set[bytes]) -> dict[str, Any]:
    values = sorted(value for value in _values(data) - inputs if len(value) >= 2)
    telling = len(values) >= LEAST_VALUES and sum(map(len, values)) >= 3 * len(values)
    return {
        "path": path,
        "kind": "result",
        "sha256": hashlib.sha256(data).hexdigest(),
        "canonical": canonical_digest(data) if b"\0" not in data[:4096] else "",
        "size": len(data),
        "values": [value.decode() for value in values] if telling else [],
        "lines": [],
        "distinctive": [],
    }


def _values(data: bytes) -> set[bytes]:
    return set() if b"\0" in data[:4096] else set(re.findall(rb"[A-Za-z0-9_.-]*[A-Za-z0-9_]", data))


def _is_a_fixture(data: bytes, originals: Any) -> bool:
    return any(original.data == data for original in originals)


def _is_named(path: str, text: str, delivered: Collection[str]) -> bool:
    """Whether a file, or a folder that holds it, is spoken of; top-level folders are too common to tell."""
    place = PurePosixPath(path)
    if path in text:
        return True
    if place.name in {PurePosixPath(other).name for other in delivered}:
        # The delivery has the same name: only a mention beside it, and one of the folder, speaks of this file.
        for other in delivered:
            text = text.replace(other, "")
        if place.name in text and str(place.parent) in text:
            return True
    elif place.name in text:
        return True
    folders = [folder for folder in place.parents if len(folder.parts) > 2]
    return not TRUTH.search(place.stem) and any(str(folder) in text for folder in folders)
