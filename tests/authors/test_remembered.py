from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from skill2env.authors.protocol import (
    CreateReply,
    CreateRequest,
    KnowsSkills,
    PinsAxes,
    PlanReply,
    PlanRequest,
)
from skill2env.authors.remembered import RememberedAuthor
from skill2env.errors import Boundary, BudgetReached, InfraError
from skill2env.records import (
    AuthorIdentity,
    Axes,
    Phase,
    Reason,
    Skill,
    Skipped,
    SkipReason,
    TaskSpec,
    Usage,
    Workflow,
)
from skill2env.store.ledger import Ledger
from skill2env.store.report import spend

SKILL = Skill(name="s", slug="s", description="d", body="b", digest="sha256:aa")
AXES = Axes(archetype="a", verifier_pattern="v", complexity="c", persona="p", tone="t", expertise="e")
WORKFLOW = Workflow(
    name="w", summary="s", scenario="s", initial_world="i", planted_problem="p", difficulty_source="d",
    solution_sketch="s", verifier_strategy="v", grounding=("g",),
)  # fmt: skip
SPEC = TaskSpec(
    skill_digest="sha256:aa", skill_slug="s", workflow=WORKFLOW, axes=AXES, seed=1, variant=0, task_name="o/t"
)


class Scripted:
    """Writes what it is told and counts how often it was asked."""

    def __init__(self, write: Callable[[Path], None], reply: CreateReply) -> None:
        self.identity = AuthorIdentity(name="scripted", model="m", digest="sha256:1")
        self.write = write
        self.reply = reply
        self.asked = 0
        self.fail = False

    def plan(self, request: PlanRequest) -> PlanReply:
        self.asked += 1
        return PlanReply(text="[]", usage=self.reply.usage)

    def create(self, request: CreateRequest) -> CreateReply:
        self.asked += 1
        if self.fail:
            raise InfraError(Boundary.PROVIDER, "down")
        self.write(request.workspace / "task")
        return self.reply


USAGE = Usage(model="m", input_tokens=7, micro_dollars=400_000)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.sqlite") as opened:
        opened.begin_run(
            config={}, config_digest="", author=AuthorIdentity(name="x"), dataset=Path("o"), version="0"
        )
        yield opened


def request(tmp_path: Path, name: str = "w1", **changes: object) -> CreateRequest:
    workspace = tmp_path / name
    (workspace / "task").mkdir(parents=True)
    made = CreateRequest(
        spec=SPEC, skill=SKILL, skill_dir=tmp_path, phase=Phase.CONTRACT, workspace=workspace, prompt="do"
    )
    return replace(made, **changes)


def write_task(task: Path) -> None:
    (task / "tests").mkdir()
    (task / "tests/test.sh").write_text("x")
    (task / "tests/test.sh").chmod(0o700)
    (task / "instruction.md").write_text("hello")


def files(workspace: Path) -> dict[str, tuple[int, bytes]]:
    task = workspace / "task"
    return {
        p.relative_to(task).as_posix(): (p.stat().st_mode & 0o777, p.read_bytes())
        for p in sorted(task.rglob("*"))
        if p.is_file()
    }


def wrap(author: Scripted, ledger: Ledger, tmp_path: Path, budget: int | None = None) -> RememberedAuthor:
    sessions = tmp_path / "sessions"
    sessions.mkdir(exist_ok=True)
    return RememberedAuthor(author, ledger=ledger, sessions=sessions, run=1, budget_micro_dollars=budget)


def test_equal_requests_are_answered_once_and_alike(tmp_path: Path, ledger: Ledger) -> None:
    author = Scripted(write_task, CreateReply(usage=USAGE))
    remembered = wrap(author, ledger, tmp_path)
    first = remembered.create(request(tmp_path, "w1"))
    again = wrap(author, ledger, tmp_path).create(request(tmp_path, "w2"))
    assert author.asked == 1
    assert first == again
    assert files(tmp_path / "w1") == files(tmp_path / "w2")
    assert files(tmp_path / "w1")["tests/test.sh"] == (0o755, b"x")
    assert spend(ledger).sessions == 1
    assert remembered.plan(PlanRequest(SKILL, tmp_path, 3, "p", 0)).text == "[]"
    assert remembered.plan(PlanRequest(SKILL, tmp_path, 3, "p", 0)).text == "[]"
    assert author.asked == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": "other"},
        {"phase": Phase.SOLUTION},
        {"round": 1},
        {"informed": False},
        {"spec": SPEC.model_copy(update={"seed": 2})},
        {"skill": SKILL.model_copy(update={"digest": "sha256:bb"})},
    ],
    ids=str,
)
def test_every_input_counts(tmp_path: Path, ledger: Ledger, changes: dict[str, object]) -> None:
    author = Scripted(write_task, CreateReply(usage=USAGE))
    remembered = wrap(author, ledger, tmp_path)
    remembered.create(request(tmp_path, "w1"))
    remembered.create(request(tmp_path, "w2", **changes))
    assert author.asked == 2


