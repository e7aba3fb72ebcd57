"""Record what the original does, and keep only what it does every time.

A case counts when its outcome is the same under other hash seeds, in another folder and with the clock moved by more
than a year, and when it says something: not a time-out, not an accident of a badly typed input.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# The values here are tagged JSON of any shape; `cases.well_formed` checks them where they come in.

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from skill2env.authors.code.bench import Bench, ask
from skill2env.authors.code.cases import Case
from skill2env.authors.code.docstrings import shown_in_docstrings
from skill2env.authors.code.invent import invent
from skill2env.authors.code.preload import preload
from skill2env.authors.code.templates.tagged_values import same
from skill2env.authors.code.understand import Example, Project
from skill2env.authors.code.vary import palette, variants
from skill2env.records import digest_of

SETTINGS = (("0", 0), ("1", 401), ("4242", 0))
"""(hash seed, days the clock is moved) of each recording; the seed also decides the folder's name."""
ROOT = "/project/original"
SEEDS_A_TARGET = 12
CASES_A_TARGET = 36
COMMANDS_A_SCRIPT = 18
TARGETS = 60
MAX_TRIED = 600
"""Derived cases tried per skill; the share of each target shrinks when there are many."""
RAISED_SHARE = 0.2
"""At most this share of a target's cases may end in an exception."""
MEANT_EXCEPTIONS = {"ValueError", "KeyError", "FileNotFoundError", "SystemExit", "LookupError", "IndexError"}
MAX_OUTCOME_BYTES = 40_000


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Recorded truth about a project."""

    cases: Mapping[str, Case]
    """Id -> case, sorted by target and id."""
    outcomes: Mapping[str, Any]
    """Id -> what the original does."""
    reached: Mapping[str, frozenset[str]]
    """Id -> functions that ran, as ``file:qualified name``."""
    observed: frozenset[str]
    """Ids of cases that the skill's own tests or documentation contain."""
    tried: int
    """Cases that were run, stable or not."""

    def through(self, file: str, function: str) -> list[str]:
        """Ids of cases that reach a function; an empty function name means any code of the file."""
        key = f"{file}:{function}"
        if not function:
            return [i for i, keys in self.reached.items() if any(k.startswith(f"{file}:") for k in keys)]
        return [i for i, keys in self.reached.items() if key in keys]


def record(bench: Bench, project: Project, observed: Sequence[Case]) -> Behaviour:
    """Replay observed cases and variants of them; keep what repeats.

    Raises:
        BenchFailed: the code got in the way of the recorder.
        InfraError: the sandbox failed.
    """
    bench.put_tree(dict(project.files), ROOT)
    called = frozenset(case.target for case in observed)
    shown = [*documented(project), *shown_in_docstrings(project)]
    seeds = _seeds([*observed, *shown, *invent(project, called)])
    stable, outcomes, reached = _replay(bench, project, seeds)
    derived = _derive(project, stable)
    more, more_outcomes, more_reached = _replay(bench, project, derived)
    outcomes, reached = {**outcomes, **more_outcomes}, {**reached, **more_reached}
    kept = _select(stable, more, outcomes)
    return Behaviour(
        cases={case.id: case for case in kept},
        outcomes={case.id: outcomes[case.id] for case in kept},
        reached={case.id: reached[case.id] for case in kept},
        observed=frozenset(case.id for case in stable if case.test),
        tried=len(seeds) + len(derived),
    )


def _seeds(cases: Iterable[Case]) -> list[Case]:
    """Distinct cases, few enough of each target, from as many tests as possible."""
    by_target: dict[str, dict[str, Case]] = {}
    for case in cases:
        by_target.setdefault(case.target, {}).setdefault(case.id, case)
    found: list[Case] = []
    for target in sorted(by_target)[:TARGETS]:
        found += sorted(by_target[target].values(), key=lambda case: digest_of(case.id))[:SEEDS_A_TARGET]
    return found


