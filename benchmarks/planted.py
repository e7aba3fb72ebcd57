"""Planted truth: corpora where the source of every task is known, and what tasks share with it is controlled.

Run ``python benchmarks/planted.py`` for the tables of docs/analysis.md. Tests use smaller versions of the same corpora.

A skill teaches three methods out of `METHODS` about things with invented names. Its tasks copy a share of the names and
say the methods in the words of the skill, in other words, or not at all. All sentences are written for this purpose.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skill2env.analysis.records import Corpus, SkillText, TaskRecord

METHODS: tuple[tuple[str, str], ...] = (
    ("Reconcile every ledger line with the bank statement before any total is reported.",
     "Each booked entry has to be matched to what the account shows; only then may sums be published."),
    ("Round money once at the very end, never in the middle of a calculation.",
     "Cents must be cut off only in the final figure, because early truncation adds up to an error."),
    ("Sort findings by severity and give each one a reproducible example.",
     "List problems from worst to mildest, and show for all of them how anybody can see it happen."),
    ("Quarantine malformed records in a separate file instead of dropping them.",
     "Broken rows go to a place of their own rather than vanishing without trace."),
    ("Keep the original images untouched and write resized copies beside them.",
     "Scaled pictures are stored next to the sources, which nobody may alter."),
    ("Interview notes are coded twice by theme and disagreements are discussed openly.",
     "Two passes label what people said; where the labels differ, talk it through."),
    ("Rotate credentials after the incident and revoke every session that used them.",
     "Following a breach, issue new secrets and log out whoever still held the old ones."),
    ("State the hypothesis before looking at the outcome of the experiment.",
     "Write down what you expect prior to seeing how the trial turned out."),
    ("Migrate schema changes in two steps so that old readers keep working.",
     "Alter the tables in stages, leaving software of yesterday able to read them."),
    ("Contrast between text and background must reach the accessibility threshold.",
     "Letters have to stand out enough against what lies behind for weak eyes to read."),
    ("Deduplicate customers by normalised address, not by spelling of the surname.",
     "Merge buyers who live at one canonical location, however their family is written."),
    ("Retry failed uploads with growing pauses and stop after the fifth attempt.",
     "When sending breaks, wait longer each time, and give up once five tries are gone."),
    ("Cite the paragraph of the contract that supports each conclusion.",
     "Every judgement must point at the clause of the agreement on which it rests."),
    ("Split the training data by patient so that nobody appears on both sides.",
     "People must sit wholly in the learning part or wholly in the held back part."),
    ("Convert all timestamps to universal time before comparing them.",
     "Bring clock readings of different zones onto one common scale prior to ordering."),
    ("Name the audience and the single action expected from each campaign message.",
     "For every advertisement, say who should read it and the one thing they ought to do."),
    ("Taste and season at the end of cooking, after the liquid has reduced.",
     "Salt the dish late, once the sauce has boiled down."),
    ("Escalate unanswered tickets to the owner of the service within one day.",
     "Requests nobody replied to must reach whoever is responsible before tomorrow."),
    ("Compress audio only after loudness has been levelled across tracks.",
     "Make songs equally loud first; shrinking the sound files comes later."),
    ("Freeze dependencies and record their checksums in the build manifest.",
     "Pin third party packages and note a fingerprint of each where the release is described."),
    ("Draw the floor plan to scale and mark load bearing walls in black.",
     "The sketch of the house keeps proportions, and what carries weight is shown dark."),
    ("Ask students to explain their reasoning before revealing the answer.",
     "Learners must tell how they think prior to being shown the solution."),
    ("Alert on symptoms that users notice rather than on causes inside machines.",
     "Wake somebody for what customers feel, not for every hiccup of a server."),
    ("Estimate inventory needs from seasonal demand and supplier lead time.",
     "How much stock to hold follows from yearly ups and downs and how long deliveries take."),
)  # fmt: skip
FILLER = (
    "Please hand in the finished work when you are done.", "The folder holds what you need.",
    "Somebody else will pick this up next week.", "There is some time pressure this month.",
    "We tried this before and it went wrong.", "The result is read by people who were not there.",
    "Keep the rest of the folder as it is.", "Ask nobody; everything that matters is written down.",
)  # fmt: skip
_PARTS = (
    "bar dul fen gor hax jin kel lom mur nox pel qua rax sto tiv vor wex yol zan bri cru dre flo gli".split()
)
PROFILES: dict[str, tuple[float, str]] = {
    "names and method copied": (1.0, "copied"),
    "names copied, method reworded": (1.0, "reworded"),
    "names only": (1.0, "none"),
    "half of the names only": (0.5, "none"),
    "method only": (0.0, "copied"),
    "method reworded only": (0.0, "reworded"),
    "nothing shared": (0.0, "none"),
}
"""What tasks share with their skill: share of its names, and how its methods are told."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A corpus with its truth in it."""

    skills: tuple[SkillText, ...]
    corpus: Corpus