def test_the_files_of_the_workspace_count_and_the_verifiers_words_do_not(
    tmp_path: Path, ledger: Ledger
) -> None:
    author = Scripted(lambda task: None, CreateReply(usage=USAGE))
    remembered = wrap(author, ledger, tmp_path)

    def repair(name: str, feedback: str, text: str) -> CreateRequest:
        made = request(
            tmp_path, name, phase=Phase.REPAIR, round=1, feedback=feedback, prompt=f"mend: {feedback}"
        )
        (made.workspace / "task/solve.sh").write_text(text)
        return made

    remembered.create(repair("w1", "took 0.11 s", "same"))
    remembered.create(repair("w2", "took 0.12 s", "same"))
    assert author.asked == 1
    remembered.create(repair("w3", "took 0.12 s", "other"))
    assert author.asked == 2


def test_what_may_not_be_taken_is_refused_both_times(tmp_path: Path, ledger: Ledger) -> None:
    def write(task: Path) -> None:
        (task / "link").symlink_to("/etc/passwd")
        (task / "ok").write_text("x")

    author = Scripted(write, CreateReply(usage=USAGE))
    remembered = wrap(author, ledger, tmp_path)
    replies = [remembered.create(request(tmp_path, name)) for name in ("w1", "w2")]
    assert replies[0] == replies[1]
    assert replies[0].refused is not None
    assert replies[0].refused.reason is Reason.UNSAFE_FILE
    assert files(tmp_path / "w1") == files(tmp_path / "w2") == {"ok": (0o644, b"x")}


def test_a_task_folder_swapped_for_a_link_harms_nobody(tmp_path: Path, ledger: Ledger) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")

    def write(task: Path) -> None:
        task.rmdir()
        task.symlink_to(outside)

    reply = wrap(Scripted(write, CreateReply()), ledger, tmp_path).create(request(tmp_path))
    assert reply.refused is not None
    assert (outside / "precious").read_text() == "x"
    assert not (tmp_path / "w1/task").is_symlink()


def test_a_skip_is_remembered(tmp_path: Path, ledger: Ledger) -> None:
    author = Scripted(lambda task: None, CreateReply(skipped=Skipped(reason=SkipReason.UNSAFE)))
    remembered = wrap(author, ledger, tmp_path)
    for name in ("w1", "w2"):
        reply = remembered.create(request(tmp_path, name))
        assert reply.skipped is not None
    assert author.asked == 1


def test_failures_are_not_remembered_but_noted(tmp_path: Path, ledger: Ledger) -> None:
    author = Scripted(write_task, CreateReply(usage=USAGE))
    author.fail = True
    remembered = wrap(author, ledger, tmp_path)
    for name in ("w1", "w2"):
        with pytest.raises(InfraError, match="down"):
            remembered.create(request(tmp_path, name))
    author.fail = False
    remembered.create(request(tmp_path, "w3"))
    assert author.asked == 3
    spent = spend(ledger)
    assert (spent.sessions, spent.unpriced) == (3, 2)


def test_the_budget_stops_before_the_next_session_only(tmp_path: Path, ledger: Ledger) -> None:
    author = Scripted(write_task, CreateReply(usage=USAGE))
    remembered = wrap(author, ledger, tmp_path, budget=500_000)
    for number in range(2):
        remembered.create(request(tmp_path, f"w{number}", round=number))
    with pytest.raises(BudgetReached, match="are spent") as caught:
        remembered.create(request(tmp_path, "w2", round=2))
    assert "--budget-usd" in caught.value.hint
    remembered.create(request(tmp_path, "w3", round=1))
    assert author.asked == 2


def test_a_kill_between_folder_and_ledger_is_healed(tmp_path: Path, ledger: Ledger) -> None:
    author = Scripted(write_task, CreateReply(usage=USAGE))
    wrap(author, ledger, tmp_path).create(request(tmp_path, "w1"))
    with ledger.transaction() as db:
        db.execute("DELETE FROM sessions")
    wrap(author, ledger, tmp_path).create(request(tmp_path, "w2"))
    assert author.asked == 1
    assert spend(ledger).micro_dollars == USAGE.micro_dollars


def test_optional_abilities_are_passed_through(tmp_path: Path, ledger: Ledger) -> None:
    class Able(Scripted):
        def pinned_axes(self, skill: Skill, workflow: Workflow, variant: int) -> Axes | None:
            return AXES

        def identity_for(self, skill: Skill) -> AuthorIdentity:
            return AuthorIdentity(name="able", digest=skill.digest)

    plain = wrap(Scripted(write_task, CreateReply()), ledger, tmp_path)
    able = wrap(Able(write_task, CreateReply()), ledger, tmp_path)
    assert isinstance(able, PinsAxes)
    assert isinstance(able, KnowsSkills)
    assert plain.pinned_axes(SKILL, WORKFLOW, 0) is None
    assert able.pinned_axes(SKILL, WORKFLOW, 0) == AXES
    assert plain.identity_for(SKILL) == plain.identity
    assert able.identity_for(SKILL).digest == SKILL.digest
