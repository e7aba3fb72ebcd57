"""A small sound task in our own format, and the same task with anything changed.

Load it by path (test folders are no packages): see `load_builder` in the conftest.py files that use it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from skill2env.harbor.task_toml import Provenance, render_task_toml
from skill2env.records import AuthorIdentity, Axes, Metric, Skill, TaskContract, TaskSpec, Workflow

INSTRUCTION = """\
The warehouse counted its crates. The counts lie in `/app/numbers.txt`, one integer a line.

Write the sum of all counts to `/app/out/sum.txt`. Write the largest count to `/app/out/max.txt`. Each file holds one
integer and nothing else.
"""

DOCKERFILE = """\
FROM {reference}
RUN useradd --create-home --shell /bin/bash agent
COPY numbers.txt /app/numbers.txt
RUN mkdir -p /app/out && chown agent:agent /app/out
WORKDIR /app
"""

NUMBERS = "17\n4\n98\n23\n51\n"

TEST_SH = """\
#!/bin/bash
# Grade offline, wherever it is started from.
exec /usr/bin/env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 /usr/bin/python3 -I -S -B /tests/grade.py
"""

GRADE = """\
import json
import os

COUNTS = [17, 4, 98, 23, 51]


def delivered(name):
    try:
        with open("/app/out/" + name, encoding="utf-8") as stream:
            return int(stream.read(40))
    except (OSError, ValueError):
        return None


def write(name, text):
    place = "/logs/verifier/" + name
    with open(place + ".tmp", "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(place + ".tmp", place)


grades = {"sum": float(delivered("sum.txt") == sum(COUNTS)), "largest": float(delivered("max.txt") == max(COUNTS))}
total = sum(grades.values()) / len(grades)
write("reward.txt", str(total))
write("reward.json", json.dumps({**grades, "reward": total}))
"""

SOLVE_SH = """\
#!/bin/bash
set -euo pipefail
awk '{ total += $1 } END { print total }' /app/numbers.txt > /app/out/sum.txt
sort --numeric-sort /app/numbers.txt | tail --lines=1 > /app/out/max.txt
"""

RUBRIC = """\
# Rubric

## Must-do
- Read every line of the counts before writing a result.

## Must-avoid
- Leave temporary files in the delivery folder.

## Best-practice
- Check the number of lines read against the number of lines in the file.
"""

CONTRACT = TaskContract(
    title="Count the crates",
    metrics=(
        Metric(name="sum", sentence="Write the sum of all counts to `/app/out/sum.txt`."),
        Metric(name="largest", sentence="Write the largest count to `/app/out/max.txt`."),
    ),
    artifacts=("/app/out",),
    keywords=("counting",),
)

SPEC = TaskSpec(
    skill_digest="sha256:" + "0" * 64,
    skill_slug="crate-counting",
    workflow=Workflow(
        name="count-crates",
        summary="Sum and maximum of a list.",
        scenario="A warehouse counts its crates.",
        initial_world="One file of numbers.",
        planted_problem="None.",
        difficulty_source="None; a test task.",
        solution_sketch="awk and sort.",
        verifier_strategy="Recompute.",
        grounding=("Count every crate.",),
        domain="data engineering",
    ),
    axes=Axes(
        archetype="build",
        verifier_pattern="recompute",
        complexity="short",
        persona="clerk",
        tone="plain",
        expertise="novice",
    ),
    seed=7,
    variant=0,
    task_name="skill2env/count-crates",
)

SKILL = Skill(
    name="Crate counting",
    slug="crate-counting",
    description="Counts crates.",
    body="Count every crate.",
    digest="sha256:" + "0" * 64,
)

PROVENANCE = Provenance(author=AuthorIdentity(name="recorded"), freeze_digest="sha256:" + "1" * 64)

SHELL_HEAD = "#!/bin/bash\n"


def build_task(
    folder: Path,
    *,
    reference: str,
    changes: Mapping[str, str | bytes | None] | None = None,
    config: Callable[[str], str] | None = None,
    contract: TaskContract = CONTRACT,
    metadata: bool = True,
) -> Path:
    """Write the task to `folder` and return it.

    Args:
        folder: the task directory; made when missing.
        reference: image reference for FROM, normally ``ensure_base().reference``.
        changes: relative path to new content; None removes the file.
        config: changes the text of task.toml last.
        contract: what task.toml is made from.
        metadata: False gives the task.toml of before the seal.
    """
    files: dict[str, str | bytes | None] = {
        "instruction.md": INSTRUCTION,
        "task.toml": render_task_toml(SPEC, contract, SKILL, PROVENANCE if metadata else None),
        "environment/Dockerfile": DOCKERFILE.format(reference=reference),
        "environment/numbers.txt": NUMBERS,
        "tests/test.sh": TEST_SH,
        "tests/grade.py": GRADE,
        "tests/rubric.md": RUBRIC,
        "solution/solve.sh": SOLVE_SH,
        **(changes or {}),
    }
    if config is not None:
        text = files["task.toml"]
        assert isinstance(text, str)
        files["task.toml"] = config(text)
    for path, content in files.items():
        place = folder / path
        if content is None:
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def rewarding(json_text: str | None, txt: str | None = None, *, then: str = "") -> str:
    """A test.sh that writes exactly these reward files, whatever was delivered."""
    lines = [SHELL_HEAD.strip()]
    for name, text in (("reward.json", json_text), ("reward.txt", txt)):
        if text is not None:
            lines.append(f"printf '%s' '{text}' > /logs/verifier/{name}")
    return "\n".join([*lines, then, ""])


def rewarding_when_solved(solved: str, otherwise: str = '{"sum": 0, "largest": 0, "reward": 0}') -> str:
    """A test.sh that writes one reward.json for the reference solution and another one for nothing."""
    return (
        f"{SHELL_HEAD}if [ -e /app/out/sum.txt ]; then printf '%s' '{solved}'; else printf '%s' '{otherwise}'; fi"
        " > /logs/verifier/reward.json\n"
    )
