"""Charts as SVG text: drawn by matplotlib, the same bytes every time, for screens and for paper.

Colours are those of Okabe and Ito, which people with any kind of colour blindness can tell apart; what matters is also
said by position, hatching or words.
"""

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from skill2env.analysis.coverage import DOMAINS, Coverage, PairCoverage, domain_shares
from skill2env.analysis.difficulty import BANDS, Difficulty
from skill2env.analysis.fidelity import QUERIES, Fidelity
from skill2env.axes import axis_values

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
INK, FAINT = "#222222", "#d9d9d9"
_STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # names of strangers may hold dollar signs
    "svg.hashsalt": "skill2env",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": "#888888",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "hatch.linewidth": 0.6,
}
_SHORT = {
    "software engineering and testing": "software",
    "AI/ML and scientific computing": "AI, science",
    "business, finance, legal, HR": "business",
    "marketing and sales": "marketing",
    "research and education": "research",
    "documents and media": "documents",
    "infrastructure and cloud": "infrastructure",
    "product and user research": "product",
    "visual and UI/UX design": "design",
    "data engineering": "data",
    "productivity and collaboration": "productivity",
    "cybersecurity": "security",
    "health and consumer life": "health, life",
}


class _Figure:
    """One drawing."""

    def __init__(
        self, width: float, height: float, rows: int = 1, columns: int = 1, *, share_x: bool = False
    ) -> None:
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        self._style: Any = matplotlib.rc_context(_STYLE)
        self._style.__enter__()
        self.figure: Any = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(self.figure)
        self.axes: Any = self.figure.subplots(
            rows, columns, squeeze=False, sharex=share_x, sharey=False
        ).ravel()

    def svg(self, title: str) -> str:
        """The drawing as an element that can stand in HTML; `title` is read out to those who cannot see it."""
        stream = io.StringIO()
        self.figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
        self._style.__exit__(None, None, None)
        text = stream.getvalue()
        text = text[text.index("<svg") :]
        text = re.sub(r'width="([\d.]+pt)" height="[\d.]+pt"', r'width="\1"', text, count=1)
        label = title.replace("&", "and").replace("<", "").replace('"', "'")
        return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def domains_chart(found: Sequence[Coverage]) -> str:
    """One panel a dataset, and one for the skills; the same thirteen rows in each, in the order of the first."""
    panels: list[tuple[str, dict[str, float]]] = [
        (f"{item.name} ({item.tasks} tasks)", domain_shares(item.domains.counts)) for item in found
    ]
    skills = found[0].skill_domains
    if skills is not None:
        panels.insert(0, (f"skills ({sum(skills.counts.values())})", domain_shares(skills.counts)))
    order = sorted(DOMAINS, key=lambda name: (panels[0][1][name], name))
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    drawing = _Figure(2.5 * columns + 1.2, 3.3 * rows, rows, columns, share_x=True)
    for at, axis in enumerate(drawing.axes):
        if at >= len(panels):
            axis.set_visible(False)
            continue
        name, shares = panels[at]
        values = [shares[domain] * 100 for domain in order]
        axis.barh([_SHORT[domain] for domain in order], values, color=PALETTE[at % len(PALETTE)], height=0.7)
        for row, value in enumerate(values):
            axis.text(value + 0.6, row, f"{value:.0f} %" if value else "none", va="center", fontsize=7.5)
        axis.set_title(name[:34])
        axis.set_xlim(0, max(max(s.values()) for _, s in panels) * 118 + 1)
        axis.set_xticks([])
        axis.spines["bottom"].set_visible(False)
        axis.tick_params(left=False, labelleft=at % columns == 0)
    return drawing.svg("Share of each domain: " + ", ".join(name for name, _ in panels))


def axes_chart(found: Coverage) -> str:
    """Values of every axis as stripes, with the balance."""
    names = list(found.axes)
    drawing = _Figure(8.2, 0.62 * len(names) + 0.5)
    (axis,) = drawing.axes
    for row, name in enumerate(reversed(names)):
        total = sum(found.axes[name].counts.values())
        left = 0.0
        for at, (value, count) in enumerate(found.axes[name].counts.items()):
            share = count / total
            axis.barh(
                row, share, left=left, color=PALETTE[at % len(PALETTE)], edgecolor="white", height=0.66,
                hatch="///" if at >= len(PALETTE) else None, alpha=0.85,
            )  # fmt: skip
            if share > 0.075:
                shown = value if len(value) < share * 105 else value[: max(2, int(share * 100))] + "…"
                axis.text(left + share / 2, row, shown, ha="center", va="center", fontsize=7.5)
            left += share
        axis.text(1.01, row, f"balance {found.axes[name].balance:.2f}", va="center", fontsize=8)
    axis.set_yticks(range(len(names)), [name.replace("_", " ") for name in reversed(names)])
    axis.set_xlim(0, 1.16)
    axis.set_xticks([])
    axis.tick_params(left=False)
    axis.spines[["bottom", "left"]].set_visible(False)
    return drawing.svg("Shares of the values of each axis")


