"""What tokens cost."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.errors import UserError
from skill2env.llm.dialogue import TokenUsage
from skill2env.llm.prices import DEFAULT_CONTEXT_TOKENS, Price, PriceTable

COUNTS = st.integers(0, 10**7)


def test_the_table_knows_public_models() -> None:
    price = PriceTable().find("gpt-4o")
    assert price is not None
    assert price.micro_dollars(TokenUsage(1_000_000, 0)) == 2_500_000
    assert price.micro_dollars(TokenUsage(1_000_000, 100_000, cached=1_000_000)) == 1_250_000 + 1_000_000
    assert PriceTable().find("openai/gpt-4o") == price
    assert PriceTable().context_tokens("gpt-4o") == 128_000


def test_unknown_models_have_no_price() -> None:
    assert PriceTable().find("no-such-model") is None
    assert PriceTable().context_tokens("no-such-model") == DEFAULT_CONTEXT_TOKENS


def test_ones_own_prices_win(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(
        '["gpt-4o"]\ninput = 1\noutput = 2.5\n\n[mine]\ninput = 0\noutput = 0\ncontext_tokens = 4096\n'
    )
    table = PriceTable.load(file)
    assert table.find("gpt-4o") == Price(1, 2.5)
    assert table.find("openai/gpt-4o") == Price(1, 2.5)
    assert table.context_tokens("mine") == 4096
    assert table.find("claude-sonnet-4-5") is not None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[a]\ninput = 1\n", "output"),
        ("[a]\ninput = 1\noutput = -1\n", "no price"),
        ("[a]\ninput = true\noutput = 1\n", "no price"),
        ("[a]\ninput = 1\noutput = 1\nouput = 2\n", "ouput"),
        ("a = 1\n", "no table"),
        ("[", "cannot be read"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=says):
        PriceTable.load(file)
    with pytest.raises(UserError, match="cannot be read"):
        PriceTable.load(tmp_path / "absent.toml")


@given(COUNTS, COUNTS, COUNTS)
def test_money_is_never_rounded_down(given_tokens: int, written: int, cached: int) -> None:
    price = Price(0.15, 0.6, 0.075)
    usage = TokenUsage(given_tokens + cached, written, cached)
    exact = given_tokens * 15 + written * 60 + cached * 7.5
    assert 0 <= price.micro_dollars(usage) - exact / 100 < 1.0001


def test_long_requests_have_their_own_price() -> None:
    price = PriceTable().find("gemini-2.5-pro")
    assert price is not None
    short, long = TokenUsage(200_000, 1000), TokenUsage(200_001, 1000, cached=100_000)
    assert price.micro_dollars(short) == 250_000 + 10_000
    assert (
        price.micro_dollars(long) == 250_003 + 25_000 + 15_000
    )  # 100,001 at 2.5, 100,000 at 0.25, 1,000 at 15
    assert price.total([short, short, long]) == 2 * 260_000 + 290_003
    assert price.total([]) == 0


def test_a_sum_is_priced_as_if_all_requests_were_alike() -> None:
    price = Price(1, 4, long=((1000, Price(2, 8)),))
    assert price.of_sum(TokenUsage(4000, 10), 8) == 4040
    assert price.of_sum(TokenUsage(9000, 10), 8) == 18_080
    assert price.of_sum(TokenUsage(9000, 10), 0) == 9040, "nobody knows"


def test_long_prices_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text("[m]\ninput = 1\noutput = 4\nlong_from = 1000\nlong_input = 2\nlong_output = 8\n")
    assert PriceTable.load(file).find("m") == Price(1, 4, long=((1000, Price(2, 8)),))
    file.write_text("[m]\ninput = 1\noutput = 4\nlong_from = 1000\n")
    with pytest.raises(UserError, match="long_input, long_output"):
        PriceTable.load(file)


@given(st.lists(st.builds(TokenUsage, COUNTS, COUNTS), max_size=5))
def test_a_total_is_never_less_than_by_the_lower_price(requests: list[TokenUsage]) -> None:
    low, high = Price(1, 4), Price(2, 8)
    price = Price(1, 4, long=((200_000, high),))
    assert low.total(requests) <= price.total(requests) <= high.total(requests)


def test_what_goes_into_a_cache_costs_what_the_provider_says(tmp_path: Path) -> None:
    usage = TokenUsage(10_000, 100, cached=4000, written=5000)
    known = PriceTable().find("claude-sonnet-4-5")
    assert known is not None
    assert known.micro_dollars(usage) == 1000 * 3 + 4000 * 0.3 + 5000 * 3.75 + 100 * 15
    wide = PriceTable().find("anthropic.claude-sonnet-4-20250514-v1:0")
    assert wide is not None
    long = TokenUsage(200_001, 0, written=200_001)
    assert wide.micro_dollars(long) == 1_500_008, "200,001 at 7.50"
    assert Price(3, 15).micro_dollars(TokenUsage(10, 0, written=10)) == 30, (
        "as other input where nothing is said"
    )
    file = tmp_path / "prices.toml"
    file.write_text("[m]\ninput = 1\noutput = 4\nwritten = 1.25\n")
    assert PriceTable.load(file).find("m") == Price(1, 4, written=1.25)
    assert TokenUsage(1, 2, 3, 4) + TokenUsage(1, 1, 1, 1) == TokenUsage(2, 3, 4, 5)
