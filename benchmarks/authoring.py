"""A dry run of authoring at the scale of a corpus: throughput, kills, evenness of what is drawn, and its cost.

    python benchmarks/authoring.py --corpus DIR [--skills 200] [--workflows 3] [--kills 5] [--real 3] [--json FILE]

DIR holds ``index.jsonl`` and an archive of SKILL.md texts. Every skill is read and goes through the pipeline (plan,
draw, contract, seal, solution, ledger, budget, publication) with an author that writes a small task for any skill at
the prices of a model; only the checks, which need a sandbox, are taken for passed. The same is done once more, with
``kill -9`` at random moments, and both ends are compared: the dataset byte for byte, and in the ledger every attempt,
session, seal and micro-dollar. ``--real N`` compiles N of the skills with every gate in the sandbox. Exit code 1 when
ends differ, a session was paid twice, an axis is less even than 0.95, or a pair of archetype and verifier pattern that
some workflow allows was never drawn.
"""

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skill2env import authoring, parts, wiring
from skill2env.authors import demo
from skill2env.authors.protocol import CreateReply, CreateRequest, PlanReply, PlanRequest
from skill2env.authors.scripted import ScriptedAuthor
from skill2env.axes import AXIS_NAMES, axis_values
from skill2env.batch import compile_batch
from skill2env.config import RunConfig, load_config
from skill2env.create.fakes import FAKE_REFERENCE
from skill2env.harbor.sandboxes import SandboxChoice
from skill2env.llm.dialogue import TokenUsage, estimate_tokens
from skill2env.llm.prices import Price
from skill2env.records import (
    AuthorIdentity,
    GateOutcome,
    GateResult,
    Skill,
    TaskSpec,
    Usage,
    Verdict,
    VerdictStatus,
    Workflow,
    canonical_json,
    digest_of,
)
from skill2env.store import report
from skill2env.store.ledger import Ledger
from skill2env.verify.gate import GateContext

PRICE = Price(3, 15, cached=0.3)
TURNS = 12
LEAST_ENTROPY = 0.95
PAIR = ("archetype", "verifier_pattern")
WORK_SEC = 0.02
"""What a session of the author and a check take, so that kills meet them under way."""
SEED = 5


# ------------------------------------------------------------------------------------------------ the author


