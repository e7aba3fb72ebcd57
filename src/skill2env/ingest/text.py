"""Bytes to text, whatever they are: byte order marks, UTF-16, Windows-1252, NUL, CRLF. Never fails.

Also the one place that makes untrusted text safe to print.
"""

import re
import unicodedata
from dataclasses import dataclass

# Everything of C0 and C1 but tab and line feed; carriage returns are gone by then.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BINARY_SHARE = 0.1
"""More control and undecodable characters than this, and the file is no text."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text with LF line ends and without control characters, and what was odd about the bytes."""

    text: str
    encoding: str = "utf-8"
    """``utf-8``, ``utf-16``, ``utf-32``, ``windows-1252`` or ``broken utf-8``."""
    byte_order_mark: bool = False
    line_ends: str = ""
    """``CRLF``, ``CR`` or ``mixed`` when there is another line end than LF."""
    control_characters: int = 0
    """How many were dropped."""
    binary: bool = False
    """Too much of it is no text at all."""


def decode(data: bytes) -> Decoded:
    """Read bytes as text as a careful reader would; see `Decoded` for what is mended."""
    text, encoding = _characters(data)
    mark = text.startswith("\ufeff")
    text = text.lstrip("\ufeff")
    ends = _line_ends(text)
    if ends:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    dropped = len(_CONTROL.findall(text))
    damaged = dropped + (text.count("\ufffd") if encoding != "utf-8" else 0)
    if dropped:
        text = _CONTROL.sub("", text)
    binary = damaged > _BINARY_SHARE * max(len(text) + dropped, 1)
    return Decoded(text, encoding, mark, ends, dropped, binary)


def _characters(data: bytes) -> tuple[str, str]:
    if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "\ufeff" + data.decode("utf-32", "replace"), "utf-32"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        # The codec eats the mark; put it back, so that it is reported like every other.
        return "\ufeff" + _SURROGATE.sub("\ufffd", data.decode("utf-16", "replace")), "utf-16"
    if b"\0" in data[:4096]:  # before UTF-8, of which UTF-16 without accents is a valid case
        for codec in ("utf-16-le", "utf-16-be"):
            if _looks_like(data, codec):
                return _SURROGATE.sub("\ufffd", data.decode(codec, "replace")), "utf-16"
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        pass
    if _mostly_ascii(data):
        return data.decode("cp1252", "replace"), "windows-1252"
    return data.decode("utf-8", "replace"), "broken utf-8"


def _looks_like(data: bytes, codec: str) -> bool:
    """UTF-16 without a mark: every other byte of Western text is NUL."""
    sample = data[:4096]
    zeros = sample[1::2] if codec == "utf-16-le" else sample[::2]
    return len(sample) >= 8 and zeros.count(0) > 0.7 * len(zeros)


def _mostly_ascii(data: bytes) -> bool:
    """Few bytes above ASCII: then single ones are accented letters rather than broken UTF-8."""
    sample = data[:65536]
    return sum(byte > 127 for byte in sample) * 10 < len(sample)


def _line_ends(text: str) -> str:
    if "\r" not in text:
        return ""
    pairs = text.count("\r\n")
    lone_cr, lone_lf = text.count("\r") - pairs, text.count("\n") - pairs
    kinds = [name for name, count in (("CRLF", pairs), ("CR", lone_cr), ("LF", lone_lf)) if count]
    return kinds[0] if len(kinds) == 1 else "mixed"


def clean(text: str) -> str:
    r"""A scalar without control characters and lone surrogates, which YAML escapes such as ``"\e"`` can bring back."""
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def printable(text: str, limit: int = 0) -> str:
    """One line that is safe on a terminal: blanks collapsed, invisible characters written as escapes.

    Args:
        text: anything, also file names with undecodable bytes.
        limit: cut to so many characters, with an ellipsis; 0 for no limit.
    """
    if not (text.isascii() and text.isprintable()):
        text = "".join(_shown(char) for char in " ".join(text.split()))
    if limit and len(text) > limit:
        text = text[: limit - 1] + "…"
    return text


def _shown(char: str) -> str:
    if char == " " or (char.isprintable() and unicodedata.category(char) not in {"Cf", "Co"}):
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
