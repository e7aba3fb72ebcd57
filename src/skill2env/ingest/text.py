"""Bytes to text, whatever they are: byte order marks, UTF-16, Latin-1, NUL, CRLF. Never fails."""

import re

from skill2env.ingest.quirks import note
from skill2env.records import Diagnostic

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")


def decode(data: bytes, where: str) -> tuple[str, list[Diagnostic]]:
    """Text with LF line ends and without control characters, and what was odd about the bytes."""
    found: list[Diagnostic] = []
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", errors="replace")
        found.append(note("not-utf8", "UTF-16", where))
    else:
        if data.startswith(b"\xef\xbb\xbf"):
            found.append(note("byte-order-mark", where=where))
            data = data[3:]
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            text = (
                data.decode("cp1252", errors="replace")
                if _mostly_latin(data)
                else data.decode("utf-8", errors="replace")
            )
            found.append(note("not-utf8", f"first bad byte at {error.start}", where))
    if "\r" in text:
        lone = text.replace("\r\n", "")
        mixed = "\n" in lone or "\r" in lone
        found.append(note("line-ends", "mixed" if mixed else "CRLF", where))
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _CONTROL.search(text):
        found.append(note("control-characters", f"{len(_CONTROL.findall(text))} of them", where))
        text = _CONTROL.sub("", text)
    return text.lstrip("\ufeff"), found


def _mostly_latin(data: bytes) -> bool:
    """True when few bytes are above ASCII: then single bytes are accented letters rather than broken UTF-8."""
    high = sum(byte > 127 for byte in data[:65536])
    return high * 20 < min(len(data), 65536)


def is_text(data: bytes) -> bool:
    """True for bytes that decode as UTF-8 and hold no NUL."""
    if b"\0" in data:
        return False
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # A cut at the end of a sample is no damage.
        return error.start >= len(data) - 3 and error.reason == "unexpected end of data"
    return True
