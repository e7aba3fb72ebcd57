"""Gate `surroundings`: the reference solution earns 1 on every metric wherever and whenever it is run.

Covers: clock, zone, locale, host name, user name and home, memory, processors, broken package tools, read-only tests,
the folder where grading starts, hash seeds, the order of folders, and answers that are right on one machine only. A
task that pins what it depends on passes. A change that cannot be made in an image is not applicable there, and one
failure never counts: the same must fail again while the usual surroundings, or a harmless change of the same kind,
still pass.
"""

import shlex
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from skill2env.harbor.agents import SCRIPT_AGENT
from skill2env.harbor.stages import Stage, StageOutcome
from skill2env.sandbox.conditions import Conditions, NotApplicable
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.tools import shared_folder
from skill2env.verify import dates, worlds
from skill2env.verify.config import facts_of
from skill2env.verify.delivery import Delivery, delivery_of
from skill2env.verify.gate import GateContext, Hit, Level, Subject, rejecting
from skill2env.verify.oracle import solution_hits
from skill2env.verify.probing import Answer, Asking, Probe, gate_of
from skill2env.verify.staging import gradings_within, play
from skill2env.verify.trials import USUAL

NAME = "surroundings"
_STRICT = frozenset({Level.STRICT})
_STANDARD = frozenset({Level.STANDARD})
_HOUR = 3600
_ZONES = ("Pacific/Kiritimati", "America/Los_Angeles", "Asia/Kathmandu")
_LANGUAGES = ("de_DE", "tr_TR")
_SEEDS = (0, 1, 2)
_FIRST_DAYS = ("next-year", "saturday", "sunday", "leap-day", "new-year")
_CHANGING_ZONE = "Europe/Berlin"
type _World = Callable[[], Conditions]


def probes(subject: Subject, context: GateContext) -> Sequence[Probe]:  # noqa: ARG001
    """All probes of the gate, those that find most first."""
    today = dates.today()
    saturday = dates.saturday_next_year(today)
    found = [
        Probe("days-ahead", _days_ahead),
        _clock("saturday-next-year", saturday),
        _simple(f"zone-{_slug(_ZONES[0])}", "zone", _ZONES[0], partial(worlds.zone, _ZONES[0])),
        _simple(
            f"locale-{_slug(_LANGUAGES[0])}", "locale", _LANGUAGES[0], partial(worlds.locale, _LANGUAGES[0])
        ),
        Probe("machine", _machine),
        Probe("machine-answer", _machine_answer),
        Probe("network", _network),
    ]
    days = dates.days_ahead(today)
    found += [_clock(name, number, levels=_STRICT) for name, number in days.items()]
    found.append(_clock("last-year", -365, code="clock-past", levels=_STRICT))
    for name in ("clocks-forward", "clocks-back"):
        world = partial(_clock_and_zone, days[name] * dates.DAY_SEC, _CHANGING_ZONE)
        found.append(_simple(f"{name}-there", "zone", f"{name} in {_CHANGING_ZONE}", world, _STRICT))
    for zone in _ZONES[1:]:
        found.append(_simple(f"zone-{_slug(zone)}", "zone", zone, partial(worlds.zone, zone), _STRICT))
    for language in _LANGUAGES[1:]:
        world = partial(worlds.locale, language)
        found.append(_simple(f"locale-{_slug(language)}", "locale", language, world, _STRICT))
    broken = "broken package tools"
    found.append(_simple("package-tools", "package-tools", broken, worlds.broken_package_tools, _STRICT))
    for seed in _SEEDS:
        what = f"the hash seed {seed}"
        found.append(
            _simple(f"hash-seed-{seed}", "hash-seed", what, partial(worlds.hash_seed, seed), _STRICT)
        )
    return (
        *found,
        _simple(
            "folder-order", "folder-order", "folders listed in another order", worlds.folder_order, _STRICT
        ),
        Probe("start-folder", _start_folder, _STRICT),
        Probe("user", _user, _STRICT),
        Probe("tests-read-only", _tests_read_only, _STRICT),
    )


