import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill2env.hub import redaction
from skill2env.hub.redaction import REDACTED, redact, without_secrets
from skill2env.ingest.screening import screen

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3
SECRETS = {
    "github": SECRET,
    "aws": "AKIA" + "QWERTYUIOP123456",
    "openai": "sk-proj-" + "Ab3" * 16,
    "stripe": "sk_live_" + "4eC39HqLyjWDarjtT1zd",
    "slack": "xoxb-" + "123456789012-abcdefghijkl",
    "google": "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9x.eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "key": "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA\n" * 4 + "-----END RSA PRIVATE KEY-----",
    "address": "postgres://admin:" + "s3cr3tPa55@db.corp.io/x",
}
HARMLESS = (
    "sk-your-key-here",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "postgres://user:password@localhost/x",
    "task-list-of-the-whole-department",
    "A ghp_ token begins with ghp_.",
    "eyJust.eyJoking.",
)


@pytest.mark.parametrize("kind", SECRETS)
def test_secrets_are_redacted(kind: str) -> None:
    secret = SECRETS[kind]
    cleaned = redact(f"before {secret} after")
    assert cleaned.startswith("before ")
    assert cleaned.endswith(" after")
    assert REDACTED in cleaned
    assert max(secret.split(":")[-1].split("@")[0].split("\n"), key=len) not in cleaned
    assert redact(cleaned) == cleaned


@pytest.mark.parametrize("text", HARMLESS)
def test_the_rest_is_left_alone(text: str) -> None:
    assert redact(text) == text


@given(st.text())
def test_redaction_is_stable(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize("kind", SECRETS)
def test_what_ingest_notices_is_redacted(kind: str) -> None:
    text = f"x = {SECRETS[kind]}\n"
    assert not [item for item in screen(redact(text), "a.py") if item.code == "secret-like"]


def test_a_mention_of_a_private_key_costs_nothing() -> None:
    text = "Look for `-----BEGIN RSA PRIVATE KEY-----` in the dump.\n\nThen report it."
    assert redact(text) == text


def test_a_part_of_a_secret_is_a_secret() -> None:
    text = f"export TOKEN={SECRET} now"
    for begin in range(len(text)):
        shown = without_secrets(text, begin, min(begin + 20, len(text)))
        assert not [at for at in range(len(SECRET) - 3) if SECRET[at : at + 4] in shown.replace(REDACTED, "")]
    assert without_secrets(text, 0, 12) == "export TOKEN"


@pytest.mark.parametrize(
    "part", ["sk-a-", "-eyJ", "eyJaaaaaaaaaaaaaaaa.", "-----BEGIN PRIVATE KEY-----\n", "://a", "ghp_", "xox"]
)
def test_no_text_takes_long(part: str) -> None:
    text = part * (200_000 // len(part))
    begun = time.process_time()
    redact(text)
    without_secrets(text, 1000, 2000)
    assert time.process_time() - begun < 4


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.sampled_from([
            "sk-", "AKIA", "ghp_", "hf_", "npm_", "https://", "me:", "hunter2x", "@host.org", "eyJ", ".", "-", "_", " ",
            "\n", "a" * 40, "A1" * 18, "B" * 16, "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----", "x" * 5,
        ]),
        max_size=12,
    ).map("".join)
)  # fmt: skip
def test_leaving_out_patterns_without_their_literal_changes_nothing(text: str) -> None:
    everything = re.compile("|".join(pattern for _, pattern in redaction._SECRETS))  # pyright: ignore[reportPrivateUsage]
    assert redact(text) == everything.sub(REDACTED, text)
