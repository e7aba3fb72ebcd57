"""Speed and memory of the analyses, beside plain scikit-learn and a plain dictionary, each in a process of its own.

``python benchmarks/analyze.py SKILLS`` takes a folder of SKILL.md files (or makes up its own). Where it has too few,
skills are multiplied by seeded templates, and tasks are made from the sentences of the skills in the same way: the
sizes are real, the tasks are not. Every line states time, peak memory and the load of the machine; where the load is
above the number of cores, processor time is the figure to read.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

SKILLS, TASKS, DOCUMENTS, MANY = 3_400, 8_000, 15_000, 100_000
OPENINGS = (
    "A colleague left this half done.", "Our team needs this by the end of the week.", "Something is off here.",
    "We took over a folder and have to make sense of it.", "The last attempt was rejected.", "Please help.",
)  # fmt: skip


def texts(place: Path | None, many: int) -> list[str]:
    """Skill documents, multiplied where there are too few."""
    from skill2env.analysis.records import Notes
    from skill2env.analysis.skills import read_skills

    if place is not None:
        found = [skill.text for skill in read_skills([place], Notes())]
    else:
        from planted import plant

        found = [skill.text * 12 for skill in plant("names and method copied", skills=1500, tasks=1).skills]
    rng = random.Random(1)
    base = list(found)
    while len(found) < many:
        lines = rng.choice(base).splitlines()
        rng.shuffle(lines)
        found.append(
            "\n".join([f"name: {rng.randrange(10**9)}", *lines[: len(lines) * 2 // 3], rng.choice(OPENINGS)])
        )
    return found[:many]


def instruction(text: str, rng: random.Random, lines: int = 14) -> str:
    """A task's words, out of lines of its skill."""
    known = [line for line in text.splitlines() if len(line.split()) > 4] or [text[:400]]
    return "\n".join([rng.choice(OPENINGS), *rng.choices(known, k=lines)])[:2500]


def corpus(skills: Sequence[str], many: int):
    from skill2env.analysis.records import Corpus, SkillText, TaskRecord

    rng = random.Random(2)
    tasks = []
    for at in range(many):
        source = at % len(skills)
        tasks.append(
            TaskRecord(
                key=f"t{at}", folder=Path(), name=f"t{at}", skill=f"skill-{source}",
                instruction=instruction(skills[source], rng),
                rubric="## Must-do\n- " + instruction(skills[source], rng, 3),
                domain="data engineering",
            )
        )  # fmt: skip
    return Corpus("bench", tuple(tasks)), [
        SkillText(f"s{at}", f"skill-{at}", text) for at, text in enumerate(skills)
    ]


def lexical(place: Path | None, tasks: int = TASKS) -> tuple[Callable[[], object], str]:
    from skill2env.analysis.fidelity import fidelity

    data, skills = corpus(texts(place, SKILLS), tasks)
    return lambda: fidelity(
        data, skills
    ), f"{tasks} tasks x {len(skills)} skills, 4 kinds of query, with and without names"


def plain_sklearn(place: Path | None) -> tuple[Callable[[], object], str]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    data, skills = corpus(texts(place, SKILLS), TASKS)

    def probe() -> float:
        vectors = TfidfVectorizer(stop_words="english")
        known = vectors.fit_transform([skill.text for skill in skills])
        asked = vectors.transform([f"{task.instruction}\n{task.rubric}" for task in data.tasks])
        hits = 0
        for start in range(0, TASKS, 1000):
            scores = (asked[start : start + 1000] @ known.T).toarray()
            hits += sum(int(row.argmax() == (start + at) % len(skills)) for at, row in enumerate(scores))
        return hits / TASKS

    return probe, "one kind of query, all words, no intervals"


def documents(place: Path | None) -> tuple[list[str], list[str]]:
    """Tasks and benchmark items; every twentieth task is an item too."""
    skills = texts(place, SKILLS)
    rng = random.Random(3)
    items = [instruction(skills[rng.randrange(len(skills))], rng) for _ in range(DOCUMENTS)]
    tasks = [
        items[rng.randrange(DOCUMENTS)]
        if at % 20 == 0
        else instruction(skills[rng.randrange(len(skills))], rng)
        for at in range(TASKS)
    ]
    return tasks, items


