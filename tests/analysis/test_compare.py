"""Differences that are there are found; two halves of one dataset do not differ."""

from pathlib import Path
from typing import Any

from skill2env.analysis.compare import Side, compare
from skill2env.analysis.fidelity import fidelity
from skill2env.analysis.reading import read_corpus
from skill2env.analysis.records import SkillText


def test_planted_differences(make_task: Any, tmp_path: Path) -> None:
    text = "Look at the ledger of branch {} and report what differs between its halves in a file that I can read."
    for at in range(24):
        make_task(
            f"t{at}", dataset="a", instruction=text.format(at), axes={"tone": ("terse", "formal")[at % 2]}
        )
        make_task(
            f"t{at}", dataset="b", instruction=text.format(at), axes={"tone": ("terse", "formal")[at % 2]}
        )
        make_task(
            f"t{at}",
            dataset="c",
            instruction=f"{at} " + "Write very much more. " * (10 + at),
            axes={"tone": "urgent"},
            domain="cybersecurity",
        )
    a, b, c = (Side(read_corpus(tmp_path / name)) for name in "abc")
    same = compare(a, b)
    assert same.shared == 24
    assert not any(row.differs for row in same.rows)
    other = {row.figure: row for row in compare(a, c).rows}
    assert {figure for figure, row in other.items() if row.differs} == {
        "balance of domains", "balance of tone", "words of the instruction",
    }  # fmt: skip
    assert other["words of the instruction"].low > 0  # pyright: ignore[reportOptionalOperand]
    assert compare(a, c).shared == 0


def test_with_probes_and_with_nothing(make_task: Any, tmp_path: Path) -> None:
    make_task("t", dataset="a", skill="ledger")
    (tmp_path / "none").mkdir()
    skills = [SkillText("ledger", "ledger", "accounts total"), SkillText("other", "other", "paint a wall")]
    corpus = read_corpus(tmp_path / "a")
    side = Side(corpus, fidelity(corpus, skills, resamples=50))
    rows = {row.figure: row for row in compare(side, side).rows}
    assert rows["source found first by tfidf"].one == 1
    empty = compare(Side(corpus), Side(read_corpus(tmp_path / "none")))
    assert all(not row.differs for row in empty.rows)
