"""Names in delivered files, and whether the agent could have known them."""

# ruff: noqa: E501  # tables of patterns

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast

from skill2env.verify.gate import Subject
from skill2env.verify.reading import decode, read_file, walk
from skill2env.verify.static import bash, python
from skill2env.verify.static.programs import Role, programs, public_digests
from skill2env.verify.static.world import words_of, world_of

_IDENTIFIER = re.compile(r"[A-Za-z](?=.*[A-Za-z])[\w .-]{1,60}")
_SETTINGS = frozenset({".ini", ".cfg", ".conf", ".toml", ".yaml", ".yml", ".env", ".properties"})
_TABLES = {".csv": ",", ".tsv": "\t"}
_PLAIN = frozenset({"", ".txt", ".text", ".log", ".out", ".lst", ".list", ".dat", ".rpt"})
_SETTING = re.compile(r"(?m)^([ \t-]*[\"']?)([A-Za-z][\w .-]*?)([\"']?[ \t]*[:=])")
_SKELETON = frozenset({".bashrc", ".profile", ".bash_logout", ".zshrc"})
_RULE = re.compile(
    r"(?i)\b(?:snake|camel|kebab|pascal)[- ]?case|\bslugs?\b|lower[- ]?case|upper[- ]?case|\bunderscores?\b|\bhyphens?\b|\bdash(?:es)?\b|"
    r"\bjoined\b|\bconcatenat|\bprefix|\bsuffix|\bspaces? (?:to|by|with|become)|\bnam(?:e|ed|ing) (?:after|scheme|convention)|\bderived? from\b"
)
_STANDARD = re.compile(
    r"(?i)\b(?:geo ?json|open ?api|swagger|sarif|cyclone ?dx|spdx|sbom|junit|json[- ](?:ld|rpc|schema|patch|feed)|jwk|jwt|oauth|har\b|"
    r"docker[- ]compose|compose file|kubernetes|k8s|helm|terraform|ansible|prometheus|grafana|systemd|nginx|apache|"
    r"package\.json|pyproject|setup\.cfg|cargo\.toml|tsconfig|eslint|github actions|gitlab[- ]ci|coco\b|labelme|"
    r"ics\b|i ?calendar|vcard|rss|atom\b|sitemap|bib ?tex|csl|jats|dublin core|schema\.org|rfc ?\d+|iso ?\d+|w3c|"
    r"standard format|specification|conform(?:s|ing)?|compliant|jupyter|ipynb|notebook|lcov|cobertura|opentelemetry|otlp|ecs\b|syslog|"
    r"fhir|dicom|vcf|gff|bed file|sam file|netcdf|zarr|stac\b|collada|gltf)"
)
_SIGNS: Mapping[str, str] = {
    ":": r"colons?", ",": r"commas?|comma[- ]separated|csv", ";": r"semicolons?", "|": r"pipes?|(?:vertical )?bars?",
    "-": r"dash(?:es)?|hyphens?|minus|bullets?|underlined?", "=": r"equals?(?: signs?)?|underlined?", ">": r"arrows?|greater|quoted?",
    "<": r"arrows?|less|angle", "*": r"asterisks?|stars?|bullets?", "#": r"hash(?:es)?|headings?|number signs?|comments?",
    "/": r"slash(?:es)?", ".": r"dots?|periods?|ellipsis|full stops?", "+": r"plus", "~": r"tildes?", "_": r"underscores?",
    "(": r"paren\w*|brackets?", ")": r"paren\w*|brackets?", "[": r"brackets?", "]": r"brackets?", "\"": r"quot\w*|quotation",
    "'": r"quot\w*|apostrophes?", "%": r"per ?cent\w*", "@": r"at signs?", "&": r"ampersands?", "!": r"exclamation",
}  # fmt: skip
_FORM = re.compile(
    r"(?i)\b(?:markdown|diff|patch|log format|like the (?:example|sample|template)|same (?:format|layout|form)|template)\b"
)


