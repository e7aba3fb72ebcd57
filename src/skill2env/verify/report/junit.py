"""JUnit XML, as CI systems read it: a suite for each task, a case for each gate."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from skill2env.records import GateOutcome, GateResult
from skill2env.verify.report.outcome import KNOWN, Outcome

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(outcomes: Sequence[Outcome]) -> str:
    """The report as one document; a gate that was not run is skipped, one that the surroundings prevented an error."""
    root = ElementTree.Element("testsuites", name="skill2env verify")
    for outcome in outcomes:
        root.append(_suite(outcome))
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    root.set("time", f"{sum(outcome.seconds for outcome in outcomes):.3f}")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(outcome: Outcome) -> ElementTree.Element:
    name = _xml(outcome.name)
    suite = ElementTree.Element("testsuite", name=name, time=f"{outcome.seconds:.3f}")
    for gate in outcome.verified.verdict.gates:
        case = ElementTree.SubElement(
            suite, "testcase", classname=name, name=gate.gate, time=f"{gate.seconds:.3f}"
        )
        _outcome(case, gate, outcome)
    tags = [child.tag for case in suite for child in case]
    suite.set("tests", str(len(suite)))
    for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(tags.count(tag)))
    return suite


def _outcome(case: ElementTree.Element, gate: GateResult, outcome: Outcome) -> None:
    if gate.outcome is GateOutcome.NOT_RUN:
        ElementTree.SubElement(case, "skipped", message=_xml(gate.message))
    elif gate.outcome is GateOutcome.INFRA:
        error = ElementTree.SubElement(case, "error", type="infra", message=_xml(gate.message))
        error.text = _xml(gate.message)
    elif gate.outcome is GateOutcome.REJECTED:
        new = [item.finding for item in outcome.findings if item.gate == gate.gate]
        if outcome.status == KNOWN or not new:
            ElementTree.SubElement(case, "skipped", message=_xml(f"known: {gate.message}"))
            return
        failure = ElementTree.SubElement(case, "failure", type=str(gate.reason), message=_xml(gate.message))
        failure.text = "\n".join(
            _xml(
                f"{finding.severity}: {finding.where or '-'}: {finding.message} [{finding.code}] {finding.mend}"
            )
            for finding in gate.findings
            if finding in new
        )


def _xml(text: str) -> str:
    """Text without what XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
