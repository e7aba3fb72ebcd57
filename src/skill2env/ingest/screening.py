"""What the words of a skill give away: injections, lures, secrets, hidden characters, outside needs.

Text is data here, never obeyed. Every rule first looks for plain words, which is fast, and only then for its pattern.
Regular expressions over prose are signs, not proof: security handbooks quote attacks, and a mention of a key is no need.
"""

# ruff: noqa: E501  # tables: one line an entry

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from skill2env.ingest.lookout import Lookout, prepared
from skill2env.ingest.quirks import note
from skill2env.records import Diagnostic

MAX_SCAN_CHARS = 1_000_000


@dataclass(frozen=True, slots=True)
class _Rule:
    code: str
    words: tuple[str, ...]
    """Lower case; at least one must occur before the pattern is tried."""
    pattern: re.Pattern[str]
    one_line: bool = False
    """Every match lies on one line and holds one of the words, so that only lines with a word are looked at."""


def _rule(
    code: str, words: str, pattern: str, flags: re.RegexFlag = re.IGNORECASE, *, one_line: bool = False
) -> _Rule:
    return _Rule(code, tuple(words.split("|")), re.compile(pattern, flags), one_line)


_CASE = re.RegexFlag(0)
# fmt: off
_RULES = (
    _rule("injection-like", "ignore|disregard|forget", r"\b(?:ignore|disregard|forget) (?:all |any )?(?:of )?(?:the |your |my )?(?:previous|prior|above|earlier) (?:instructions|prompts|rules|messages)", one_line=True),
    _rule("injection-like", "the user", r"\b(?:do not|don't|never) (?:tell|inform|alert|reveal (?:this|it) to|show (?:this|it) to|mention (?:this|it) to) the user\b", one_line=True),
    _rule("injection-like", "system>|system_prompt>|system-reminder>|inst]|im_start", r"</?(?:system|system_prompt|system-reminder)>|\[/?INST\]|<\|im_start\|>", one_line=True),
    _rule("injection-like", "must always|bypass|override", r"\byou must always use this skill\b|\b(?:bypass|override) (?:all |any |your )?(?:safety|guardrails|system prompt)\b", one_line=True),
    _rule("malware-lure", "base64", r"[\"'`\s][A-Za-z0-9+/]{40,}={0,2}[\"'`]?\s*\|\s*base64\s+(?:-d|-D|--decode)\b[^\n|]{0,40}\|\s*(?:ba|z)?sh\b"),
    _rule("malware-lure", "glot.io|rentry|pastebin|snippet", r"https?://(?:www\.)?(?:glot\.io/snippets|rentry\.co|pastebin\.com/raw|paste\.[\w.]+)/\S+"),
    _rule("malware-lure", "password|passphrase|passcode", r"\b(?:extract|unzip|unpack|archive|\.zip)\b[^\n]{0,80}\bpass(?:word|phrase|code)? ?(?:[:=]|is\b|with)[ `'\"*]{1,4}[\w-]{3,}"),
    _rule("piped-download", "curl|wget", r"\b(?:curl|wget)\b[^\n|]{0,300}\|\s*(?:sudo\s+)?(?:(?:ba|z|da|k)?sh|python3?|node|perl)\b"),
    _rule("piped-download", "iex|invoke-expression", r"\b(?:iwr|irm|invoke-webrequest|invoke-restmethod)\b[^\n|]{0,200}\|\s*(?:iex|invoke-expression)\b"),
    _rule("piped-download", "base64|b64decode", r"\bbase64\s+(?:-d|-D|--decode)\b[^\n|]{0,80}\|\s*(?:ba|z)?sh\b|\b(?:exec|eval)\(\s*(?:base64\.)?b64decode\("),
    _rule("destructive-command", "rm -", r"\brm\s+(?:-\w+\s+)*-\w*r\w*\s+(?:-\w+\s+|--no-preserve-root\s+)*(?:/|~|\$HOME)(?:/?\*|/)?(?=[\s`\"';]|$)"),
    _rule("secret-like", "akia|sk-|ghp_|github_pat|xox|aiza", r"\bAKIA(?!IOSFODNN7EXAMPLE)[0-9A-Z]{16}\b|\bsk-(?:[a-z]+-)?[A-Za-z0-9]{32,}\b|\bghp_[A-Za-z0-9]{36}\b|\bgithub_pat_\w{60,}|\bxox[abprs]-[0-9A-Za-z-]{20,}|\bAIza[\w-]{35}\b", _CASE),
    _rule("secret-like", "private key", r"-----BEGIN (?:RSA |EC |OPENSSH |DSA |ENCRYPTED )?PRIVATE KEY-----\s*\n[A-Za-z0-9+/=\s]{64,}", _CASE),
    _rule("secret-like", "@", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@\"'<>{}$\[\]()`]{1,64}:(?!(?:pass|pw|secret|token|your|xxx|\*))[^\s:/@\"'<>{}$\[\]()`]{6,64}@[\w-]+(?:\.[\w-]+)+", one_line=True),
    _rule("client-dynamics", "$arguments|${claude_|$claude_", r"\$ARGUMENTS\b|\$\{?CLAUDE_[A-Z_]+\}?", _CASE),
    _rule("command-at-load", "!`", r"(?:^|(?<=[\s(:>-]))!`[^`\n]{2,}`", re.MULTILINE),
    _rule("absolute-path", "~/|/users/|/home/|/mnt/|/root/|\\users", r"(?<![\w:/.~-])(?:~/[.\w-]+|/Users/[\w.-]+|/home/[\w.-]+|/root/[\w.-]+|/mnt/[\w.-]+)|\b[A-Z]:\\{1,2}Users\\"),
)
_NEEDS = (
    ("a key or token", "api key|api-key|api_key|apikey| token|_token|-token|_secret", r"\bapi[ _-]?keys?\b|\b(?:access|bearer|auth|api)[ _-]tokens?\b|\b[A-Z0-9]{2,}_(?:API_KEY|TOKEN|SECRET)\b"),
    ("an account", "log in|logged in|sign in|signed in|oauth|account", r"\b(?:log(?:ged)? in(?:to)?|sign(?:ed)? in|oauth2?|create an account|your account)\b"),
    ("the network", "curl |requests.|fetch(|urlopen(", r"\bcurl\s+[^\n]{0,80}https?://|\brequests\.(?:get|post|put)\(|\bfetch\([\"'`]https?:|\burlopen\("),
    ("an MCP server", "mcp", r"\bMCP\b|\bmcp__"),
    ("a browser", "playwright|puppeteer|selenium|devtools|chromium", r"\b(?:playwright|puppeteer|selenium|chromium)\b|\bdevtools\b"),
    ("a container engine", "docker|podman", r"\b(?:docker|podman)\b"),
    ("a GPU", "gpu|cuda", r"\bgpus?\b|\bcuda\b|\bnvidia-smi\b"),
    ("macOS", "macos|osascript|brew ", r"\bmacos\b|\bosascript\b|\bbrew install\b|\bxcode\b"),
    ("Windows", "windows|powershell", r"\bpowershell\b|\bwindows (?:only|registry|server|host)\b"),
    ("a cloud account", "aws |gcloud |az |kubectl", r"\baws [a-z0-9-]+ [a-z]+-[a-z-]+|\bgcloud [a-z]+|\baz (?:login|account|group|vm|webapp)\b|\bkubectl [a-z]+"),
    ("a person's answer", "ask the|wait for|confirm|approval", r"\bask the user\b|\bwait for (?:the user|approval|confirmation)\b|\buser (?:approval|confirmation)\b|\bconfirm with\b"),
    ("sub-agents", "subagent|sub-agent", r"\bsub-?agents?\b"),
    ("hardware", "arduino|raspberry|bluetooth|gpio|usb ", r"\b(?:arduino|raspberry pi|bluetooth|gpio)\b|\busb (?:device|port)"),
)
# fmt: on
_ONE_LINE = {"a key or token", "an account", "a person's answer"}
_NEED_RULES = tuple(
    (what, _rule("external-need", words, pattern, one_line=what in _ONE_LINE))
    for what, words, pattern in _NEEDS
)
_LOOKOUT = Lookout(word for rule in (*_RULES, *(rule for _, rule in _NEED_RULES)) for word in rule.words)
_ZERO_WIDTH = re.compile(
    "[\u200b\u2060-\u2064\ufeff\u180e\u00ad]|(?<=[\x20-\x7e])[\u200c\u200d](?=[\x20-\x7e])"
)
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069\u061c]")
# A flag of a part of a country is a black flag followed by tag characters; everything else is hidden writing.
_TAGS = re.compile("(?<!\U0001f3f4)(?<![\U000e0020-\U000e007f])[\U000e0000-\U000e007f]+")
_NOT_ASCII_SIGNS = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200d\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_HIDDEN = (("invisible-characters", _ZERO_WIDTH), ("bidi-controls", _BIDI), ("tag-characters", _TAGS))


