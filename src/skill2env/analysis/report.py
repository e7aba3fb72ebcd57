"""One page about a dataset, every figure with the command that makes it: HTML without other files, and Markdown."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from shlex import quote

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from skill2env.analysis.charts import (
    axes_chart,
    counts_chart,
    difficulty_chart,
    domains_chart,
    fidelity_chart,
    pair_chart,
)
from skill2env.analysis.coverage import Coverage
from skill2env.analysis.decontaminate import Decontamination
from skill2env.analysis.difficulty import Difficulty
from skill2env.analysis.duplicates import Duplicates
from skill2env.analysis.extras import require_charts
from skill2env.analysis.fidelity import Fidelity
from skill2env.markdown import cell, inert

TEMPLATE = "report.html.j2"
_MOST = 25

type Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """What a report is made of; what was not measured is None."""

    coverage: Coverage
    others: tuple[Coverage, ...] = ()
    fidelity: Fidelity | None = None
    decontamination: Decontamination | None = None
    duplicates: Duplicates | None = None
    difficulty: Difficulty | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under headings."""

    headings: Row
    rows: tuple[Row, ...]


@dataclass(slots=True)
class Section:
    """A part of the page."""

    title: str
    command: str
    """What makes these figures again."""
    sentences: list[str] = field(default_factory=list[str])
    charts: list[Callable[[], str]] = field(default_factory=list[Callable[[], str]])
    """Drawn only for HTML."""
    tables: list[Table] = field(default_factory=list[Table])


