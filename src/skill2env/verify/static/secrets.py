"""Gate `secrets`: no file of the task holds what looks like a working credential.

Only forms that their issuers document are looked for, so that a hash or a random id is never taken for one. Examples of
documentation and obvious dummies are none. A secret in the agent's world may be there on purpose (a task about finding
it), so it is a warning there.
"""

import re
from collections import Counter
from collections.abc import Iterator
from math import log2

from skill2env.verify.gate import GateContext, Hit, Report, Subject
from skill2env.verify.reading import read_file, walk
from skill2env.verify.static.world import FILE_LIMIT, texts_of

_LIMIT = 2 * 1024 * 1024
"""Longer texts are not searched; characters."""
_HITS = 20
_LEAST_ENTROPY = 3.0
"""Bits a character; below it a string is a dummy (``xxxxxxxx``, ``12345678``)."""
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"(?<![A-Za-z0-9_-])(?P<secret>{pattern})(?![A-Za-z0-9_-])"))
    for name, pattern in (
        ("an AWS access key", r"(?:AKIA|ASIA)[A-Z2-7]{16}"),
        ("a GitHub token", r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
        ("a GitLab token", r"glpat-[A-Za-z0-9_-]{20,}"),
        ("a Slack token", r"xox[abposr]-[0-9]{8,}-[A-Za-z0-9-]{20,}"),
        ("a Google API key", r"AIza[A-Za-z0-9_-]{35}"),
        (
            "an OpenAI key",
            r"sk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,}T3BlbkFJ[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9]{48}",
        ),
        ("an Anthropic key", r"sk-ant-[a-z]+\d*-[A-Za-z0-9_-]{80,}"),
        ("a Hugging Face token", r"hf_[A-Za-z]{34}"),
        ("an npm token", r"npm_[A-Za-z0-9]{36}"),
        ("a PyPI token", r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}"),
        ("a Stripe key", r"[rs]k_live_[A-Za-z0-9]{24,}"),
        ("a SendGrid key", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
        ("a Telegram token", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    )
)
_KEY_BLOCK = re.compile(
    r"-----BEGIN (?:(?:RSA|EC|DSA|OPENSSH|ENCRYPTED) )?PRIVATE KEY(?: BLOCK)?-----\s+"
    r"(?P<secret>[A-Za-z0-9+/=\s]{100,}?)-----END"
)
_DUMMY = re.compile(
    r"(?i)example|dummy|fake|test|sample|placeholder|xxxx|0000|1234567|abcdef|redacted|changeme|your"
)


def check(subject: Subject, context: GateContext) -> Report:  # noqa: ARG001
    """Look into every text of the task, also within archives; what cannot be opened there is named."""
    world: set[str] = set()
    found: list[tuple[str, str, str, int]] = []
    closed: list[tuple[str, str]] = []
    for path, _ in walk(subject.task_dir):
        data = read_file(subject.task_dir / path, FILE_LIMIT)
        for shown in texts_of(path, data, closed) if data else ():
            for kind, secret, line in secrets_of(shown.text) if len(shown.text) <= _LIMIT else ():
                found.append((shown.path, kind, secret, line))
                if path.startswith("environment/") and not path.endswith("Dockerfile"):
                    world.add(secret)
    unread = [Hit("archive-unreadable", problem, where) for where, problem in closed[:_HITS]]
    return Report([*(_hit(*item, in_world=item[2] in world) for item in found), *unread])


def secrets_of(text: str) -> Iterator[tuple[str, str, int]]:
    """Kind, text and line of what looks like a working credential."""
    for kind, pattern in (*_FORMS, ("a private key", _KEY_BLOCK)):
        for match in pattern.finditer(text):
            secret = match["secret"]
            if not _DUMMY.search(secret) and _entropy(secret) >= _LEAST_ENTROPY:
                yield kind, secret, text.count("\n", 0, match.start()) + 1


def _hit(path: str, kind: str, secret: str, line: int, *, in_world: bool) -> Hit:
    shown = f"{secret[:6]}..."  # findings are published; the rest is nobody's business
    return Hit("secret-fixture" if in_world else "secret", f"holds {kind} ({shown})", f"{path}:{line}")


def _entropy(text: str) -> float:
    counts = Counter(text)
    return -sum(number / len(text) * log2(number / len(text)) for number in counts.values())
