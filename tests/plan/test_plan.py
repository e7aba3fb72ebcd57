import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.authors.protocol import CreateReply, CreateRequest, PlanReply, PlanRequest
from skill2env.plan import DropReason, Plan, plan_workflows
from skill2env.plan.answer import MAX_ANSWER_CHARS, read_answer
from skill2env.plan.parse import MAX_NAME_CHARS, MAX_TEXT_CHARS, parse_workflows, slug_name
from skill2env.records import (
    AuthorIdentity,
    FileKind,
    Skill,
    SkillFile,
    Skipped,
    SkipReason,
    Usage,
    digest_bytes,
    digest_of,
)

SENTENCE = "Convert each line first and round each line to cents, half up; then add."


@dataclass
class Planner:
    """An author that answers with fixed text."""

    text: str = ""
    skipped: Skipped | None = None
    asked: list[PlanRequest] = field(default_factory=list)
    identity: AuthorIdentity = field(default_factory=lambda: AuthorIdentity(name="fixed"))

    def plan(self, request: PlanRequest) -> PlanReply:
        self.asked.append(request)
        return PlanReply(text=self.text, skipped=self.skipped, usage=Usage(input_tokens=5))

    def create(self, request: CreateRequest) -> CreateReply:
        raise AssertionError(request)


def entry(name: str = "convert-lines", **changes: Any) -> dict[str, Any]:
    texts = (
        "summary",
        "scenario",
        "initial_world",
        "planted_problem",
        "difficulty_source",
        "solution_sketch",
        "verifier_strategy",
    )
    return {"name": name, **dict.fromkeys(texts, "Some text."), "grounding": [SENTENCE]} | changes


@pytest.fixture
def skill_dir(tmp_path: Path) -> Path:
    (tmp_path / "references").mkdir()
    (tmp_path / "references/more.md").write_text("Read the direction of the\nquotation before dividing.")
    return tmp_path


def make_skill(skill_dir: Path) -> Skill:
    data = (skill_dir / "references/more.md").read_bytes()
    listed = SkillFile(
        path="references/more.md", kind=FileKind.TEXT, size=len(data), sha256=digest_bytes(data)
    )
    body = f"# Conversion\n- Convert each line first and round each\n  line to cents, half up; then add.\n- {'x' * 50}"
    return Skill(
        name="fx",
        slug="fx",
        description="About exchange rates.",
        body=body,
        files=(listed,),
        digest=digest_of(body),
    )


def plan(skill_dir: Path, answer: Any, count: int = 3) -> Plan:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return plan_workflows(make_skill(skill_dir), skill_dir, Planner(text), count=count, seed=1)


def reasons(result: Plan) -> list[DropReason]:
    return [loss.reason for loss in result.dropped]


def test_good_answer(skill_dir: Path) -> None:
    result = plan(
        skill_dir,
        [entry(), entry("second", grounding=["Read the direction of the quotation before dividing."])],
    )
    assert [workflow.name for workflow in result.workflows] == ["convert-lines", "second"]
    assert result.dropped == ()
    assert result.skipped is None
    assert result.usage.input_tokens == 5
    assert result.prompt_digest.startswith("sha256:")


@pytest.mark.parametrize(
    "wrap",
    [
        "{}",
        "```json\n{}\n```",
        "~~~~\n{}\n~~~~ trailing",
        "Here is [the plan] you asked for:\n\n```json\n{}\n```\nGood luck!",
        "Sure.\n{}\n\nAnything else?",
        "\ufeff  {}",
        '{{"workflows": {}}}',
        '```\n{{"note": 1, "workflows": {}}}\n```',
        "```python\nprint('no')\n```\n\n```json\n{}\n```",
    ],
)
def test_wrappings(skill_dir: Path, wrap: str) -> None:
    result = plan(skill_dir, wrap.format(json.dumps([entry()], indent=1)))
    assert [workflow.name for workflow in result.workflows] == ["convert-lines"]
    assert result.dropped == ()


def test_single_object_is_a_list_of_one(skill_dir: Path) -> None:
    assert len(plan(skill_dir, entry()).workflows) == 1


