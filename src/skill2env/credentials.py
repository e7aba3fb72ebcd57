"""No task holds a key that its author was given.

Looked for are the exact values: plain, reversed, in base64, hex, percent-encoding, rot13 and UTF-16, also wrapped over
lines, in names of files, and in archives and compressed files. What is encrypted or cut into pieces is not found; the
built-in agent therefore never has its key in the sandbox at all.
"""

import base64
import codecs
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from urllib.parse import quote

from skill2env.llm.settings import NO_KEY
from skill2env.records import Finding, GateOutcome, GateResult, Reason, Severity, Verdict, VerdictStatus
from skill2env.verify.rules import rule_of
from skill2env.verify.static.world import members

GATE = "credentials"
CODE = "author-credential"
LEAST_CHARS = 8
"""Shorter keys are not looked for: they would be found everywhere."""
_DEPTH = 2
"""Archives within archives that are opened."""
_SPACE = b" \t\r\n"
_BETWEEN_HEX = re.compile(rb"\\x|0x|[\s:,%-]")


def credential_found(task_dir: Path, texts: Mapping[str, str], keys: Mapping[str, str]) -> Verdict | None:
    """The rejection of a task that holds one of `keys`; None when it holds none.

    Args:
        task_dir: the task's folder; links are not followed.
        texts: what else becomes part of the task, by the name that findings give it.
        keys: what each is called -> its value. Neither is ever part of a message but the name.
    """
    known = {name: key for name, key in sorted(keys.items()) if len(key) >= LEAST_CHARS and key != NO_KEY}
    if not known:
        return None
    findings = [
        Finding(
            code=CODE,
            severity=Severity.ERROR,
            message=f"holds the value of {name}{how}",
            where=where,
            mend=rule_of(CODE).mend,
        )
        for where, data in _contents(task_dir, texts)
        for name, key in known.items()
        if (how := how_held(data, key)) is not None
    ]
    if not findings:
        return None
    message = f"{GATE}: {findings[0].where} {findings[0].message}; revoke it, the run folder holds it as well"
    gate = GateResult(
        gate=GATE,
        outcome=GateOutcome.REJECTED,
        reason=Reason.AUTHOR_CREDENTIAL,
        message=message,
        findings=tuple(findings[:50]),
    )
    return Verdict(
        status=VerdictStatus.REJECTED, reason=Reason.AUTHOR_CREDENTIAL, message=message, gates=(gate,)
    )


def _contents(task_dir: Path, texts: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    for name, text in sorted(texts.items()):
        yield name, text.encode()
    for path in sorted(task_dir.rglob("*")):
        where = path.relative_to(task_dir).as_posix()
        yield where, where.encode("utf-8", "surrogateescape")
        if path.is_file() and not path.is_symlink():
            yield from _opened(where, path.read_bytes(), 0)


def _opened(where: str, data: bytes, depth: int) -> Iterator[tuple[str, bytes]]:
    yield where, data
    if depth < _DEPTH:
        for name, member in members(where, data):
            yield from _opened(f"{where}!{name}", name.encode("utf-8", "replace") + b"\n" + member, depth + 1)


def how_held(data: bytes, key: str) -> str | None:
    """How `data` holds `key`, as the end of a sentence; None when it does not."""
    plain, joined = data, data.translate(None, _SPACE)
    hexed = _BETWEEN_HEX.sub(b"", data.lower())
    for how, kind, needle in _needles(key):
        if needle in (hexed if kind == "hex" else joined) or (kind == "plain" and needle in plain):
            return how
    return None


@cache
def _needles(key: str) -> tuple[tuple[str, str, bytes], ...]:
    """(how, kind, bytes to look for) of every encoding of a key."""
    found: list[tuple[str, str, bytes]] = []
    for turn, text in (("", key), (" backwards", key[::-1])):
        data = text.encode()
        found.append((turn, "plain", data))
        found += [(f"{turn} in base64", "plain", core) for core in _base64_cores(data)]
        found.append((f"{turn} in hex", "hex", data.hex().encode()))
        found.append((f"{turn} percent-encoded", "plain", quote(text, safe="").encode()))
    found.append((" in rot13", "plain", codecs.encode(key, "rot13").encode()))
    found += [(" in UTF-16", "plain", key.encode(kind)) for kind in ("utf-16-le", "utf-16-be")]
    return tuple(found)


def _base64_cores(data: bytes) -> Iterator[bytes]:
    """What base64 of any text around `data` has in common, for each of three positions and both alphabets."""
    for before in range(3):
        first = -(-before * 8 // 6)
        last = (before + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b"\0" * before + data)[first:last]
