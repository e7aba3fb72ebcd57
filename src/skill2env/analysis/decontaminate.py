"""Which tasks overlap with a benchmark: shared words, shared strategy, shared meaning, shared marks.

Three questions, from the narrow to the wide. Words: 13-grams of instruction, tests and solution, by Jaccard measure and
by containment, exactly. Strategy: sequences of commands and of syntax of the reference solutions, so that two tasks of
one method with other words are found. Meaning: nearness of instructions by an embedding model, for a person to look at.
Canary strings of a benchmark are looked for in every file that is read.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from skill2env.analysis.documents import Document
from skill2env.analysis.extras import require_analyze
from skill2env.analysis.overlaps import WORDS, Grams, Pair, grams_of_steps, grams_of_texts, join, shared_spans
from skill2env.analysis.records import UNDECIDED, Corpus, TaskRecord
from skill2env.analysis.strategy import strategy_of
from skill2env.records import Record

if TYPE_CHECKING:
    from skill2env.analysis.embedding import Embedder

JACCARD = 0.8
"""Least Jaccard measure of the word n-grams, as in the reference work."""
CONTAINMENT = 0.5
"""Least share of one text's n-grams that the other holds."""
STEPS = 5
"""Steps in an n-gram of a strategy."""
LEAST_STEPS = 12
"""Shorter strategies say nothing: everybody's three commands are alike."""
STRATEGY = 0.6
"""Least Jaccard measure of strategies."""
MEANING = 0.9
"""Least cosine of instructions."""
FIELDS = ("instruction", "tests", "solution")
_CANARY = re.compile(
    r"canary[^\n]{0,30}?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f-]{8,40})", re.IGNORECASE
)


class Flag(Record):
    """One task that has something in common with one item of a benchmark."""

    task: str
    item: str
    kind: str
    """``words``, ``strategy``, ``meaning`` or ``canary``."""
    field: str
    """Part of the task."""
    jaccard: float = 0.0
    """For ``meaning`` the cosine."""
    containment: float = 0.0
    """Share of the item's n-grams that the task has."""
    spans: tuple[str, ...] = ()
    """Longest shared passages, as the task writes them; steps of a strategy."""
    removes: bool = True
    """Whether the filtered dataset leaves the task out; meaning alone is for a person to judge."""


class Decontamination(Record):
    """Everything that `analyze decontaminate` says."""

    name: str
    tasks: int
    items: int
    """Items of the benchmarks."""
    settings: dict[str, float]
    flags: tuple[Flag, ...] = ()
    removed: tuple[str, ...] = ()
    """Keys of the tasks that a filtered dataset leaves out."""
    shared_domains: tuple[str, ...] = ()
    """Domains that both touch, in their own terms."""
    held_out: bool | None = None
    """None: no held-out domain was named; else whether the dataset never touches it."""
    held_out_tasks: tuple[str, ...] = ()
    canaries: int = 0
    """Tasks that carry a canary string of their own."""
    skipped: tuple[str, ...] = ()
    oddities: dict[str, int] = Field(default_factory=dict)

    def kinds(self) -> dict[str, int]:
        """Kind -> tasks flagged so."""
        return dict(sorted(Counter(kind for kind, _ in {(f.kind, f.task) for f in self.flags}).items()))


def decontaminate(
    corpus: Corpus,
    documents: Sequence[Document],
    *,
    jaccard: float = JACCARD,
    containment: float = CONTAINMENT,
    strategy: float = STRATEGY,
    meaning: float = MEANING,
    embedder: "Embedder | None" = None,
    held_out: Sequence[str] = (),
) -> Decontamination:
    """Compare a dataset with benchmarks.

    Args:
        corpus: instructions, tests and solutions must have been read.
        documents: items of the benchmarks.
        jaccard: threshold on word n-grams.
        containment: threshold on word n-grams, either way round.
        strategy: threshold on strategies.
        meaning: threshold on meanings.
        embedder: None leaves meanings out and says so.
        held_out: domains, or families by name of skill or workflow, that the dataset must never touch.

    Raises:
        UserError: the libraries of the extra ``analyze`` are not installed.
    """
    require_analyze()
    tasks = corpus.tasks
    flags = [
        *_by_words(tasks, documents, jaccard, containment),
        *_by_strategy(tasks, documents, strategy),
        *(_by_meaning(tasks, documents, meaning, embedder) if embedder is not None else ()),
        *_by_canary(tasks, documents),
    ]
    never = {name.casefold() for name in held_out} - {""}
    touched = [
        task.key
        for task in tasks
        if {name.casefold() for name in (task.domain, task.category, task.skill, task.workflow)} & never
    ]
    own = {task.domain or UNDECIDED for task in tasks} | {task.category for task in tasks}
    return Decontamination(
        name=corpus.name,
        tasks=len(tasks),
        items=len(documents),
        settings={
            "words": WORDS, "jaccard": jaccard, "containment": containment, "strategy": strategy, "meaning": meaning,
        },
        flags=tuple(sorted(flags, key=lambda f: (f.task, f.item, f.kind, f.field))),
        removed=tuple(sorted({flag.task for flag in flags if flag.removes} | {*touched})),
        shared_domains=tuple(sorted(own & {document.domain for document in documents} - {""})),
        held_out=not touched if held_out else None,
        held_out_tasks=tuple(touched),
        canaries=sum(bool(_CANARY.search(_all_text(task))) for task in tasks),
        skipped=() if embedder is not None else ("meaning: no sentence-embedding model is chosen or installed",),
        oddities=corpus.counts(),
    )  # fmt: skip