def decontaminate(place: Path | None) -> tuple[Callable[[], object], str]:
    from skill2env.analysis.decontaminate import decontaminate as compare
    from skill2env.analysis.documents import Document
    from skill2env.analysis.records import Corpus, TaskRecord

    tasks, items = documents(place)
    records = tuple(
        TaskRecord(key=f"t{at}", folder=Path(), name=f"t{at}", instruction=text)
        for at, text in enumerate(tasks)
    )
    known = [Document(f"i{at}", text) for at, text in enumerate(items)]
    return lambda: compare(
        Corpus("bench", records), known, containment=1.0
    ), f"{TASKS} tasks against {DOCUMENTS} items, 13-grams, spans"


def plain_dictionary(place: Path | None) -> tuple[Callable[[], object], str]:
    from skill2env.similarity import words

    tasks, items = documents(place)

    def probe() -> int:
        known: dict[tuple[str, ...], list[int]] = defaultdict(list)
        sizes = []
        for at, text in enumerate(items):
            found = words(text)
            grams = {tuple(found[p : p + 13]) for p in range(max(1, len(found) - 12))}
            sizes.append(len(grams))
            for gram in grams:
                known[gram].append(at)
        flagged = 0
        for text in tasks:
            found = words(text)
            grams = {tuple(found[p : p + 13]) for p in range(max(1, len(found) - 12))}
            shared: dict[int, int] = defaultdict(int)
            for gram in grams:
                for item in known.get(gram, ()):
                    shared[item] += 1
            flagged += any(n / (len(grams) + sizes[item] - n) >= 0.8 for item, n in shared.items())
        return flagged

    return probe, "the same pairs by a dictionary of tuples"


def embedding(place: Path | None) -> tuple[Callable[[], object], str]:
    from skill2env.analysis.embedding import find_embedder

    found = find_embedder()
    if found is None:
        return lambda: None, "skipped: the extra 'embed' is not installed"
    few = texts(place, 200)
    return lambda: found.documents(few), f"200 documents, {found.name}"


def report(place: Path | None) -> tuple[Callable[[], object], str]:
    data, _ = corpus(texts(place, SKILLS), TASKS)
    root = Path(tempfile.mkdtemp(prefix="analyze-bench-"))
    for task in data.tasks:
        folder = root / task.key
        for name in ("tests", "solution", "environment"):
            (folder / name).mkdir(parents=True)
        (folder / "task.toml").write_text(f'schema_version = "1.4"\n[task]\nname = "org/{task.key}"\n')
        (folder / "instruction.md").write_text(task.instruction)
        (folder / "tests/rubric.md").write_text(task.rubric)
        (folder / "tests/test.sh").write_text("#!/bin/bash\npython3 /tests/grade.py\n")
        (folder / "tests/grade.py").write_text(f"print({task.instruction!r})\n")
        (folder / "solution/solve.sh").write_text(f"#!/bin/bash\nsort {task.key}.csv | uniq -c > out.txt\n")
        (folder / "environment/data.csv").write_text("a,b\n" * 20)

    def make() -> object:
        from skill2env.cli.main import run

        return run(["analyze", "report", str(root), "--out", str(root / "page.html"), "--embedder", "none"])

    return make, f"{TASKS} tasks of 7 files: reading, coverage, copies, charts"


CASES: dict[str, Callable[[Path | None], tuple[Callable[[], object], str]]] = {
    "lexical": lexical,
    "plain-sklearn": plain_sklearn,
    "decontaminate": decontaminate,
    "plain-dictionary": plain_dictionary,
    "embedding": embedding,
    "report": report,
    "lexical-100k": lambda place: lexical(place, MANY),
}


def one(case: str, place: Path | None) -> None:
    run, about = CASES[case](place)
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.perf_counter()
    run()
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = after.ru_maxrss / 1024
    load = os.getloadavg()[0]
    start = before.ru_maxrss / 1024
    print(
        f"{case:17} {wall:7.2f} s wall {cpu:7.2f} s cpu  {peak:6.0f} MB ({start:.0f} before)  load {load:.1f}  {about}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("skills", nargs="?", type=Path)
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--here", action="store_true", help="run the case in this process")
    given = parser.parse_args()
    for case in given.case or CASES:
        if given.here:
            one(case, given.skills)
            continue
        place = [str(given.skills)] if given.skills else []
        subprocess.run([sys.executable, __file__, *place, "--case", case, "--here"], check=True)


if __name__ == "__main__":
    main()
