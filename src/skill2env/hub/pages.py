"""What screening looks at: the texts of a skill by region, and the sizes of its body."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from skill2env.hub.redaction import without_secrets
from skill2env.hub.rules import Measure, Region
from skill2env.ingest.lookout import Lookout, prepared
from skill2env.records import Skill

MAX_SCAN_CHARS = 400_000
"""Characters of a file that are looked at."""
MAX_OTHER_FILES = 200
"""Files beside the entry that are looked at, in the order of their paths."""
MAX_OTHER_CHARS = 4_000_000
"""Characters of these files together."""
_PROSE_ENDINGS = (".md", ".mdx", ".txt", ".rst", ".adoc")
_SCRIPT_ENDINGS = tuple(
    (
        ".py .sh .bash .js .mjs .cjs .ts .tsx .jsx .rb .pl .php .ps1 .bat .cmd "
        ".r .go .rs .lua .sql .java .kt .swift .c .cpp"
    ).split()
)
_FENCE = re.compile(r"^[ \t]{0,6}(```+|~~~+).*?(?:^[ \t]{0,6}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_FRONT = re.compile(r"\A\ufeff?\s*---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.;!?]) ")
_USAGE = re.compile(
    r"^\s*(?:#|//|\$|(?:python3?|node|bash|sh|pip3?|npm|npx|uv|cd|mkdir|git clone)\b|[}\])]+[,;]?\s*$|\s*$)"
)
"""Lines of code that say nothing about the work: blank, comments, calls of a script, installation."""
_NUMBER = re.compile(r"\d\d*")  # the first sign alone lets the engine skip quickly
_STEP = re.compile(r"^\s*\d+[.)]\s", re.MULTILINE)
_BULLET = re.compile(r"^\s*[-*+]\s", re.MULTILINE)
_REACH = 400
"""Characters around a word that belong to its line, however long that is."""
ENTRY = 2
"""Place of the entry file among the pages."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Words of a file that a rule rests on."""

    where: str
    start: int
    end: int
    text: str


class Page:
    """One text, prepared for looking at its lines."""

    def __init__(
        self, where: str, text: str, regions: Sequence[tuple[int, Region]], lookout: Lookout
    ) -> None:
        self.where = where
        self.text = text
        # One byte a character makes looking for words several times as fast; the words of rules are ASCII.
        lowered, found = prepared(text)
        self.lowered = lowered.encode("latin-1", "replace").decode("latin-1")
        self.possible = lookout.possible(found)
        """Words of rules that the text may hold; all others it does not."""
        self._starts = [start for start, _ in regions]
        self._regions = [region for _, region in regions]
        self.present = frozenset(self._regions)

    def region(self, position: int) -> Region:
        """What the character at a position belongs to."""
        return self._regions[bisect_right(self._starts, position) - 1]

    def quoted(self, begin: int, stop: int) -> str:
        """What stands there, without a character of anything that looks like a secret."""
        return without_secrets(self.text, begin, stop)

    def lines(
        self, words: Sequence[str], wanted: frozenset[Region], *, whole: bool
    ) -> Iterator[tuple[int, int, int, int]]:
        """Lines in the wanted regions with one of the words: start and end of the line and of the word.

        Args:
            words: in lower case; without any, every line counts.
            wanted: regions.
            whole: only as whole words.
        """
        if not words:
            start = 0
            for line in self.text.split("\n"):
                if self.region(start) in wanted:
                    yield start, start + len(line), start, start
                start += len(line) + 1
            return
        lowered, seen = self.lowered, set[int]()
        for word in words:
            if word not in self.possible:
                continue
            at = lowered.find(word)
            while at >= 0:
                after = at + len(word)
                if whole and (lowered[at - 1 : at].isalnum() or lowered[after : after + 1].isalnum()):
                    at = lowered.find(word, after)
                    continue
                start = lowered.rfind("\n", 0, at) + 1
                end = lowered.find("\n", at)
                end = len(lowered) if end < 0 else end
                if start not in seen:
                    seen.add(start)
                    if self.region(at) in wanted:
                        yield max(start, at - _REACH), min(end, after + _REACH), at, after
                at = lowered.find(word, end)


def make_pages(skill: Skill, texts: Mapping[str, str], lookout: Lookout) -> list[Page]:
    """Name, description, entry file, paths, then the other texts in the order of their paths."""
    entry = texts.get(skill.entry, skill.body).replace("\r\n", "\n")[:MAX_SCAN_CHARS]
    pages = [
        Page(skill.entry, skill.name, [(0, Region.NAME)], lookout),
        Page(
            skill.entry,
            _SENTENCE_END.sub("\n", " ".join(skill.description.split())),
            [(0, Region.DESCRIPTION)],
            lookout,
        ),
        Page(skill.entry, entry, _regions(entry), lookout),
        Page(
            "", "\n".join([skill.origin, *(item.path for item in skill.files)]), [(0, Region.PATH)], lookout
        ),
    ]
    left = MAX_OTHER_CHARS
    for path in sorted(texts.keys() - {skill.entry})[:MAX_OTHER_FILES]:
        kind = Region.NOTES if path.lower().endswith(_PROSE_ENDINGS) else Region.SCRIPTS
        text = texts[path][: min(MAX_SCAN_CHARS, left)]
        left -= len(text)
        pages.append(Page(path, text, [(0, kind)], lookout))
    return pages


def _regions(entry: str) -> list[tuple[int, Region]]:
    """Where front matter, prose and code of an entry file begin."""
    found: list[tuple[int, Region]] = []
    front = _FRONT.match(entry)
    begin = 0
    if front:
        found.append((0, Region.FRONT_MATTER))
        begin = front.end()
    found.append((begin, Region.PROSE))
    if "```" not in entry and "~~~" not in entry:
        return found
    for fence in _FENCE.finditer(entry, begin):
        found += [(fence.start(), Region.CODE), (fence.end(), Region.PROSE)]
    return found


def measure(skill: Skill) -> dict[Measure, float]:
    """Sizes of the body that rules look at."""
    prose, code_lines = _apart(skill.body)
    scripts = sum(item.path.lower().endswith(_SCRIPT_ENDINGS) for item in skill.files)
    sizes = {
        Measure.CHARACTERS: float(len(skill.body)),
        Measure.CODE_LINES: float(code_lines),
        Measure.INLINE_CODE: float(prose.count("`") // 2),
        Measure.NUMBERS: float(len(_NUMBER.findall(prose))),
        Measure.TABLE_ROWS: float(prose.count("\n|")),
        Measure.STEPS: float(len(_STEP.findall(prose))),
        Measure.BULLETS: float(len(_BULLET.findall(prose))),
        Measure.SCRIPTS: float(scripts),
    }
    sizes[Measure.SUBSTANCE] = sum(
        min(part, 60)
        for part in (
            sizes[Measure.CODE_LINES],
            sizes[Measure.INLINE_CODE] / 2,
            sizes[Measure.TABLE_ROWS],
            sizes[Measure.NUMBERS] / 4,
            20 * sizes[Measure.SCRIPTS],
        )
    )
    return sizes


def _apart(body: str) -> tuple[str, int]:
    """The text outside fences, and how many lines inside say something."""
    if "```" not in body and "~~~" not in body:
        return body, 0
    parts: list[str] = []
    code_lines = begin = 0
    for fence in _FENCE.finditer(body):
        parts.append(body[begin : fence.start()])
        begin = fence.end()
        code_lines += sum(not _USAGE.match(line) for line in fence[0].split("\n")[1:-1])
    parts.append(body[begin:])
    return "".join(parts), code_lines