def screen(text: str, where: str, *, prose: bool = True) -> Iterator[Diagnostic]:
    """Diagnostics about the words of one file, each code once, with the first place.

    Args:
        text: the whole file; the first million characters are looked at.
        where: its path.
        prose: False for code and data, where only secrets and hidden characters count.
    """
    text = text[:MAX_SCAN_CHARS]
    told: set[str] = set()
    for rule in _RULES:
        if rule.code in told or not (prose or rule.code == "secret-like"):
            continue
        match = _match(rule, text)
        if match:
            told.add(rule.code)
            secret = rule.code == "secret-like"
            shown = f"{len(match[0])} characters" if secret else " ".join(match[0].split())[:80]
            yield note(rule.code, shown, _place(text, match.start(), where))
    if _NOT_ASCII_SIGNS.search(text):
        for code, pattern in _HIDDEN:
            match = pattern.search(text)
            if match:
                yield note(code, f"U+{ord(match[0][0]):04X}", _place(text, match.start(), where))


def _place(text: str, position: int, where: str) -> str:
    return f"{where}:{text.count(chr(10), 0, position) + 1}"


def needs(text: str) -> list[str]:
    """Outside needs that the text mentions: an upper bound, a mention is no need."""
    text = text[:MAX_SCAN_CHARS]
    return [what for what, rule in _NEED_RULES if _match(rule, text)]


def _match(rule: _Rule, text: str) -> re.Match[str] | None:
    """The first match of a rule's pattern, if one of its words stands in the text."""
    lowered, possible = _looked_at(text)
    words = [word for word in rule.words if word in possible]
    if not rule.one_line:
        return rule.pattern.search(text) if any(word in lowered for word in words) else None
    first: re.Match[str] | None = None
    for word in words:
        at = lowered.find(word)
        while at >= 0:
            start = lowered.rfind("\n", 0, at) + 1
            end = lowered.find("\n", at)
            end = len(lowered) if end < 0 else end
            if first and first.start() < start:
                break
            match = rule.pattern.search(text, start, end)
            if match:
                first = min(first or match, match, key=lambda found: found.start())
                break
            at = lowered.find(word, end)
    return first


@lru_cache(maxsize=1)
def _looked_at(text: str) -> tuple[str, frozenset[str]]:
    """A text in lower case, sign by sign, and the words that it may hold; the same text is asked about many times."""
    lowered, found = prepared(text)
    return lowered, _LOOKOUT.possible(found)
