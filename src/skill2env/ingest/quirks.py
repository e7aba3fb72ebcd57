"""What ingest can notice about a skill: every diagnostic code with its severity and meaning, in one table.

The numbers (Q1..Q48) are those of a catalogue that was measured on 96,854 public skills; 0 means an addition of ours.
`docs/ingest.md` prints this table, and a test holds one bad skill for each code.

Severities: ``info`` when nothing is lost, ``warn`` when something was guessed, refused or should be looked at,
``error`` when the skill cannot be used as it is.
"""

# ruff: noqa: E501  # tables: one line an entry

from dataclasses import dataclass

from skill2env.ingest.text import printable
from skill2env.records import Diagnostic, Severity

INFO, WARN, ERROR = Severity.INFO, Severity.WARN, Severity.ERROR
_RANK = {ERROR: 0, WARN: 1, INFO: 2}
_MOST_PER_CODE = 12
_DETAIL_CHARS = 200


@dataclass(frozen=True, slots=True)
class Quirk:
    """One kind of diagnostic."""

    number: int
    """Number in the catalogue, 0 for additions."""
    severity: Severity
    code: str
    meaning: str


# fmt: off
_TABLE = (
    # How the entry file is stored
    Quirk(7, INFO, "byte-order-mark", "The entry file begins with a byte order mark; some readers then see no front matter."),
    Quirk(8, INFO, "line-ends", "The entry file has CRLF, CR or mixed line ends; they were read as LF."),
    Quirk(9, WARN, "not-utf8", "A text file is not UTF-8; it was decoded as well as possible."),
    Quirk(10, WARN, "control-characters", "NUL or other control characters stand in the entry file; they were dropped."),
    Quirk(13, ERROR, "empty-file", "The entry file is empty."),
    Quirk(0, ERROR, "not-text", "The entry file is binary data, not text."),
    Quirk(16, WARN, "wrong-case", "The entry file is not spelled `SKILL.md`; case-sensitive systems do not find it."),
    Quirk(16, WARN, "several-entries", "The folder holds several spellings of the entry file; the best one is used."),
    Quirk(26, WARN, "huge-entry", "The entry file is over 100 kB, over 500 lines, or has a line over 5,000 characters."),
    Quirk(26, WARN, "entry-cut", "The entry file exceeds the limit; only its beginning was read."),
    # Front matter as a block
    Quirk(11, WARN, "no-front-matter", "The entry file has no front matter; name and description come from folder and text."),
    Quirk(12, WARN, "late-front-matter", "Something stands before the front matter; strict readers find none."),
    Quirk(13, WARN, "unterminated-front-matter", "The front matter has no closing `---`; it ends where its keys end."),
    Quirk(13, WARN, "odd-fence", "The fence of the front matter is not exactly `---`."),
    Quirk(1, WARN, "unquoted-colon", "A value holds an unquoted `: `, which YAML rejects; it was read as written."),
    Quirk(2, WARN, "mangled-block-scalar", "A value starts like a block scalar (`>-`) and goes on in the same line; the sign was dropped."),
    Quirk(3, WARN, "invalid-yaml", "A part of the front matter is no valid YAML; it was read line by line."),
    Quirk(3, WARN, "oversized-front-matter", "The front matter is too long, too deep or multiplies itself by aliases; the excess was cut."),
    Quirk(4, WARN, "tab-in-front-matter", "The front matter is indented with tabs, which YAML forbids; they were read as blanks."),
    Quirk(5, WARN, "duplicate-key", "A key occurs twice; the last one counts."),
    Quirk(6, INFO, "dashes-in-front-matter", "`---` stands inside the front matter; readers that split on it cut the text there."),
    Quirk(0, WARN, "comment-cuts-value", "A value holds ` #`, where YAML starts a comment; the rest is lost to every reader."),
    # Front matter fields
    Quirk(14, WARN, "missing-name", "No name is declared; the folder's name is used."),
    Quirk(14, WARN, "missing-description", "No description is declared; the first paragraph of the text is used."),
    Quirk(15, WARN, "non-string-field", "A field that should be text is something else for YAML; it was read as written."),
    Quirk(17, INFO, "name-differs-from-folder", "The declared name is not the folder's name."),
    Quirk(18, WARN, "invalid-name", "The name is not 1-64 of a-z, 0-9 and single hyphens."),
    Quirk(19, WARN, "path-in-name", "The name would not be safe as a path; only the slug is ever used as one."),
    Quirk(20, WARN, "long-description", "The description is longer than 1,024 characters; some clients refuse or cut it."),
    Quirk(21, INFO, "markup-in-description", "The description holds angle-bracket tags; some clients refuse it."),
    Quirk(22, INFO, "multi-line-description", "The description is a block scalar or spans lines; simple readers lose it."),
    Quirk(23, INFO, "unknown-key", "Keys are outside the specification; they were kept."),
    Quirk(23, WARN, "misspelled-key", "A key looks like a misspelling of a known one."),
    Quirk(24, INFO, "allowed-tools-form", "`allowed-tools` is a list or comma-separated; the specification has blanks."),
    Quirk(25, INFO, "metadata-form", "`metadata` is no map from text to text."),
    Quirk(25, INFO, "compatibility-form", "`compatibility` is no text of 1-500 characters."),
    # The folder
    Quirk(27, WARN, "huge-folder", "The folder holds more than 5 MB or more than 100 files."),
    Quirk(27, WARN, "over-limit", "Files, folders or sizes exceed the limits; the excess is refused."),
    Quirk(28, INFO, "binary-file", "The folder holds binary files."),
    Quirk(28, WARN, "native-executable", "The folder holds native programs."),
    Quirk(28, INFO, "archive-file", "The folder holds archives; they are never unpacked."),
    Quirk(28, WARN, "lfs-pointer", "A file is a Git LFS pointer; its content is missing."),
    Quirk(29, WARN, "symlink-escapes", "A link leads out of the skill; it is never followed."),
    Quirk(29, WARN, "symlink-loop", "A link leads in a circle."),
    Quirk(29, WARN, "symlink-dangles", "A link leads nowhere."),
    Quirk(29, INFO, "symlink", "The folder holds links that stay inside."),
    Quirk(29, INFO, "symlinked-folder", "A linked folder was not searched; what it leads to is found at its own place, or must be named."),
    Quirk(29, WARN, "special-file", "A device, socket or pipe lies in the folder; it is refused."),
    Quirk(30, INFO, "nested-skill", "A folder below holds a skill of its own; its files belong to this one as well."),
    Quirk(31, INFO, "odd-file-name", "A file name holds blanks, quotes or non-ASCII characters."),
    Quirk(31, WARN, "refused-file-name", "A file name cannot be stored portably; the file is refused."),
    Quirk(31, WARN, "colliding-file-names", "File names differ only in letter case or in the encoding of accents."),
    Quirk(31, INFO, "hidden-file", "The folder holds hidden files."),
    Quirk(31, WARN, "env-file", "An environment file (`.env`) lies in the folder."),
    Quirk(31, INFO, "build-leftover", "Byte code, caches, version control or system leftovers lie in the folder; they are left out."),
    Quirk(41, INFO, "script-not-executable", "Scripts lack the executable bit; call them through their interpreter."),
    Quirk(48, INFO, "sidecar", "A registry's or client's own file lies beside the entry."),
    Quirk(0, INFO, "eval-cases", "The skill brings evaluation cases of its own."),
    Quirk(0, WARN, "unreadable", "A file or folder cannot be read."),
    Quirk(0, WARN, "entry-is-no-file", "A `SKILL.md` is a folder, or a link that leads nowhere or out of its folder."),
    # The words
    Quirk(32, WARN, "injection-like", "The text tries to override instructions, to hide things from the user, or forges system tags."),
    Quirk(33, ERROR, "malware-lure", "The text looks like a lure: an encoded command, a protected archive or a paste to run first."),
    Quirk(34, WARN, "piped-download", "A download, or decoded data, is piped into an interpreter."),
    Quirk(34, WARN, "destructive-command", "A command deletes the root or home folder."),
    Quirk(35, WARN, "secret-like", "A string looks like a key or a password; it is not printed here."),
    Quirk(36, INFO, "client-dynamics", "The text relies on one client's variables: `$ARGUMENTS`, `${CLAUDE_...}`."),
    Quirk(36, WARN, "command-at-load", "The text holds commands that some clients run while loading it; they are never run here."),
    Quirk(37, WARN, "invisible-characters", "Zero-width characters stand in the text."),
    Quirk(37, WARN, "bidi-controls", "Characters that reverse the reading direction stand in the text."),
    Quirk(37, WARN, "tag-characters", "Unicode tag characters stand in the text: words that people cannot see."),
    Quirk(38, WARN, "missing-reference", "The text points to files that the folder lacks."),
    Quirk(38, WARN, "reference-case", "The text spells a file's name in another letter case."),
    Quirk(39, INFO, "outside-reference", "The text points to files outside the skill's folder."),
    Quirk(40, INFO, "absolute-path", "The text names absolute or home paths."),
    Quirk(42, INFO, "not-english", "The text is mostly not English."),
    Quirk(44, WARN, "stub", "The text after the front matter is shorter than 200 bytes."),
    Quirk(45, INFO, "test-fixture", "The path looks like a test fixture."),
    Quirk(46, INFO, "external-need", "The text mentions an account, a key, a service, a device or a person."),
    Quirk(47, INFO, "no-code", "Neither a code block nor a script: knowledge only."),
    # Terms
    Quirk(43, INFO, "no-licence", "No licence statement was found."),
    Quirk(43, WARN, "proprietary-licence", "The terms refuse reuse."),
    Quirk(43, WARN, "restrictive-licence", "The terms ask for share-alike or exclude uses."),
    Quirk(43, WARN, "licence-file-missing", "The licence field points to a file that is not there."),
    Quirk(43, WARN, "licence-unknown", "A licence statement was found and not understood."),
    Quirk(43, WARN, "licence-conflict", "Two licence statements of the skill disagree."),
    Quirk(0, INFO, "upstream-validator", "What the specification's reference validator says."),
)
# fmt: on

QUIRKS: dict[str, Quirk] = {quirk.code: quirk for quirk in _TABLE}
"""Code -> quirk, in the order of the docs."""


def note(code: str, detail: str = "", where: str = "") -> Diagnostic:
    """A diagnostic of a known code.

    Args:
        code: a key of `QUIRKS`.
        detail: completes the general sentence; untrusted text is made printable and shortened.
        where: relative path, with ``:line`` when known.

    Raises:
        KeyError: the code is not in the table.
    """
    quirk = QUIRKS[code]
    message = quirk.meaning
    if detail:
        message = f"{quirk.meaning.rstrip('.')}: {printable(detail, _DETAIL_CHARS)}"
    return Diagnostic(code=code, severity=quirk.severity, message=message, where=printable(where, 300))


def ordered(found: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Most severe first, then by code and place; doubles dropped and endless repetitions cut to 12 a code."""
    kept: dict[Diagnostic, None] = {}
    counts: dict[str, int] = {}
    for item in sorted(found, key=lambda d: (_RANK[d.severity], d.code, d.where, d.message)):
        if item in kept:
            continue
        counts[item.code] = counts.get(item.code, 0) + 1
        if counts[item.code] <= _MOST_PER_CODE:
            kept[item] = None
    return tuple(kept)