@pytest.mark.parametrize("shape", ["[{}]", '{{"workflows": [{}]}}', "```json\n[{}]"])
def test_cut_off_answer_keeps_what_is_whole(skill_dir: Path, shape: str) -> None:
    whole = shape.format(", ".join(json.dumps(entry(name)) for name in ("one", "two", "three")))
    result = plan(skill_dir, whole[: whole.index('"three"') + 30])
    assert [workflow.name for workflow in result.workflows] == ["one", "two"]
    assert reasons(result) == [DropReason.TRUNCATED]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", DropReason.NOT_JSON),
        ("I cannot do that.", DropReason.NOT_JSON),
        ("{'name': 'single quotes'}", DropReason.NOT_JSON),
        ("[NaN]", DropReason.NOT_JSON),
        ("[" * 50_000, DropReason.NOT_JSON),
        ('{"a":' * 50_000, DropReason.NOT_JSON),
        ("[" + "9" * 10_000 + "]", DropReason.NOT_JSON),
        ("x" * (MAX_ANSWER_CHARS + 1), DropReason.ANSWER_TOO_LONG),
        (["text"], DropReason.NOT_AN_OBJECT),
        ([entry("日本")], DropReason.BAD_NAME),
        ([entry(summary="x" * (MAX_TEXT_CHARS + 1))], DropReason.TOO_LONG),
        ([entry(extra=[[[[[[[[[1]]]]]]]]])], DropReason.TOO_LONG),
        ([entry(grounding=[SENTENCE] * 100)], DropReason.TOO_LONG),
        ([entry(summary="a\0b")], DropReason.BAD_TEXT),
        ([entry(summary="\ud800")], DropReason.BAD_TEXT),
        ([entry(summary=7)], DropReason.SCHEMA),
        ([{"grounding": [SENTENCE]}], DropReason.SCHEMA),
        ([entry(grounding=["The moon is made of cheese."])], DropReason.UNGROUNDED),
        ([entry(grounding=["cents"])], DropReason.UNGROUNDED),
        ([entry(grounding=[])], DropReason.UNGROUNDED),
        ([entry(grounding={"a": 1})], DropReason.UNGROUNDED),
    ],
)
def test_nothing_usable_is_a_skip_with_the_reason(skill_dir: Path, answer: Any, reason: DropReason) -> None:
    result = plan(skill_dir, answer)
    assert result.workflows == ()
    assert reason in reasons(result)
    assert result.skipped is not None
    assert result.skipped.reason is SkipReason.AUTHOR_GAVE_UP
    assert reason.value in result.skipped.detail


def test_parts_are_dropped_and_the_workflow_kept(skill_dir: Path) -> None:
    odd = entry(
        "Match Card_Postings!",
        grounding=[SENTENCE.replace(" ", "  \n"), "Not in the skill at all, really."],
        suitable={"archetype": ["Audit", "x" * 99, 3], "colour": ["red"], "tone": "terse", "persona": ["!"]},
        assets=["rates of 2024", {"what": "table", "rating": 5, "url": None}],
        confidence=0.9,
    )
    result = plan(skill_dir, [odd])
    (workflow,) = result.workflows
    assert workflow.name == "match-card-postings"
    assert workflow.grounding == (SENTENCE,)
    assert workflow.suitable == {"archetype": ("audit",), "tone": ("terse",)}
    assert [asset.what for asset in workflow.assets] == ["rates of 2024", "table"]
    assert sorted(reasons(result)) == sorted(
        [
            DropReason.UNKNOWN_FIELD,
            DropReason.BAD_AXIS_VALUE,
            DropReason.BAD_AXIS_VALUE,
            DropReason.BAD_AXIS_VALUE,
            DropReason.UNKNOWN_AXIS,
            DropReason.SENTENCE_NOT_FOUND,
        ]
    )
    assert all(reason.partial for reason in reasons(result))


def test_duplicates_and_surplus(skill_dir: Path) -> None:
    result = plan(skill_dir, [entry("a"), entry("A "), entry("b"), entry("c")], count=2)
    assert [workflow.name for workflow in result.workflows] == ["a", "b"]
    assert reasons(result) == [DropReason.DUPLICATE, DropReason.OVER_COUNT]


