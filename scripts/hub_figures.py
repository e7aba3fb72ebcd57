"""How often screening and domains are right: precision and recall on labelled skills, as tables.

    python scripts/hub_figures.py CORPUS [train|heldout]

CORPUS is a folder with the skills at the paths that ``tests/data/hub/labels_NAME.jsonl`` names. Two readers
labelled the sets by common conventions; rules and weights were tuned on ``train`` alone. ``tests/hub/test_labels.py``
asserts floors a little under these figures.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skill2env.domains import DomainGuess, load_classifier
from skill2env.hub.rules import Group, ScreeningVerdict
from skill2env.hub.screening import Screening, judge_skill
from skill2env.ingest import load_skill
from skill2env.records import Domain

LABELS = Path(__file__).resolve().parent.parent / "tests/data/hub"

OUTSIDE = (
    Group.NEEDS_ACCOUNT,
    Group.SAAS,
    Group.LIVE_NETWORK,
    Group.MCP,
    Group.GUI,
    Group.HARDWARE,
    Group.GPU,
)
TOO_LITTLE = (Group.PERSONA, Group.TOO_THIN, Group.NO_CHECKABLE_OUTCOME, Group.FIXTURE)


@dataclass(frozen=True)
class Judged:
    """A label and what the program says about the same skill."""

    label: dict[str, Any]
    screening: Screening
    guess: DomainGuess

    @property
    def groups(self) -> set[str]:
        """Groups whose rules ask for review or drop."""
        return {
            flag.group.value for flag in self.screening.flags if flag.verdict is not ScreeningVerdict.COMPILE
        }


@dataclass(frozen=True)
class Rates:
    """Counts of one yes-no question."""

    hits: int
    said: int
    true: int

    @property
    def precision(self) -> float:
        """Of those called so, the share that is; 1 when none is called so."""
        return self.hits / self.said if self.said else 1.0

    @property
    def recall(self) -> float:
        """Of those that are so, the share called so; 1 when none is."""
        return self.hits / self.true if self.true else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of both."""
        return 2 * self.hits / (self.said + self.true) if self.said + self.true else 1.0


def read_labels(name: str) -> list[dict[str, Any]]:
    """The records of one set."""
    path = LABELS / f"labels_{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def judge(corpus: Path, labels: Sequence[dict[str, Any]]) -> list[Judged]:
    """Screen and classify every labelled skill."""
    found: list[Judged] = []
    for label in labels:
        path = corpus / label["path"]
        skill = load_skill(path)
        texts = {skill.entry: path.read_text(encoding="utf-8", errors="replace")}
        guess = load_classifier().classify(skill.name, skill.description, skill.body)
        found.append(Judged(label, judge_skill(skill, texts), guess))
    return found


def rates(rows: Sequence[Judged], said: Callable[[Judged], bool], true: Callable[[Judged], bool]) -> Rates:
    """Count the answers to one question."""
    return Rates(sum(said(row) and true(row) for row in rows), sum(map(said, rows)), sum(map(true, rows)))


def of_verdict(rows: Sequence[Judged], verdict: ScreeningVerdict) -> Rates:
    """Rates of one verdict."""
    return rates(
        rows, lambda row: row.screening.verdict is verdict, lambda row: row.label["verdict"] == verdict.value
    )


def of_group(rows: Sequence[Judged], group: Group) -> Rates:
    """Rates of the flags of one group."""
    return rates(rows, lambda row: group.value in row.groups, lambda row: group.value in row.label["reasons"])


def of_any(rows: Sequence[Judged], groups: Sequence[Group]) -> Rates:
    """Rates of flags of any of several groups: readers and rules often name another one for the same need."""
    names = {group.value for group in groups}
    return rates(
        rows, lambda row: bool(row.groups & names), lambda row: bool(names & set(row.label["reasons"]))
    )


def of_domain(rows: Sequence[Judged], domain: Domain) -> Rates:
    """Rates of one domain, unsure guesses taken at their likeliest."""
    return rates(
        rows, lambda row: row.guess.likeliest == domain, lambda row: row.label["domain"] == domain.value
    )


def macro_f1(rows: Sequence[Judged]) -> float:
    """Mean F1 of the domains that are labelled in `rows`."""
    found = [rate.f1 for domain in Domain if (rate := of_domain(rows, domain)).true]
    return sum(found) / len(found)


def tables(rows: Sequence[Judged]) -> str:
    """All figures in Markdown."""
    lines = ["| verdict | precision | recall | labelled |", "|---|---|---|---|"]
    clear = [row for row in rows if not row.label["ambiguous"]]
    for title, part in (("", rows), (", clear cases", clear)):
        for verdict in ScreeningVerdict:
            lines.append(_row(f"{verdict.value}{title}", of_verdict(part, verdict)))
    lines += ["", "| flag group | precision | recall | labelled |", "|---|---|---|---|"]
    lines += [_row(group.value, rate) for group in Group if (rate := of_group(rows, group)).true or rate.said]
    for title, groups in (("something outside", OUTSIDE), ("too little", TOO_LITTLE)):
        lines.append(_row(f"{title}: any of {', '.join(groups)}", of_any(rows, groups)))
    lines += ["", "| domain | precision | recall | labelled |", "|---|---|---|---|"]
    lines += [_row(domain.value, of_domain(rows, domain)) for domain in Domain]
    sure = [row for row in rows if row.guess.domain]
    right = [row.guess.likeliest == row.label["domain"] for row in rows]
    either = [row.guess.likeliest in {row.label["domain"], row.label["second_domain"]} for row in rows]
    lines.append(
        f"\nDomains: macro-F1 {macro_f1(rows):.3f} of all, {macro_f1(sure):.3f} of the {len(sure)} that are not "
        f"unsure; right {sum(right) / len(rows):.3f}, right or the second domain {sum(either) / len(rows):.3f}."
    )
    pairs = Counter((row.label["verdict"], row.screening.verdict.value) for row in rows)
    lines.append(
        "Labelled and said: " + ", ".join(f"{a} {b} {count}" for (a, b), count in sorted(pairs.items())) + "."
    )
    return "\n".join(lines)


def _row(name: str, rate: Rates) -> str:
    return f"| {name} | {rate.hits}/{rate.said} = {rate.precision:.2f} | {rate.recall:.2f} | {rate.true} |"


def main() -> int:
    """Print the tables of one set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("name", nargs="?", default="heldout", choices=("train", "heldout"))
    chosen = parser.parse_args()
    print(tables(judge(chosen.corpus, read_labels(chosen.name))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
