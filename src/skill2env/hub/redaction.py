"""What looks like a working credential, and texts without it."""

# ruff: noqa: E501  # tables: one line an entry

import re
from functools import lru_cache

REDACTED = "[REDACTED]"
_LONGEST = 1000
"""Characters of the longest secret of one line, about."""
_SECRETS = (
    ("PRIVATE KEY", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\\n]*[A-Za-z0-9+/=\s\\:,-]{64,}?(?:-----END (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----|(?=[^A-Za-z0-9+/=\s\\:,-])|\Z)"),
    ("AKIA|ASIA", r"\b(?:AKIA|ASIA)(?!IOSFODNN7EXAMPLE)[0-9A-Z]{16}\b"),
    ("sk-", r"\bsk-(?:[a-z]{1,20}-)?[A-Za-z0-9]{32,}"),
    ("sk-", r"\bsk-(?:[a-z]{1,20}-){0,3}(?=[\w-]{0,99}\d)[A-Za-z0-9_-]{24,}"),
    ("_live_", r"\b(?:sk|rk|pk)_live_[A-Za-z0-9]{16,}"),
    ("ghp_|gho_|ghu_|ghs_|ghr_", r"\bgh[pousr]_[A-Za-z0-9]{36,}\b"),
    ("github_pat_", r"\bgithub_pat_\w{60,}"),
    ("glpat-", r"\bglpat-[\w-]{20,}"),
    ("xox", r"\bxox[abeprs]-[0-9A-Za-z-]{20,}"),
    ("AIza", r"\bAIza[\w-]{35}\b"),
    ("hf_", r"\bhf_[A-Za-z]{34}\b"),
    ("npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi-", r"\bpypi-[\w-]{50,}"),
    ("eyJ", r"\beyJ[\w-]{15,900}\.eyJ[\w-]{15,2000}\.[\w-]{20,}"),
    ("@", r"(?<=://)[^\s:/@\"'<>{}$\[\]()`]{1,64}:(?!(?:pass|pw|secret|token|your|xxx|\*))[^\s:/@\"'<>{}$\[\]()`]{6,64}(?=@[\w-]+(?:\.[\w-]+)+)"),
)  # fmt: skip
"""What every text that the pattern matches holds (one of them), and the pattern."""
_LITERALS = tuple(dict.fromkeys(literal for hints, _ in _SECRETS for literal in hints.split("|")))


def redact(text: str) -> str:
    """`text` with everything that looks like a working credential replaced by `REDACTED`; the rest byte for byte."""
    pattern = _pattern(tuple(literal for literal in _LITERALS if literal in text))
    return pattern.sub(REDACTED, text) if pattern else text


def without_secrets(text: str, begin: int, stop: int) -> str:
    """The characters from `begin` to `stop` without one of anything that looks like a credential, even in part."""
    low, high = max(begin - _LONGEST, 0), stop + _LONGEST
    if "PRIVATE KEY" in text:  # these alone may be longer
        low, high = 0, len(text)
    window = text[low:high]
    pattern = _pattern(tuple(literal for literal in _LITERALS if literal in window))
    if pattern is None:
        return text[begin:stop]
    parts: list[str] = []
    for secret in pattern.finditer(text, low, high):
        if secret.start() < stop and secret.end() > begin:
            parts += [text[begin : max(secret.start(), begin)], REDACTED]
            begin = min(secret.end(), stop)
    return "".join([*parts, text[begin:stop]])


@lru_cache(maxsize=256)
def _pattern(present: tuple[str, ...]) -> re.Pattern[str] | None:
    """What can match a text that holds these of the literals; None when nothing can."""
    held = set(present)
    chosen = [pattern for hints, pattern in _SECRETS if held & set(hints.split("|"))]
    return re.compile("|".join(chosen)) if chosen else None
