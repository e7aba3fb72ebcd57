"""Cheats that deliver something: worthless content, copies, claims, programs that only forge or end, links, pipes."""

from collections.abc import Mapping

from skill2env.harbor.studying import StudiedFile
from skill2env.sandbox.conditions import NotApplicable
from skill2env.verify import cheat_outputs
from skill2env.verify.cheating import FULL_SHARE, earned, escaped, judge, refused_rights, run_cheat
from skill2env.verify.dropping import Drop
from skill2env.verify.forging import forge_shell, payload_for
from skill2env.verify.gate import Hit, Level
from skill2env.verify.probing import Answer, Asking, Probe
from skill2env.verify.reading import walk
from skill2env.verify.shapes import SHAPES, is_code
from skill2env.verify.study import Study, study_of

STRICT = frozenset({Level.STRICT})


def shape_probe(name: str, *, strict: bool = False) -> Probe:
    """A probe that delivers every file in one worthless form."""
    said = {
        "empty": "delivering empty files",
        "hollow": "delivering headers and empty containers",
        "constant": "delivering wrong constants of the right form",
        "agreeing": "delivering words of success",
    }
    shape = SHAPES[name]

    def ask(asking: Asking) -> Answer:
        study = study_of(asking.subject, asking.context)
        files = cheat_outputs.shaped(study, shape)
        outcome = run_cheat(asking, study, _drops(study, files))
        return judge(asking, outcome, said.get(name, f"delivering `{name}` in every file"))

    return Probe(name, ask, STRICT if strict else frozenset({Level.STANDARD, Level.STRICT}))


def ask_copies(asking: Asking, turn: int) -> Answer:
    """Deliver inputs as outputs."""
    study = study_of(asking.subject, asking.context)
    outcome = run_cheat(asking, study, _drops(study, cheat_outputs.copied(study, turn)))
    return judge(asking, outcome, "delivering copies of the inputs")


def ask_all_empty(asking: Asking) -> Answer:
    """Empty every input that may be written, and every output."""
    study = study_of(asking.subject, asking.context)
    files = dict.fromkeys(path for path in study.fixtures if path in study.writable)
    if not files:
        raise NotApplicable("there are no inputs that the agent may change")
    outputs = cheat_outputs.shaped(study, SHAPES["empty"])
    drops = [*_drops(study, outputs), *(Drop(path, b"", study.fixtures[path].mode) for path in files)]
    return judge(asking, run_cheat(asking, study, drops), "emptying every input and every output")


def ask_status(asking: Asking) -> Answer:
    """Deliver only the files that claim success."""
    study = study_of(asking.subject, asking.context)
    claims = cheat_outputs.claims(study)
    rest = {path: b"" for path, file in study.outputs.items() if path not in claims and file.data}
    drops = _drops(study, {**rest, **claims})
    outcome = run_cheat(asking, study, drops)
    gains = earned(asking, outcome)
    values = {f"metric:{name}": value for name, value in sorted(outcome.reward().metrics.items())}
    if set(gains) != set(study.metrics) or min(gains.values()) < FULL_SHARE:
        return Answer(
            values=values
        )  # a metric for the claim itself is fair; a metric for the work is not earned by it
    names = ", ".join(sorted(claims))
    hit = Hit("cheat-status", f"{names} alone, beside empty files, earns every metric", asking.probe)
    return Answer([hit], values=values)


def ask_program(asking: Asking, *, forge: bool = False, say: str = "", code: int = 0) -> Answer:
    """Deliver programs that forge a reward where `forge` is set, say something, and end with an exit code."""
    study = study_of(asking.subject, asking.context)
    programs = _delivered_programs(study)
    if forge and refused_rights(asking, study) is not None:
        forge = False
    payload = forge_shell(study.metrics) if forge else ""
    files = {
        path: payload_for(path, file.data or b"", payload, say=say, code=code)
        for path, file in programs.items()
    }
    outcome = run_cheat(asking, study, _drops(study, files))
    what = "a delivered program that only exits"
    if forge:
        what = "a delivered program that forges the reward, kills its parents, or exits at once"
    return judge(asking, outcome, f"{what} (exit code {code}, output {say.split() or 'none'})")


def ask_stub(asking: Asking) -> Answer:
    """Deliver modules whose functions return what equals everything."""
    study = study_of(asking.subject, asking.context)
    files = {
        path: stub
        for path, file in _delivered_programs(study).items()
        if (stub := cheat_outputs.stub(file.data or b"")) is not None
    }
    if not files:
        raise NotApplicable("no Python module with functions is delivered")
    outcome = run_cheat(asking, study, _drops(study, files))
    return judge(asking, outcome, "a module whose functions return what equals everything")


def _delivered_programs(study: Study) -> dict[str, StudiedFile]:
    programs = {path: file for path, file in study.outputs.items() if is_code(path, file.data or b"")}
    if not programs:
        raise NotApplicable("no program is delivered")
    return programs


def ask_links(asking: Asking) -> Answer:
    """Deliver links to the verifier's own files."""
    study = study_of(asking.subject, asking.context)
    private = {name: status.st_size for name, status in walk(asking.subject.task_dir / "tests")}
    links = cheat_outputs.link_targets(study, private)
    drops = [Drop(path, b"", link=f"/tests/{name}") for path, name in links.items()]
    outcome = run_cheat(asking, study, drops, before=f"rm -f {' '.join(map(_quoted, links))}\n")
    return judge(asking, outcome, "delivering links to the verifier's own files", code="cheat-link")


def ask_pipes(asking: Asking) -> Answer:
    """Deliver named pipes, for which a careless reader waits for ever."""
    study = study_of(asking.subject, asking.context)
    paths = list(study.outputs)
    if not paths:
        raise NotApplicable("the reference solution leaves no file")
    outcome = run_cheat(
        asking,
        study,
        [Drop(path, b"", pipe=True) for path in paths],
        before=f"rm -f {' '.join(map(_quoted, paths))}\n",
        partly=True,
    )
    answer = judge(asking, outcome, "delivering pipes instead of files")
    if answer.hits or outcome.failure is None or not outcome.failure.timed_out:
        return answer
    return Answer(
        [Hit("cheat-wait", "the verifier waits for ever for a pipe that was delivered", asking.probe)]
    )


def _quoted(text: str) -> str:
    return f"'{escaped(text)}'"


def _drops(study: Study, files: Mapping[str, bytes]) -> list[Drop]:
    if not files:
        raise NotApplicable("no file of the reference solution has such a worthless copy")
    return [Drop(path, data, study.outputs[path].mode) for path, data in sorted(files.items())]
