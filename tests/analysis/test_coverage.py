"""Counts, balance and what is absent."""

from pathlib import Path
from typing import Any

import pytest

from skill2env.analysis.coverage import DOMAINS, coverage, distribution, domain_shares
from skill2env.analysis.reading import read_corpus
from skill2env.analysis.records import SkillText


def test_balance_of_a_distribution() -> None:
    even = distribution(["a", "b"] * 3, ["a", "b", "c", "d"])
    assert (even.balance, even.absent, even.kinds) == (0.5, ("c", "d"), 4)
    assert distribution(["a", "unknown"], ["a"]).balance == 1


def test_a_dataset(make_task: Any, tmp_path: Path) -> None:
    for at in range(4):
        make_task(
            f"t{at}",
            skill=f"s{at // 2}",
            domain=DOMAINS[at % 2],
            axes={"tone": ("terse", "formal")[at % 2], "complexity": "turns-05-10"},
        )
    (tmp_path / "data/t0/environment/app.js").write_text("1")
    found = coverage(read_corpus(tmp_path / "data"), [SkillText("x", "x", "")])
    assert (found.tasks, found.skills) == (4, 2)
    assert found.tasks_per_skill is not None
    assert found.tasks_per_skill.median == 2
    assert found.domains.balance == pytest.approx(2 / 13, abs=1e-4)
    assert len(found.domains.absent) == 11
    assert domain_shares(found.domains.counts)[DOMAINS[0]] == 0.5
    assert found.skill_domains is not None
    assert found.skill_domains.counts == {"undecided": 1}
    (pair,) = found.pairs
    assert (pair.one, pair.other, pair.seen, pair.possible) == ("complexity", "tone", 2, 4 * 7)
    assert found.verifiers.counts == {"Python program": 4}
    assert found.languages.counts == {"Shell": 4, "JavaScript": 1}
    assert found.tools.counts == {"sort": 4, "uniq": 4}
    assert found.formats.counts == {"csv": 4}
    assert found.sizes["files"].most == 8


def test_nothing_at_all(tmp_path: Path) -> None:
    found = coverage(read_corpus(tmp_path))
    assert found.tasks == 0
    assert found.domains.absent == DOMAINS
    assert found.sizes == {}
