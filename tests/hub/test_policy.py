from pathlib import Path

import pytest

from skill2env.errors import UserError
from skill2env.hub.licence_families import LicenceFamily, families_of
from skill2env.hub.policy import POLICY_LIMIT_BYTES, LicencePolicy, decide, load_policy, parse_policy
from skill2env.records import Licence, LicenceEvidence

DEFAULT = LicencePolicy()


def licence(spdx: str, evidence: LicenceEvidence = LicenceEvidence.FRONT_MATTER) -> Licence:
    return Licence(spdx=spdx, evidence=evidence, statement=spdx or "Ask us first", where="SKILL.md")


@pytest.mark.parametrize(
    ("spdx", "chosen"),
    [
        ("MIT", "MIT"),
        ("apache-2.0", "Apache-2.0"),
        ("0BSD", "0BSD"),
        ("CC0-1.0", "CC0-1.0"),
        ("Unlicense", "Unlicense"),
        ("CC-BY-4.0", "CC-BY-4.0"),
        ("Apache-2.0 AND CC-BY-4.0", "Apache-2.0 AND CC-BY-4.0"),
        ("GPL-3.0-only OR MIT", "MIT"),
        ("MIT AND (GPL-3.0-only OR BSD-2-Clause)", "MIT AND BSD-2-Clause"),
        ("Apache-2.0 WITH LLVM-exception", "Apache-2.0 WITH LLVM-exception"),
    ],
)
def test_permissive_terms_are_taken(spdx: str, chosen: str) -> None:
    decision = decide(licence(spdx), DEFAULT)
    assert decision.allowed, decision.reason
    assert decision.chosen == chosen
    assert "permissive" in decision.reason or "Every part" in decision.reason


@pytest.mark.parametrize(
    ("spdx", "word"),
    [
        ("LicenseRef-Proprietary", "proprietary"),
        ("LicenseRef-scancode-commercial-license", "proprietary"),
        ("GPL-3.0-only", "copyleft"),
        ("GPL-2.0", "copyleft"),
        ("AGPL-3.0-or-later", "copyleft"),
        ("LGPL-2.1-only", "copyleft"),
        ("MPL-2.0", "copyleft"),
        ("CC-BY-SA-4.0", "copyleft"),
        ("CC-BY-NC-4.0", "non-commercial"),
        ("CC-BY-NC-SA-4.0", "non-commercial"),
        ("PolyForm-Noncommercial-1.0.0", "non-commercial"),
        ("CC-BY-ND-4.0", "no-derivatives"),
        ("CC-BY-NC-ND-4.0", "no-derivatives"),
        ("PolyForm-Shield-1.0.0", "restricted"),
        ("BUSL-1.1", "restricted"),
        ("Elastic-2.0", "restricted"),
        ("SSPL-1.0", "restricted"),
        ("LicenseRef-Homemade", "unknown"),
        ("MIT AND GPL-3.0-only", "all of its parts"),
        ("GPL-3.0-only OR CC-BY-NC-4.0", "No choice"),
        ("GPL-2.0-only WITH Classpath-exception-2.0", "does not change that"),
        ("MIT WITH Homemade-exception", "no exception that SPDX knows"),
        ("MIT AND", "no SPDX expression"),
        ("", "match no SPDX licence"),
    ],
)
def test_other_terms_are_refused_with_the_reason(spdx: str, word: str) -> None:
    decision = decide(licence(spdx), DEFAULT)
    assert not decision.allowed
    assert decision.chosen == ""
    assert word in decision.reason


def test_every_reason_is_one_sentence() -> None:
    policies = (DEFAULT, LicencePolicy(deny=("MIT",)), LicencePolicy(allow=("unknown", "permissive")))
    for spdx in ("MIT", "GPL-3.0-only OR MIT", "MIT AND GPL-3.0-only", "BUSL-1.1", "", "LicenseRef-X"):
        for evidence in LicenceEvidence:
            for policy in policies:
                reason = decide(licence(spdx, evidence), policy).reason
                assert reason.endswith(".")
                assert not reason.endswith("..")
                assert ". " not in reason, reason