@dataclass
class PaidAuthor:
    """Writes the demo's task for any skill, plans several workflows on sentences of the skill, and sends a bill."""

    log: Path
    """One line for each session that was held to its end; what the ledger says is compared with it."""
    identity: AuthorIdentity = AuthorIdentity(name="bench", model="bench-model", version="1")  # noqa: RUF009

    def plan(self, request: PlanRequest) -> PlanReply:
        """Workflows that suit some of the values of two axes, as real ones do."""
        found = [workflow(request.skill, text, n) for n, text in enumerate(sentences(request.skill))]
        return PlanReply(
            text=canonical_json([item.model_dump(mode="json") for item in found[: request.count]]),
            usage=self.bill(f"plan {request.skill.digest}", request.prompt, 2000),
        )

    def create(self, request: CreateRequest) -> CreateReply:
        """The demo's session."""
        reply = ScriptedAuthor().create(request)
        name = f"{request.spec.task_name} {request.phase} {request.round}"
        return reply.model_copy(update={"usage": self.bill(name, request.prompt, 6000)})

    def bill(self, session: str, prompt: str, written: int) -> Usage:
        """What a session of `TURNS` turns would cost, with the dialogue so far read from the cache."""
        time.sleep(WORK_SEC)
        given = estimate_tokens(prompt) * TURNS
        tokens = TokenUsage(given, written, cached=given * 3 // 4)
        with self.log.open("a") as stream:
            stream.write(f"{session}\n")
        return Usage(
            model=self.identity.model,
            input_tokens=tokens.input,
            output_tokens=tokens.output,
            cached_tokens=tokens.cached,
            micro_dollars=PRICE.micro_dollars(tokens),
            turns=TURNS,
        )


def sentences(skill: Skill) -> list[str]:
    """Lines of a skill that a workflow can rest on, each once."""
    lines = [" ".join(line.split()) for line in (*skill.description.splitlines(), *skill.body.splitlines())]
    return list(dict.fromkeys(line for line in lines if 20 <= len(line) <= 400))


def workflow(skill: Skill, sentence: str, number: int) -> Workflow:
    """One workflow; which archetypes and patterns suit it is drawn from its own words."""
    rng = random.Random(digest_of([skill.digest, number]))
    suitable = {
        axis: tuple(sorted(rng.sample(axis_values(axis), max(2, len(axis_values(axis)) * 2 // 3))))
        for axis in PAIR
    }
    (base,) = demo.workflows(skill)
    return base.model_copy(
        update={
            "name": f"work-{number}",
            "summary": sentence,
            "scenario": f"Somebody needs this: {sentence}",
            "planted_problem": " ".join(rng.sample(sentence.split(), min(8, len(sentence.split())))),
            "grounding": (sentence,),
            "suitable": suitable,
        }
    )


# ------------------------------------------------------------------------------------------------ one run


def passed(task_dir: Path, *_: Any, **__: Any) -> Verdict:
    """In place of the checks: what they would say of a sound task."""
    time.sleep(WORK_SEC)
    gate = GateResult(
        gate="dry", outcome=GateOutcome.PASSED, values={"files": sum(1 for _ in task_dir.rglob("*"))}
    )
    return Verdict(status=VerdictStatus.ACCEPTED, gates=(gate,))


def settings(workflows: int) -> RunConfig:
    """Of the dry runs."""
    return load_config(
        None,
        {"workers": 2, "plan.workflows": workflows, "publish.near_duplicates": True, "budget.usd": 10_000.0},
    )


def dry_run(folder: Path, workflows: int) -> None:
    """Compile every skill below ``skills`` without a sandbox; the same call again goes on."""
    bases = {"debian-bookworm": FAKE_REFERENCE}
    for name, value in {
        "bases": bases,
        "base_image": lambda _, wanted: bases.get(wanted),
        "gates": GateContext(sandbox=SandboxChoice("none"), evidence=folder / "evidence"),
        "degraded": "",
    }.items():
        setattr(parts.Parts, name, value)
    authoring.check_contract = authoring.check_solution = authoring.verify = passed
    wiring._make_author = lambda _: PaidAuthor(folder / "held.log")  # pyright: ignore[reportPrivateUsage]
    compile_batch(
        [folder.parent / "skills"], out=folder / "dataset", run=folder / "run", config=settings(workflows)
    )


def child(folder: Path, workflows: int) -> "subprocess.Popen[bytes]":
    """`dry_run` in a process that can be killed."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, __file__, "--child", str(folder), "--workflows", str(workflows)]
    return subprocess.Popen(command, start_new_session=True)


def finish(folder: Path, workflows: int) -> float:
    """Run to the end; seconds."""
    begun = time.monotonic()
    code = child(folder, workflows).wait(timeout=1800)
    if code:
        raise SystemExit(f"the dry run in {folder} ended with exit code {code}")
    return time.monotonic() - begun


def kill_at_random(folder: Path, workflows: int, kills: int, whole: float) -> list[float]:
    """Start and kill; the seconds after which each one ended."""
    rng, moments = random.Random(SEED), []
    for _ in range(kills):
        process = child(folder, workflows)
        # From the middle of starting up to shortly before the end; what is left gets less with each try.
        moment = rng.uniform(1.5, max(3.0, whole * 0.6))
        try:
            process.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            moments.append(round(moment, 1))
        process.wait()
    return moments


# ------------------------------------------------------------------------------------------------ what came of it


def tree(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def ledger_of(folder: Path) -> dict[str, Any]:
    """Everything in a ledger that must not depend on kills: no times, numbers of runs or folders."""
    with Ledger.read(folder / "run" / "ledger.sqlite") as ledger:
        run = report.latest_run(ledger)
        assert run is not None
        attempts = [json.loads(canonical_json(item)) for item in report.attempts(ledger, run)]
        rows = ledger.query(
            "SELECT key, subject, phase, round, outcome, model, input_tokens, output_tokens, cached_tokens,"
            " micro_dollars FROM sessions WHERE outcome = 'finished' ORDER BY key"
        )
        lost = ledger.query("SELECT count(*) AS n FROM sessions WHERE outcome != 'finished'")[0]["n"]
        return {
            "attempts": attempts,
            "sessions": [dict(row) for row in rows],
            "seals": [
                dict(row)
                for row in ledger.query("SELECT task_name, digest, files FROM freezes ORDER BY 1, 2")
            ],
            "reasons": [(r.status, r.reason, r.count) for r in report.reasons(ledger, run)],
            "lost": lost,
            "specs": [spec for _, spec in ledger.results("diversify")],
        }


def without_money(attempts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Attempts without what they cost: a session that a kill cut off is paid, and its task knows it."""
    return [{key: value for key, value in item.items() if key != "usage"} for item in attempts]


def evenness(specs: Sequence[TaskSpec]) -> dict[str, float]:
    """Entropy of each axis over the greatest that its values allow."""
    found: dict[str, float] = {}
    for axis in AXIS_NAMES:
        counts = Counter(getattr(spec.axes, axis) for spec in specs)
        total = sum(counts.values())
        entropy = -math.fsum(n / total * math.log(n / total) for n in counts.values())
        found[axis] = entropy / math.log(len(axis_values(axis)))
    return found


def coverage(specs: Sequence[TaskSpec]) -> tuple[int, int]:
    """(pairs drawn, pairs that at least one workflow allows) of archetype x verifier pattern."""
    drawn = {tuple(getattr(spec.axes, axis) for axis in PAIR) for spec in specs}
    allowed = {
        (one, other)
        for spec in specs
        for one in spec.workflow.suitable.get(PAIR[0]) or axis_values(PAIR[0])
        for other in spec.workflow.suitable.get(PAIR[1]) or axis_values(PAIR[1])
    }
    return len(drawn & allowed), len(allowed)


def compare(clean: Path, killed: Path) -> dict[str, Any]:
    """Whether an undisturbed run and a killed one came to the same."""
    one, other = ledger_of(clean), ledger_of(killed)
    held = Counter((killed / "held.log").read_text().splitlines())
    paid = sum(row["micro_dollars"] for row in one["sessions"])
    return {
        "dataset": tree(clean / "dataset") == tree(killed / "dataset"),
        "attempts": without_money(one["attempts"]) == without_money(other["attempts"]),
        "finished sessions": one["sessions"] == other["sessions"],
        "seals": one["seals"] == other["seals"],
        "reasons": one["reasons"] == other["reasons"],
        "paid once": len({row["key"] for row in other["sessions"]}) == len(other["sessions"])
        and sum(row["micro_dollars"] for row in other["sessions"]) == paid,
        "lost in flight": other["lost"],
        "held again": sum(held.values()) - len(held),
    }


def take_skills(corpus: Path, count: int, target: Path) -> int:
    """Write the texts of `count` skills, chosen by a fixed seed, below `target`; nothing else of the archive."""
    lines = (corpus / "index.jsonl").read_text(encoding="utf-8").splitlines()
    wanted = set(random.Random(SEED).sample([json.loads(line)["path"] for line in lines], count))
    (archive,) = corpus.glob("*.tar.xz")
    taken = 0
    with tarfile.open(archive) as packed:
        for member in packed:
            if member.isfile() and member.name.removeprefix("./") in wanted:
                stream = packed.extractfile(member)
                assert stream is not None
                place = target / f"skill-{taken:04}"
                place.mkdir(parents=True)
                (place / "SKILL.md").write_bytes(stream.read(2**20))
                taken += 1
    return taken


def real(folder: Path, count: int) -> dict[str, Any]:
    """Compile some of the skills with every gate, in the sandbox, with the scripted author."""
    paths = sorted((folder / "skills").iterdir())[:count]
    command = [
        sys.executable, "-m", "skill2env.cli.main", "compile", *paths, "--author", "scripted", "--workflows", "1",
        "--allow-degraded", "--allow-near-duplicates", "--json", "--out", str(folder / "real/dataset"),
    ]  # fmt: skip
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    told = json.loads(done.stdout)
    tasks = told["counts"]["published"]
    return {"skills": count, "published": tasks, "seconds": round(seconds, 1), "code": done.returncode}


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Everything, as plain data."""
    skills = take_skills(arguments.corpus, arguments.skills, folder / "skills")
    load = os.getloadavg()[0]
    clean, killed = folder / "clean", folder / "killed"
    seconds = finish(clean, arguments.workflows)
    moments = kill_at_random(killed, arguments.workflows, arguments.kills, seconds)
    after = finish(killed, arguments.workflows)
    again = finish(clean, arguments.workflows)
    told = ledger_of(clean)
    specs = [TaskSpec.model_validate(spec) for spec in told["specs"]]
    spent = sum(row["micro_dollars"] for row in told["sessions"])
    published = next((count for status, _, count in told["reasons"] if status == "published"), 0)
    by_phase = Counter[str]()
    for row in told["sessions"]:
        by_phase[row["phase"]] += row["micro_dollars"]
    drawn, allowed = coverage(specs)
    return {
        "skills": skills,
        "specs": len(specs),
        "ends": [
            f"{status} {reason} {count}".replace("  ", " ") for status, reason, count in told["reasons"]
        ],
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "seconds": round(seconds, 1),
        "tasks_a_minute": round(60 * published / seconds, 1),
        "nothing_left_to_do_seconds": round(again, 1),
        "killed_after_seconds": moments,
        "finished_after_kills_seconds": round(after, 1),
        "same": compare(clean, killed),
        "entropy": {axis: round(value, 4) for axis, value in evenness(specs).items()},
        "pairs": f"{drawn} of {allowed}",
        "all_pairs": drawn == allowed,
        "cost": {
            "sessions": len(told["sessions"]),
            "usd": round(spent / 1e6, 2),
            "usd_a_task": round(spent / 1e6 / max(1, published), 4),
            "usd_by_phase": {phase: round(value / 1e6, 2) for phase, value in sorted(by_phase.items())},
        },
        **({"real": real(folder, arguments.real)} if arguments.real else {}),
    }


def is_good(found: dict[str, Any]) -> bool:
    """Whether the run came up to what is promised."""
    same = all(value for value in found["same"].values() if isinstance(value, bool))
    even = all(value >= LEAST_ENTROPY for value in found["entropy"].values())
    return same and even and found["all_pairs"] and found.get("real", {}).get("code", 0) == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--skills", type=int, default=200)
    parser.add_argument("--workflows", type=int, default=3)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--real", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        dry_run(arguments.child, arguments.workflows)
        return 0
    if arguments.corpus is None:
        parser.error("--corpus is needed")
    with tempfile.TemporaryDirectory(prefix="authoring-") as folder:
        found = measure(Path(folder), arguments)
    text = json.dumps(found, indent=1)
    print(text)
    if arguments.json:
        arguments.json.write_text(f"{text}\n")
    return 0 if is_good(found) else 1


if __name__ == "__main__":
    sys.exit(main())
