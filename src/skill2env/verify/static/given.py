"""Gate `given`: the instruction does not hold the solution, and the solution does the work.

Commands and lines of solve.sh are looked for in the code of the instruction. A reference solution that reads the
verifier's files, writes a reward, or prints results that it does not compute proves nothing about the task.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from skill2env.verify.gate import GateContext, Hit, Report, Subject
from skill2env.verify.static import bash, python
from skill2env.verify.static.programs import Origin, Program, Role, invocations, programs
from skill2env.verify.static.world import World, words_of, world_of

MOSTLY = 0.7
"""Share of the solution, in words, that makes an instruction a solution."""
PARTLY = 0.45
LEAST_WORDS = 5
"""Solutions with fewer words of substance are not compared."""
ALIKE = 0.75
"""Two commands with so many words in common are one."""
LEAST_VALUES = 6
"""Values that the instruction does not state and the solution prints nevertheless."""

_FENCE = re.compile(r"(?ms)^[ \t]*(```+|~~~+)[^\n]*\n(.*?)^[ \t]*\1")
_INDENTED = re.compile(r"(?m)(?:^(?: {4}|\t)[^\n]+\n?)+")
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_TRIVIAL = frozenset(
    "set cd mkdir true false exit export umask touch : echo pwd shopt trap local declare return unset readonly".split()
)
_TRIVIAL_LINE = re.compile(
    r"(?:import|from)\s|#|\"\"\"|[\]\[(){},:;]*$|(?:pass|else:|try:|return|break|continue)$|[A-Z]+$"
)
_PRIVATE = re.compile(r"(?:^|[\s=:'\"(<>])(?:/tests(?:/|$)|\.\./tests(?:/|$))")
_REWARD = re.compile(r"(?:^|[\s=:'\"(<>])/logs/verifier(?:/|$)")
_PRINTING = frozenset(
    "echo printf cat tee mkdir cd set chmod chown touch export rm exit true : install umask sync ls".split()
)
_DATA_SUFFIXES = frozenset({".json", ".csv", ".tsv", ".txt", ".out", ".dat", ".jsonl", ".ndjson", ""})
_READING = re.compile(
    r"(?:.*\.)?(?:read_text|read_bytes|connect|listdir|scandir|glob|iglob|rglob|iterdir|walk|fdopen|input|run|Popen|"
    r"check_output|system|popen|urlopen|import_module|exec|eval|load_workbook|load|reader|DictReader)"
)


def check(subject: Subject, context: GateContext) -> Report:  # noqa: ARG001
    """Compare instruction and solution, and look at what the solution does."""
    world = world_of(subject)
    found = programs(subject.task_dir, Role.SOLUTION)
    share = given_share(world.instruction, found)
    hits = [*_overlap(share), *_looks(found), *_constants(found, world)]
    return Report(list(dict.fromkeys(hits)), {"share": round(share, 2)})


def _overlap(share: float) -> Iterator[Hit]:
    if share >= PARTLY:
        code = "instruction-solves" if share >= MOSTLY else "instruction-hints"
        yield Hit(
            code, f"the instruction holds {share:.0%} of what the solution runs or writes", "instruction.md"
        )


@dataclass(frozen=True, slots=True)
class _Piece:
    """A command or a line of code."""

    words: tuple[str, ...]

    @property
    def weight(self) -> int:
        return len(self.words)


def given_share(instruction: str, solution: Sequence[Program]) -> float:
    """How much of a solution its instruction holds as code, in words, from 0 to 1."""
    blocks = _code_of(instruction)
    wanted = [piece for program in solution for piece in _pieces(program)]
    total = sum(piece.weight for piece in wanted)
    if not blocks or total < LEAST_WORDS:
        return 0.0
    commands: list[_Piece] = []
    lines: set[tuple[str, ...]] = set()
    for block in blocks:
        shown = "\n".join(re.sub(r"^\s*[$>#]\s+", "", line) for line in block.splitlines())
        commands += [_piece(command) for command in bash.read(shown).commands]
        lines |= {_tokens(line) for line in shown.splitlines()}
    held = sum(
        piece.weight
        for piece in wanted
        if piece.words in lines or any(_alike(piece, command) for command in commands)
    )
    return held / total


def _code_of(instruction: str) -> list[str]:
    blocks = [match[2] for match in _FENCE.finditer(instruction)]
    rest = _FENCE.sub("\n", instruction)
    blocks += [re.sub(r"(?m)^(?: {4}|\t)", "", match[0]) for match in _INDENTED.finditer(rest)]
    # One word in back quotes is a name.
    blocks += [text for text in _INLINE.findall(rest) if len(text.split()) > 2]
    return blocks


def _pieces(program: Program) -> Iterator[_Piece]:
    if program.language == "python":
        yield from _line_pieces(program.text)
        return
    for command in bash.read(program.text).commands:
        call = command.call
        if not call or call[0] in _TRIVIAL:
            continue
        if command.stdin is not None and call[0] in ("cat", "tee"):
            yield from _line_pieces(command.stdin)
        elif command.stdin is None:
            yield _piece(command)


def _line_pieces(text: str) -> Iterator[_Piece]:
    for line in text.splitlines():
        if not _TRIVIAL_LINE.match(line.strip()):
            tokens = _tokens(line)
            if len(tokens) > 1:
                yield _Piece(tokens)


def _piece(command: bash.Command) -> _Piece:
    written = [item.target for item in command.redirects if not item.target.startswith("/dev/")]
    return _Piece((*command.call, *written))


def _tokens(line: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+|[^\w\s]", line.replace('"', "'")))


def _alike(one: _Piece, other: _Piece) -> bool:
    if not one.words or not other.words or one.words[0] != other.words[0]:
        return False
    first, second = Counter(one.words), Counter(other.words)
    return sum((first & second).values()) >= ALIKE * sum((first | second).values())


def _looks(found: Sequence[Program]) -> Iterator[Hit]:
    for program in found:
        for text, line in _strings(program):
            if _PRIVATE.search(text):
                yield Hit(
                    "solution-reads-tests", f"the solution uses {text.strip()[:80]!r}", program.where(line)
                )
            if _REWARD.search(text):
                yield Hit(
                    "solution-writes-reward", f"the solution uses {text.strip()[:80]!r}", program.where(line)
                )


def _strings(program: Program) -> Iterator[tuple[str, int]]:
    if program.language == "python":
        source = python.read(program.text)
        for text, line in source.strings() if source is not None else ():
            if "\n" not in text:
                yield text, line
        return
    for command in bash.read(program.text).commands:
        if command.call[:1] in (("echo",), ("printf",)) and not command.redirects:
            continue
        for word in (*command.words[1:], *(item.target for item in command.redirects)):
            if "\n" not in word:
                yield word, command.line


def _constants(found: Sequence[Program], world: World) -> Iterator[Hit]:
    entry = next((program for program in found if program.origin is Origin.FILE), None)
    if entry is None or any(_computes(program) for program in found):
        return
    inputs = [
        path for path in world.paths if PurePosixPath(path).name in world.instruction and path != "Dockerfile"
    ]
    printed = "\n".join(text for program in found for text in _printed(program))
    values = words_of(printed) - words_of(world.instruction)
    if not inputs or not values:
        return
    blind = all(path in world.opaque for path in inputs)
    code = "solution-constant" if len(values) >= LEAST_VALUES and not blind else "solution-constant-short"
    message = (
        f"the solution reads none of the inputs and prints {len(values)} values that it does not compute"
    )
    yield Hit(code, message, entry.path)


def _computes(program: Program) -> bool:
    if program.language == "python":
        source = python.read(program.text)
        return source is None or _reads(source)
    for invocation in invocations(program):
        call = invocation.call
        inner = bool(call) and bool(re.fullmatch(r"python[\d.]*|bash|sh", call[0]))
        if call and call[0] not in _PRINTING and not inner:
            return True
        if call and call[0] == "cat" and len(call) > 1 and call[1] != "-":
            return True
    return "$(<" in program.text or "read " in program.text


def _reads(source: python.Source) -> bool:
    for call in source.calls():
        if call.name in ("open", "io.open") or call.name.endswith(".open"):
            mode = call.node.args[1] if len(call.node.args) > 1 else None
            mode = next((k.value for k in call.node.keywords if k.arg == "mode"), mode)
            if not (source.text(mode) or "r").startswith(("w", "a", "x")):
                return True
        elif _READING.fullmatch(call.name):
            return True
    return bool({"sqlite3", "pandas", "numpy", "subprocess"} & source.modules())


def _printed(program: Program) -> Iterator[str]:
    """What is written to files of data; code and settings are the work itself and no results."""
    if program.language == "python":
        source = python.read(program.text)
        if source is None:
            return
        texts = [text for text, _ in source.strings()]
        paths = [text for text in texts if re.fullmatch(r"/[\w./-]+", text)]
        if paths and all(PurePosixPath(path).suffix in _DATA_SUFFIXES for path in paths):
            yield from (text for text in texts if text not in paths)
            yield json.dumps(source.numbers())
        return
    for command in bash.read(program.text).commands:
        targets = [item.target for item in command.redirects if item.operator.startswith((">", "&>"))]
        if command.call[:1] == ("tee",):
            targets += [word for word in command.call[1:] if not word.startswith("-")]
        if command.call[:1] and command.call[0] in ("echo", "printf", "cat", "tee"):
            for target in targets:
                if PurePosixPath(target).suffix in _DATA_SUFFIXES and not (command.stdin or "").startswith(
                    "#!"
                ):
                    yield command.stdin if command.stdin is not None else " ".join(command.call[1:])
