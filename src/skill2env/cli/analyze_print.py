"""What `skill2env analyze` prints for people."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from skill2env.cli.output import one_line, print_table

if TYPE_CHECKING:
    from skill2env.analysis.compare import Comparisons
    from skill2env.analysis.coverage import Coverage, Distribution
    from skill2env.analysis.decontaminate import Decontamination
    from skill2env.analysis.difficulty import Difficulty
    from skill2env.analysis.duplicates import Duplicates
    from skill2env.analysis.fidelity import Fidelity, Share

_MOST = 12
_FLAGS = 40


def print_coverage(found: "Sequence[Coverage]") -> None:
    """Datasets side by side."""
    from skill2env.analysis.coverage import DOMAINS, domain_shares

    for item in found:
        print(f"{one_line(item.name)}: {item.tasks} tasks from {item.skills} skills")
    names = [one_line(item.name) for item in found]
    shares = [domain_shares(item.domains.counts) for item in found]
    skills = found[0].skill_domains
    head = [*names, *(["skills"] if skills else [])]
    columns = [*shares, *([domain_shares(skills.counts)] if skills else [])]
    print_table(
        ("DOMAIN", *head), [(domain, *(f"{share[domain]:.1%}" for share in columns)) for domain in DOMAINS]
    )
    print_table(
        ("BALANCE exp(H)/N", *names),
        [
            ("domains", *(f"{item.domains.balance:.3f}" for item in found)),
            *(
                (axis, *(f"{item.axes[axis].balance:.3f}" if axis in item.axes else "-" for item in found))
                for axis in dict.fromkeys(axis for item in found for axis in item.axes)
            ),
        ],
    )
    for item in found:
        _print_one(item)


def _print_one(item: "Coverage") -> None:
    name = one_line(item.name)
    if item.tasks and item.domains.absent:
        print(f"{name}: no task in {'; '.join(item.domains.absent)}")
    if item.guessed_domains:
        print(
            f"{name}: {item.guessed_domains} of {item.tasks} domains are guessed from the words of the task"
        )
    for title, counted in (
        ("verifiers", item.verifiers),
        ("languages", item.languages),
        ("tools", item.tools),
        ("data", item.formats),
        ("licences", item.licences),
    ):
        print(f"{name}: {title}: {_counts(counted)}")
    print_pairs = [(p.one, p.other, f"{p.seen} of {p.possible}", f"{p.balance:.3f}") for p in item.pairs]
    if print_pairs:
        print_table(("AXIS", "AND AXIS", "PAIRS SEEN", "BALANCE"), print_pairs)
    if item.sizes:
        print_table(
            ("SIZE", "LEAST", "25 %", "MEDIAN", "75 %", "MOST"),
            [
                (label, *(f"{v:g}" for v in (q.least, q.quarter, q.median, q.three_quarters, q.most)))
                for label, q in item.sizes.items()
            ],
        )
    print_oddities(name, item.oddities.items())


def print_oddities(name: str, counted: Iterable[tuple[str, int]]) -> None:
    """Diagnostics by kind."""
    told = ", ".join(f"{code} {count}" for code, count in counted)
    if told:
        print(f"{name}: oddities: {told}")


def _counts(found: "Distribution") -> str:
    shown = [f"{one_line(value)} {count}" for value, count in list(found.counts.items())[:_MOST]]
    more = len(found.counts) - len(shown)
    return (", ".join(shown) or "none") + (f" and {more} more" if more else "")


def print_fidelity(found: "Fidelity") -> None:
    """Every probe beside chance."""
    name = one_line(found.name)
    print(f"{name}: {found.matched} of {found.tasks} tasks have their skill among the {found.skills} given")
    print_table(
        ("RETRIEVER", "QUERY", "TOP-1", "95 % INTERVAL", "TOP-5", "TOP-10", "MRR", "CHANCE"),
        [
            (
                probe.retriever,
                probe.query,
                f"{probe.figures.top1.value:.1%}",
                interval(probe.figures.top1),
                f"{probe.figures.top5.value:.1%}",
                f"{probe.figures.top10.value:.1%}",
                f"{probe.figures.mrr.value:.3f}",
                f"{probe.figures.chance1:.2%}",
            )
            for probe in (*found.probes, *found.reverse)
        ],
    )
    whole = found.probe("tfidf")
    if whole is not None and whole.domains:
        retrievers = list(dict.fromkeys(probe.retriever for probe in found.probes))
        rows: list[tuple[str, ...]] = []
        for domain, (count, _) in whole.domains.items():
            shares = [found.probe(retriever) for retriever in retrievers]
            rows.append((domain, str(count), *(f"{f.domains[domain][1].value:.1%}" for f in shares if f)))
        print_table(("DOMAIN (TOP-1)", "TASKS", *retrievers), rows)
    if found.ablation:
        print_table(
            ("STRIPPED", "WORDS GONE", "TOP-1", "MRR"),
            [
                (" ".join(row.rules) or "nothing", row.stripped_words, f"{row.top1:.1%}", f"{row.mrr:.3f}")
                for row in found.ablation
            ],
        )
    for reason in found.skipped:
        print(f"skipped: {reason}")
    print_oddities(name, found.oddities.items())


def interval(share: "Share") -> str:
    """An interval in per cent."""
    return f"{share.low:.1%} - {share.high:.1%}"


def print_decontamination(found: "Decontamination") -> None:
    """Flagged pairs and totals."""
    name = one_line(found.name)
    print(f"{name}: {found.tasks} tasks against {found.items} items")
    if found.flags:
        print_table(
            ("TASK", "ITEM", "BY", "IN", "JACCARD", "CONTAINED", "SHARED"),
            [
                (
                    one_line(flag.task),
                    one_line(flag.item),
                    flag.kind,
                    flag.field,
                    f"{flag.jaccard:.3f}",
                    f"{flag.containment:.3f}",
                    one_line(flag.spans[0])[:60] if flag.spans else "",
                )
                for flag in found.flags[:_FLAGS]
            ],
        )
        if len(found.flags) > _FLAGS:
            print(f"and {len(found.flags) - _FLAGS} more; --json has all")
    kinds = found.kinds()
    for kind in ("words", "strategy", "meaning", "canary"):
        print(f"{kind}: {kinds.get(kind, 0)} tasks")
    if found.held_out is not None:
        print(
            "held out: "
            + ("never touched" if found.held_out else f"touched by {len(found.held_out_tasks)} tasks")
        )
    print(f"left out of a filtered dataset: {len(found.removed)}")
    for reason in found.skipped:
        print(f"skipped: {reason}")
    print_oddities(name, found.oddities.items())


def print_duplicates(found: "Duplicates") -> None:
    """Clusters, largest first."""
    print(f"{one_line(found.name)}: {found.tasks} tasks, near from {found.threshold:g}")
    if found.clusters:
        print_table(
            ("PART", "KIND", "TASKS", "FIRST", "NEAREST"),
            [
                (
                    cluster.part,
                    cluster.kind,
                    len(cluster.tasks),
                    one_line(cluster.tasks[0]),
                    f"{one_line(cluster.tasks[1])} {max(cluster.measures[1:]):.3f}",
                )
                for cluster in found.clusters[:_FLAGS]
            ],
        )
    for part, count in found.surplus.items():
        print(f"{part}: {count} tasks have an earlier near-copy, {found.accidents[part]} of them by accident")
    print_oddities(one_line(found.name), found.oddities.items())


def print_difficulty(found: "Difficulty") -> None:
    """Dataset first, then the tasks that stand out."""
    name = one_line(found.name)
    print(
        f"{name}: {found.trials} trials on {found.tried} of {found.tasks} tasks; {found.ungraded} not graded"
    )
    rows = [(f"pass@{k}", figure) for k, figure in found.pass_at.items()]
    rows += [("mean score", found.mean_score)] if found.mean_score else []
    rows += [(f"pass@1 in {domain}", figure) for domain, figure in found.by_domain.items()]
    rows += [(f"pass@1 at {band}", figure) for band, figure in found.by_complexity.items()]
    print_table(
        ("FIGURE", "VALUE", "95 % INTERVAL", "TASKS"),
        [(label, f"{f.value:.1%}", f"{f.low:.1%} - {f.high:.1%}", f.tasks) for label, f in rows],
    )
    print("bands: " + ", ".join(f"{band} {count}" for band, count in found.bands.items()))
    if found.agreement is not None:
        print(f"planned complexity and failure: rank correlation {found.agreement:+.2f}")
    for label, tasks in (("solved by nobody", found.nobody), ("solved by everybody", found.everybody)):
        if tasks:
            shown = ", ".join(map(one_line, tasks[:_MOST]))
            print(f"{label}: {shown}" + (f" and {len(tasks) - _MOST} more" if len(tasks) > _MOST else ""))
    print_oddities(name, found.oddities.items())


def print_comparison(found: "Comparisons") -> None:
    """Figures side by side."""
    names = one_line(found.one.name), one_line(found.other.name)
    print(
        f"{names[0]}: {found.one.tasks} tasks; {names[1]}: {found.other.tasks} tasks, {found.shared} near to the first"
    )
    print_table(
        ("FIGURE", *names, "95 % OF DIFFERENCE", "P", "P ADJUSTED", ""),
        [
            (
                row.figure,
                _number(row.one),
                _number(row.other),
                "-" if row.low is None or row.high is None else f"{row.low:+.3g} to {row.high:+.3g}",
                "-" if row.p is None else f"{row.p:.4f}",
                "-" if row.adjusted is None else f"{row.adjusted:.4f}",
                "differs" if row.differs else "",
            )
            for row in found.rows
        ],
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
