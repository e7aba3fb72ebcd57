"""The probe recovers what was planted, falls to chance where it must, and agrees with scikit-learn."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from skill2env.analysis.embedding import find_embedder
from skill2env.analysis.fidelity import fidelity
from skill2env.analysis.reading import read_corpus
from skill2env.analysis.records import Corpus, SkillText
from skill2env.analysis.retrieval import Index, Ranks, rank_rows
from skill2env.analysis.wording import Rule, Wording, tool_names


@pytest.fixture(scope="module")
def planted(repository: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location("planted", repository / "benchmarks/planted.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["planted"] = module
    specification.loader.exec_module(module)
    return module


def top1(planted: ModuleType, profile: str, retriever: str, query: str = "instruction + rubric") -> Any:
    corpus = planted.plant(profile, skills=150, tasks=2, seed=3)
    found = fidelity(corpus.corpus, corpus.skills, resamples=200).probe(retriever, query)
    assert found is not None
    return found.top1


def test_copied_names_are_found_by_words_and_not_by_method(planted: ModuleType) -> None:
    words, method = (top1(planted, "names only", retriever) for retriever in ("tfidf", "method"))
    assert words.value > 0.8
    assert method.low <= 1 / 150 <= method.high + 0.01
    assert method.value < 0.03


def test_a_shared_method_is_found_with_and_without_names(planted: ModuleType) -> None:
    assert top1(planted, "method only", "method").value > 0.9
    assert top1(planted, "names and method copied", "method").value > 0.9


def test_the_planted_order_is_recovered(planted: ModuleType) -> None:
    words = [
        top1(planted, profile, "tfidf").value
        for profile in ("names and method copied", "names only", "half of the names only", "nothing shared")
    ]
    assert words == sorted(words, reverse=True)
    assert words[0] > words[-1] + 0.9
    assert words[2] > words[3] + 0.2


def test_generic_advice_finds_nothing_and_chance_is_said(planted: ModuleType) -> None:
    corpus = planted.plant("names and method copied", skills=150, tasks=2)
    found = fidelity(corpus.corpus, corpus.skills, ablation=True, resamples=100)
    control = found.probe("tfidf", "generic advice")
    assert control is not None
    assert control.top1.value < 0.03
    assert control.chance1 == pytest.approx(1 / 150, abs=1e-5)
    assert {p.retriever: p.figures.top1.value > 0.9 for p in found.reverse} == {"tfidf": True, "method": True}
    assert found.skipped
    nothing, *_, everything = found.ablation
    assert nothing.rules == ()
    assert nothing.stripped_words == 0
    assert nothing.top1 == found.probe("tfidf").top1.value
    assert everything.top1 == found.probe("method").top1.value
    assert fidelity(corpus.corpus, corpus.skills, resamples=100).probes == found.probes


def test_reworded_methods_are_found_by_meaning_only(planted: ModuleType) -> None:
    embedder = find_embedder()
    if embedder is None:
        pytest.skip("the extra 'embed' is not installed")
    corpus = planted.plant("method reworded only", skills=40, tasks=1)
    found = fidelity(corpus.corpus, corpus.skills, embedder=embedder, resamples=100)
    by_meaning, by_words = found.probe("embedding"), found.probe("method")
    assert by_meaning is not None
    assert by_words is not None
    assert by_meaning.mrr.value > by_words.mrr.value + 0.03
    assert found.skipped == ()


def test_scores_are_those_of_scikit_learn(planted: ModuleType) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    corpus = planted.plant("half of the names only", skills=60, tasks=2)
    skills, queries = [s.text for s in corpus.skills], [t.instruction for t in corpus.corpus.tasks]
    reference = TfidfVectorizer(stop_words="english").fit(skills)
    expected = (reference.transform(queries) @ reference.transform(skills).T).toarray()
    counts = Wording([skills, queries]).counts()
    index = Index(counts[0])
    found = index.scores(index.weigh(counts[1]))
    found = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
    expected = expected / np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-9)
    assert np.abs(found - expected).max() < 1e-5


def test_ties_are_shared_out() -> None:
    ranks = rank_rows(np.zeros((1, 20), dtype=np.float32), np.array([3]))
    assert ranks.top(1)[0] == pytest.approx(1 / 20)
    assert ranks.top(10)[0] == pytest.approx(0.5)
    assert Ranks(np.array([1]), np.array([1])).reciprocal()[0] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("text", "rule", "gone"),
    [
        ("run `gorvex now` please", Rule.CODE, {"gorvex"}),
        ("```\ngorvex here\n```\nplease sort", Rule.CODE, {"gorvex"}),
        ("open data/gorvex.csv please", Rule.PATH, {"data", "gorvex", "csv"}),
        ("open gorvex.py please", Rule.PATH, {"gorvex", "py"}),
        ("call gorvex_run, gorvexRun, --dulfen, GORVEX please", Rule.IDENTIFIER,
         {"gorvex_run", "gorvexrun", "dulfen", "gorvex"}),
        ("Please ask Gorvex first. Sort later", Rule.PROPER, {"gorvex"}),
        ("please use docker and kubernetes", Rule.TOOL, {"docker", "kubernetes"}),
    ],
)  # fmt: skip
def test_rules(text: str, rule: Rule, gone: set[str]) -> None:
    wording = Wording([[text]])
    whole, (kept, _) = wording.counts()[0], wording.stripped([rule])
    words = np.array(wording.vocabulary)
    assert set(words[whole.indices]) - set(words[kept[0].indices]) == gone


def test_a_name_is_stripped_also_where_it_stands_in_plain_letters() -> None:
    wording = Wording([["use `gorvex` and `gorvex` to sort ledgers"], ["the gorvex is broken, sort ledgers"]])
    words = np.array(wording.vocabulary)
    assert set(words[wording.stripped()[0][1].indices]) == {"broken", "sort", "ledgers"}
    assert "docker" in tool_names()


def test_tasks_without_a_known_skill_are_told_and_left_out(make_task: Any, tmp_path: Path) -> None:
    make_task("a", skill="ledger")
    make_task("b", skill="elsewhere")
    make_task("c", skill="twice")
    (make_task("d") / "task.toml").write_text("[task]\nname = 'org/d'\n")
    skills = [
        SkillText("x/ledger", "Ledger", "Add up accounts."),
        *(SkillText(k, "twice", k) for k in ("p", "q")),
    ]
    found = fidelity(read_corpus(tmp_path / "data", parts=("instruction", "rubric")), skills, resamples=50)
    assert (found.tasks, found.matched) == (4, 1)
    assert found.oddities == {"source-ambiguous": 1, "source-missing": 1, "source-unstated": 1}
    assert fidelity(Corpus("empty", ()), skills).probes == ()