@dataclass(frozen=True, slots=True)
class Known:
    """What the agent can read."""

    instruction: str
    everything: str
    """In lower case: instruction, files, their names."""
    data_words: frozenset[str]
    """Words of the files alone."""
    why_open: str
    """Why nobody can say for sure that a name is unknown; empty when one can."""

    @property
    def is_open(self) -> bool:
        """Whether names may be known from what cannot be read here."""
        return bool(self.why_open)

    def is_unknown(self, name: str) -> bool:
        """Whether a name stands nowhere, and does not follow from data."""
        if self._stands(name):
            return False
        words = _parts(name)
        if not words or words <= self.data_words or self._follows(words):
            return False
        # A name of several words from the data, one behind the other.
        return not re.search(r"[\W_]+".join(map(re.escape, _ordered(name))), self._data_only())

    def is_prose(self, name: str) -> bool:
        """Whether its words stand in the instruction one behind the other, so that a reader would guess it."""
        return bool(re.search(r"\W+".join(map(re.escape, _ordered(name))), self.instruction.lower()))

    def is_unknown_path(self, path: str) -> bool:
        """Whether neither a path nor its file name stands anywhere or follows from data or a pattern."""
        name = PurePosixPath(path)
        if self._stands(path) or self._stands(name.name) or self._follows(_parts(name.stem)):
            return False
        if name.suffix and re.search(rf"[*<{{A-Z][^\s`]*{re.escape(name.suffix)}\b", self.instruction):
            return False  # `*.pgm`, `NAME.csv`, `<id>.json`
        if re.search(
            r"(?i)\b(?:same|original|its|their|your|any|own) (?:file ?)?names?\b|\bone file (?:per|for each)\b|\beach\b.{0,40}\bfile\b",
            self.instruction,
        ):
            return False
        return not _parts(name.stem) <= self.data_words

    def is_unknown_layout(self, token: str) -> bool:
        """Whether a separator stands nowhere, is not described in words and belongs to no layout that is named."""
        if token in self.everything or _FORM.search(self.instruction):
            return False
        return not any(
            sign in _SIGNS and re.search(rf"(?i)\b(?:{_SIGNS[sign]})\b", self.instruction)
            for sign in set(token)
        )

    def _follows(self, words: set[str]) -> bool:
        """Whether words that the agent has become a name by a rule that the instruction gives."""
        return bool(_RULE.search(self.instruction)) and words <= self.data_words | words_of(self.instruction)

    def _stands(self, name: str) -> bool:
        plain = name.lower()
        forms = {plain, plain.removesuffix("s"), plain + "s"}
        return any(
            re.search(rf"(?<![a-z0-9]){re.escape(form)}(?![a-z0-9])", self.everything) for form in forms
        )

    def _data_only(self) -> str:
        return self.everything[len(self.instruction) :]


def known_of(subject: Subject, files: Mapping[str, bytes | None]) -> Known:
    """What the agent of a task can read.

    Args:
        subject: the task.
        files: files of its container before the work; None for those that are too large to look into.
    """
    world = world_of(subject)
    # The agent sees what the Dockerfile made, not the Dockerfile; and what every home folder holds tells nothing.
    texts = [shown.text for shown in world.texts if not shown.path.endswith("/Dockerfile")]
    texts += [*world.paths, *files]
    closed = [*world.opaque]
    for path, data in files.items():
        if PurePosixPath(path).name in _SKELETON:
            continue
        text = decode(data) if data else None
        if text is not None:
            texts.append(text)
        elif data is None:
            closed.append(path)
    data_text = "\n".join(texts)
    why = ""
    if _STANDARD.search(world.instruction):
        why = "; the format that the instruction names may tell"
    elif closed:
        why = f"; {closed[0]} cannot be read here and may tell"
    everything = f"{world.instruction}\n{data_text}".lower()
    return Known(world.instruction, everything, frozenset(words_of(data_text)), why)


def verifier_text(task_dir: Path) -> str:
    """Programs and data of the verifier, without its copies of what the agent is given."""
    return "\n".join(
        [*(program.text for program in programs(task_dir, Role.VERIFIER)), *_data(task_dir, set())]
    )


