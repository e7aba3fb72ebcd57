"""What the words of a skill give away: references, injections, lures, secrets, needs. Text is data here, never obeyed."""

import posixpath
import re
from collections.abc import Iterable, Iterator

from skill2env.ingest.quirks import note
from skill2env.records import Diagnostic

MAX_SCAN_CHARS = 400_000
_LINK = re.compile(r"\[[^\]\n]{0,200}\]\(\s*<?([^)>\s]{1,300})>?(?:\s+\"[^\"\n]*\")?\s*\)")
_SPAN = re.compile(
    r"`((?:\.\.?/)*[\w.-]+(?:/[\w.-]+)+\.[A-Za-z0-9]{1,8}|(?:scripts|references|assets|templates|examples)/[\w./-]+)`"
)
_CALL = re.compile(r"(?m)(?:python3?|bash|sh|node|ruby)\s+((?:scripts|references|assets|tools|bin)/[\w./-]+)")
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")

_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (code, re.compile(pattern, re.IGNORECASE))
    for code, pattern in (
        (
            "injection-like",
            r"(?:ignore|disregard|forget) (?:all |any )?(?:the )?(?:previous|prior|above|earlier) (?:instructions|prompts|rules)",
        ),
        ("injection-like", r"(?:do not|don't|never) (?:tell|inform|show|mention (?:this|it) to) the user"),
        ("injection-like", r"</?(?:system|system_prompt|assistant)>|\[/?INST\]"),
        (
            "injection-like",
            r"you must always use this skill|(?:bypass|override) (?:your )?(?:safety|guardrails)",
        ),
        (
            "malware-lure",
            r"(?:password|passphrase)\W{1,4}(?:for (?:the )?(?:zip|archive)|to (?:extract|unzip))|(?:extract|unzip)[^\n]{0,60}\bpass(?:word|phrase)\W{1,3}\S",
        ),
        ("malware-lure", r"base64\s+(?:-d|-D|--decode)[^\n]{0,80}\|\s*(?:ba)?sh\b"),
        ("malware-lure", r"https?://(?:glot\.io|rentry\.co|pastebin\.com/raw|transfer\.sh)/\S+"),
        ("piped-download", r"\b(?:curl|wget)\b[^\n|]{0,300}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"),
        ("piped-download", r"(?:iwr|irm|invoke-webrequest)[^\n|]{0,200}\|\s*(?:iex|invoke-expression)"),
        (
            "destructive-command",
            r"\brm\s+-[a-z]*r[a-z]*f?[a-z]*\s+(?:--no-preserve-root\s+)?(?:/|~|\$HOME)(?:\s|$|/\*)",
        ),
        (
            "secret-like",
            r"\bAKIA[0-9A-Z]{16}\b|\bsk-[A-Za-z0-9_-]{32,}|\bghp_[A-Za-z0-9]{36}\b|\bxox[abp]-[0-9A-Za-z-]{20,}",
        ),
        ("secret-like", r"-----BEGIN (?:RSA |EC |OPENSSH |DSA )?PRIVATE KEY-----"),
        ("secret-like", r"[a-z][a-z0-9+.-]*://[^\s:/@\"'<>{}$]{1,64}:[^\s:/@\"'<>{}$]{4,64}@[\w.-]+"),
        ("client-dynamics", r"\$ARGUMENTS\b|\$\{CLAUDE_[A-Z_]+\}|(?m:^|\s)!`[^`\n]+`"),
        (
            "absolute-path",
            r"(?<![\w:/.])(?:~/\.[a-z]+/|/Users/[\w.-]+/|/home/[\w.-]+/|/mnt/[\w.-]+/|[A-Z]:\\\\?Users\\)",
        ),
    )
)

_NEEDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (what, re.compile(pattern, re.IGNORECASE))
    for what, pattern in (
        ("key or token", r"\bapi[ _-]?(?:key|token)s?\b|\baccess token\b|\b[A-Z0-9]+_API_KEY\b"),
        ("login", r"\b(?:log ?in|sign ?in|oauth|authenticate)\b"),
        ("network", r"\bcurl\s+(?:-\S+\s+)*https?://|\brequests\.(?:get|post)\(|\bfetch\(['\"]https?:"),
        ("MCP server", r"\bMCP\b"),
        ("browser", r"\b(?:playwright|puppeteer|selenium|chrome devtools)\b"),
        ("docker", r"\bdocker\b"),
        ("GPU", r"\b(?:cuda|nvidia-smi|gpu)\b"),
        ("macOS", r"\bmacos\b|\bosascript\b|\bbrew install\b"),
        ("Windows", r"\bpowershell\b|\bwindows registry\b"),
        ("cloud account", r"\b(?:aws|gcloud|az) [a-z-]+ [a-z-]+"),
        ("a person's approval", r"\bask the user\b|\bwait for (?:approval|confirmation)\b"),
    )
)