@pytest.mark.parametrize("least", list(LicenceEvidence))
@pytest.mark.parametrize("has", list(LicenceEvidence))
def test_evidence_is_a_floor(least: LicenceEvidence, has: LicenceEvidence) -> None:
    order = list(LicenceEvidence)
    policy = LicencePolicy(minimum_evidence=least)
    decision = decide(licence("MIT", has), policy)
    assert decision.allowed is (order.index(has) <= order.index(least))
    assert decision.allowed or "evidence" in decision.reason


def test_names_beat_families_and_refusal_beats_permission() -> None:
    policy = LicencePolicy(
        allow=("permissive", "MPL-2.0", "gpl-2.0-only with classpath-exception-2.0"), deny=("CC-BY-3.0",)
    )
    assert decide(licence("MPL-2.0"), policy).allowed
    assert decide(licence("GPL-2.0-only WITH Classpath-exception-2.0"), policy).allowed
    assert not decide(licence("GPL-2.0-only"), policy).allowed
    assert not decide(licence("CC-BY-3.0"), policy).allowed
    assert decide(licence("CC-BY-3.0 OR MIT"), policy).chosen == "MIT"
    assert not decide(licence("MIT"), LicencePolicy(allow=("permissive", "MIT"), deny=("MIT",))).allowed
    only = LicencePolicy(allow=("copyleft", "permissive"), deny=("non-commercial",))
    assert decide(licence("CC-BY-SA-4.0"), only).allowed
    assert not decide(licence("CC-BY-NC-SA-4.0"), only).allowed


def test_unknown_terms_need_an_explicit_word() -> None:
    nothing = Licence()
    assert "No licence statement" in decide(nothing, DEFAULT).reason
    takes = LicencePolicy(allow=("permissive", "unknown"), minimum_evidence=LicenceEvidence.NONE)
    assert decide(nothing, takes).allowed
    assert not decide(nothing, LicencePolicy(allow=("permissive", "unknown"))).allowed


def test_families() -> None:
    assert families_of("CC-BY-NC-SA-4.0") == (LicenceFamily.NON_COMMERCIAL, LicenceFamily.COPYLEFT)
    assert families_of("MIT") == (LicenceFamily.PERMISSIVE,)
    assert families_of("NCSA") == families_of("NCBI-PD") == (LicenceFamily.PERMISSIVE,)


def test_policy_files(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        '\ufeffallow = ["permissive", "MPL-2.0"]\nminimum_evidence = "front_matter"\n', encoding="utf-8"
    )
    assert load_policy(path) == LicencePolicy(
        allow=("permissive", "MPL-2.0"), minimum_evidence=LicenceEvidence.FRONT_MATTER
    )
    assert parse_policy("") == DEFAULT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("allow = [", "not valid TOML"),
        ('alow = ["MIT"]', "unknown key 'alow'"),
        ('allow = ["Homemade"]', "neither an SPDX expression"),
        ('deny = ["MIT AND"]', "neither an SPDX expression"),
        ('minimum_evidence = "gossip"', "minimum_evidence"),
        ("allow = 3", "allow"),
    ],
)
def test_wrong_policies_are_the_users_mistake(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        parse_policy(text, "mine.toml")
    assert "mine.toml" in str(caught.value)


def test_unreadable_policies(tmp_path: Path) -> None:
    for name, data in (("big", b"#" * (POLICY_LIMIT_BYTES + 1)), ("bytes", b"\xff\xfe"), ("folder", None)):
        path = tmp_path / name
        path.mkdir() if data is None else path.write_bytes(data)
        with pytest.raises(UserError):
            load_policy(path)
    with pytest.raises(UserError, match="cannot read"):
        load_policy(tmp_path / "absent")