WORK = {
    "summary": "Reconcile the card postings of one month with the bank's statement and account for every difference.",
    "planted_problem": "Three postings were booked twice under different references, two refunds carry the wrong sign.",
    "difficulty_source": "Matching by amount alone pairs the doubled postings with each other and hides the refunds.",
    "solution_sketch": "Match by reference and day first, then by amount within two days, and list the rest.",
}


def test_the_same_work_twice_is_dropped(skill_dir: Path) -> None:
    again = {**WORK, "summary": WORK["summary"].replace("bank's statement", "ledger of the bank")}
    other = {
        "summary": "Audit expense claims against the travel policy; every claim ends with a decision and its rule.",
        "planted_problem": "Some claims exceed the daily rate only after conversion, one receipt is used twice.",
        "difficulty_source": "Rates change in the middle of the month and the policy counts the day of the receipt.",
        "solution_sketch": "Convert each line at its own day, add up by traveller and day, then apply the rules.",
    }
    result = plan(skill_dir, [entry("first", **WORK), entry("renamed", **again), entry("audit", **other)])
    assert [workflow.name for workflow in result.workflows] == ["first", "audit"]
    assert reasons(result) == [DropReason.NEAR_DUPLICATE]
    assert "renamed repeats first" in result.dropped[0].detail


def test_skips(skill_dir: Path) -> None:
    declined = Skipped(reason=SkipReason.PURE_KNOWLEDGE, detail="opinions only")
    said = plan_workflows(make_skill(skill_dir), skill_dir, Planner("[]", declined), seed=1)
    assert said.skipped == declined
    for form in (
        {"skip": declined.model_dump(mode="json")},
        declined.model_dump(mode="json", exclude={"kind"}),
    ):
        assert plan(skill_dir, form).skipped == declined
    assert plan(skill_dir, {"skip": {"reason": "not a reason"}}).skipped is not None


def test_files_that_vanished_or_turned_into_links_ground_nothing(skill_dir: Path) -> None:
    skill, secret = make_skill(skill_dir), skill_dir.parent / "secret.md"
    secret.write_text("A sentence of another folder.")
    (skill_dir / "references/more.md").unlink()
    (skill_dir / "references/more.md").symlink_to(secret)
    answer = json.dumps([entry(grounding=["A sentence of another folder."])])
    result = plan_workflows(skill, skill_dir, Planner(answer), seed=1)
    assert DropReason.UNGROUNDED in reasons(result)


def test_prompt_is_handed_over(skill_dir: Path) -> None:
    planner = Planner("[]")
    plan_workflows(make_skill(skill_dir), skill_dir, planner, count=4, seed=9)
    (request,) = planner.asked
    assert (request.count, request.seed, request.skill_dir) == (4, 9, skill_dir)
    assert "up to 4 workflows" in request.prompt
    assert "references/more.md" in request.prompt


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.text() | JSON.map(json.dumps) | st.text().map(lambda text: f"```json\n[{text}"))
def test_any_text_is_read_without_an_error(text: str) -> None:
    answer = read_answer(text)
    workflows, _ = parse_workflows(answer.entries, count=3, occurs=lambda _: True)
    assert len(workflows) <= 3
    assert answer.entries or answer.skipped or answer.dropped or "workflows" in text


@given(
    st.lists(
        st.dictionaries(st.sampled_from(sorted(entry())), JSON).map(lambda changes: entry() | changes),
        max_size=5,
    ),
    st.integers(1, 3),
)
def test_every_entry_is_kept_or_named(entries: list[dict[str, Any]], count: int) -> None:
    workflows, losses = parse_workflows(entries, count=count, occurs=lambda sentence: "a" not in sentence)
    assert len(workflows) + sum(not loss.reason.partial for loss in losses) == len(entries)
    assert len({workflow.name for workflow in workflows}) == len(workflows) <= count


@given(st.text())
def test_slug_names(text: str) -> None:
    name = slug_name(text)
    assert len(name) <= MAX_NAME_CHARS
    assert slug_name(name) == name
    assert not name or name.strip("-") == name