def references(text: str) -> set[str]:
    """Relative paths that the text points to, as written (fragments and queries removed)."""
    found = {m for m in _LINK.findall(text)} | set(_SPAN.findall(text)) | set(_CALL.findall(text))
    cleaned: set[str] = set()
    for path in found:
        path = path.partition("#")[0].partition("?")[0].strip()
        if (
            path
            and "://" not in path
            and not path.startswith(("/", "~", "mailto:", "data:", "$", "{", "<", "@"))
            and len(path) < 300
        ):
            if re.search(r"[*{}<>$|]|\.\.\.|xxx|path/to|your[-_]", path, re.IGNORECASE) is None:
                cleaned.add(path)
    return cleaned


def sort_references(paths: Iterable[str], known: set[str]) -> tuple[list[str], list[str]]:
    """(missing, outside): references that the folder lacks, and those that leave it."""
    folders = {posixpath.dirname(p) for p in known}
    while extra := {posixpath.dirname(f) for f in folders} - folders:
        folders |= extra
    missing, outside = [], []
    for path in sorted(set(paths)):
        aim = posixpath.normpath(path)
        if aim.startswith(".."):
            outside.append(path)
        elif aim not in known and aim.rstrip("/") not in folders and _looks_like_file(aim):
            missing.append(aim)
    return sorted(set(missing)), outside


def _looks_like_file(path: str) -> bool:
    """A bare word such as `and/or` or `input.csv` in prose is no reference; a path into a usual folder or a document link is."""
    head = path.split("/", 1)[0]
    return head in (
        "scripts",
        "references",
        "assets",
        "templates",
        "examples",
        "resources",
        "docs",
        "reference",
        "tools",
    ) or path.endswith((".md", ".py", ".sh"))


def scan(text: str, where: str) -> Iterator[Diagnostic]:
    """Diagnostics about the words of one file; each code once, with the first place."""
    text = text[:MAX_SCAN_CHARS]
    told: set[str] = set()
    for code, pattern in _SIGNS:
        match = pattern.search(text) if code not in told else None
        if match:
            told.add(code)
            line = text.count("\n", 0, match.start()) + 1
            shown = (
                "a string of " + str(len(match[0])) + " characters"
                if code == "secret-like"
                else " ".join(match[0].split())[:80]
            )
            yield note(code, shown, f"{where}:{line}")
    hidden = _INVISIBLE.search(text)
    if hidden:
        yield note(
            "invisible-characters",
            f"U+{ord(hidden[0]):04X}",
            f"{where}:{text.count(chr(10), 0, hidden.start()) + 1}",
        )


def needs(text: str) -> list[str]:
    """Outside needs that the text mentions (an upper bound: a mention is no need)."""
    return [what for what, pattern in _NEEDS if pattern.search(text[:MAX_SCAN_CHARS])]


def mostly_english(text: str) -> bool:
    """False when most letters are outside Latin script, or common English words are rare in long Latin text."""
    sample = re.sub(r"```.*?```", " ", text[:MAX_SCAN_CHARS], flags=re.DOTALL)
    letters = [c for c in sample if c.isalpha()]
    if not letters:
        return True
    if sum(c < "\u0250" for c in letters) < 0.7 * len(letters):
        return False
    words = re.findall(r"[a-zA-Z\u00c0-\u024f']+", sample.lower())
    common = sum(w in _COMMON for w in words)
    return len(words) < 80 or common >= 0.06 * len(words)


_COMMON = frozenset(
    "the and to of a in for is or with use on this that be when if not from by are as it you an your each can do before".split()
)

TRIGGER = re.compile(
    r"(?:^|(?<=[.!?]\s)|(?<=\n))[^.!?\n]*\b(?:use (?:this |it |the skill )?(?:skill )?(?:when|whenever|for|if|to)|when(?:ever)? (?:the )?(?:user|someone|somebody|you)|triggers? (?:on|when)|should be used)\b[^.!?\n]*[.!?]?",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"(?m)^#{1,4}\s+(?:when to (?:use|apply|activate)[^\n]*|triggers?|use cases?|activation)\s*$",
    re.IGNORECASE,
)


def triggers(description: str, front_matter: dict[str, object], body: str) -> tuple[str, ...]:
    """Sentences that say when the skill applies, verbatim, at most 20."""
    found: list[str] = [" ".join(m[0].split()) for m in TRIGGER.finditer(description)]
    for key in ("when_to_use", "when-to-use", "triggers", "trigger"):
        value = front_matter.get(key)
        found += (
            [str(v).strip() for v in value]
            if isinstance(value, list)
            else [str(value).strip()]
            if value
            else []
        )
    heading = _HEADING.search(body)
    if heading:
        for line in body[heading.end() :].split("\n")[1:30]:
            if line.startswith("#"):
                break
            if re.match(r"\s*(?:[-*+]|\d+\.)\s+\S", line):
                found.append(re.sub(r"^\s*(?:[-*+]|\d+\.)\s+", "", line).strip())
            elif line.strip() and TRIGGER.search(line):
                found.append(line.strip())
    unique = list(dict.fromkeys(f for f in found if len(f) > 3))
    return tuple(unique[:20])