def _derive(project: Project, stable: Sequence[Case]) -> list[Case]:
    by_target: dict[str, list[Case]] = {}
    for case in stable:
        by_target.setdefault(case.target, []).append(case)
    found: list[Case] = []
    share = MAX_TRIED // max(1, len(by_target))
    for target, cases in sorted(by_target.items()):
        module = project.modules[cases[0].file]
        donors = palette(cases, module.numbers, module.texts)
        rng = random.Random(target)
        limit = COMMANDS_A_SCRIPT if cases[0].kind == "command" else CASES_A_TARGET
        wanted = min(share, max(limit - len(cases), 8) * 3 // 2)
        each = -(-wanted // len(cases))
        for case in sorted(cases, key=lambda item: item.id):
            found += variants(case, donors, rng, each)
    distinct = {case.id: case for case in found}
    known = {case.id for case in stable}
    return [case for key, case in sorted(distinct.items()) if key not in known]


def _replay(
    bench: Bench, project: Project, cases: Sequence[Case]
) -> tuple[list[Case], dict[str, Any], dict[str, frozenset[str]]]:
    if not cases:
        return [], {}, {}
    forms = [case.to_json() for case in cases]
    wanted = preload(project, [case.file for case in cases])
    jobs = [
        {"mode": "record", "root": ROOT, "cases": forms, "seed": seed, "shift_days": days, "preload": wanted}
        for seed, days in SETTINGS
    ]
    with ThreadPoolExecutor(len(jobs)) as pool:
        runs = list(pool.map(lambda job: ask(bench, job), jobs))
    kept: list[Case] = []
    outcomes: dict[str, Any] = {}
    reached: dict[str, frozenset[str]] = {}
    for case in cases:
        answers = [run.get(case.id, {}) for run in runs]
        found = [answer.get("outcome") for answer in answers]
        if meaningful(found[0]) and all(same(found[0], other) for other in found[1:]):
            kept.append(case)
            outcomes[case.id] = found[0]
            reached[case.id] = frozenset(
                f"{pair[0]}:{pair[1]}" for pair in answers[0].get("reached", []) if len(pair) == 2
            )
    return kept, outcomes, reached


_PLACE_OR_DATE = re.compile(r"0x[0-9a-f]{6,}|\b20\d\d-\d\d-\d\dT\d\d:")


def meaningful(outcome: Any) -> bool:
    """True for an outcome that a task may rest on."""
    if not isinstance(outcome, dict) or "died" in outcome or "unsupported" in outcome:
        return False
    text = str(outcome)  # pyright: ignore[reportUnknownArgumentType]
    if len(text) > MAX_OUTCOME_BYTES or _PLACE_OR_DATE.search(text):
        return False
    if "raised" in outcome:
        return str(outcome["raised"]) in MEANT_EXCEPTIONS or not str(outcome["raised"]).endswith(
            ("Error", "Exception")
        )  # pyright: ignore[reportUnknownArgumentType]
    says = {"stdout", "files", "arguments"} & set(outcome)  # pyright: ignore[reportUnknownArgumentType]
    return bool(says) or outcome.get("value") is not None or "exit" in outcome


def _select(observed: Sequence[Case], derived: Sequence[Case], outcomes: Mapping[str, Any]) -> list[Case]:
    """Observed cases first, then derived ones with outcomes not seen yet, few exceptions."""
    by_target: dict[str, list[Case]] = {}
    for case in [*observed, *derived]:
        by_target.setdefault(case.target, []).append(case)
    kept: list[Case] = []
    for _, cases in sorted(by_target.items()):
        limit = COMMANDS_A_SCRIPT if cases[0].kind == "command" else CASES_A_TARGET
        counts: dict[str, int] = {}
        ranked: list[tuple[int, int, str, Case]] = []
        for case in cases:
            shape = digest_of(outcomes[case.id])
            counts[shape] = counts.get(shape, 0) + 1
            ranked.append((counts[shape], int(bool(case.origin)), case.id, case))
        chosen = [case for *_, case in sorted(ranked, key=lambda item: item[:3])]
        raised = [case for case in chosen if "raised" in outcomes[case.id]]
        spare = {case.id for case in raised[int(limit * RAISED_SHARE) :]}
        kept += sorted([case for case in chosen if case.id not in spare][:limit], key=lambda case: case.id)
    return kept


def documented(project: Project) -> list[Case]:
    """Commands of the documentation, with placeholders replaced by sample data and outputs by fresh folders."""
    found: list[Case] = []
    for example in project.examples:
        arguments = _arguments(example, project)
        if arguments is not None:
            found.append(Case("command", example.file, args=tuple(arguments), test="documentation"))
    return found


_OUT = ("--output", "-o", "--out", "--outdir", "--output-dir", "--report", "--json-out")
_IN = ("--input", "-i", "--file", "--in")
_PLACEHOLDER = re.compile(r"[<{\[]")


def _arguments(example: Example, project: Project) -> list[Any] | None:
    found: list[Any] = []
    before = ""
    for index, word in enumerate(example.arguments):
        name = word.rsplit("/", 1)[-1]
        if before in _OUT or word.startswith("/tmp/"):
            found.append(
                {
                    "$": "fresh",
                    "name": "out" if "." not in name else f"out.{name.rsplit('.', 1)[-1]}",
                    "as": "str",
                }
            )
        elif word.startswith("-"):
            found.append(word)
        elif before in _IN or "." in name or _PLACEHOLDER.search(word):
            data = _sample(word, project)
            if data is None:
                return None
            found.append(
                {"$": "file", "name": data.rsplit("/", 1)[-1], "text": project.samples[data], "as": "str"}
            )
        else:
            found.append(word)
        before = word if index < len(example.arguments) else ""
    return found


def _sample(word: str, project: Project) -> str | None:
    """Sample data that a word of an example can stand for: the named file, or the only one of its kind."""
    name = word.rsplit("/", 1)[-1]
    named = [path for path in project.samples if path.rsplit("/", 1)[-1] == name]
    if named:
        return named[0]
    suffix = name.rsplit(".", 1)[-1].rstrip(">}]")
    alike = [path for path in project.samples if path.endswith(f".{suffix}")]
    if not alike and _PLACEHOLDER.search(word):
        alike = [path for path in project.samples if re.search(r"demo|sample|example|input", path)]
    return alike[0] if alike else None
