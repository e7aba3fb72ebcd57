"""Which licences a hub takes, and why: a policy of SPDX expressions, families and evidence, decided per skill.

A statement of several licences is read as its author meant it: of ``A OR B`` one allowed choice is enough, of
``A AND B`` every part must be allowed, ``A WITH exception`` only adds permissions to ``A``. What the words mean is
told by `licence_families`.
"""

import functools
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError, field_validator

from skill2env.errors import UserError
from skill2env.hub.licence_families import (
    LicenceFamily,
    exceptions,
    families_of,
    parse_expression,
    unknown_ids,
)
from skill2env.records import Licence, LicenceEvidence, Record, meanings

POLICY_LIMIT_BYTES = 100_000
_STRENGTH = {kind: rank for rank, kind in enumerate(LicenceEvidence)}
"""Evidence -> rank, 0 is the strongest; `LicenceEvidence` lists it in that order."""


class LicencePolicy(Record):
    """What a hub takes. The default takes permissive terms that the author's own repository, or more, states."""

    allow: tuple[str, ...] = (LicenceFamily.PERMISSIVE.value,)
    """SPDX ids, expressions (``GPL-2.0-only WITH Classpath-exception-2.0``) or families that are taken."""
    deny: tuple[str, ...] = ()
    """SPDX ids, expressions or families that are refused even where `allow` takes them."""
    minimum_evidence: LicenceEvidence = LicenceEvidence.REPOSITORY
    """Weakest place of a statement that counts; ``none`` also takes what states nothing, if `allow` has ``unknown``."""

    @field_validator("allow", "deny")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_entry(name) for name in names)


class LicenceDecision(Record):
    """What a policy says about one licence."""

    allowed: bool
    reason: str
    """One sentence for a person."""
    chosen: str = ""
    """Expression under which the skill is used, after choosing among alternatives; empty when refused."""


def _entry(name: str) -> str:
    """Canonical form of a policy's entry. Raises ValueError for what is neither a family nor an SPDX expression."""
    text = " ".join(name.split())
    if text.lower() in set(LicenceFamily):
        return text.lower()
    parsed = parse_expression(text)
    if parsed is None or unknown_ids(parsed):
        raise ValueError(f"{name!r} is neither an SPDX expression nor one of {', '.join(LicenceFamily)}")
    return str(parsed)


def parse_policy(text: str, name: str = "the licence policy") -> LicencePolicy:
    """Read a policy from TOML with the keys ``allow``, ``deny`` and ``minimum_evidence``.

    Args:
        text: the TOML document; keys that are left out have the default's value.
        name: what messages call it.

    Raises:
        UserError: it is no TOML, has an unknown key, or names a licence that nobody knows.
    """
    try:
        return LicencePolicy.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{name} is not valid TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            hint = f"known keys: {', '.join(LicencePolicy.model_fields)}"
            raise UserError(f"{name}: unknown key {where!r}", hint=hint) from None
        hint = "SPDX ids are listed at spdx.org/licenses; families: " + ", ".join(LicenceFamily)
        raise UserError(f"{name}: {where}: {first['msg'].removeprefix('Value error, ')}", hint=hint) from None


def load_policy(path: Path) -> LicencePolicy:
    """Read a policy file; see `parse_policy`.

    Raises:
        UserError: it cannot be read, is over 100 kB, or is no policy.
    """
    try:
        with path.open("rb") as file:
            data = file.read(POLICY_LIMIT_BYTES + 1)
        if len(data) > POLICY_LIMIT_BYTES:
            raise UserError(
                f"{path} has more than {POLICY_LIMIT_BYTES} bytes", hint="give a licence policy in TOML"
            )
        return parse_policy(data.decode("utf-8-sig"), str(path))
    except OSError as error:
        raise UserError(f"cannot read the licence policy {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text") from None


@functools.lru_cache(maxsize=4096)
def decide(licence: Licence, policy: LicencePolicy) -> LicenceDecision:
    """Whether `policy` takes a skill with these terms, and one sentence that says why."""
    weak = _STRENGTH[licence.evidence] > _STRENGTH[policy.minimum_evidence]
    if not licence.spdx:
        return _without_expression(licence, policy, weak)
    parsed = parse_expression(licence.spdx)
    if parsed is None:
        return _refuse(f"{licence.spdx} is no SPDX expression.")
    verdict = _judge(parsed, policy)
    if not verdict.allowed:
        return verdict
    if weak:
        return _refuse(
            f"{licence.spdx} would be allowed, but only {_place(licence)} says so and the policy asks for evidence "
            f"of at least {policy.minimum_evidence.value}."
        )
    return LicenceDecision(
        allowed=True,
        reason=f"{verdict.reason.rstrip('.')}, as {_place(licence)} says.",
        chosen=verdict.chosen,
    )