check = gate_of(NAME, probes)


def _slug(text: str) -> str:
    return text.rpartition("/")[2].lower().replace("_", "-")


def _simple(
    name: str, code: str, what: str, world: _World, levels: frozenset[Level] = frozenset(Level)
) -> Probe:
    return Probe(name, lambda asking: _in_world(asking, code, f"with {what}", world()), levels)


def _clock(
    name: str, days: int, *, code: str = "clock", levels: frozenset[Level] = frozenset(Level)
) -> Probe:
    def ask(asking: Asking) -> Answer:
        return _at(asking, code, name, days)

    return Probe(f"clock-{name}", ask, levels)


def _clock_and_zone(offset_sec: int, zone: str) -> Conditions:
    return worlds.together(worlds.clock(offset_sec), worlds.zone(zone))


def _at(asking: Asking, code: str, name: str, days: int) -> Answer:
    what = f"on another day ({name})"
    return _in_world(
        asking, code, what, worlds.clock(days * dates.DAY_SEC), harmless=worlds.clock(_within_today())
    )


def _within_today() -> int:
    """Seconds to a time of the same day, so that a shift is the only thing that differs."""
    return -_HOUR if datetime.now(UTC).hour >= 12 else _HOUR


def _in_world(
    asking: Asking,
    code: str,
    what: str,
    world: Conditions,
    *,
    harmless: Conditions = USUAL,
    agent_kwargs: dict[str, object] | None = None,
) -> Answer:
    """Run the solution in a world, and blame the world only when everything else is ruled out.

    Args:
        asking: the probe.
        code: of the rule that is broken when it fails.
        what: differs, in words.
        world: to run in.
        harmless: a world that changes nothing that may matter; where that fails as well, nothing is learned.
        agent_kwargs: of a script instead of the solution.
    """

    def wrong(label: str, conditions: Conditions) -> list[Hit]:
        agent = SCRIPT_AGENT if agent_kwargs else "oracle"
        outcome = asking.trial(agent, label=label, conditions=conditions, agent_kwargs=agent_kwargs)
        return rejecting(solution_hits(outcome, outcome.reward()), asking.subject.profile)

    first = wrong("", world)
    if not first:
        return Answer()
    if wrong("harmless", harmless):
        if harmless != USUAL:
            raise NotApplicable("the means that change the surroundings disturb the task by themselves")
        if agent_kwargs:
            raise NotApplicable("the delivered files alone do not earn 1")
        return Answer([Hit("unstable", f"the Oracle passed once, but when repeated: {first[0].message}")])
    if not wrong("again", world):
        return Answer(
            [Hit("unstable", f"{what}, the Oracle failed once and passed once: {first[0].message}")]
        )
    return Answer([Hit(code, f"{what}, {first[0].message}")])


def _days_ahead(asking: Asking) -> Answer:
    """Grade one delivery on many days; a day that fails is tried again with the work done on that day."""
    ahead = dates.days_ahead(dates.today())
    chosen = sorted(ahead, key=lambda name: name not in _FIRST_DAYS)[: gradings_within(asking, len(ahead))]
    days = {"today": 0, **{name: ahead[name] for name in chosen}}
    stages = [
        Stage(f"on-{name}", script=worlds.set_clock(number * dates.DAY_SEC)) for name, number in days.items()
    ]
    found = play(asking, stages, conditions=worlds.clock(_within_today()))
    if not found["on-today"].full:
        raise NotApplicable("the means that shift the clock disturb the task by themselves")
    failed = [name for name in days if not found[f"on-{name}"].full]
    tried: set[int] = set()
    for name in failed:
        if len(tried) >= 3 or days[name] in tried:
            continue
        tried.add(days[name])
        answer = _at(asking, "clock", name, days[name])
        if answer.hits:
            return answer
    return Answer()