def html_report(findings: Findings, dataset: str) -> str:
    """The page.

    Args:
        findings: what was measured.
        dataset: how the commands call the dataset.

    Raises:
        UserError: matplotlib is not installed.
    """
    require_charts()
    environment = Environment(
        undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    text = resources.files("skill2env.analysis").joinpath(TEMPLATE).read_text(encoding="utf-8")
    sections = list(_sections(findings, dataset))
    drawn = [[Markup(chart()) for chart in section.charts] for section in sections]
    return environment.from_string(text).render(
        name=findings.coverage.name,
        headline=_headline(findings),
        sections=list(zip(sections, drawn, strict=True)),
        command=f"skill2env analyze report {quote(dataset)}",
    )


def markdown_report(findings: Findings, dataset: str) -> str:
    """The same for a dataset card, without charts."""
    lines = ["## Analysis", "", "".join(f"- {label}: **{value}**\n" for value, label in _headline(findings))]
    for section in _sections(findings, dataset):
        lines += [f"### {section.title}", "", *(f"{inert(sentence)}\n" for sentence in section.sentences)]
        for table in section.tables:
            lines += [_row(table.headings), _row(["---"] * len(table.headings)), *map(_row, table.rows), ""]
        lines += [f"Made by `{section.command}`.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell(text) for text in cells) + " |"


def _headline(findings: Findings) -> list[tuple[str, str]]:
    """Figures that come first: value and what it is."""
    found = findings.coverage
    kinds = len(
        [name for name in found.domains.counts if name not in found.domains.absent and name != "undecided"]
    )
    shown = [(f"{found.tasks:,}", "tasks"), (f"{found.skills:,}", "skills"), (f"{kinds} of 13", "domains")]
    if findings.fidelity is not None and findings.fidelity.probes:
        words, method = findings.fidelity.probe("tfidf"), findings.fidelity.probe("method")
        shown += [
            (f"{f.top1.value:.1%}", label)
            for f, label in ((words, "found by words"), (method, "found by method"))
            if f
        ]
    if findings.decontamination is not None:
        shown.append((str(len(findings.decontamination.removed)), "overlap with a benchmark"))
    if findings.duplicates is not None:
        shown.append((str(findings.duplicates.surplus["combined"]), "near-copies"))
    if findings.difficulty is not None and 1 in findings.difficulty.pass_at:
        shown.append((f"{findings.difficulty.pass_at[1].value:.1%}", "pass@1"))
    return shown


def _sections(findings: Findings, dataset: str) -> Iterator[Section]:
    command = f"skill2env analyze {{}} {quote(dataset)}"
    yield _domains(findings, command.format("coverage"))
    yield _shape(findings.coverage, command.format("coverage"))
    if findings.fidelity is not None:
        yield _fidelity(findings.fidelity, command.format("fidelity") + " --skills SKILLS")
    if findings.decontamination is not None:
        yield _decontamination(
            findings.decontamination, command.format("decontaminate") + " --against BENCHMARK"
        )
    if findings.duplicates is not None:
        yield _duplicates(findings.duplicates, command.format("duplicates"))
    if findings.difficulty is not None:
        yield _difficulty(findings.difficulty, command.format("difficulty") + " JOBS")
    if findings.coverage.oddities:
        rows = tuple((code, str(count)) for code, count in findings.coverage.oddities.items())
        told = "What was odd about the files; none of it stopped the analysis."
        yield Section(
            "Oddities", command.format("coverage"), [told], [], [Table(("kind", "how often"), rows)]
        )


def _domains(findings: Findings, command: str) -> Section:
    found = findings.coverage
    sentences = [f"Balance over the thirteen domains, exp(H)/13: {found.domains.balance:.3f}."]
    if found.domains.absent:
        sentences.append(f"No task in: {'; '.join(found.domains.absent)}.")
    if found.guessed_domains:
        sentences.append(
            f"{found.guessed_domains} of {found.tasks} domains are guessed from the words of the task."
        )
    everything = (found, *findings.others)
    names = list(dict.fromkeys(name for item in everything for name in item.domains.counts))
    table = Table(
        ("domain", *(item.name for item in everything)),
        tuple((name, *(str(item.domains.counts.get(name, 0)) for item in everything)) for name in names),
    )
    return Section("Domains", command, sentences, [lambda: domains_chart(everything)], [table])


def _shape(found: Coverage, command: str) -> Section:
    charts: list[Callable[[], str]] = [lambda: axes_chart(found)] if found.axes else []
    wanted = [
        p
        for p in found.pairs
        if {p.one, p.other} in ({"archetype", "verifier_pattern"}, {"complexity", "expertise"})
    ]
    charts += [lambda pair=pair: pair_chart(pair) for pair in wanted]
    for title, counted in (
        ("languages", found.languages),
        ("tools", found.tools),
        ("verifiers", found.verifiers),
    ):
        if counted.counts:
            charts.append(lambda title=title, counted=counted: counts_chart(title, counted.counts))
    rows = tuple(
        (name, *(f"{v:,.0f}" for v in (q.least, q.quarter, q.median, q.three_quarters, q.most)))
        for name, q in found.sizes.items()
    )
    pairs = tuple((p.one, p.other, f"{p.seen} of {p.possible}", f"{p.balance:.3f}") for p in found.pairs)
    tables = [Table(("size", "least", "25 %", "median", "75 %", "most"), rows)] if rows else []
    tables += [Table(("axis", "and axis", "pairs seen", "balance"), pairs)] if pairs else []
    return Section("Axes, tools and sizes", command, [], charts, tables)


def _fidelity(found: Fidelity, command: str) -> Section:
    sentences = [
        f"{found.matched} of {found.tasks} tasks have their skill among the {found.skills} that were searched."
    ]
    words, method = found.probe("tfidf"), found.probe("method")
    if words is not None and method is not None:
        sentences.append(
            f"All words find the source first in {words.top1.value:.1%}, words without distinctive nouns in"
            f" {method.top1.value:.1%}, chance would in {words.chance1:.2%}: the gap is what names alone give away."
        )
    sentences += [f"Skipped: {reason}." for reason in found.skipped]
    rows = tuple(
        (
            probe.retriever, probe.query, f"{probe.figures.top1.value:.1%}",
            f"{probe.figures.top1.low:.1%} - {probe.figures.top1.high:.1%}", f"{probe.figures.top5.value:.1%}",
            f"{probe.figures.top10.value:.1%}", f"{probe.figures.mrr.value:.3f}", f"{probe.figures.chance1:.2%}",
        )
        for probe in (*found.probes, *found.reverse)
    )  # fmt: skip
    tables = (
        [Table(("retriever", "query", "top-1", "95 %", "top-5", "top-10", "MRR", "chance"), rows)]
        if rows
        else []
    )
    if found.ablation:
        rows = tuple(
            (" ".join(r.rules) or "nothing", f"{r.top1:.1%}", f"{r.mrr:.3f}") for r in found.ablation
        )
        tables.append(Table(("stripped", "top-1", "MRR"), rows))
    charts: list[Callable[[], str]] = [lambda: fidelity_chart(found)] if found.probes else []
    return Section("Fidelity to the skills", command, sentences, charts, tables)


def _decontamination(found: Decontamination, command: str) -> Section:
    kinds = found.kinds()
    told = ", ".join(f"{kinds.get(kind, 0)} by {kind}" for kind in ("words", "strategy", "meaning", "canary"))
    sentences = [f"{found.tasks} tasks against {found.items} benchmark items; flagged: {told}."]
    sentences += [f"Skipped: {reason}." for reason in found.skipped]
    rows = tuple(
        (f.task, f.item, f.kind, f.field, f"{f.jaccard:.2f}", f.spans[0][:120] if f.spans else "")
        for f in found.flags[:_MOST]
    )
    tables = [Table(("task", "item", "by", "in", "Jaccard", "shared"), rows)] if rows else []
    return Section("Overlap with benchmarks", command, sentences, [], tables)


def _duplicates(found: Duplicates, command: str) -> Section:
    rows = tuple((part, str(count), str(found.accidents[part])) for part, count in found.surplus.items())
    clusters = tuple(
        (c.part, c.kind, str(len(c.tasks)), ", ".join(c.tasks[:4]) + (" ..." if len(c.tasks) > 4 else ""))
        for c in found.clusters[:_MOST]
    )
    tables = [Table(("part", "tasks with an earlier near-copy", "of them by accident"), rows)]
    tables += [Table(("part", "kind", "tasks", "which"), clusters)] if clusters else []
    return Section(
        "Near-copies", command, [f"Near means a Jaccard measure of at least {found.threshold:g}."], [], tables
    )


def _difficulty(found: Difficulty, command: str) -> Section:
    sentences = [
        f"{found.trials} trials on {found.tried} of {found.tasks} tasks; {found.ungraded} were not graded."
    ]
    if found.agreement is not None:
        sentences.append(f"Planned complexity and failure: rank correlation {found.agreement:+.2f}.")
    rows = tuple(
        (f"pass@{k}", f"{f.value:.1%}", f"{f.low:.1%} - {f.high:.1%}", str(f.tasks))
        for k, f in found.pass_at.items()
    )
    rows += tuple(
        (name, f"{f.value:.1%}", f"{f.low:.1%} - {f.high:.1%}", str(f.tasks))
        for name, f in found.by_domain.items()
    )
    tables = [Table(("figure", "value", "95 %", "tasks"), rows)]
    for label, tasks in (("solved by nobody", found.nobody), ("solved by everybody", found.everybody)):
        if tasks:
            sentences.append(
                f"{label.capitalize()}: {', '.join(tasks[:_MOST])}{' ...' if len(tasks) > _MOST else ''}."
            )
    charts: list[Callable[[], str]] = [lambda: difficulty_chart(found)] if found.pass_at else []
    return Section("Difficulty", command, sentences, charts, tables)