def pair_chart(pair: PairCoverage) -> str:
    """Two axes as a table of shades with the counts written in."""
    one, other = (
        [*axis_values(axis), *sorted(extra - set(axis_values(axis)))]
        for axis, extra in (
            (pair.one, set(pair.counts)),
            (pair.other, {value for row in pair.counts.values() for value in row}),
        )
    )
    table = [[pair.counts.get(mine, {}).get(theirs, 0) for theirs in other] for mine in one]
    most = max(max(row) for row in table) or 1
    drawing = _Figure(0.8 * len(other) + 1.8, 0.3 * len(one) + 1.1)
    (axis,) = drawing.axes
    axis.imshow(table, cmap="Blues", vmin=0, vmax=most * 1.3, aspect="auto")
    for row, values in enumerate(table):
        for column, value in enumerate(values):
            axis.text(column, row, value or "·", ha="center", va="center", fontsize=7.5,
                      color="white" if value > 0.85 * most else INK)  # fmt: skip
    axis.set_xticks(range(len(other)), other, rotation=25, ha="right")
    axis.set_yticks(range(len(one)), one)
    axis.tick_params(left=False, bottom=False)
    axis.spines[:].set_visible(False)
    axis.set_title(
        f"{pair.one.replace('_', ' ')} x {pair.other.replace('_', ' ')}: {pair.seen} of {pair.possible} pairs"
    )
    return drawing.svg(f"Tasks for each pair of {pair.one} and {pair.other}")


def fidelity_chart(found: Fidelity) -> str:
    """Top-1 of every retriever and query with intervals, and the line of chance."""
    retrievers = list(dict.fromkeys(probe.retriever for probe in found.probes))
    drawing = _Figure(8.2, 0.42 * len(QUERIES) * len(retrievers) + 0.9)
    (axis,) = drawing.axes
    row, ticks, labels = 0.0, list[float](), list[str]()
    for query in QUERIES:
        for at, retriever in enumerate(retrievers):
            figures = found.probe(retriever, query)
            if figures is None:
                continue
            share = figures.top1
            axis.barh(row, share.value, color=PALETTE[at], height=0.8, alpha=0.85,
                      label=retriever if query == QUERIES[0] else None, hatch=(None, "//", "..")[at % 3],
                      edgecolor="white")  # fmt: skip
            axis.plot([share.low, share.high], [row, row], color=INK, linewidth=1.2, solid_capstyle="butt")
            axis.text(max(share.high, share.value) + 0.01, row, f"{share.value:.1%}", va="center", fontsize=8)
            ticks.append(row)
            labels.append(query if at == 0 else "")
            row += 1
        row += 0.6
    chance = found.probes[0].figures.chance1
    axis.axvline(chance, color="#D55E00", linestyle="--", linewidth=1)
    axis.text(chance + 0.005, -0.75, f"chance {chance:.2%}", color="#D55E00", fontsize=8, va="center")
    axis.set_yticks(ticks, labels)
    axis.tick_params(left=False)
    axis.set_ylim(row - 0.6, -1.1)
    axis.set_xlim(0, 1.12)
    axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axis.legend(frameon=False, loc="lower right", fontsize=8)
    return drawing.svg("How often the source skill comes first, by retriever and query")


def difficulty_chart(found: Difficulty) -> str:
    """Tasks in each band, and pass@k with intervals."""
    drawing = _Figure(8.2, 2.3, 1, 2)
    bands, passes = drawing.axes
    names = [name for name, _, _ in BANDS]
    counts = [found.bands.get(name, 0) for name in names]
    bands.bar(names, counts, color=[PALETTE[5], PALETTE[1], PALETTE[2], PALETTE[4], PALETTE[0]], width=0.7)
    for at, count in enumerate(counts):
        bands.text(at, count, str(count), ha="center", va="bottom", fontsize=8)
    bands.set_title("tasks in each band of pass@1")
    bands.set_yticks([])
    bands.spines["left"].set_visible(False)
    ks = list(found.pass_at)
    values = [found.pass_at[k] for k in ks]
    passes.plot(range(len(ks)), [f.value for f in values], color=PALETTE[0], marker="o")
    passes.fill_between(
        range(len(ks)), [f.low for f in values], [f.high for f in values], color=PALETTE[0], alpha=0.2
    )
    passes.set_xticks(range(len(ks)), [f"pass@{k}\n{f.tasks} tasks" for k, f in zip(ks, values, strict=True)])
    passes.set_ylim(0, 1.02)
    passes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    passes.set_title("mean over tasks")
    return drawing.svg("Difficulty bands and pass@k")


def counts_chart(title: str, counts: Mapping[str, int], most: int = 12) -> str:
    """The most frequent values of one field."""
    shown = list(counts.items())[:most][::-1]
    drawing = _Figure(3.9, 0.24 * len(shown) + 0.6)
    (axis,) = drawing.axes
    axis.barh([name[:26] for name, _ in shown], [count for _, count in shown], color=PALETTE[0], height=0.7)
    for row, (_, count) in enumerate(shown):
        axis.text(count, row, f" {count}", va="center", fontsize=7.5)
    axis.set_xticks([])
    axis.tick_params(left=False)
    axis.spines["bottom"].set_visible(False)
    axis.set_title(title)
    return drawing.svg(title)
