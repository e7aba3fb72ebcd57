"""What looks like a working credential, and texts without it."""

# ruff: noqa: E501  # tables: one line an entry

import re

REDACTED = "[REDACTED]"
_LONGEST = 1000
"""Characters of the longest secret of one line, about."""
_SECRETS = (
    r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\\n]*[A-Za-z0-9+/=\s\\:,-]{64,}?(?:-----END (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----|(?=[^A-Za-z0-9+/=\s\\:,-])|\Z)",
    r"\b(?:AKIA|ASIA)(?!IOSFODNN7EXAMPLE)[0-9A-Z]{16}\b",
    r"\bsk-(?:[a-z]{1,20}-)?[A-Za-z0-9]{32,}",
    r"\bsk-(?:[a-z]{1,20}-){0,3}(?=[\w-]{0,99}\d)[A-Za-z0-9_-]{24,}",
    r"\b(?:sk|rk|pk)_live_[A-Za-z0-9]{16,}",
    r"\bgh[pousr]_[A-Za-z0-9]{36,}\b",
    r"\bgithub_pat_\w{60,}",
    r"\bglpat-[\w-]{20,}",
    r"\bxox[abeprs]-[0-9A-Za-z-]{20,}",
    r"\bAIza[\w-]{35}\b",
    r"\bhf_[A-Za-z]{34}\b",
    r"\bnpm_[A-Za-z0-9]{36}\b",
    r"\bpypi-[\w-]{50,}",
    r"\beyJ[\w-]{15,900}\.eyJ[\w-]{15,2000}\.[\w-]{20,}",
    r"(?<=://)[^\s:/@\"'<>{}$\[\]()`]{1,64}:(?!(?:pass|pw|secret|token|your|xxx|\*))[^\s:/@\"'<>{}$\[\]()`]{6,64}(?=@[\w-]+(?:\.[\w-]+)+)",
)  # fmt: skip
_SECRET = re.compile("|".join(_SECRETS))
_HINT = re.compile(
    r"PRIVATE KEY|AKIA|ASIA|sk-|_live_|gh[pousr]_|github_pat|glpat|xox|AIza|hf_|npm_|pypi-|eyJ|://"
)


def redact(text: str) -> str:
    """`text` with everything that looks like a working credential replaced by `REDACTED`; the rest byte for byte."""
    return _SECRET.sub(REDACTED, text) if _HINT.search(text) else text


def without_secrets(text: str, begin: int, stop: int) -> str:
    """The characters from `begin` to `stop` without one of anything that looks like a credential, even in part."""
    low, high = max(begin - _LONGEST, 0), stop + _LONGEST
    if "PRIVATE KEY" in text:  # these alone may be longer
        low, high = 0, len(text)
    if not _HINT.search(text, low, high):
        return text[begin:stop]
    parts: list[str] = []
    for secret in _SECRET.finditer(text, low, high):
        if secret.start() < stop and secret.end() > begin:
            parts += [text[begin : max(secret.start(), begin)], REDACTED]
            begin = min(secret.end(), stop)
    return "".join([*parts, text[begin:stop]])
