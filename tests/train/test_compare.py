import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.cli import main as cli
from skill2env.judge.files import write_judgements
from skill2env.judge.records import Judgement
from skill2env.rollout.records import Rollout, RolloutStatus
from skill2env.train.compare import compare
from skill2env.train.reward import Graded, RewardConfig, RubricPolicy, sweep

P = RubricPolicy
CONFLICT = [
    Graded({"a": 1.0, "b": 1.0}, -5),
    Graded({"a": 0.9, "b": 1.0}, 5),
    Graded({"a": 0.0, "b": 0.0}, 5),
]
PASSED = [Graded({"a": 1.0}, 5), Graded({"a": 1.0}, 1)]
HALF = [Graded({"a": 0.5}, 2), Graded({"a": 0.5}, 2)]


@pytest.mark.parametrize(
    ("policy", "kept", "by_judge", "contradicted", "above", "paid"),
    [
        (P.NONE, 1, 0, 0.0, 0.0, 0.0),
        (P.ADDITIVE, 2, 1, 1 / 3, 1 / 2, 1.0),
        (P.GATED, 2, 1, 1 / 3, 1 / 2, 0.0),
        (P.SCALED, 2, 1, 1 / 3, 1 / 2, 0.0),
        (P.SHAPED, 2, 1, 0.0, 0.0, 0.0),
    ],
)
def test_a_judge_that_prefers_what_failed(
    policy: RubricPolicy, kept: int, by_judge: int, contradicted: float, above: float, paid: float
) -> None:
    (found,) = compare([CONFLICT, PASSED, HALF], [RewardConfig(policy=policy)])
    assert (found.groups, found.kept, found.by_the_judge) == (3, kept, by_judge)
    shares = (found.contradicted, found.failed_above_passed, found.paid_for_nothing)
    assert shares == pytest.approx((contradicted, above, paid))


def test_where_there_is_nothing_to_compare() -> None:
    (found,) = compare([[Graded(None), Graded({"a": 1.0})], HALF], [RewardConfig()])
    assert (found.groups, found.kept, found.contradicted, found.failed_above_passed, found.paid_for_nothing) == (
        1, 0, None, None, None)  # fmt: skip


groups = st.lists(
    st.lists(
        st.builds(
            lambda a, s: Graded({"a": a, "b": 1.0}, s), st.sampled_from([0.0, 0.5, 1.0]), st.floats(-5, 5)
        ),
        min_size=2,
        max_size=6,
    ),
    max_size=5,
)


@given(groups, st.floats(0, 1))
def test_shaped_keeps_what_the_verifier_keeps_and_more(found: list[list[Graded]], weight: float) -> None:
    plain, shaped = compare(found, [RewardConfig(), RewardConfig(policy=P.SHAPED, rubric_weight=weight)])
    assert shaped.kept - shaped.by_the_judge == plain.kept
    assert shaped.contradicted in {None, 0.0}


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judgements: list[Judgement] = []
    for attempt, item in enumerate(CONFLICT):
        place = f"trials/t/group/{attempt:03d}"
        made = Rollout(
            group="g", attempt=attempt, task="t/t", task_digest="d", agent="a", status=RolloutStatus.VALID,
            metrics=dict(item.metrics or {}), place=place,
        )  # fmt: skip
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "rollout.json").write_text(made.model_dump_json())
        judgements.append(Judgement(id=made.id, group="g", score=item.score))
    scores = tmp_path / "scores.jsonl"
    write_judgements(scores, judgements)
    command = [
        "rollout",
        "rewards",
        str(tmp_path),
        "--judgements",
        str(scores),
        "--rubric-weights",
        "0.1,0.4",
    ]
    assert cli.run([*command, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["policy"], row["rubric_weight"]) for row in rows] == [
        (config.policy.value, config.rubric_weight) for config in sweep(list(P), [0.1, 0.4])
    ]
    additive = [row["failed_above_passed"] for row in rows if row["policy"] == "additive"]
    assert additive == [0.5, 0.5]
    assert cli.run(command) == 0
    assert "FAILED ABOVE PASSED" in capsys.readouterr().out
    assert cli.run([*command[:-1], "x"]) == 2
    assert "--rubric-weights" in capsys.readouterr().err
