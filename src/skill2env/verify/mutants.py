"""Gate `mutants`: wrong versions of the reference solution lose reward.

A mutant is the solution with one small change. It counts only where it is a wrong version that delivers: one that
stops, or leaves out a file, would be noticed by any verifier, and one whose files say the same as the solution's is no
wrong version at all. Of those that count, most must lose reward on some metric.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from skill2env.harbor.outcome import TrialOutcome, TrialPhase
from skill2env.harbor.studying import STUDY_AGENT, read_collected
from skill2env.records import ProbeOutcome, ProbeResult
from skill2env.sandbox.conditions import NotApplicable
from skill2env.store.files import write_json
from skill2env.verify.config import facts_of
from skill2env.verify.gate import GateContext, Hit, Level, Report, Subject
from skill2env.verify.mutating import Change, changes, choose
from skill2env.verify.reading import read_file, walk
from skill2env.verify.study import Study, study_of
from skill2env.verify.trials import judged_trial

NAME = "mutants"
LEAST_KILLED = 0.5
"""Share of the counting mutants that must lose reward."""
LEAST_COUNTING = 4
"""Fewer say nothing about a verifier."""
TRIALS = {Level.STANDARD: 6, Level.STRICT: 24}
"""Mutants that are tried; as many again where these say too little, or too little good."""
MATRIX = "matrix.json"


class Fate(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    """It lost reward on at least one metric."""
    SURVIVED = "survived"
    """It delivers something else and earns 1 on every metric."""
    EQUIVALENT = "equivalent"
    """It delivers the same, or the same in another order and earns as much; does not count."""
    BROKEN = "broken"
    """It stops or leaves out a file; does not count."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change and what came of it."""

    name: str
    change: Change
    fate: Fate
    metrics: Mapping[str, float]
    line: int
    differing: tuple[str, ...] = ()
    """Outputs that say something else than the solution's."""


def check(subject: Subject, context: GateContext) -> Report:
    """Try wrong versions of the reference solution."""
    try:
        study = study_of(subject, context)
    except NotApplicable as reason:
        return Report(not_run=f"not applicable: {reason.why}")
    if not study.outputs:
        return Report(
            not_run="not applicable: the solution leaves no file by which versions could be told apart"
        )
    files = solution_files(subject.task_dir / "solution")
    found = changes(files)
    count = TRIALS.get(context.level, 0)
    chosen = choose(found, files, 2 * count)
    if len(chosen) < LEAST_COUNTING:
        return Report(not_run=f"not applicable: only {len(chosen)} places of the solution can be changed")
    mutants = _try_all(subject, context, study, files, chosen[:count], 0)
    if _counting(mutants) < LEAST_COUNTING or _is_weak(mutants):
        mutants += _try_all(subject, context, study, files, chosen[count:], count)
    if _is_weak(mutants):
        mutants = _without_restless(mutants, subject, context, study)
    _keep(mutants, files, context.evidence / NAME)
    return _report(mutants)


def solution_files(folder: Path) -> dict[str, bytes]:
    """Regular files of a solution by relative path; those that are too large to change are left out.

    Other right solutions lie in the same folder, but solve.sh does not run them: a change there would say nothing.
    """
    names = (name for name, _ in walk(folder) if not name.startswith("alternatives/"))
    found = {name: read_file(folder / name) for name in names}
    return {name: data for name, data in found.items() if data is not None}


def _try_all(
    subject: Subject,
    context: GateContext,
    study: Study,
    files: Mapping[str, bytes],
    chosen: Sequence[Change],
    first: int,
) -> list[Mutant]:
    with ThreadPoolExecutor(max_workers=max(1, context.trials_at_once), thread_name_prefix=NAME) as pool:
        waiting = [
            pool.submit(_try, subject, context, study, files, change, f"{number:02}")
            for number, change in enumerate(chosen, first + 1)
        ]
        try:
            return [future.result() for future in waiting]
        finally:
            for future in waiting:
                future.cancel()


def _try(
    subject: Subject,
    context: GateContext,
    study: Study,
    files: Mapping[str, bytes],
    change: Change,
    name: str,
) -> Mutant:
    original = files[change.file]
    source = context.evidence / NAME / "solutions" / name
    shutil.copytree(subject.task_dir / "solution", source, symlinks=True)
    (source / change.file).write_bytes(change.apply(original))
    outcome, left = _run(subject, context, study, source, name)
    shutil.rmtree(source)
    metrics = dict(sorted(outcome.reward().metrics.items()))
    differing = tuple(
        path for path, file in study.outputs.items() if not same_meaning(left.get(path), file.data)
    )
    stopped = outcome.failure is not None and outcome.failure.phase is not TrialPhase.VERIFIER
    if stopped or outcome.solve_exit_code or any(path not in left for path in study.outputs):
        fate = Fate.BROKEN
    elif not differing:
        fate = Fate.EQUIVALENT
    elif set(metrics) == set(study.metrics) and all(value == 1 for value in metrics.values()):
        said = (path for path in differing if not same_meaning(left[path], study.outputs[path].data))
        fate = Fate.SURVIVED if any(said) else Fate.EQUIVALENT
    else:
        fate = Fate.KILLED
    return Mutant(name, change, fate, metrics, change.line(original), differing)


