"""Gate `hosts`: no result depends on the machine or the day.

A fact of the machine (its name, memory, processors, kernel, disk, addresses) that both the solution and the verifier
read makes an answer that is right in one container and wrong in the next. A program that the agent has to write may
read such facts when it is run; the solution only writes it. The clock is noted where grading reads it; whether that
matters, probes with other clocks decide.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from skill2env.verify.gate import GateContext, Hit, Report, Stage, Subject
from skill2env.verify.static import bash, python
from skill2env.verify.static.programs import Origin, Program, Role, invocations, programs
from skill2env.verify.static.world import world_of

BEFORE, AFTER = timedelta(days=30), timedelta(days=550)
"""A date so close to today is probably meant as now."""

_PATHS = (
    ("memory", re.compile(r"/proc/meminfo$")),
    ("name", re.compile(r"/etc/hostname$|/proc/sys/kernel/hostname$")),
    ("processors", re.compile(r"/proc/cpuinfo$|/sys/devices/system/cpu")),
    ("kernel", re.compile(r"/proc/version$|/proc/sys/kernel/(?:osrelease|version)$")),
    (
        "uptime",
        re.compile(r"/proc/(?:uptime|loadavg|stat)$|/proc/sys/kernel/random/boot_id$|/etc/machine-id$"),
    ),
    ("network", re.compile(r"/sys/class/net\b|/proc/net/(?:route|fib_trie)$")),
)
_PROGRAMS = {
    "hostname": "name",
    "hostnamectl": "name",
    "free": "memory",
    "vmstat": "memory",
    "nproc": "processors",
    "lscpu": "processors",
    "getconf": "processors",
    "df": "disk",
    "lsblk": "disk",
    "uptime": "uptime",
    "ip": "network",
    "ifconfig": "network",
}
_CALLS = {
    "socket.gethostname": "name",
    "socket.getfqdn": "name",
    "platform.node": "name",
    "os.cpu_count": "processors",
    "multiprocessing.cpu_count": "processors",
    "psutil.cpu_count": "processors",
    "psutil.virtual_memory": "memory",
    "os.sysconf": "memory",
    "platform.release": "kernel",
    "platform.version": "kernel",
    "shutil.disk_usage": "disk",
    "os.statvfs": "disk",
    "psutil.disk_usage": "disk",
    "os.getloadavg": "uptime",
    "uuid.getnode": "network",
    "uuid.uuid1": "network",
}
_PARALLEL = re.compile(
    r"(?:-j|-P|-T|--jobs|--parallel|--threads|--workers|-n|_THREADS|_JOBS|MAKEFLAGS)\S*[\s=\"']*\$\(\s*nproc|\bnproc\b.*\b(?:jobs|make)\b"
)
_CLOCK = frozenset(
    "datetime.datetime.now datetime.datetime.today datetime.datetime.utcnow datetime.date.today datetime.now "
    "datetime.today datetime.utcnow date.today time.ctime time.asctime".split()
)
_CLOCK_WITHOUT_TIME = {"time.localtime": 0, "time.gmtime": 0, "time.strftime": 1}
_NOW = re.compile(
    r"(?i)\bas of (?:today|now)\b|\btoday(?:'s)?\b|\bcurrent (?:date|day|time|year|month|week)\b|\b(?:until|by) now\b"
)
_DATE = re.compile(r"(?<![\d-])(20\d\d)-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?![\d-])")


def check(subject: Subject, context: GateContext) -> Report:
    """Look for facts of the machine and the day in what solves and grades."""
    verifier = programs(subject.task_dir, Role.VERIFIER)
    solution = () if subject.stage is Stage.CONTRACT else programs(subject.task_dir, Role.SOLUTION)
    hits = [*_shared_facts(verifier, solution), *_processors((*verifier, *solution))]
    clock = [(program, line, what) for program in verifier for line, what in _clock_reads(program)]
    hits += [
        Hit("clock-read", f"grading reads the clock: {what}", program.where(line))
        for program, line, what in clock[:3]
    ]
    solving = [(program, line, what) for program in solution for line, what in _clock_reads(program)]
    if solving and _NOW.search(world_of(subject).instruction):
        program, line, what = solving[0]
        hits.append(Hit("clock-read", f"the task asks for a result of today: {what}", program.where(line)))
    if context.today is not None and (clock or solving):
        hits += _near(subject, context.today, verifier)
    return Report(list(dict.fromkeys(hits)), {"clock": bool(clock)})


def _shared_facts(verifier: Sequence[Program], solution: Sequence[Program]) -> Iterator[Hit]:
    delivered = _delivered(solution)
    read = {
        kind: (program.where(line), what)
        for program in solution
        if program.origin is not Origin.WRITTEN and program.path.rpartition("/")[2] not in delivered
        for kind, line, what in facts(program)
    }
    told: set[str] = set()
    for program in verifier:
        for kind, line, what in facts(program):
            if kind in read and kind not in told:
                told.add(kind)
                where, other = read[kind]
                yield Hit(
                    "host-dependent",
                    f"grading ({what}) and the solution ({other}, {where}) read the same fact of the machine: {kind}",
                    program.where(line),
                )


def _delivered(solution: Sequence[Program]) -> set[str]:
    """Names of files that the solution copies to where they are wanted; what they do is done by whoever runs them."""
    return {
        word.rpartition("/")[2]
        for program in solution
        if program.language == "shell"
        for invocation in invocations(program)
        if invocation.call[:1] and invocation.call[0] in ("cp", "install", "mv", "rsync", "ln", "cat")
        for word in invocation.call[1:]
    }


def facts(program: Program) -> Iterator[tuple[str, int, str]]:
    """Kind, line and spelling of every fact of the machine that a program reads."""
    if program.language == "python":
        source = python.read(program.text)
        if source is None:
            return
        for text, line in source.strings():
            yield from ((kind, line, text) for kind, pattern in _PATHS if pattern.match(text))
        for call in source.calls():
            if call.name in _CALLS:
                yield _CALLS[call.name], call.line, call.name
            elif call.name in ("os.uname", "platform.uname"):
                yield from (("name", call.line, call.name), ("kernel", call.line, call.name))
    for command in _commands(program):
        yield from _command_facts(command, program)


def _commands(program: Program) -> Iterator[bash.Command]:
    if program.language == "shell":
        yield from bash.read(program.text).commands
    else:
        yield from (bash.Command(invocation.words, invocation.line) for invocation in invocations(program))


def _command_facts(command: bash.Command, program: Program) -> Iterator[tuple[str, int, str]]:
    call = command.call
    if not call:
        return
    name = call[0]
    line = program.text.split("\n")[command.line - 1] if program.language == "shell" else ""
    if name == "uname":
        options = "".join(word for word in call[1:] if word.startswith("-"))
        if re.search("[na]", options):
            yield "name", command.line, " ".join(call)
        if re.search("[rva]", options):
            yield "kernel", command.line, " ".join(call)
    elif name == "hostname" and any(word in ("-I", "-i") for word in call[1:]):
        yield "network", command.line, " ".join(call)
    elif name in _PROGRAMS and not _PARALLEL.search(line):
        yield _PROGRAMS[name], command.line, " ".join(call)[:60]
    for word in (*call[1:], *(item.target for item in command.redirects if item.operator.startswith("<"))):
        yield from ((kind, command.line, word) for kind, pattern in _PATHS if pattern.match(word))


def _processors(found: Sequence[Program]) -> Iterator[Hit]:
    for program in found:
        for invocation in invocations(program):
            if invocation.call == ("nproc",):
                yield Hit(
                    "bare-nproc",
                    "nproc tells the machine's processors, not the task's",
                    program.where(invocation.line),
                )


def _clock_reads(program: Program) -> Iterator[tuple[int, str]]:
    if program.language == "python":
        source = python.read(program.text)
        for call in source.calls() if source is not None else ():
            if call.name in _CLOCK or len(call.node.args) <= _CLOCK_WITHOUT_TIME.get(call.name, -1):
                yield call.line, call.name
        return
    for invocation in invocations(program):
        if invocation.call[:1] != ("date",):
            continue
        rest = invocation.call[1:]
        timing = any(word.startswith(("+%s", "+%N")) for word in rest)
        if not timing and not any(
            re.match(r"-[a-zA-Z]*[dr]|--(?:date|reference|set)", word) for word in rest
        ):
            yield invocation.line, " ".join(invocation.call)


def _near(subject: Subject, today: date, verifier: Sequence[Program]) -> Iterator[Hit]:
    texts = [
        ("instruction.md", world_of(subject).instruction),
        *((program.path, program.text) for program in verifier),
    ]
    for path, text in texts:
        for match in _DATE.finditer(text):
            try:
                day = date(int(match[1]), int(match[2]), int(match[3]))
            except ValueError:
                continue
            if today - BEFORE <= day <= today + AFTER:
                line = text.count("\n", 0, match.start()) + 1
                yield Hit(
                    "date-near-today",
                    f"{match[0]} is close to {today}, and the task reads the clock",
                    f"{path}:{line}",
                )
                break
