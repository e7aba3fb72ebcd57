"""The judge against a scripted model behind a socket."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from skill2env.errors import BudgetReached, UserError
from skill2env.judge.files import read_judgements, write_judgements
from skill2env.judge.judge import Judge, JudgeConfig
from skill2env.judge.records import Case
from skill2env.llm.failures import ProviderError
from skill2env.llm.prices import Price
from skill2env.llm.script import Fault, Scenario, Script, ScriptedFault, ScriptedReply
from skill2env.llm.scripted_server import ScriptedServer, scripted_server
from skill2env.llm.settings import model_settings

PRICE = Price(input=2, output=10)


def said(score: object, reason: str = "as the rubric asks") -> ScriptedReply:
    return ScriptedReply(
        text=json.dumps({"reason": reason, "score": score}), input_tokens=1000, output_tokens=100
    )


BAD = ScriptedReply(text="Five points!", input_tokens=1000, output_tokens=10)


def case(number: int, word: str = "alpha") -> Case:
    return Case(
        id=f"g/{number}",
        group="g",
        step=number,
        instruction="Count the crates.",
        rubric="- Count.",
        trajectory=f"[1] agent calls bash:\nls {word} {number}",
    )


def scripted(*scenarios: Scenario) -> Script:
    return Script(scenarios=scenarios)


Make = Callable[..., Judge]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def build(server: ScriptedServer, price: Price | None = PRICE, **settings: object) -> Judge:
        model = model_settings(
            "scripted", base_url=server.base_url, attempts=1, stall_sec=5, max_output_tokens=512
        )
        return Judge(
            model,
            JudgeConfig.model_validate(settings),
            price=price,
            cache=tmp_path / "cache",
            ledger=tmp_path / "ledger.jsonl",
        )

    return build


def ledger(tmp_path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]


def test_scores_costs_and_the_cache(make: Make, tmp_path: Path) -> None:
    script = scripted(
        Scenario(when=("alpha",), replies=(said(3),)), Scenario(replies=(said(-4.5, "in circles"),))
    )
    cases = [case(0), case(1, "beta")]
    with scripted_server(script) as server:
        judge = make(server)
        made = judge.judge(cases)
        assert [(item.id, item.score) for item in made] == [("g/0", 3.0), ("g/1", -4.5)]
        assert made[1].samples[0].reason == "in circles"
        assert (made[0].input_tokens, made[0].output_tokens, made[0].micro_dollars) == (1000, 100, 3000)
        assert judge.spent == 6000
        again = make(server)
        assert again.judge([case(0).model_copy(update={"id": "h/9", "group": "h"})])[0].id == "h/9"
        assert again.spent == 0
        assert len(server.requests) == 2
        assert make(server, samples=3).judge([case(0)])[0].score == 3.0
        assert len(server.requests) == 5, "other settings are other questions"
    assert [line["micro_dollars"] for line in ledger(tmp_path)] == [3000] * 5
    path = tmp_path / "judgements.jsonl"
    write_judgements(path, reversed(made))
    assert read_judgements(path) == made


def test_a_malformed_answer_is_asked_for_again(make: Make, tmp_path: Path) -> None:
    with scripted_server(scripted(Scenario(replies=(BAD, said(9), said(2))))) as server:
        (made,) = make(server).judge([case(0)])
    assert (made.score, made.samples[0].tries, made.input_tokens) == (2.0, 3, 3000)
    told = [request.body["messages"][-1]["content"] for request in server.requests]
    assert "not one JSON object" in told[1]
    assert "outside [-5, 5]" in told[2]
    assert len(ledger(tmp_path)) == 3, "every request was paid for"


def test_without_a_valid_answer_there_is_no_score_and_nothing_is_cached(make: Make) -> None:
    with scripted_server(scripted(Scenario(replies=(BAD,)))) as server:
        (made,) = make(server).judge([case(0)])
        assert made.score is None
        assert made.samples[0].problem == "the reply is not one JSON object"
        make(server).judge([case(0)])
        assert len(server.requests) == 6


@pytest.mark.parametrize(("samples", "score"), [(1, None), (2, None), (3, 4.0)])
def test_the_median_of_samples_needs_more_than_half(make: Make, samples: int, score: float | None) -> None:
    """The first answer is cut off at the output limit, and there is one try for each."""
    faults = (ScriptedFault(kind=Fault.LENGTH, times=1),)
    with scripted_server(scripted(Scenario(replies=(said(4),), faults=faults))) as server:
        (made,) = make(server, samples=samples, tries=1).judge([case(0)])
    assert made.score == score
    assert [sample.score for sample in made.samples] == [None, 4.0, 4.0][:samples]


@pytest.mark.parametrize("fault", [Fault.UNAUTHORISED, Fault.QUOTA, Fault.SERVER, Fault.CUT])
def test_an_endpoint_that_fails_is_no_judgement(make: Make, fault: Fault) -> None:
    script = scripted(Scenario(replies=(said(1),), faults=(ScriptedFault(kind=fault, times=99),)))
    with scripted_server(script) as server, pytest.raises(ProviderError):
        make(server).judge([case(0), case(1)])


def test_the_budget_is_set_aside_before_and_what_was_judged_is_kept(make: Make) -> None:
    with scripted_server(scripted(Scenario(replies=(said(1),)))) as server:
        # One request costs 3,000 micro-dollars, and up to 512 tokens of answer are set aside before it.
        judge = make(server, max_usd=0.012, workers=1)
        with pytest.raises(BudgetReached):
            judge.judge([case(number) for number in range(9)])
        assert 0 < judge.spent <= 12_000
        paid = len(server.requests)
        more = make(server, workers=3)
        assert len(more.judge([case(number) for number in range(9)])) == 9
        assert len(server.requests) == 9, f"{paid} were kept"
        with pytest.raises(UserError, match="no price"):
            make(server, price=None, max_usd=1).judge([case(0)])


def test_the_number_of_workers_changes_nothing(make: Make, tmp_path: Path) -> None:
    scenarios = [Scenario(when=(f"alpha {number}\n",), replies=(said(number - 4),)) for number in range(9)]
    cases = [case(number) for number in range(9)]
    files: list[bytes] = []
    with scripted_server(scripted(*scenarios)) as server:
        for workers in (1, 6):
            judge = make(server, workers=workers)
            judge.cache = None
            write_judgements(tmp_path / "out.jsonl", judge.judge(cases))
            files.append((tmp_path / "out.jsonl").read_bytes())
    assert files[0] == files[1]
    assert [item.score for item in read_judgements(tmp_path / "out.jsonl")] == [
        number - 4 for number in range(9)
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "1 is no judgement"),
        ('{"id": "a", "score": 7}', "1 is no judgement"),
        ('{"id": "a"}\n{"id": "a"}', "twice"),
    ],
)
def test_files_that_hold_something_else(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "judgements.jsonl"
    path.write_text(text + "\n")
    with pytest.raises(UserError, match=why):
        read_judgements(path)
    with pytest.raises(UserError, match="cannot be read"):
        read_judgements(tmp_path / "none.jsonl")