def invent(rng: random.Random) -> str:
    """A word that no language has."""
    return "".join(rng.sample(_PARTS, 3))


def plant(profile: str, *, skills: int = 300, tasks: int = 3, seed: int = 0) -> Planted:
    """Make a corpus.

    Args:
        profile: of `PROFILES`.
        skills: how many; no two teach the same three methods.
        tasks: for each skill.
        seed: equal seeds give equal corpora.
    """
    share, telling = PROFILES[profile]
    rng = random.Random(f"{seed}/skills")  # the same skills for all profiles
    methods: set[tuple[int, ...]] = set()
    while len(methods) < skills:
        methods.add(tuple(sorted(rng.sample(range(len(METHODS)), 3))))
    documents: list[SkillText] = []
    records: list[TaskRecord] = []
    draw = random.Random(f"{seed}/{profile}")
    for at, chosen in enumerate(rng.sample(sorted(methods), len(methods))):
        names = [invent(rng) for _ in range(6)]
        documents.append(SkillText(f"s{at}", f"skill-{at}", _skill(names, chosen, rng)))
        for number in range(tasks):
            records.append(_task(at, number, names, chosen, share, telling, draw))
    return Planted(tuple(documents), Corpus(profile, tuple(records)))


def _noun(name: str, form: int) -> str:
    """One of the ways in which a name is written; all give away the source."""
    return (
        f"`{name}`",
        name.capitalize(),
        f"data/{name}.csv",
        f"{name}_run",
        f"--{name}",
        f"{name}.{name[:3]}",
    )[form % 6]


def _skill(names: list[str], chosen: tuple[int, ...], rng: random.Random) -> str:
    lines = [METHODS[at][0] for at in chosen]
    lines += [f"First look at the {_noun(name, form)} part with care." for form, name in enumerate(names)]
    lines += [f"Then use {_noun(rng.choice(names), rng.randrange(6))} once more." for _ in range(4)]
    lines += rng.sample(FILLER, 3)
    rng.shuffle(lines)
    return "\n".join(lines)


def _task(
    skill: int,
    number: int,
    names: list[str],
    chosen: tuple[int, ...],
    share: float,
    telling: str,
    rng: random.Random,
) -> TaskRecord:
    copied = [name for name in names if rng.random() < share]
    others = [invent(rng) for _ in range(len(names) - len(copied))]
    nouns = [_noun(name, rng.randrange(6)) for name in (*copied, *others)]
    if telling == "none":
        # Methods of any skill: what the task is about has nothing to do with its source.
        told = [METHODS[at][0] for at in rng.sample(range(len(METHODS)), 2)]
    else:
        told = [METHODS[at][0 if telling == "copied" else 1] for at in chosen]
    lines = [f"There is trouble with {noun} again." for noun in nouns] + told[:2] + rng.sample(FILLER, 3)
    rng.shuffle(lines)
    rubric = f"## Must-do\n- {told[-1]}\n## Must-avoid\n- Losing sight of {nouns[0]}.\n"
    return TaskRecord(
        key=f"t{skill}-{number}", folder=Path(), name=f"t{skill}-{number}", instruction="\n".join(lines),
        rubric=rubric, skill=f"skill-{skill}",
    )  # fmt: skip


def probe_table(*, skills: int, tasks: int, seed: int, embed: bool) -> Iterator[tuple[str, dict[str, float]]]:
    """Profile -> top-1 of each retriever, and chance."""
    from skill2env.analysis.embedding import find_embedder
    from skill2env.analysis.fidelity import fidelity

    embedder = find_embedder() if embed else None
    for profile in PROFILES:
        planted = plant(profile, skills=skills, tasks=tasks, seed=seed)
        found = fidelity(planted.corpus, planted.skills, embedder=embedder, seed=seed)
        rows = {p.retriever: p.figures.top1.value for p in found.probes if p.query == "instruction + rubric"}
        control = max(p.figures.top1.value for p in found.probes if p.query == "generic advice")
        yield profile, {**rows, "generic advice": control, "chance": 1 / len(planted.skills)}


