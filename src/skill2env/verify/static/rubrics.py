"""What a rubric says: something about this task, and nothing that its instruction contradicts.

Only facts that can be compared word by word: paths, file formats, numbers of decimals, the direction of an order.
"""

# ruff: noqa: E501  # tables of words

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from skill2env.verify.gate import Hit, Subject
from skill2env.verify.metrics import metric_sources
from skill2env.verify.reading import decode, read_file, walk
from skill2env.verify.static.world import words_of, world_of

WHERE = "tests/rubric.md"
_PLACEHOLDER = re.compile(
    r"(?i)\s*(?:todo|tbd|fixme|lorem ipsum|fill (?:this )?in|insert .{0,20} here)\b|\s*[<\[][^<>\[\]]*[>\]]\s*[.]?\s*$"
)
_EMPTY_WORDS = frozenset(
    "agent answer answers code complete completed correct correctly criteria criterion does done each error errors everything "
    "file files follow followed follows fully good handle handled instruction instructions meet meets must never output "
    "outputs pass passes produce produced produces proper properly quality requirement requirements result results review "
    "right rubric should solution solve solved solves task tasks test tests that the this well with work works".split()
)
_PATH = re.compile(r"(?<![\w/.~-])/(?:[\w.-]+/)*[\w.-]+\.\w+")
_FORMATS = ("json", "csv", "tsv", "xml", "yaml", "toml", "parquet", "html")
_NUMBER_WORDS = {
    "no": 0,
    "zero": 0,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "eight": 8,
}
_DECIMALS = re.compile(
    r"(?i)\b(\d+|no|zero|one|two|three|four|five|six|eight)[ -](?:decimal(?:s| places| digits)?|places after)"
)
_ORDERS = (("ascending", "descending"), ("oldest first", "newest first"), ("largest first", "smallest first"))


def rubric_hits(subject: Subject, bullets: Sequence[str]) -> Iterator[Hit]:
    """Findings about the bullets of a rubric, of whatever sections."""
    instruction = world_of(subject).instruction
    if not bullets or not instruction:
        return
    known = _substance("\n".join([instruction, *(metric_sources(subject) or ())]))
    vague = next((bullet for bullet in bullets if _PLACEHOLDER.match(bullet)), "")
    if vague:
        yield Hit("rubric-boilerplate", f"a bullet was never written: {vague[:80]!r}", WHERE)
    elif not any("`" in bullet or _substance(bullet) & known for bullet in bullets):
        yield Hit("rubric-boilerplate", "no bullet speaks about this task", WHERE)
    yield from _contradictions(" \n".join(bullets), instruction, subject.task_dir)


def _substance(text: str) -> set[str]:
    return {word[:5] for word in words_of(text) if len(word) >= 3 and word not in _EMPTY_WORDS}


def _contradictions(rubric: str, instruction: str, task_dir: Path) -> Iterator[Hit]:
    known = instruction + "\n" + "\n".join(_texts(task_dir))
    paths = _PATH.findall(instruction)
    for path in dict.fromkeys(_PATH.findall(rubric)):
        if paths and path not in known and path.rpartition("/")[2] not in known:
            yield Hit("rubric-contradicts", f"speaks of {path}, which the task does not know", WHERE)
    stated, wanted = _decimals(instruction), _decimals(rubric)
    if stated and wanted - stated:
        yield Hit(
            "rubric-contradicts",
            f"asks for {min(wanted - stated)} decimals, the instruction for {min(stated)}",
            WHERE,
        )
    formats = {name for name in _FORMATS if _names(name, instruction)}
    for name in _FORMATS:
        if formats and name not in formats and re.search(rf"(?i)\b{name}\b(?! schema)", rubric):
            yield Hit(
                "rubric-contradicts",
                f"speaks of {name.upper()}, the instruction of {', '.join(sorted(formats))}",
                WHERE,
            )
    for pair in _ORDERS:
        for one, other in (pair, pair[::-1]):
            in_rubric, in_text = rubric.lower(), instruction.lower()
            if one in in_rubric and other not in in_rubric and other in in_text and one not in in_text:
                yield Hit("rubric-contradicts", f"says {one}, the instruction says {other}", WHERE)


def _decimals(text: str) -> set[int]:
    return {
        _NUMBER_WORDS[word] if word in _NUMBER_WORDS else int(word)
        for word in map(str.lower, _DECIMALS.findall(text))
    }


def _names(form: str, text: str) -> bool:
    return bool(re.search(rf"(?i)\b{form}\b", text))


def _texts(task_dir: Path) -> Iterator[str]:
    for top in ("environment", "tests"):
        for path, _ in walk(task_dir / top):
            if path != "rubric.md":
                yield path
                yield decode(read_file(task_dir / top / path, 1024 * 1024)) or ""
