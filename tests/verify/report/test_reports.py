"""JSON lines, baselines, JUnit XML and SARIF."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from skill2env.errors import UserError
from skill2env.verify.many import Verified
from skill2env.verify.report.baseline import Baseline
from skill2env.verify.report.junit import junit_xml
from skill2env.verify.report.outcome import Outcome, outcome_of, record, totals
from skill2env.verify.report.sarif import sarif_json
from skill2env.verify.rules import RULES

Make = Callable[..., Verified]


def test_headlines(outcomes: list[Outcome]) -> None:
    good, bad, away = outcomes
    assert (good.status, good.reason, good.warnings, good.trials) == ("accepted", "", 1, 0)
    assert (bad.status, bad.reason, bad.gate, bad.mend) == ("rejected", "oracle_failed", "oracle", "Mend it.")
    assert (bad.trials, bad.trial_seconds, bad.seconds) == (2, 1.0, 1.75)
    assert (away.status, away.reason, away.gate) == ("infra", "network", "build")
    assert totals(outcomes) == {
        ("accepted", ""): 1,
        ("infra", "network"): 1,
        ("rejected", "oracle_failed"): 1,
    }


def _baseline(tmp_path: Path, *outcomes: Outcome) -> Baseline:
    path = tmp_path / "before.jsonl"
    path.write_text("\n".join(json.dumps(record(outcome)) for outcome in outcomes) + "\n\n")
    return Baseline.read(path)


def test_what_the_baseline_has_does_not_count(
    verified: Make, outcomes: list[Outcome], tmp_path: Path
) -> None:
    before = _baseline(tmp_path, *outcomes)
    again = [outcome_of(verified(name), before) for name in ("good", "bad", "away")]
    assert [outcome.status for outcome in again] == ["accepted", "known", "infra"]
    assert [outcome.findings for outcome in again] == [(), (), ()]
    assert outcome_of(verified("other", "bad"), before).status == "rejected", (
        "another task's findings are new"
    )


def test_a_moved_line_is_the_same_finding(verified: Make, outcomes: list[Outcome], tmp_path: Path) -> None:
    path = tmp_path / "before.jsonl"
    path.write_text(json.dumps(record(outcomes[1])).replace("solve.sh:3", "solve.sh:41"))
    assert outcome_of(verified("bad"), Baseline.read(path)).status == "known"


def test_records_of_earlier_versions_are_baselines_too(
    verified: Make, outcomes: list[Outcome], tmp_path: Path
) -> None:
    old = {key: value for key, value in record(outcomes[1]).items() if key in ("path", "verdict", "gates")}
    path = tmp_path / "old.jsonl"
    path.write_text(json.dumps(old))
    nameless = verified("bad")
    assert Baseline.read(path).knows(
        Verified(nameless.path, nameless.verdict), nameless.verdict.gates[1].findings[0]
    )


@pytest.mark.parametrize("text", ["{", "[]", '{"path": "x"}', '{"path": "x", "gates": [{"findings": [3]}]}'])
def test_a_baseline_that_is_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(f"\n{text}\n")
    with pytest.raises(UserError, match="line 2"):
        Baseline.read(path)


def test_an_absent_baseline(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        Baseline.read(tmp_path / "absent")


def test_junit_counts_and_survives_any_text(outcomes: list[Outcome]) -> None:
    root = ElementTree.fromstring(junit_xml(outcomes))
    assert [root.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["5", "1", "1", "1"]
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert names[1] == ("org/bad", "config")
    failure = next(root.iter("failure"))
    assert failure.get("type") == "oracle_failed"
    assert "<script>" in (failure.text or "")
    assert "error: solution/solve.sh:3" in (failure.text or "")


def test_junit_holds_no_character_that_xml_lacks(verified: Make) -> None:
    item = verified("away")
    gate = item.verdict.gates[0].model_copy(update={"message": "a\x00b\x1b\udce9\ufffe"})
    item = Verified(item.path, item.verdict.model_copy(update={"gates": (gate,)}), name="x\x07")
    assert ElementTree.fromstring(junit_xml([outcome_of(item)])).get("errors") == "1"


def test_junit_skips_what_the_baseline_knows(verified: Make, outcomes: list[Outcome], tmp_path: Path) -> None:
    known = outcome_of(verified("bad"), _baseline(tmp_path, *outcomes))
    assert ElementTree.fromstring(junit_xml([known])).get("failures") == "0"


def _run(outcomes: list[Outcome], root: Path) -> dict[str, Any]:
    document = json.loads(sarif_json(outcomes, root))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    return run


def test_sarif_names_rules_files_and_lines(outcomes: list[Outcome], tmp_path: Path) -> None:
    run = _run(outcomes, tmp_path)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.code for rule in RULES]
    assert all(rule["help"]["text"] and rule["shortDescription"]["text"] for rule in rules)
    assert len({rule["id"] for rule in rules}) == len(rules)
    warnings = [result for result in run["results"] if result["level"] == "warning"]
    assert len(warnings) == 2
    (error,) = [result for result in run["results"] if result["level"] == "error"]
    assert rules[error["ruleIndex"]]["id"] == error["ruleId"] == "oracle-failed"
    (location,) = error["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "tasks/bad/solution/solve.sh", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 3},
    }


def test_sarif_tells_infra_as_the_tools_trouble(outcomes: list[Outcome], tmp_path: Path) -> None:
    (invocation,) = _run(outcomes, tmp_path)["invocations"]
    assert not invocation["executionSuccessful"]
    assert "the mirror" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    assert _run(outcomes[:1], tmp_path)["invocations"][0]["executionSuccessful"]


def test_sarif_of_tasks_elsewhere_and_of_odd_places(verified: Make, tmp_path: Path) -> None:
    item = verified("bad")
    finding = item.verdict.gates[1].findings[0].model_copy(update={"where": "../../etc/passwd:7"})
    gate = item.verdict.gates[1].model_copy(update={"findings": (finding,)})
    item = Verified(item.path, item.verdict.model_copy(update={"gates": (gate,)}), name="ö \udce9")
    (result,) = _run([outcome_of(item)], tmp_path / "elsewhere")["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == f"file://{tmp_path}/tasks/bad/task.toml"
