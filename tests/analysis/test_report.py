"""The page stands alone, says how each figure was made, and never repeats what strangers wrote as markup."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from skill2env.analysis.coverage import coverage
from skill2env.analysis.decontaminate import decontaminate
from skill2env.analysis.difficulty import difficulty
from skill2env.analysis.documents import Document
from skill2env.analysis.duplicates import duplicates
from skill2env.analysis.fidelity import fidelity
from skill2env.analysis.reading import read_corpus
from skill2env.analysis.records import SkillText
from skill2env.analysis.report import Findings, html_report, markdown_report
from skill2env.analysis.trials import TrialRecord

EVIL = "<script>alert(1)</script>"


class Checker(HTMLParser):
    """Counts elements and collects what they would load."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.seen.append(tag)
        self.loads += [
            value or ""
            for name, value in attrs
            if name in ("src", "href") and not (value or "").startswith("#")
        ]


@pytest.fixture
def findings(make_task: Any, tmp_path: Path) -> Findings:
    for at in range(6):
        make_task(
            f"t{at}",
            skill=f"s{at % 3}",
            instruction=f"{EVIL} Sort what branch {at} sent, and write the total of it into one file. " * 2,
            axes={
                "archetype": "repair",
                "verifier_pattern": "state",
                "tone": "terse",
                "complexity": "turns-05-10",
            },
        )
    corpus = read_corpus(tmp_path / "data", name=f"set {EVIL}")
    skills = [SkillText(f"s{at}", f"s{at}", f"Sort what branch {at} sent. {EVIL}") for at in range(3)]
    trials = [TrialRecord("org/t1", "solver", "", score) for score in (0.0, 1.0, 1.0)]
    items = [Document(f"item {EVIL}", corpus.tasks[0].instruction)]
    return Findings(
        coverage(corpus, skills),
        (coverage(corpus),),
        fidelity(corpus, skills, resamples=50, ablation=True),
        decontaminate(corpus, items),
        duplicates(corpus),
        difficulty(corpus, trials),
    )


def test_html(findings: Findings) -> None:
    page = html_report(findings, "my data")
    checker = Checker()
    checker.feed(page)
    assert "script" not in checker.seen
    assert checker.loads == []
    assert not re.search(r"https?://(?!www\.w3\.org|purl\.org|creativecommons\.org|matplotlib)", page)
    assert checker.seen.count("svg") >= 8
    assert page.count("aria-label") == checker.seen.count("svg")
    for verb in ("coverage", "fidelity", "decontaminate", "duplicates", "difficulty"):
        assert f"skill2env analyze {verb} &#39;my data&#39;" in page
    assert html_report(findings, "my data") == page


def test_markdown(findings: Findings) -> None:
    text = markdown_report(findings, "data")
    for title in (
        "Domains",
        "Fidelity to the skills",
        "Overlap with benchmarks",
        "Near-copies",
        "Difficulty",
    ):
        assert f"### {title}" in text
    assert "pass@1 | 66.7%" in text
    assert "<svg" not in text


def test_a_report_of_nothing(tmp_path: Path) -> None:
    corpus = read_corpus(tmp_path)
    findings = Findings(
        coverage(corpus), duplicates=duplicates(corpus), decontamination=decontaminate(corpus, [])
    )
    assert "corpus-empty" in html_report(findings, "x")
    assert "no task in" in markdown_report(findings, "x").lower()
