"""Probe `truth`: whoever changes the inputs before the work must not change what is right."""

import json
from collections.abc import Mapping
from typing import Any, cast

from skill2env.harbor.outcome import TrialOutcome
from skill2env.harbor.studying import STUDY_AGENT, read_collected
from skill2env.sandbox.conditions import NotApplicable
from skill2env.verify.cheat_outputs import is_personal
from skill2env.verify.config import facts_of
from skill2env.verify.dropping import Drop, write_source
from skill2env.verify.gate import Hit
from skill2env.verify.probing import Answer, Asking
from skill2env.verify.shapes import is_code
from skill2env.verify.study import Study, study_of


def ask_truth(asking: Asking) -> Answer:
    """Shorten the inputs, then run the reference solution on them: its answer is wrong for the task.

    Where it earns something, the same is done once more with the inputs put back before grading: only what is lost
    then was earned by changing the truth.
    """
    study = study_of(asking.subject, asking.context)
    inputs = {
        path: file.data
        for path, file in study.fixtures.items()
        if path in study.writable
        and file.data
        and not is_code(path, file.data)
        and "/.git/" not in path
        and not is_personal(path)
    }
    if not inputs:
        raise NotApplicable("there are no inputs that the agent may change")
    for label, shorten in (("half", half), ("first-line", first_line)):
        short = {path: data for path, full in inputs.items() if (data := shorten(path, full)) != full}
        if not short:
            continue
        outcome, left = _solve(asking, study, short, None, label)
        if not any(left.get(path) != file.data for path, file in study.outputs.items()):
            continue  # this answer is right, whatever was done to the inputs
        if any(path not in left for path in study.outputs):
            continue  # the solution cannot work on these
        return _judge(asking, study, outcome, {path: inputs[path] for path in short}, short)
    raise NotApplicable("the solution's answer does not follow inputs that the agent may change")


def _judge(
    asking: Asking,
    study: Study,
    outcome: TrialOutcome,
    originals: Mapping[str, bytes],
    short: Mapping[str, bytes],
) -> Answer:
    changed = outcome.reward().metrics
    values = {f"metric:{name}": value for name, value in sorted(changed.items())}
    if not any(value > 0 for value in changed.values()):
        return Answer(values=values)
    restored, _ = _solve(asking, study, short, originals, "restored")
    kept = restored.reward().metrics
    gains = {name: value for name, value in sorted(changed.items()) if value > kept.get(name, 0.0)}
    if not gains:
        return Answer(values=values)
    shown = ", ".join(f"{name} = {value:g}" for name, value in gains.items())
    names = ", ".join(sorted(short)[:3])
    message = f"shortening {names} before the work makes a wrong answer earn {shown}"
    return Answer([Hit("cheat-truth", message, asking.probe)], values=values)


def _solve(
    asking: Asking,
    study: Study,
    short: Mapping[str, bytes],
    originals: Mapping[str, bytes] | None,
    label: str,
) -> tuple[TrialOutcome, dict[str, bytes]]:
    """Run the reference solution on changed inputs, and put them back when `originals` are given."""
    subject = asking.subject
    facts = facts_of(subject)
    env = {} if isinstance(facts, Hit) else dict(facts.solution_env)
    folder = asking.context.evidence / asking.gate / "agents" / f"{asking.probe}-{label}"
    back = [Drop(path, data, study.fixtures[path].mode) for path, data in (originals or {}).items()]
    write_source(
        folder,
        [Drop(path, data, study.fixtures[path].mode) for path, data in short.items()],
        beside=subject.task_dir / "solution",
        after=f'timeout -s KILL {study.solve_limit_sec} "$here/../solve.sh"\n'
        + ('tar -C / --no-same-owner --overwrite -xf "$here/back.tar"\n' if back else ""),
        later=back,
    )
    asking = Asking(subject, study.limited(asking.context), asking.gate, asking.probe)
    outcome = asking.trial(
        STUDY_AGENT,
        label=label,
        agent_kwargs={
            "source": str(folder),
            "entry": ".probe/run.sh",
            "env": env,
            "inventory": False,
            "collect": list(study.outputs),
        },
        patient=False,
    )
    return outcome, read_collected(outcome.folder)


def half(path: str, data: bytes) -> bytes:
    """The first half of a text's lines or of a JSON document's lists; the same bytes where there is no half."""
    del path
    document = _document(data)
    if document is not None:
        short = _halved(document)
        return data if short == document else (json.dumps(short, indent=1) + "\n").encode()
    if b"\0" in data:
        return data
    lines = data.splitlines(keepends=True)
    return b"".join(lines[: (len(lines) + 1) // 2]) if len(lines) > 2 else data


def first_line(path: str, data: bytes) -> bytes:
    """The first line of a text, or a JSON document with empty lists."""
    del path
    document = _document(data)
    if document is not None:
        return b"[]\n" if isinstance(document, list) else b"{}\n"
    return data if b"\0" in data else data.splitlines(keepends=True)[0]


def _document(data: bytes) -> Any:
    if not data.lstrip().startswith((b"{", b"[")):
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _halved(value: Any) -> Any:
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return items[: (len(items) + 1) // 2]
    if isinstance(value, dict):
        return {key: _halved(item) for key, item in cast("dict[str, Any]", value).items()}
    return value
