"""What a drill consists of, how its words are drawn, and the files that make it a task."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from skill2env.authors.demo import verifier_script
from skill2env.records import Domain, Limits, Metric, TaskContract, Workflow, canonical_json

ONE_COMMAND = "One short bash command is enough."
"""The last sentence of every instruction: it tells a small policy how long an answer has to be."""
FOLDER = "/app"

# No word is part of another one, so that looking for a word and looking for its letters find the same lines. None of
# them claims success, none is the name of a command, and all are lower case, so that they sort alike in every locale.
WORDS = tuple(
    "acorn anvil apron badge barrel beacon blanket bucket button cactus candle carpet compass cradle "
    "cushion daisy dagger ember falcon feather fiddle garlic goblet hammer helmet hornet island jacket "
    "kettle ladder lantern lemon magnet marble mirror napkin needle nutmeg oyster paddle pebble pepper "
    "pigeon pillow plum pocket quilt rabbit raisin ribbon saddle scarf shovel sparrow spindle thimble "
    "ticket tulip turnip velvet violin walnut whistle willow yarn zebra".split()
)
FILES = tuple(
    "attic bakery cellar chapel corner dock engine farm garage gate hall kitchen market mill museum "
    "office orchard pantry pier porch school shed shelf stable station store studio tower valley workshop".split()
)
COLOURS = ("amber", "blue", "green", "grey", "pink", "purple", "white", "yellow")


class Draw:
    """Words, names and numbers of one drill; equal seeds draw the same, and nothing is drawn twice."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._words = self.random.sample(WORDS, len(WORDS))
        self._files = self.random.sample(FILES, len(FILES))

    def word(self) -> str:
        """A word that this drill does not have yet."""
        return self._words.pop()

    def words(self, count: int) -> list[str]:
        """Several such words."""
        return [self.word() for _ in range(count)]

    def name(self) -> str:
        """A name for a file or folder."""
        return self._files.pop()

    def path(self, suffix: str = ".txt") -> str:
        """The absolute path of a file that this drill does not have yet."""
        return f"{FOLDER}/{self.name()}{suffix}"

    def colours(self, count: int) -> list[str]:
        """Different colours."""
        return self.random.sample(COLOURS, count)

    def numbers(self, count: int) -> list[int]:
        """Different numbers of one to three digits, never 0 and of every length, so that order as text is another."""
        ranges = ((2, 9), (10, 99), (100, 999))
        found: dict[int, None] = {}
        while len(found) < count:
            found[self.random.randint(*ranges[len(found) % 3])] = None
        return list(found)

    def astray[T](self, items: Sequence[T]) -> list[T]:
        """The items turned by some places, so that none stands where it stood."""
        by = self.random.randrange(1, len(items))
        return [*items[by:], *items[:by]]


@dataclass(frozen=True, slots=True)
class Check:
    """One metric of a drill."""

    name: str
    sentence: str
    """Of the instruction, word for word."""
    code: str
    """Python that gives its value from ``found``, ``wanted``, ``given`` and the helpers of the verifier."""


