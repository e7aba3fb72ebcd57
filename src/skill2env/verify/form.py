"""Gate `format`: what the reference solution delivers earns 1 in every spelling that means the same.

A spelling is tried only on files that the solution makes, and only where no sentence of the instruction asks for the
form it has; see `wording` for how that is read. All spellings are graded in one container, and one that loses reward
is graded again in a fresh one.
"""

import functools
import threading
from collections.abc import Mapping, Sequence

from skill2env.harbor.stages import Stage
from skill2env.sandbox.conditions import NotApplicable
from skill2env.verify.delivery import Delivery, delivery_of
from skill2env.verify.gate import GateContext, Hit, Subject
from skill2env.verify.probing import Answer, Asking, Probe, gate_of
from skill2env.verify.rewriting import REWRITINGS, Rewriting, rewritten
from skill2env.verify.staging import play
from skill2env.verify.wording import Wording

NAME = "format"


class _Forms:
    """All spellings of one task, graded together when the first probe asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._delivery: Delivery | None = None
        self._changed: dict[str, dict[str, bytes]] = {}
        self._full: dict[str, bool] = {}

    def ask(self, rewriting: Rewriting, asking: Asking) -> Answer:
        """Whether one spelling earns what the usual one earns."""
        with self._lock:
            if self._delivery is None:
                self._grade_all(asking)
        delivery = self._delivery
        assert delivery is not None
        changed = self._changed.get(rewriting.name)
        if not changed:
            raise NotApplicable("no delivered file has this form, or the instruction asks for the one it has")
        if self._full[rewriting.name]:
            return Answer(values={"files": len(changed)})
        return _confirmed(asking, delivery, rewriting, changed)

    def _grade_all(self, asking: Asking) -> None:
        delivery = delivery_of(asking.subject, asking.context)
        made = {path: data for path, data in delivery.files.items() if path in delivery.made}
        wordings = {path: Wording(delivery.study.instruction, path, delivery.files) for path in made}
        for rewriting in REWRITINGS:
            changed = rewritten(rewriting, made, wordings)
            if changed:
                self._changed[rewriting.name] = changed
        if self._changed:
            stages = [
                Stage("usual"),
                *(_stage(delivery, name, changed) for name, changed in self._changed.items()),
                _stage(delivery, "usual-again", {}),
            ]
            found = play(asking, stages, label="all")
            if not found["usual"].full or not found["usual-again"].full:
                raise NotApplicable("the delivered files cannot be graded several times in one container")
            self._full = {name: found[name].full for name in self._changed}
        self._delivery = delivery


def _stage(delivery: Delivery, name: str, changed: Mapping[str, bytes]) -> Stage:
    """Everything as delivered but for the changed files."""
    made = {path: data for path, data in delivery.files.items() if path in delivery.made}
    return Stage(name, files=delivery.put({**made, **changed}))


def _confirmed(
    asking: Asking, delivery: Delivery, rewriting: Rewriting, changed: Mapping[str, bytes]
) -> Answer:
    """Try again in a fresh container, the files one by one."""
    stages = [
        *(_stage(delivery, f"file-{number}", {path: changed[path]}) for number, path in enumerate(changed)),
        _stage(delivery, "usual", {}),
    ]
    found = play(asking, stages, label="confirmed")
    if not found["usual"].full:
        raise NotApplicable("the delivered files cannot be graded several times in one container")
    hits = [
        Hit(
            rewriting.code,
            f"{path} with {rewriting.what} loses reward, and the instruction does not ask for either",
        )
        for number, path in enumerate(changed)
        if not found[f"file-{number}"].full
    ]
    return Answer(hits, values={"files": len(changed)})


def probes(subject: Subject, context: GateContext) -> Sequence[Probe]:  # noqa: ARG001
    """One probe a spelling, all of which share a trial."""
    forms = _Forms()
    return [Probe(each.name, functools.partial(forms.ask, each)) for each in REWRITINGS]


check = gate_of(NAME, probes)
