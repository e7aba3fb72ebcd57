"""The fidelity probe: does a task lead back to the skill it was made from, by words, by method, by meaning?

A query (instruction and rubric, instruction alone, rubric alone) is compared with every skill; the rank of the true
source is what counts. Three retrievers answer different questions. `tfidf` compares all words, as published probes do.
`method` is the same without distinctive nouns on both sides (`wording.Rule`), so that copied names no longer help.
`embedding` compares meanings. If `tfidf` finds the source and `method` does not, the task shares the skill's vocabulary
and not its method. Two controls keep the probe honest: generic advice in place of the rubric must find nothing, and
chance is stated beside every figure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from skill2env.analysis.advice import ADVICE, draw_advice
from skill2env.analysis.extras import require_analyze
from skill2env.analysis.records import UNDECIDED, Corpus, Notes, SkillText, TaskRecord
from skill2env.analysis.retrieval import CHUNK, Index, Ranks, join_ranks, rank_rows
from skill2env.analysis.reverse import Reverse
from skill2env.analysis.sources import match_sources
from skill2env.analysis.statistics import RESAMPLES, bootstrap_strata
from skill2env.analysis.wording import RULES, Rule, Wording
from skill2env.records import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from skill2env.analysis.embedding import Embedder

BOTH, INSTRUCTION, RUBRIC, CONTROL = "instruction + rubric", "instruction", "rubric", "generic advice"
QUERIES = (BOTH, INSTRUCTION, RUBRIC, CONTROL)
TOPS = (1, 5, 10)
PUBLISHED = {BOTH: (0.732, 0.946), RUBRIC: (0.685, None)}
"""Query -> top-1 and top-10 that the reference work reports for TF-IDF over its own 3,400 skills; another corpus."""


class Share(Record):
    """A mean over tasks with its 95 % interval; whole skills are resampled."""

    value: float
    low: float
    high: float


class Figures(Record):
    """How often the source comes first, and among the first ones."""

    queries: int
    top1: Share
    top5: Share
    top10: Share
    mrr: Share
    chance1: float
    """What drawing a skill at random would give for top1."""
    chance10: float
    domains: dict[str, tuple[int, Share]] = Field(default_factory=dict)
    """Domain -> queries and top1."""


class Probe(Record):
    """One retriever and one kind of query."""

    retriever: str
    query: str
    figures: Figures
    hits: tuple[float, ...] = Field(default=(), exclude=True, repr=False)
    """top1 of each matched task, for tests of difference; not part of the JSON."""


class Ablation(Record):
    """`method` with other rules."""

    rules: tuple[str, ...]
    stripped_words: int
    """Words of the vocabulary that are stripped everywhere."""
    top1: float
    mrr: float


class Fidelity(Record):
    """Everything that `analyze fidelity` says."""

    name: str
    tasks: int
    matched: int
    """Tasks whose skill is among those given; only these are asked about."""
    skills: int
    probes: tuple[Probe, ...] = ()
    reverse: tuple[Probe, ...] = ()
    """From a skill to its tasks: how often one of its own comes first among all tasks."""
    ablation: tuple[Ablation, ...] = ()
    skipped: tuple[str, ...] = ()
    """What could not be done here, and why."""
    oddities: dict[str, int] = Field(default_factory=dict)

    def probe(self, retriever: str, query: str = BOTH) -> Figures | None:
        """Figures of one probe, if it was made."""
        found = (p.figures for p in self.probes if (p.retriever, p.query) == (retriever, query))
        return next(found, None)


@dataclass(slots=True)
class _Setting:
    """What all probes share."""

    tasks: Sequence[TaskRecord]
    skills: Sequence[SkillText]
    sources: "NDArray[np.int64]"
    mixed: "NDArray[np.float32]"
    seed: int
    resamples: int
    waiting: list[tuple[str, str, Ranks]] = field(default_factory=list[tuple[str, str, Ranks]])


def fidelity(
    corpus: Corpus,
    skills: Sequence[SkillText],
    *,
    embedder: "Embedder | None" = None,
    ablation: bool = False,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Fidelity:
    """Probe one dataset.

    Args:
        corpus: instructions and rubrics must have been read.
        skills: the documents to search.
        embedder: the third retriever; None leaves it out and says so.
        ablation: also try every rule alone, and all but one.
        seed: of bootstrap and control.
        resamples: of the bootstrap.

    Raises:
        UserError: the libraries of the extra ``analyze`` are not installed.
    """
    require_analyze()
    notes = Notes()
    found = match_sources(corpus.tasks, skills, notes)
    kept = np.flatnonzero(found >= 0)
    tasks = [corpus.tasks[at] for at in kept]
    setting = _Setting(tasks, skills, found[kept], draw_advice(len(tasks), seed), seed, resamples)
    reverse: list[tuple[str, Reverse]] = []
    rows: list[Ablation] = []
    if tasks:
        wording = Wording(
            [[s.text for s in skills], [t.instruction for t in tasks], [t.rubric for t in tasks], ADVICE]
        )
        reverse.append(("tfidf", _lexical(setting, "tfidf", wording.counts())))
        reverse.append(("method", _lexical(setting, "method", wording.stripped()[0])))
        if ablation:
            rows = [_ablated(setting, wording, rules) for rules in _rule_sets()]
        if embedder is not None:
            reverse.append(("embedding", _meaning(setting, embedder)))
    counted = Corpus(corpus.name, corpus.tasks, (*corpus.diagnostics, *notes.found)).counts()
    return Fidelity(
        name=corpus.name,
        tasks=len(corpus.tasks),
        matched=len(tasks),
        skills=len(skills),
        probes=tuple(_summarise(setting)),
        reverse=tuple(_reverse(name, item, setting) for name, item in reverse),
        ablation=tuple(rows),
        skipped=()
        if embedder is not None
        else ("embedding: no sentence-embedding model is chosen or installed",),
        oddities=counted,
    )


def _lexical(setting: _Setting, name: str, counts: list[Any]) -> Reverse:
    index = Index(counts[0])
    instructions, rubrics, advice = (index.weigh(part) for part in counts[1:])
    generic = index.scores(advice)
    reverse = Reverse(
        instructions + rubrics, index.own(instructions + rubrics, setting.sources), setting.sources
    )
    pieces: dict[str, list[Ranks]] = {query: [] for query in QUERIES}
    for start in range(0, len(setting.tasks), CHUNK):
        part = slice(start, start + CHUNK)
        sources = setting.sources[part]
        by_rubric = index.scores(rubrics[part])
        pieces[RUBRIC].append(rank_rows(by_rubric, sources))
        by_instruction = index.scores(instructions[part])
        pieces[INSTRUCTION].append(rank_rows(by_instruction, sources))
        by_instruction += by_rubric
        pieces[BOTH].append(rank_rows(by_instruction, sources))
        reverse.add(by_instruction, start)
        pieces[CONTROL].append(rank_rows(setting.mixed[part] @ generic, sources))
    setting.waiting += [(name, query, join_ranks(found)) for query, found in pieces.items()]
    return reverse


def _meaning(setting: _Setting, embedder: "Embedder") -> Reverse:
    skills = embedder.documents([skill.text for skill in setting.skills])
    texts = {
        BOTH: [f"{task.instruction}\n{task.rubric}" for task in setting.tasks],
        INSTRUCTION: [task.instruction for task in setting.tasks],
        RUBRIC: [task.rubric for task in setting.tasks],
        CONTROL: ["\n".join(ADVICE[at] for at in np.flatnonzero(row)) for row in setting.mixed],
    }
    reverse: Reverse | None = None
    for query, found in texts.items():
        vectors = embedder.queries(found)
        empty = np.asarray([not text.strip() for text in found], dtype=bool)
        pieces: list[Ranks] = []
        if query == BOTH:
            own = np.einsum("ij,ij->i", vectors, skills[setting.sources]).astype(np.float32)
            reverse = Reverse(None, own, setting.sources)
        for start in range(0, len(found), CHUNK):
            part = slice(start, start + CHUNK)
            scores = (vectors[part] @ skills.T).astype(np.float32)
            scores[empty[part]] = 0.0
            pieces.append(rank_rows(scores, setting.sources[part]))
            if query == BOTH and reverse is not None:
                reverse.add(scores, start)
        setting.waiting.append(("embedding", query, join_ranks(pieces)))
    assert reverse is not None
    return reverse


def _summarise(setting: _Setting) -> Iterable[Probe]:
    """All figures from one set of resamples, so that they can be compared with each other."""
    if not setting.waiting:
        return
    columns = [
        column
        for _, _, ranks in setting.waiting
        for column in (*(ranks.top(k) for k in TOPS), ranks.reciprocal())
    ]
    values = np.column_stack(columns)
    names = sorted({task.domain or UNDECIDED for task in setting.tasks})
    strata = np.asarray([names.index(task.domain or UNDECIDED) for task in setting.tasks], dtype=np.int64)
    means, intervals = bootstrap_strata(
        values, setting.sources, strata, len(names), seed=setting.seed, resamples=setting.resamples
    )
    sizes = np.bincount(strata, minlength=len(names)).tolist()
    chance = [min(1.0, k / len(setting.skills)) for k in TOPS]
    for at, (retriever, query, ranks) in enumerate(setting.waiting):
        shares = [_share(means[0, 4 * at + step], intervals[0, 4 * at + step]) for step in range(4)]
        figures = Figures(
            queries=len(setting.tasks),
            top1=shares[0],
            top5=shares[1],
            top10=shares[2],
            mrr=shares[3],
            chance1=round(chance[0], 6),
            chance10=round(chance[2], 6),
            domains={
                name: (sizes[place], _share(means[place + 1, 4 * at], intervals[place + 1, 4 * at]))
                for place, name in enumerate(names)
            },
        )
        yield Probe(retriever=retriever, query=query, figures=figures, hits=tuple(ranks.top(1).tolist()))


def _share(mean: float, interval: "NDArray[np.float64]") -> Share:
    return Share(
        value=round(float(mean), 4), low=round(float(interval[0]), 4), high=round(float(interval[1]), 4)
    )


def _reverse(name: str, found: Reverse, setting: _Setting) -> Probe:
    ranks, chances = found.ranks(), found.chances()
    columns = np.column_stack([*(ranks.top(k) for k in TOPS), ranks.reciprocal()])
    everything = np.zeros(len(columns), dtype=np.int64)
    means, intervals = bootstrap_strata(
        columns, np.arange(len(columns)), everything, 1, seed=setting.seed, resamples=setting.resamples
    )
    shares = [_share(means[0, at], intervals[0, at]) for at in range(4)]
    figures = Figures(
        queries=len(columns),
        top1=shares[0],
        top5=shares[1],
        top10=shares[2],
        mrr=shares[3],
        chance1=round(float(chances.mean()), 6),
        chance10=round(float((1 - (1 - chances) ** 10).mean()), 6),
    )
    return Probe(retriever=name, query="skill to its tasks", figures=figures)


def _rule_sets() -> Iterable[tuple[Rule, ...]]:
    yield ()
    yield from ((rule,) for rule in RULES)
    yield from (tuple(other for other in RULES if other is not rule) for rule in RULES)
    yield RULES


def _ablated(setting: _Setting, wording: Wording, rules: tuple[Rule, ...]) -> Ablation:
    counts, everywhere = wording.stripped(rules)
    index = Index(counts[0])
    both = index.weigh(counts[1] + counts[2])
    pieces = [
        rank_rows(index.scores(both[start : start + CHUNK]), setting.sources[start : start + CHUNK])
        for start in range(0, len(setting.tasks), CHUNK)
    ]
    ranks = join_ranks(pieces)
    return Ablation(
        rules=tuple(rule.value for rule in rules),
        stripped_words=int(everywhere.sum()),
        top1=round(float(ranks.top(1).mean()), 4),
        mrr=round(float(ranks.reciprocal().mean()), 4),
    )