def _by_words(
    tasks: Sequence[TaskRecord], documents: Sequence[Document], jaccard: float, containment: float
) -> Iterator[Flag]:
    """Like with like where an item has parts; an item that is only a text is looked for in every part of a task."""
    plain = [
        at for at, item in enumerate(documents) if item.instruction and not item.tests and not item.solution
    ]
    as_text: Grams | None = None
    for part in FIELDS:
        mine = grams_of_texts([getattr(task, part) for task in tasks])
        if not len(mine.numbers):
            continue
        own = [at for at, item in enumerate(documents) if getattr(item, part)]
        known = grams_of_texts([getattr(documents[at], part) for at in own])
        sides = [(own, known, part)]
        if part == "instruction" and len(own) == len(plain):
            as_text = known
        elif part != "instruction" and plain:
            as_text = as_text or grams_of_texts([documents[at].instruction for at in plain])
            sides.append((plain, as_text, "instruction"))
        for chosen, theirs, their_part in sides:
            for pair in join(mine, theirs, jaccard=jaccard, containment=containment):
                task, item = tasks[pair.one], documents[chosen[pair.other]]
                spans = shared_spans(getattr(task, part), getattr(item, their_part))
                if spans:
                    yield _flag(task, item, "words", part, pair, tuple(span.text for span in spans))


def _flag(task: TaskRecord, item: Document, kind: str, part: str, pair: Pair, spans: tuple[str, ...]) -> Flag:
    return Flag(
        task=task.key,
        item=item.key,
        kind=kind,
        field=part,
        jaccard=round(pair.jaccard, 4),
        containment=round(pair.contained, 4),
        spans=spans,
    )


def _by_strategy(
    tasks: Sequence[TaskRecord], documents: Sequence[Document], threshold: float
) -> Iterator[Flag]:
    theirs = [(item, item.strategy) for item in documents if len(item.strategy) >= LEAST_STEPS]
    if not theirs:
        return
    mine = [(task, steps) for task in tasks if len(steps := strategy_of(task)) >= LEAST_STEPS]
    one, other = (grams_of_steps([steps for _, steps in side], STEPS) for side in (mine, theirs))
    for pair in join(one, other, jaccard=threshold, containment=2.0):
        (task, steps), (item, _) = mine[pair.one], theirs[pair.other]
        yield _flag(task, item, "strategy", "solution", pair, (" · ".join(steps[:30]),))


def _by_meaning(
    tasks: Sequence[TaskRecord], documents: Sequence[Document], threshold: float, embedder: "Embedder"
) -> Iterator[Flag]:
    asked = [task for task in tasks if task.instruction.strip()]
    items = [item for item in documents if item.instruction.strip()]
    if not asked or not items:
        return
    mine = embedder.documents([task.instruction for task in asked])
    theirs = embedder.documents([item.instruction for item in items])
    for start in range(0, len(asked), 1024):
        cosines = mine[start : start + 1024] @ theirs.T
        for row, column in zip(*np.nonzero(cosines >= threshold), strict=True):
            yield Flag(
                task=asked[start + int(row)].key,
                item=items[int(column)].key,
                kind="meaning",
                field="instruction",
                jaccard=round(float(cosines[row, column]), 4),
                removes=False,
            )


def _by_canary(tasks: Sequence[TaskRecord], documents: Sequence[Document]) -> Iterator[Flag]:
    marks: dict[str, str] = {}
    for item in documents:
        for match in _CANARY.finditer(f"{item.instruction}\n{item.tests}\n{item.solution}"):
            marks.setdefault(match[1].lower(), item.key)
    if not marks:
        return
    for task in tasks:
        found = {match[1].lower() for match in _CANARY.finditer(_all_text(task))} & marks.keys()
        for mark in sorted(found):
            yield Flag(task=task.key, item=marks[mark], kind="canary", field="files", spans=(mark,))


def _all_text(task: TaskRecord) -> str:
    return f"{task.instruction}\n{task.rubric}\n{task.tests}\n{task.solution}"


def statement(found: Decontamination) -> str:
    """Markdown for a dataset card: what was compared, how, and what came of it."""
    kinds = found.kinds()
    limits = found.settings
    how = (
        f"{found.tasks} tasks were compared with {found.items} benchmark items by `skill2env analyze decontaminate`:"
        f" word {int(limits['words'])}-grams of instruction, tests and solution (flagged from a Jaccard measure of"
        f" {limits['jaccard']:g} or a containment of {limits['containment']:g}), strategies of reference"
        f" solutions (from {limits['strategy']:g}), canary strings."
    )
    what = (
        f"{kinds.get('words', 0)} tasks share words with an item, {kinds.get('strategy', 0)} a strategy,"
        f" {kinds.get('canary', 0)} a canary, {kinds.get('meaning', 0)} are near in meaning."
        f" {len(found.removed)} tasks are left out of the filtered dataset."
    )
    lines = ["## Decontamination", "", how, "", what]
    if found.held_out is not None:
        state = "never touches" if found.held_out else "touches"
        lines += ["", f"The dataset {state} the held-out families."]
    lines += ["", *(f"Not done: {reason}." for reason in found.skipped)] if found.skipped else []
    return "\n".join(lines) + "\n"
