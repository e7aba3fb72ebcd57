"""Gate `undeclared`: the verifier demands no name, path or layout that the agent cannot know.

Names of fields, file names and separators of what the reference solution delivers are looked up in the instruction and
in everything that the agent can read. One that stands nowhere but in the verifier is a suspicion; it becomes a finding
when the delivery loses reward as soon as it is spelled otherwise. Names that follow from data by a rule, or belong to a
format that the instruction names, are left alone or only noted.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skill2env.harbor.stages import Stage
from skill2env.sandbox.conditions import NotApplicable
from skill2env.verify.delivery import Delivery, delivery_of
from skill2env.verify.gate import GateContext, Hit, Subject
from skill2env.verify.probing import Answer, Asking, Probe, gate_of
from skill2env.verify.repeat import play
from skill2env.verify.static.names import (
    Known,
    known_of,
    layout_tokens,
    names_in,
    respell_layout,
    respell_names,
    verifier_strings,
    verifier_text,
)

NAME = "undeclared"
MOST = 12
"""Names that are tried at most; all at once."""


def _probes(subject: Subject, context: GateContext) -> Sequence[Probe]:  # noqa: ARG001
    return (Probe("names", _names), Probe("paths", _paths), Probe("layout", _layout))


check = gate_of(NAME, _probes)


@dataclass(frozen=True, slots=True)
class _Case:
    delivery: Delivery
    known: Known
    verifier: str


def _case(asking: Asking) -> _Case:
    delivery = delivery_of(asking.subject, asking.context)
    shown = {**delivery.study.fixtures, **delivery.study.originals}
    known = known_of(asking.subject, {path: file.data for path, file in shown.items()})
    return _Case(delivery, known, verifier_text(asking.subject.task_dir))


def _names(asking: Asking) -> Answer:
    case = _case(asking)
    found: dict[str, None] = {}
    for path, data in case.delivery.files.items():
        for name in names_in(path, data):
            if case.known.is_unknown(name) and _mentions(case.verifier, name):
                found[name] = None
    names = list(found)[:MOST]
    if not names:
        return Answer(message="every name of a field is stated somewhere")
    respelled = {path: respell_names(path, data, names) for path, data in case.delivery.files.items()}
    if not _loses(asking, case, {path: data for path, data in respelled.items() if data is not None}):
        return Answer(message="the verifier takes other names too", values={"names": ", ".join(names)})
    code = "name-unclear" if case.known.is_open or all(map(case.known.is_prose, names)) else "name-undeclared"
    what = f"grading demands {_list(names)}, which neither the instruction nor the world states"
    return Answer(
        [Hit(code, what + case.known.why_open, "instruction.md")], values={"names": ", ".join(names)}
    )


def _paths(asking: Asking) -> Answer:
    case = _case(asking)
    paths = [
        path
        for path in sorted(case.delivery.made)
        if case.known.is_unknown_path(path) and _mentions(case.verifier, path.rpartition("/")[2])
    ][:MOST]
    if not paths:
        return Answer(message="every path is stated somewhere")
    moves = "; ".join(f"mv -- {_quoted(path)} {_quoted(path + '.elsewhere')}" for path in paths)
    if _keeps(play(asking, [Stage("moved", script=moves)])):
        return Answer(message="the verifier does not need them", values={"paths": ", ".join(paths)})
    what = f"grading demands {_list(paths)}, which neither the instruction nor the world states"
    return Answer([Hit("path-undeclared", what, "instruction.md")], values={"paths": ", ".join(paths)})


def _layout(asking: Asking) -> Answer:
    case = _case(asking)
    strings = verifier_strings(asking.subject.task_dir)
    respelled: dict[str, bytes] = {}
    tokens: dict[str, None] = {}
    for path, data in case.delivery.files.items():
        own = [token for token in layout_tokens(path, data) if case.known.is_unknown_layout(token)]
        own = [token for token in own if token in strings]
        if path in case.delivery.made and own:
            respelled[path] = respell_layout(data, own)
            tokens |= dict.fromkeys(own)
    if not respelled:
        return Answer(message="every separator is stated somewhere")
    if not _loses(asking, case, respelled):
        return Answer(message="the verifier takes another layout too", values={"layout": " ".join(tokens)})
    what = f"grading demands a layout with {_list(list(tokens))}, of which the instruction says nothing"
    return Answer([Hit("layout-undeclared", what, "instruction.md")], values={"layout": " ".join(tokens)})


def _loses(asking: Asking, case: _Case, changed: Mapping[str, bytes]) -> bool:
    if not changed:
        raise NotApplicable("the names cannot be spelled otherwise")
    put = case.delivery.put({**case.delivery.files, **changed})
    return not _keeps(play(asking, [Stage("respelled", files=put)]))


def _keeps(outcomes: Mapping[str, object]) -> bool:
    return all(getattr(outcome, "full", False) for outcome in outcomes.values())


def _mentions(text: str, name: str) -> bool:
    return bool(re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text))


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
