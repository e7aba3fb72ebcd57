import importlib.util
import itertools
import random
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env import near
from skill2env.hub.duplicates import rank_of
from skill2env.near import Cluster, Document, Likeness, Member, cluster, near_pairs
from skill2env.records import FileKind, Licence, LicenceEvidence, Skill, SkillFile
from skill2env.similarity import jaccard, shingles

TEXTS = st.lists(
    st.lists(st.sampled_from("red green blue one".split()), max_size=9).map(" ".join), max_size=12
)
THRESHOLDS = st.sampled_from([0.3, 0.5, 0.8, 1.0])


@pytest.fixture(scope="module")
def bench(repository: Path) -> ModuleType:
    """The generators of the benchmark."""
    path = repository / "benchmarks/duplicates.py"
    specification = importlib.util.spec_from_file_location("duplicates_benchmark", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@given(TEXTS, THRESHOLDS)
def test_the_join_finds_exactly_what_comparing_all_pairs_finds(texts: list[str], threshold: float) -> None:
    sets = [shingles(text, 2) for text in texts]
    wanted = {
        (later, earlier): jaccard(sets[later], sets[earlier])
        for earlier, later in itertools.combinations(range(len(texts)), 2)
        if jaccard(sets[later], sets[earlier]) >= threshold
    }
    found = {(a, b): measure for a, b, measure in near_pairs(texts, threshold=threshold, size=2)}
    assert found == pytest.approx(wanted)


@given(TEXTS, THRESHOLDS, st.randoms(use_true_random=False))
def test_clusters_are_stars_and_a_partition(texts: list[str], threshold: float, rng: random.Random) -> None:
    documents = [Document(f"d{at:02}", text, (at % 3,)) for at, text in enumerate(texts)]
    sets = {item.key: shingles(item.text, 2) for item in documents}
    clusters = cluster(documents, threshold=threshold, size=2)
    keys = [key for one in clusters for key in (one.representative, *(item.key for item in one.members))]
    assert sorted(keys) == sorted(sets)
    for one in clusters:
        for member in one.members:
            assert member.jaccard == pytest.approx(jaccard(sets[member.key], sets[one.representative]))
            assert member.jaccard >= threshold - 1e-9
            assert (member.likeness is Likeness.EXACT) == (member.jaccard == 1)
    for one, other in itertools.combinations(clusters, 2):
        assert jaccard(sets[one.representative], sets[other.representative]) < threshold
    rng.shuffle(documents)
    assert cluster(documents, threshold=threshold, size=2) == clusters


def test_a_chain_is_cut_where_likeness_to_the_representative_ends() -> None:
    base = [f"w{at}" for at in range(100)]
    chain = [" ".join([*(f"x{at}" for at in range(6 * step)), *base[6 * step :]]) for step in range(3)]
    sets = [shingles(text) for text in chain]
    assert jaccard(sets[0], sets[1]) >= 0.8
    assert jaccard(sets[1], sets[2]) >= 0.8
    assert jaccard(sets[0], sets[2]) < 0.8
    found = cluster([Document(name, text) for name, text in zip("abc", chain, strict=True)])
    assert [(one.representative, [item.key for item in one.members]) for one in found] == [
        ("a", ["b"]),
        ("c", []),
    ]
    middle = cluster([Document(name, text, (name != "b",)) for name, text in zip("abc", chain, strict=True)])
    assert [(one.representative, [item.key for item in one.members]) for one in middle] == [("b", ["a", "c"])]


def test_exact_copies_and_empty_texts() -> None:
    found = cluster(
        [Document("b", "one two"), Document("a", "One, two!"), Document("d", ""), Document("c", "...")]
    )
    assert found == (
        Cluster("a", (Member("b", Likeness.EXACT, 1.0),)),
        Cluster("c", (Member("d", Likeness.EXACT, 1.0),)),
    )
    assert cluster([]) == ()


def test_wrong_calls() -> None:
    with pytest.raises(ValueError, match="same key"):
        cluster([Document("a", "x"), Document("a", "y")])
    for threshold in (0, 1.1):
        with pytest.raises(ValueError, match="threshold"):
            cluster([], threshold=threshold)


def test_planted_copies_are_found(bench: ModuleType) -> None:
    texts = list(bench.made_up_corpus(400, 20, 3))
    planted = bench.plant(texts, 300, random.Random(3))
    measures = [jaccard(shingles(texts[a]), shingles(texts[b])) for a, b in planted]
    assert min(measures) < 0.77
    assert max(measures) > 0.98
    found = {(a, b) for a, b, _ in near_pairs(texts)}
    near = [pair for pair, measure in zip(planted, measures, strict=True) if measure >= 0.8]
    assert len(near) > 200
    assert sum(pair in found for pair in near) >= 0.995 * len(near)
    assert not [
        pair for pair, measure in zip(planted, measures, strict=True) if measure < 0.8 and pair in found
    ]


def test_a_family_of_one_template_costs_no_comparison(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = bench.family(random.Random(1), bench.vocabulary(1), 300, 0.6)
    assert jaccard(shingles(texts[0]), shingles(texts[1])) == pytest.approx(0.6, abs=0.02)
    calls = 0
    real = near.overlap

    def counted(*sets: object) -> int:
        nonlocal calls
        calls += 1
        return real(*sets)

    monkeypatch.setattr(near, "overlap", counted)
    found = cluster([Document(str(at), text) for at, text in enumerate(texts)])
    assert len(found) == len(texts)
    assert calls < len(texts), "300 copies have 44,850 pairs"
    copies = [Document(str(at), text + f" end{at}") for at, text in enumerate([texts[0]] * 300)]
    assert len(cluster(copies)) == 1
    assert calls < 3 * len(texts)


def test_ranks_follow_the_stated_rules() -> None:
    def skill(evidence: LicenceEvidence, spdx: str = "MIT", files: int = 1, **more: object) -> Skill:
        listed = tuple(
            SkillFile(path=f"{at}.md", kind=FileKind.TEXT, size=1, sha256="0") for at in range(files)
        )
        fields = {"name": "n", "slug": "n", "description": "d", "body": "b", "digest": "sha256:0", **more}
        return Skill.model_validate(
            {**fields, "licence": Licence(spdx=spdx, evidence=evidence), "files": listed}
        )

    own = LicenceEvidence.SKILL_FILE
    best_first = [
        rank_of(skill(own)),
        rank_of(skill(own), mirror=True),
        rank_of(skill(own, missing_references=("a.md",), files=5)),
        rank_of(skill(LicenceEvidence.REPOSITORY, files=2)),
        rank_of(skill(LicenceEvidence.REPOSITORY, body="longer")),
        rank_of(skill(LicenceEvidence.REPOSITORY)),
        rank_of(skill(LicenceEvidence.AGGREGATOR)),
        rank_of(skill(own, spdx="")),
    ]
    assert sorted(best_first) == best_first
    assert len(set(best_first)) == len(best_first)
