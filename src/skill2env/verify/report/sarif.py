"""SARIF 2.1.0, as code scanning services read it: a result for each finding, at the file that it is about."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from skill2env import __version__
from skill2env.records import Severity, digest_bytes, meaning
from skill2env.verify.report.outcome import GateFinding, Outcome
from skill2env.verify.rules import RULES, Profile, Rule, rule_of

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARN: "warning", Severity.INFO: "note"}
_TAGS = ["harbor-task", "reinforcement-learning"]


def sarif_json(outcomes: Sequence[Outcome], root: Path) -> str:
    """The report as one document with sorted keys.

    Args:
        outcomes: the tasks.
        root: folder that paths are told from, the checkout's root; tasks outside are told by absolute URIs.
    """
    run: dict[str, Any] = {
        "tool": {"driver": _driver()},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"uri": _uri(root) + "/"}},
        "invocations": [_invocation(outcomes)],
        "results": [_result(outcome, item, root) for outcome in outcomes for item in outcome.findings],
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    # Untrusted names may hold lone surrogates, which no encoding of JSON takes: escape everything.
    return json.dumps(document, sort_keys=True, indent=1, ensure_ascii=True) + "\n"


def _driver() -> dict[str, Any]:
    return {"name": "skill2env verify", "version": __version__, "rules": [_rule(rule) for rule in RULES]}


def _rule(rule: Rule) -> dict[str, Any]:
    why = meaning(rule.reason)
    return {
        "id": rule.code,
        "name": rule.code.replace(":", "-").title().replace("-", ""),
        "shortDescription": {"text": why},
        "fullDescription": {"text": f"{why} {rule.mend}"},
        "help": {"text": rule.mend, "markdown": f"**{rule.reason.value}**: {why}\n\n{rule.mend}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity(Profile.OURS)]},
        "properties": {"tags": [*_TAGS, rule.reason.value], "precision": "very-high"},
    }


def _result(outcome: Outcome, item: GateFinding, root: Path) -> dict[str, Any]:
    finding, rule = item.finding, rule_of(item.finding.code)
    known = RULES.index(rule)
    place, line = _place(outcome.verified.path, finding.where)
    location: dict[str, Any] = {"artifactLocation": _artifact(place, root)}
    location["region"] = {"startLine": line or 1}
    return {
        "ruleId": rule.code if finding.code == rule.code else f"{rule.code}/{finding.code.partition(':')[2]}",
        "ruleIndex": known,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{outcome.name}: {finding.message} {finding.mend}".strip()},
        "locations": [
            {
                "physicalLocation": location,
                "logicalLocations": [{"fullyQualifiedName": outcome.name, "kind": "module"}],
            }
        ],
        "partialFingerprints": {
            "skill2env/v1": _fingerprint(outcome.name, finding.code, finding.where.partition(":")[0])
        },
        "properties": {"gate": item.gate, "reason": rule.reason.value, "verdict": outcome.status},
    }


def _fingerprint(*parts: str) -> str:
    return digest_bytes(json.dumps(parts).encode())


def _place(task: Path, where: str) -> tuple[Path, int]:
    """The file that a finding is about, and its line; task.toml or the task itself when it names none."""
    path, _, line = where.rpartition(":")
    number = int(line) if path and line.isascii() and line.isdigit() else 0
    name = path if number else where
    inside = bool(name) and not os.path.isabs(name) and ".." not in name.split("/")
    if inside and (task / name).is_file():
        return task / name, number
    return (task / "task.toml" if (task / "task.toml").is_file() else task), 0


def _artifact(path: Path, root: Path) -> dict[str, Any]:
    if path.is_relative_to(root):
        return {"uri": _quote(path.relative_to(root).as_posix()) or ".", "uriBaseId": "%SRCROOT%"}
    return {"uri": _uri(path)}


def _uri(path: Path) -> str:
    return "file://" + _quote(path.as_posix())


def _quote(path: str) -> str:
    return quote(os.fsencode(path))


def _invocation(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Tasks without a verdict are the tool's trouble and no results."""
    notes = [
        {
            "level": "error",
            "message": {"text": f"{outcome.name}: no verdict ({outcome.reason}): {outcome.message}"},
        }
        for outcome in outcomes
        if outcome.status == "infra"
    ]
    return {"executionSuccessful": not notes, "toolExecutionNotifications": notes}