@dataclass(frozen=True, slots=True)
class Drill:
    """One drill with its words."""

    sentences: tuple[str, ...]
    """The instruction but for `ONE_COMMAND`."""
    target: str
    """The file that is graded."""
    command: str
    """The reference solution."""
    wanted: str
    """Python that gives the lines of `target` from ``given``."""
    checks: tuple[Check, ...]
    given: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Absolute path -> lines of the files that are there, the input first."""
    must: str = ""
    """What the rubric asks for."""
    folders: tuple[str, ...] = ()
    """Folders that are there beside `FOLDER`."""

    @property
    def private(self) -> dict[str, Sequence[str]]:
        """Name -> lines of the inputs that the verifier needs copies of."""
        code = " ".join((self.wanted, *(check.code for check in self.checks)))
        used = "given" in code or "texts" in code
        return {path.rpartition("/")[2]: lines for path, lines in self.given.items()} if used else {}

    @property
    def instruction(self) -> str:
        """As the agent reads it."""
        return " ".join((*self.sentences, ONE_COMMAND))


@dataclass(frozen=True, slots=True)
class Kind:
    """One sort of drill: a workflow, of which every seed gives another task."""

    name: str
    summary: str
    grounding: str
    """The sentence of the skill that teaches it, word for word."""
    best: str
    """What the rubric calls good practice here."""
    make: Callable[[Draw], Drill]

    @property
    def rung(self) -> int:
        """1 writes, 2 changes and copies, 3 counts, filters and sorts."""
        return int(self.name[1])

    def workflow(self) -> Workflow:
        """For the answer to a planning request."""
        return Workflow(
            name=self.name,
            summary=self.summary,
            scenario="Somebody at a shell wants one small thing done to a text file.",
            initial_world=f"One or two text files of a few lines in {FOLDER}.",
            planted_problem="None.",
            difficulty_source="The right arrow and the right command have to be known.",
            solution_sketch=self.best,
            verifier_strategy="Work out the lines from private copies and compare, part by part.",
            grounding=(self.grounding,),
            domain=Domain.SOFTWARE.value,
        )

    def contract_files(self, drill: Drill) -> dict[str, str]:
        """What the contract session writes."""
        names = tuple(check.name for check in drill.checks)
        contract = TaskContract(
            title=self.summary.rstrip("."),
            metrics=tuple(Metric(name=check.name, sentence=check.sentence) for check in drill.checks),
            artifacts=(drill.target,),
            limits=Limits(memory_mb=512, storage_mb=512, agent_timeout_sec=30, verifier_timeout_sec=60),
            keywords=("shell", "files", f"rung-{self.rung}"),
        )
        world = {path: _text(lines) for path, lines in drill.given.items()}
        return {
            "contract.json": canonical_json(contract),
            "instruction.md": f"{drill.instruction}\n",
            "environment/Dockerfile": dockerfile(drill),
            **{f"environment{path}": text for path, text in world.items()},
            "tests/test.sh": verifier_script(names),
            "tests/grade.py": grader(drill),
            **{f"tests/{name}": _text(lines) for name, lines in drill.private.items()},
            "tests/rubric.md": self.rubric(drill),
        }

    def solution_files(self, drill: Drill) -> dict[str, str]:
        """What the solution session writes."""
        return {"solution/solve.sh": f"#!/bin/bash\nset -eu\n{drill.command}\n"}

    def rubric(self, drill: Drill) -> str:
        """Three headings, one bullet each."""
        must = drill.must or " ".join(drill.sentences)
        return (
            f"# Rubric\n\n## Must-do\n- {must}\n\n"
            f"## Must-avoid\n- Touches another file than {drill.target}, or leaves a helper file behind.\n\n"
            f"## Best-practice\n- {self.best}\n"
        )


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def dockerfile(drill: Drill) -> str:
    """An image in which the agent owns the small world and nothing else."""
    folders = " ".join((FOLDER, *drill.folders))
    return (
        "FROM debian-bookworm\n"
        "RUN useradd --create-home --shell /bin/bash agent\n"
        "COPY app/ /app/\n"
        f"RUN mkdir -p {folders} && chown -R agent:agent {FOLDER}\n"
        f"WORKDIR {FOLDER}\n"
    )


def grader(drill: Drill) -> str:
    """The verifier's program: the helpers, the truth of this drill, its metrics."""
    copies = [f"/tests/{name}" for name in drill.private]
    checks = "\n".join(f'    "{check.name}": lambda: {check.code},' for check in drill.checks)
    return (
        f"{HELPERS}\n\n"
        f"texts = [lines(path) for path in {copies!r}]\n"
        "given = texts[0] if texts else []\n"
        f"wanted = {drill.wanted}\n"
        f"found = lines({drill.target!r})\n"
        f"said = words(found)\n"
        f"CHECKS = {{\n{checks}\n}}\n"
        f"{REPORT}"
    )


HELPERS = '''"""Work out from private copies what the file should hold, and compare part by part."""
import json, os, re, stat


def lines(path):
    """Lines of a plain file; blanks at their ends and empty lines at the end of the file mean nothing."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as stream:
            facts = os.fstat(stream.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > 100_000:
                return []
            text = stream.read(100_000).decode("utf-8-sig")
    except (OSError, ValueError):
        return []
    rows = [" ".join(row.split()) for row in text.split("\\n")]
    while rows and not rows[-1]:
        rows.pop()
    return rows


def words(rows):
    return re.findall(r"\\w+", " ".join(rows))


def number(rows):
    """The first number of a text."""
    return next((int(word) for word in words(rows) if word.isdecimal()), None)


def share(rows, right):
    """Right lines less wrong ones, of those that are wanted; so handing in everything earns nothing."""
    left = list(right)
    for row in rows:
        if row in left:
            left.remove(row)
    hits = len(right) - len(left)
    return (2 * hits - len(rows)) / len(right)


def placed(rows, right):
    """Lines that stand in their place, less lines too many, of those that are wanted."""
    hits = sum(one == other for one, other in zip(rows, right))
    return (hits - max(0, len(rows) - len(right))) / len(right)
'''

REPORT = """

def score(check):
    try:
        return min(1.0, max(0.0, float(check())))
    except Exception:
        return 0.0


def put(name, text):
    part = f"/logs/verifier/.{name}.part"
    with open(part, "w") as stream:
        stream.write(text)
    os.replace(part, f"/logs/verifier/{name}")


reward = {name: score(check) for name, check in CHECKS.items()}
reward["reward"] = sum(reward.values()) / len(CHECKS)
put("reward.json", json.dumps(reward))
put("reward.txt", str(reward["reward"]))
"""