def _data(task_dir: Path, without: set[str]) -> Iterator[str]:
    public = public_digests(task_dir)
    for path, _ in walk(task_dir / "tests"):
        data = read_file(task_dir / "tests" / path, 1024 * 1024)
        if path == "rubric.md" or f"tests/{path}" in without or not data:
            continue
        if hashlib.sha256(data).hexdigest() not in public:
            yield decode(data) or ""


def verifier_strings(task_dir: Path) -> str:
    """Constant strings of the verifier's programs, and its data, without copies of what the agent is given."""
    texts: list[str] = []
    held: set[str] = set()
    for program in programs(task_dir, Role.VERIFIER):
        held.add(program.path)
        source = python.read(program.text) if program.language == "python" else None
        if source is not None:
            texts += [text for text, _ in source.strings()]
        elif program.language == "shell":
            texts += [word for command in bash.read(program.text).commands for word in command.words[1:]]
    return "\n".join([*texts, *_data(task_dir, held)])


def names_in(path: str, data: bytes) -> Iterator[str]:
    """Names of fields in a file: keys of JSON and of settings, headers of tables. Programs have none."""
    text = decode(data)
    if text is None or text.startswith("#!"):
        return
    suffix = PurePosixPath(path).suffix.lower()
    found: Iterator[str] = iter(())
    if suffix in _TABLES:
        found = iter(next(csv.reader(io.StringIO(text), delimiter=_TABLES[suffix]), list[str]()))
    elif suffix in _SETTINGS:
        found = (match[2] for match in _SETTING.finditer(text))
    elif suffix in (".jsonl", ".ndjson"):
        found = (key for line in text.splitlines()[:200] for key in _keys(_json(line)))
    else:
        found = _keys(_json(text))
    for name in found:
        if _IDENTIFIER.fullmatch(name.strip()):
            yield name.strip()


def respell_names(path: str, data: bytes, names: Sequence[str]) -> bytes | None:
    """The same file with other names, nothing else changed; None when it holds none of them."""
    text = data.decode("utf-8", errors="surrogateescape")
    suffix = PurePosixPath(path).suffix.lower()
    changed = text
    for name in names:
        word = re.escape(name)
        if suffix in _TABLES:
            head, line, rest = changed.partition("\n")
            changed = re.sub(rf"(?<![\w.-]){word}(?![\w.-])", f"{name}_x", head) + line + rest
        elif suffix in _SETTINGS:
            changed = re.sub(rf"(?m)^([ \t-]*[\"']?){word}([\"']?[ \t]*[:=])", rf"\g<1>{name}_x\2", changed)
        else:
            changed = re.sub(rf'"{word}"(\s*:)', rf'"{name}_x"\1', changed)
    return changed.encode("utf-8", errors="surrogateescape") if changed != text else None


def layout_tokens(path: str, data: bytes) -> list[str]:
    """Separators of a plain text: runs of signs, and signs that stand alone between blanks."""
    text = decode(data)
    if (
        text is None
        or PurePosixPath(path).suffix.lower() not in _PLAIN
        or text.startswith("#!")
        or _json(text) is not None
    ):
        return []
    runs = re.findall(r"[^\w\s]{2,}", text)
    alone = re.findall(r"(?<=\s)[^\w\s](?=\s)", text)
    return sorted({token for token in (*runs, *alone) if token.isascii()})


def respell_layout(data: bytes, tokens: Sequence[str]) -> bytes:
    """The same text with other separators."""
    text = data.decode("utf-8")
    for token in sorted(tokens, key=len, reverse=True):
        text = text.replace(token, "^" if len(token) == 1 else "=>" if token != "=>" else "->")
    return text.encode()


def _json(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _keys(document: Any, depth: int = 0) -> Iterator[str]:
    if depth > 12:
        return
    if isinstance(document, dict):
        for key, value in cast("dict[str, Any]", document).items():
            yield key
            yield from _keys(value, depth + 1)
    elif isinstance(document, list):
        for item in cast("list[Any]", document)[:200]:
            yield from _keys(item, depth + 1)


def _ordered(name: str) -> list[str]:
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return [word.lower() for word in re.findall(r"[A-Za-z]+|\d+", split)]


def _parts(name: str) -> set[str]:
    """Words of a name; numbers in it follow from data."""
    return {word for word in _ordered(name) if not word.isdigit()}
