"""What ingest can notice about a skill: every diagnostic code with its severity and meaning, in one table.

The numbers (Q1..Q48) are those of the catalogue that was measured on 96,854 public skills; 0 means an own addition.
"""

from dataclasses import dataclass

from skill2env.records import Diagnostic, Severity

INFO, WARN, ERROR = Severity.INFO, Severity.WARN, Severity.ERROR


@dataclass(frozen=True, slots=True)
class Quirk:
    """One kind of diagnostic."""

    code: str
    severity: Severity
    meaning: str
    number: int


def _q(number: int, severity: Severity, code: str, meaning: str) -> Quirk:
    return Quirk(code, severity, meaning, number)


QUIRKS: dict[str, Quirk] = {
    quirk.code: quirk
    for quirk in (
        _q(
            1,
            WARN,
            "unquoted-colon",
            "A front matter value holds an unquoted `: `; YAML rejects it, so it was read line by line.",
        ),
        _q(
            2,
            WARN,
            "mangled-block-scalar",
            "A value starts like a block scalar (`>-`) and goes on on the same line.",
        ),
        _q(
            3, WARN, "invalid-yaml", "The front matter is no valid YAML; what could be was read line by line."
        ),
        _q(4, WARN, "tab-in-front-matter", "The front matter is indented with a tab, which YAML forbids."),
        _q(5, WARN, "duplicate-key", "A front matter key occurs twice; the first one counts."),
        _q(
            6,
            INFO,
            "dashes-in-front-matter",
            "`---` stands inside a front matter value; readers that split on it cut the value.",
        ),
        _q(7, INFO, "byte-order-mark", "The entry file begins with a UTF-8 byte order mark."),
        _q(8, INFO, "line-ends", "The entry file has CRLF, or mixed, line ends."),
        _q(9, WARN, "not-utf8", "A text file is not UTF-8; it was decoded as well as possible."),
        _q(
            10,
            WARN,
            "control-characters",
            "NUL or other control characters stand in the entry file; they were dropped.",
        ),
        _q(
            11,
            WARN,
            "no-front-matter",
            "The entry file has no front matter; name and description come from folder and text.",
        ),
        _q(12, WARN, "late-front-matter", "Text stands before the front matter; strict readers find none."),
        _q(13, WARN, "unterminated-front-matter", "The front matter has no closing `---`."),
        _q(13, ERROR, "empty-file", "The entry file is empty."),
        _q(14, WARN, "missing-name", "No name is declared; the folder's name is used."),
        _q(
            14,
            WARN,
            "missing-description",
            "No description is declared; the first paragraph of the text is used.",
        ),
        _q(
            15,
            WARN,
            "non-string-field",
            "A field that should be text is of another type; it was turned into text.",
        ),
        _q(
            16,
            WARN,
            "wrong-case",
            "The entry file is not spelled `SKILL.md`; case-sensitive systems do not find it.",
        ),
        _q(
            16,
            WARN,
            "several-entries",
            "The folder holds several spellings of the entry file; the best one is used.",
        ),
        _q(17, INFO, "name-differs-from-folder", "The declared name is not the folder's name."),
        _q(18, WARN, "invalid-name", "The name is not 1-64 of a-z, 0-9 and single hyphens."),
        _q(
            19,
            WARN,
            "path-in-name",
            "The name holds a slash, backslash or dots: used as a path it would leave its folder.",
        ),
        _q(20, WARN, "long-description", "The description is longer than 1,024 characters."),
        _q(
            21,
            INFO,
            "markup-in-description",
            "The description holds angle-bracket tags; some clients refuse it.",
        ),
        _q(22, INFO, "multi-line-description", "The description spans several lines."),
        _q(23, INFO, "unknown-key", "A front matter key is outside the specification."),
        _q(23, WARN, "misspelled-key", "A front matter key looks like a misspelling of a known one."),
        _q(
            24,
            INFO,
            "allowed-tools-form",
            "`allowed-tools` is a list or comma-separated; the specification has spaces.",
        ),
        _q(25, INFO, "metadata-form", "`metadata` is no map from text to text."),
        _q(25, INFO, "compatibility-form", "`compatibility` is not a text of 1-500 characters."),
        _q(
            26,
            WARN,
            "huge-entry",
            "The entry file is larger than 100 kB, has lines over 5,000 characters, or over 500 lines.",
        ),
        _q(27, WARN, "huge-folder", "The folder holds more than 5 MB or more than 100 files."),
        _q(27, ERROR, "over-limit", "A file or the folder exceeds the limits; what exceeds them is refused."),
        _q(28, INFO, "binary-file", "The folder holds binary files."),
        _q(28, WARN, "native-executable", "The folder holds native programs."),
        _q(28, INFO, "archive-file", "The folder holds archives; they are never unpacked."),
        _q(28, WARN, "lfs-pointer", "A file is a Git LFS pointer; its content is missing."),
        _q(29, WARN, "symlink-escapes", "A link leads out of the skill; it is never followed."),
        _q(29, WARN, "symlink-loop", "A link leads to a folder above itself."),
        _q(29, WARN, "symlink-dangles", "A link leads nowhere."),
        _q(29, INFO, "symlink", "The folder holds links that stay inside."),
        _q(29, WARN, "special-file", "A device, socket or pipe lies in the folder; it is refused."),
        _q(
            30,
            INFO,
            "nested-skill",
            "A folder below holds a skill of its own; its files belong to this one as well.",
        ),
        _q(31, INFO, "odd-file-name", "A file name holds spaces, quotes, control or non-ASCII characters."),
        _q(31, INFO, "hidden-file", "The folder holds hidden files."),
        _q(31, WARN, "env-file", "An environment file (`.env`) lies in the folder."),
        _q(31, INFO, "build-leftover", "Byte code or system leftovers lie in the folder."),
        _q(
            32,
            WARN,
            "injection-like",
            "The text tries to override instructions, to hide things from the user, or forges system tags.",
        ),
        _q(
            33,
            ERROR,
            "malware-lure",
            "The text looks like a lure: password-protected archive, paste site, or encoded command.",
        ),
        _q(34, WARN, "piped-download", "A download is piped into a shell, or decoded and executed."),
        _q(34, WARN, "destructive-command", "A command deletes the root or home folder."),
        _q(35, WARN, "secret-like", "A string looks like a key or a password."),
        _q(
            36,
            INFO,
            "client-dynamics",
            "The text relies on one client: `$ARGUMENTS`, `${CLAUDE_...}` or commands run at load.",
        ),
        _q(
            37, WARN, "invisible-characters", "Zero-width, bidirectional or tag characters stand in the text."
        ),
        _q(38, WARN, "missing-reference", "The text points to a file that the folder lacks."),
        _q(39, INFO, "outside-reference", "The text points to files outside the skill's folder."),
        _q(40, INFO, "absolute-path", "The text names absolute or home paths."),
        _q(
            41,
            INFO,
            "script-not-executable",
            "Scripts lack the executable bit; call them through their interpreter.",
        ),
        _q(42, INFO, "not-english", "The text is mostly not English."),
        _q(43, INFO, "no-licence", "No licence statement was found."),
        _q(43, WARN, "proprietary-licence", "The terms refuse reuse."),
        _q(43, WARN, "copyleft-licence", "The terms ask for share-alike or exclude commercial use."),
        _q(43, WARN, "licence-file-missing", "The licence field points to a file that is not there."),
        _q(43, WARN, "licence-unknown", "A licence statement was found and not understood."),
        _q(44, WARN, "stub", "The text is shorter than 200 characters."),
        _q(45, INFO, "test-fixture", "The path looks like a test fixture or a template."),
        _q(
            46, INFO, "external-need", "The text mentions an account, a key, a service, a device or a person."
        ),
        _q(47, INFO, "no-code", "Neither a code block nor a script: nothing here can be executed."),
        _q(48, INFO, "sidecar", "A registry's or client's own file lies beside the entry."),
        _q(0, INFO, "upstream-validator", "What the specification's reference validator says."),
        _q(0, WARN, "unreadable", "A file or folder cannot be read."),
    )
}


def note(code: str, detail: str = "", where: str = "") -> Diagnostic:
    """A diagnostic of a known code; `detail` completes the general sentence.

    Raises:
        KeyError: the code is not in the table.
    """
    quirk = QUIRKS[code]
    message = f"{quirk.meaning} ({detail})" if detail else quirk.meaning
    return Diagnostic(code=code, severity=quirk.severity, message=message, where=where)