def _run(
    subject: Subject, context: GateContext, study: Study, source: Path, name: str
) -> tuple[TrialOutcome, dict[str, bytes]]:
    facts = facts_of(subject)
    kwargs = {
        "source": str(source),
        "env": {} if isinstance(facts, Hit) else dict(facts.solution_env),
        "limit_sec": study.solve_limit_sec,
        "inventory": False,
        "collect": list(study.outputs),
    }
    outcome = judged_trial(
        subject,
        study.limited(context),
        STUDY_AGENT,
        folder=NAME,
        label=name,
        agent_kwargs=kwargs,
        patient=False,
    )
    return outcome, read_collected(outcome.folder)


def same_meaning(one: bytes | None, other: bytes | None) -> bool:
    """Whether two files say the same to a lenient reader: the same lines or JSON, in any order and spacing."""
    if one is None or other is None:
        return one is None and other is None
    if one == other:
        return True
    try:
        return _sorted(json.loads(one)) == _sorted(json.loads(other))
    except (ValueError, RecursionError):
        pass
    lines = [
        sorted(b" ".join(line.split()) for line in text.splitlines() if line.strip()) for text in (one, other)
    ]
    return lines[0] == lines[1]


def _sorted(value: Any) -> Any:
    """JSON with its lists in an order of ours."""
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return sorted(map(_sorted, cast("list[Any]", value)), key=repr)
    return value


def _counting(mutants: Sequence[Mutant]) -> int:
    return sum(mutant.fate in (Fate.KILLED, Fate.SURVIVED) for mutant in mutants)


def _killed(mutants: Sequence[Mutant]) -> int:
    return sum(mutant.fate is Fate.KILLED for mutant in mutants)


def _is_weak(mutants: Sequence[Mutant]) -> bool:
    counting = _counting(mutants)
    return counting >= LEAST_COUNTING and _killed(mutants) < LEAST_KILLED * counting


def _without_restless(
    mutants: Sequence[Mutant], subject: Subject, context: GateContext, study: Study
) -> list[Mutant]:
    """Survivors that differ only in files which differ from run to run are no wrong versions that anybody could see."""
    _, left = _run(subject, context, study, subject.task_dir / "solution", "unchanged")
    restless = {path for path, file in study.outputs.items() if not same_meaning(left.get(path), file.data)}
    return [
        Mutant(m.name, m.change, Fate.EQUIVALENT, m.metrics, m.line)
        if m.fate is Fate.SURVIVED and set(m.differing) <= restless
        else m
        for m in mutants
    ]


def _keep(mutants: Sequence[Mutant], files: Mapping[str, bytes], folder: Path) -> None:
    """Write the kill matrix, and a diff of each mutant."""
    shutil.rmtree(folder / "solutions", ignore_errors=True)
    entries: list[dict[str, object]] = []
    for mutant in mutants:
        diff = f"{mutant.name}.diff"
        (folder / diff).write_text(mutant.change.diff(files[mutant.change.file]), encoding="utf-8")
        entries.append(
            {
                "mutant": mutant.name,
                "fate": mutant.fate.value,
                "kind": mutant.change.kind,
                "file": f"solution/{mutant.change.file}",
                "line": mutant.line,
                "diff": diff,
                "metrics": mutant.metrics,
                "differing": mutant.differing,
            }
        )
    write_json(folder / MATRIX, {"least_killed": LEAST_KILLED, "mutants": entries})


def _report(mutants: Sequence[Mutant]) -> Report:
    counting, killed = _counting(mutants), _killed(mutants)
    values: dict[str, float | int | str | bool | None] = {
        fate.value: sum(mutant.fate is fate for mutant in mutants) for fate in Fate
    }
    metrics = sorted({name for mutant in mutants for name in mutant.metrics})
    for name in metrics:
        lost = (mutant.metrics.get(name, 0.0) < 1 for mutant in mutants if mutant.fate is Fate.KILLED)
        values[f"killed:{name}"] = sum(lost)
    probes = tuple(_probe(mutant) for mutant in mutants)
    if counting < LEAST_COUNTING:
        why = f"not applicable: of {len(mutants)} changed solutions only {counting} deliver something else"
        return Report(not_run=why, values=values, probes=probes)
    hits: list[Hit] = []
    if _is_weak(mutants):
        survivors = [mutant for mutant in mutants if mutant.fate is Fate.SURVIVED]
        first = survivors[0]
        message = (
            f"{len(survivors)} of {counting} wrong versions of the solution still earn 1 on every metric, "
            f"for example with a change in line {first.line} of solution/{first.change.file} ({first.change.kind})"
        )
        hits.append(Hit("verifier-weak", message, "tests"))
    return Report(
        hits, values, probes, message="" if hits else f"{killed} of {counting} wrong versions lose reward"
    )


def _probe(mutant: Mutant) -> ProbeResult:
    outcome = {
        Fate.KILLED: ProbeOutcome.PASSED,
        Fate.SURVIVED: ProbeOutcome.FAILED,
    }.get(mutant.fate, ProbeOutcome.NOT_APPLICABLE)
    where = f"{mutant.change.kind} in line {mutant.line} of solution/{mutant.change.file}"
    return ProbeResult(
        probe=f"mutant-{mutant.name}",
        outcome=outcome,
        message=f"{where}: {mutant.fate.value}",
        values={"fate": mutant.fate.value, **{f"metric:{name}": v for name, v in mutant.metrics.items()}},
    )