def _machine(asking: Asking) -> Answer:
    facts = facts_of(asking.subject)
    cpus = None if isinstance(facts, Hit) else facts.cpus
    one_core = cpus is None or cpus <= 1
    what = f"on a machine of another name, with less memory{' and one processor' if one_core else ''}"
    return _in_world(asking, "machine", what, worlds.machine(one_core=one_core))


def _machine_answer(asking: Asking) -> Answer:
    """Deliver on one machine what the solution made on another."""
    delivery = delivery_of(asking.subject, asking.context)
    with tempfile.TemporaryDirectory(prefix="skill2env-delivery-") as scratch:
        _write_script(delivery, Path(scratch))
        return _in_world(
            asking,
            "machine-answer",
            "graded on another machine than it was made on",
            worlds.machine(one_core=False),
            agent_kwargs={"source": scratch, "target": "/solution"},
        )


def _write_script(delivery: Delivery, folder: Path) -> None:
    """A script that delivers everything at once, with the rights of whoever runs it."""
    lines = ["#!/bin/bash", "set -e", 'cd "$(dirname "$0")"']
    for number, (path, data) in enumerate(delivery.files.items()):
        (folder / f"file-{number}").write_bytes(data)
        place = shlex.quote(path)
        mode = delivery.study.outputs[path].mode
        lines.append(f"mkdir -p {shlex.quote(str(Path(path).parent))}")
        lines.append(f"cat file-{number} > {place}")
        lines.append(f"chmod {mode:o} {place} 2>/dev/null || true")
    for path in sorted(set(delivery.study.originals) - set(delivery.study.outputs)):
        lines.append(f"rm -f {shlex.quote(path)}")
    (folder / "solve.sh").write_text("\n".join([*lines, ""]), encoding="utf-8")


def _network(asking: Asking) -> Answer:
    facts = facts_of(asking.subject)
    if isinstance(facts, Hit) or all(mode == "no-network" for mode in facts.networks.values()):
        return Answer(message="every trial runs without a network")
    if not asking.subject.online:
        return Answer(message="the task asks for a network and passes without one")
    return Answer([Hit("network-needed", "the solution or the verifier fails without the network")])


def _start_folder(asking: Asking) -> Answer:
    stages = [
        Stage("usual"),
        Stage("list", script="find /tests -type f -printf '%P\\0'", grade=False),
        Stage("elsewhere", workdir="/var/tmp"),
    ]
    found = play(asking, stages)
    hits: list[Hit] = []
    if found["usual"].full and not found["elsewhere"].full:
        hits.append(Hit("start-folder", "graded from another folder, the reference solution loses reward"))
    written = _written(found["list"], asking.subject.task_dir / "tests")
    if written:
        hits.append(Hit("tests-written", f"grading writes below /tests: {', '.join(written[:3])}"))
    return Answer(hits)


def _user(asking: Asking) -> Answer:
    facts = facts_of(asking.subject)
    image = asking.subject.image
    user = (None if isinstance(facts, Hit) else facts.agent_user) or (image.config.user if image else "")
    if asking.context.sandbox.name == "namespace" and not current_identity().several_users:
        user = ""  # everybody is root there
    what = "run by a user of another name with another home"
    return _in_world(asking, "user", what, worlds.another_user(user or "root"))


def _tests_read_only(asking: Asking) -> Answer:
    facts = facts_of(asking.subject)
    if isinstance(facts, Hit) or facts.steps:
        raise NotApplicable("the task has several steps")
    if facts.verifier_image:
        raise NotApplicable("the verifier's own image holds the tests")
    with shared_folder(asking.subject.task_dir / "tests") as folder:
        return _in_world(
            asking, "tests-read-only", "graded with read-only tests", worlds.tests_read_only(folder)
        )


def _written(listed: StageOutcome, tests: Path) -> list[str]:
    known = {path.relative_to(tests).as_posix() for path in tests.rglob("*")}
    return sorted(name for name in listed.output.split("\0") if name and name not in known)