STATEMENTS = (
    "{a} = sorted({b}, key=len)", "for {c} in {b}:\n    {a}.append({c}.strip())", "{a} = json.loads({b})",
    "{a} = {{{c}: len({c}) for {c} in {b}}}", "if {a} not in {b}:\n    raise ValueError({c})",
    "with open({a}) as {b}:\n    {c} = {b}.read()", "{a} = [{c} for {c} in {b} if {c}.isdigit()]",
    "while {a}:\n    {b} += {a}.pop()", "{a} = max({b}, default={c})", "{a}.setdefault({b}, []).append({c})",
    "try:\n    {a} = int({b})\nexcept ValueError:\n    {a} = {c}", "{a}, {b} = {b}, {a}",
    "def {a}({b}):\n    return sum({b}) / len({b})", "print(json.dumps({a}, indent=2))", "{a} = re.sub({b}, {c}, {a})",
    "assert all({c} >= 0 for {c} in {a})", "{a} = zip({b}, {c}, strict=True)", "{a} = {b} % {c} + {a} // 2",
)  # fmt: skip
LEVELS: dict[str, float] = {
    "verbatim": 0.0,
    "a word in 20 replaced": 0.05,
    "a word in 8 replaced": 0.125,
    "reworded": 1.0,
}
"""How a planted task differs from the item that it was copied from: share of words replaced."""


def _program(strategy: int, rng: random.Random) -> str:
    """One strategy in names that are new each time."""
    shape = random.Random(f"strategy {strategy}")
    lines = []
    for _ in range(14):
        names = {letter: invent(rng) for letter in "abc"}
        lines.append(shape.choice(STATEMENTS).format(**names))
    return "import json, re\n" + "\n".join(lines) + "\n"


def contaminate(level: str, share: float, folder: Path, *, tasks: int = 200, seed: int = 0):
    """A dataset of which a share was copied from a benchmark, with the truth.

    Returns:
        Corpus, benchmark items, keys of the planted tasks.
    """
    from skill2env.analysis.documents import Document
    from skill2env.analysis.strategy import python_steps

    rng = random.Random(f"{seed}/{level}/{share}")
    sentences = [told for pair in METHODS for told in pair]

    def words() -> list[str]:
        """Sentences that many texts share, each with a name of its own in the middle, so that no 13-gram is shared."""
        found: list[str] = []
        for sentence in rng.sample(sentences, 5):
            parts = sentence.split()
            found += [*parts[: len(parts) // 2], invent(rng), invent(rng), *parts[len(parts) // 2 :]]
        return found

    items = [(words(), at) for at in range(tasks)]
    documents = [
        Document(
            f"i{at}", " ".join(text), solution=(code := _program(at, rng)), strategy=tuple(python_steps(code))
        )
        for text, at in items
    ]
    planted: set[str] = set()
    records: list[TaskRecord] = []
    for number in range(tasks):
        key, text, strategy = f"t{number}", words(), 10_000 + number
        if rng.random() < share:
            planted.add(key)
            source, strategy = items[rng.randrange(len(items))]
            changed = [invent(rng) if rng.random() < LEVELS[level] else word for word in source]
            text = words() if level == "reworded" else changed
        place = folder / key
        (place / "solution").mkdir(parents=True)
        code = _program(strategy, rng)
        (place / "solution/solve.py").write_text(code)
        records.append(
            TaskRecord(
                key=key, folder=place, name=key, instruction=" ".join(text), solution=code,
                files=(("solution/solve.py", len(code)),),
            )
        )  # fmt: skip
    return Corpus(level, tuple(records)), documents, planted


def contamination_table(tasks: int = 200, seed: int = 0) -> Iterator[tuple[str, float, str, float, float]]:
    """Level, share planted, what looked, precision, recall."""
    from skill2env.analysis.decontaminate import decontaminate

    for level in LEVELS:
        for share in (0.0, 0.05, 0.2):
            with tempfile.TemporaryDirectory() as place:
                corpus, documents, planted = contaminate(level, share, Path(place), tasks=tasks, seed=seed)
                found = decontaminate(corpus, documents)
            for name, kinds in (
                ("words", {"words"}),
                ("strategy", {"strategy"}),
                ("both", {"words", "strategy"}),
            ):
                flagged = {flag.task for flag in found.flags if flag.kind in kinds}
                precision = len(flagged & planted) / len(flagged) if flagged else 1.0
                recall = len(flagged & planted) / len(planted) if planted else 1.0
                yield level, share, name, precision, recall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skills", type=int, default=300)
    parser.add_argument("--tasks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-embedding", action="store_true")
    given = parser.parse_args()
    began = time.monotonic()
    print(f"{given.skills} skills, {given.tasks} tasks each, seed {given.seed}: top-1")
    for profile, row in probe_table(
        skills=given.skills, tasks=given.tasks, seed=given.seed, embed=not given.no_embedding
    ):
        print(f"{profile:32}" + "  ".join(f"{name} {value:.3f}" for name, value in row.items()))
    print("contamination: precision and recall")
    for level, share, name, precision, recall in contamination_table(seed=given.seed):
        print(f"{level:24}{share:5.0%}  {name:9} precision {precision:.3f}  recall {recall:.3f}")
    print(f"{time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
