"""Reading a broken front matter key by key, after strict parsing has failed and only then.

The block is cut into pieces at its top-level keys. A piece that is valid YAML by itself is taken as such; of the others
the words after the key are taken as they stand, with indented lines joined. So one bad line costs nothing but itself.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from skill2env.ingest.yaml_block import BadYaml, Block, parse

_KEY = re.compile(r"([A-Za-z_][\w.-]{0,63})[ \t]*:(?=[ \t]|$)[ \t]*(.*)")
_INDENTED_KEY = re.compile(r"[ ]+(?=(?:name|description|license|metadata|compatibility|allowed-tools)[ ]*:)")
_BLOCK_SIGN = re.compile(r"[>|][+-]?\d?(?:[ \t]+|$)")
_INNER_PAIR = re.compile(r"[ \t]+[^\s#-][^:]*:(?:[ \t]|$)")


@dataclass(slots=True)
class Recovered:
    """Values, and which pieces were not valid by themselves."""

    block: Block = field(default_factory=Block)
    damage: list[tuple[str, str, int]] = field(default_factory=list[tuple[str, str, int]])
    """Diagnostic code, detail and 0-based line of each bad piece."""


@dataclass(slots=True)
class _Piece:
    key: str
    first: str
    """The rest of the key's own line."""
    line: int
    more: list[str]

    @property
    def source(self) -> str:
        return "\n".join([f"{self.key}: {self.first}", *self.more])


def recover(block: str, depth: int = 0) -> Recovered:
    """Read what can be read of a block that is no valid YAML as a whole.

    Args:
        block: the text between the fences.
        depth: how deep in maps it stands; two levels are recovered.
    """
    result = Recovered()
    for piece in _pieces(block, result):
        if piece.key in result.block.values:
            result.block.duplicates.append((piece.key, piece.line))
        try:
            found = parse(piece.source)
        except BadYaml as error:
            code, detail = _diagnose(piece, error)
            result.damage.append((code, detail, piece.line))
            result.block.values[piece.key] = _as_written(piece, depth)
        else:
            value: Any = next(iter(found.values.values()), None)
            result.block.values[piece.key] = value
            result.block.multi_line |= found.multi_line
            result.block.not_text.update(found.not_text)
            result.block.commented += [(key, line + piece.line) for key, line in found.commented]
            result.block.cut |= found.cut
    return result


def _pieces(block: str, result: Recovered) -> Iterator[_Piece]:
    current: _Piece | None = None
    for number, line in enumerate(block.split("\n")):
        match = _KEY.fullmatch(line)
        if match is None and current is not None and current.first and not current.more:
            # A known key that is only indented by mistake, below a value that stands in one line.
            match = _KEY.fullmatch(_INDENTED_KEY.sub("", line))
        if match is not None:
            if current is not None:
                yield current
            current = _Piece(match[1], match[2].rstrip(), number, [])
        elif current is not None:
            current.more.append(line)
        elif line.strip() and not line.lstrip().startswith("#"):
            result.damage.append(("invalid-yaml", f"line without a key: {line.strip()[:60]}", number))
    if current is not None:
        yield current


def _diagnose(piece: _Piece, error: BadYaml) -> tuple[str, str]:
    """Which quirk makes a piece invalid."""
    sign = _BLOCK_SIGN.match(piece.first)
    if sign is not None and piece.first[sign.end() :]:
        return "mangled-block-scalar", piece.key
    if piece.first[:1] not in "\"'[{" and re.search(r":(?:\s|$)", " ".join([piece.first, *piece.more])):
        return "unquoted-colon", piece.key
    return "invalid-yaml", f"{piece.key}: {error.reason}"


def _as_written(piece: _Piece, depth: int) -> Any:
    if not piece.first and depth < 2 and any(_INNER_PAIR.match(line) for line in piece.more):
        indent = min(len(line) - len(line.lstrip()) for line in piece.more if line.strip())
        inner = recover("\n".join(line[indent:] for line in piece.more), depth + 1)
        if inner.block.values:
            return inner.block.values
    first = _BLOCK_SIGN.sub("", piece.first, count=1)
    words = " ".join(part for part in (first, *(line.strip() for line in piece.more)) if part)
    if len(words) > 1 and words[0] == words[-1] and words[0] in "\"'":
        words = words[1:-1]
    return words.strip()