def _without_expression(licence: Licence, policy: LicencePolicy, weak: bool) -> LicenceDecision:
    if licence.evidence is LicenceEvidence.NONE or not licence.statement:
        what = "No licence statement was found"
    else:
        what = f"{_place(licence).capitalize()} has terms that match no SPDX licence"
    if LicenceFamily.UNKNOWN in policy.deny or LicenceFamily.UNKNOWN not in policy.allow:
        return _refuse(f"{what}, so nothing is granted.")
    if weak:
        return _refuse(
            f"{what}, and the policy asks for evidence of at least {policy.minimum_evidence.value}."
        )
    return LicenceDecision(allowed=True, reason=f"{what}, and the policy takes unknown terms.")


def _place(licence: Licence) -> str:
    words = {
        LicenceEvidence.SKILL_FILE: "the licence file of the skill",
        LicenceEvidence.FRONT_MATTER: "the front matter",
        LicenceEvidence.REPOSITORY: "the author's repository or package",
        LicenceEvidence.AGGREGATOR: "a collection of other people's skills",
        LicenceEvidence.NONE: "nothing",
    }[licence.evidence]
    return f"{words} ({licence.where})" if licence.where else words


def _refuse(reason: str) -> LicenceDecision:
    return LicenceDecision(allowed=False, reason=reason)


# ------------------------------------------------------------------------------------------------ expressions


def _judge(node: Any, policy: LicencePolicy) -> LicenceDecision:
    """Judge one node of a parsed expression."""
    whole = str(node)
    if whole in policy.deny:
        return _refuse(f"The policy refuses {whole} by name.")
    if whole in policy.allow:
        return LicenceDecision(allowed=True, reason=f"The policy allows {whole} by name.", chosen=whole)
    parts: tuple[Any, ...] = getattr(node, "args", ())
    if parts:
        decisions = [_judge(part, policy) for part in parts]
        return (_one_of if node.operator.strip() == "OR" else _all_of)(whole, decisions)
    if hasattr(node, "license_symbol"):  # WITH: an exception permits more than the licence, never less
        base = _judge(node.license_symbol, policy)
        if str(node.exception_symbol).lower() not in exceptions():
            return _refuse(f"{node.exception_symbol} in {whole} is no exception that SPDX knows.")
        if base.allowed:
            return base.model_copy(update={"chosen": whole})
        return _refuse(f"{base.reason.rstrip('.')}, and its exception in {whole} does not change that.")
    return _judge_family(whole, policy)


def _one_of(whole: str, decisions: Iterable[LicenceDecision]) -> LicenceDecision:
    decisions = list(decisions)
    for one in decisions:
        if one.allowed:
            return one.model_copy(
                update={"reason": f"{one.reason.rstrip('.')} and {whole} leaves the choice."}
            )
    told = "; ".join(one.reason.rstrip(".") for one in decisions)
    return _refuse(f"No choice of {whole} is allowed: {told}.")


def _all_of(whole: str, decisions: Iterable[LicenceDecision]) -> LicenceDecision:
    decisions = list(decisions)
    for one in decisions:
        if not one.allowed:
            return _refuse(f"{one.reason.rstrip('.')}, and {whole} asks for all of its parts.")
    chosen = " AND ".join(f"({one.chosen})" if " OR " in one.chosen else one.chosen for one in decisions)
    return LicenceDecision(allowed=True, reason=f"Every part of {whole} is allowed.", chosen=chosen)


def _judge_family(spdx: str, policy: LicencePolicy) -> LicenceDecision:
    families = families_of(spdx)
    refused = next((item for item in families if item in policy.deny), None)
    if refused:
        return _refuse(f"The policy refuses {refused.value} terms, and {spdx} has them.")
    missing = next((item for item in families if item not in policy.allow), None)
    if missing is None:
        return LicenceDecision(
            allowed=True, reason=f"{spdx} is {families[0].value}, which the policy allows.", chosen=spdx
        )
    about = meanings(LicenceFamily)[missing.value].rstrip(".")
    return _refuse(
        f"{spdx} is {missing.value} ({about[:1].lower()}{about[1:]}), which the policy does not allow."
    )
