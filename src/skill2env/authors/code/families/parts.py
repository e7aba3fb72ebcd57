"""Cut a text into the parts of a delivery: overlapping, encoded, some sent twice and once damaged."""

import base64
import hashlib
import random
from dataclasses import dataclass
from typing import Any

ENCODINGS = ("plain", "base64", "reversed-lines", "escaped")
MAX_PARTS = 4


@dataclass(frozen=True, slots=True)
class Part:
    """One part as it was sent."""

    sent: str
    facts: dict[str, Any]
    """As parts.json lists it, without the name of its file."""


def cut(order: str, file: str, text: str, rng: random.Random) -> list[Part]:
    """Parts of one file, good and damaged ones, in no meaningful order."""
    lines = text.splitlines(keepends=True)
    count = min(MAX_PARTS, max(2, len(lines) // 3))
    limits = sorted(rng.sample(range(1, len(lines)), min(count, len(lines)) - 1)) if len(lines) > 1 else []
    starts = [0, *limits]
    ends = [*limits, len(lines)]
    parts: list[Part] = []
    for start, end in zip(starts, ends, strict=True):
        first = max(0, start - rng.choice((0, 0, 1, 2)))  # a part may repeat the end of the one before
        content = "".join(lines[first:end])
        encoding = rng.choice(ENCODINGS)
        facts = {
            "order": order, "file": file, "first_line": first + 1, "last_line": end, "encoding": encoding,
            "sha256": hashlib.sha256(content.encode()).hexdigest(),
        }  # fmt: skip
        parts.append(Part(encode(content, encoding), facts))
        if rng.random() < 0.3:
            damaged = _damage(lines[first:end], rng)
            if damaged != content:
                parts.append(Part(encode(damaged, encoding), facts))
    return parts


def _damage(lines: list[str], rng: random.Random) -> str:
    """A line lost, doubled, or with two characters exchanged."""
    number = rng.randrange(len(lines))
    line = lines[number]
    if len(lines) > 1 and rng.random() < 0.5:
        changed = [*lines[:number], *lines[number + 1 :]]
    elif len(line) > 3:
        at = rng.randrange(len(line) - 2)
        changed = [
            *lines[:number],
            line[:at] + line[at + 1] + line[at] + line[at + 2 :],
            *lines[number + 1 :],
        ]
    else:
        changed = [*lines[:number], line, *lines[number:]]
    return "".join(changed)


def encode(content: str, encoding: str) -> str:
    """A part's content as it was sent."""
    if encoding == "base64":
        return base64.encodebytes(content.encode()).decode()
    if encoding == "reversed-lines":
        return "".join(reversed(content.splitlines(keepends=True)))
    if encoding == "escaped":
        return content.encode("unicode_escape").decode().replace("\\n", "\\n\n")
    return content
