"""Days to which the clock is moved."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from skill2env.verify.dates import days_ahead, saturday_next_year

DATES = some.dates(date(2024, 1, 1), date(2110, 12, 31))


@given(DATES)
def test_all_days_lie_ahead_and_have_the_same_names(today: date) -> None:
    found = days_ahead(today)
    assert list(found) == list(days_ahead(date(2026, 11, 30)))
    assert all(0 < number <= 366 * 9 for number in found.values())
    days = {name: today + timedelta(number) for name, number in found.items()}
    assert days["saturday"].strftime("%A") == "Saturday"
    assert (days["leap-day"].month, days["leap-day"].day) == (2, 29)
    assert (days["month-end"] + timedelta(1)).day == 1
    assert (days["year-end"].month, days["year-end"].day) == (12, 31)
    assert (days["clocks-forward"].month, days["clocks-forward"].weekday()) == (3, 6)


@pytest.mark.parametrize("today", [date(2026, 11, 30), date(2027, 12, 31), date(2028, 2, 29)])
def test_a_saturday_about_a_year_ahead(today: date) -> None:
    day = today + timedelta(saturday_next_year(today))
    assert day.strftime("%A") == "Saturday"
    assert 365 <= (day - today).days < 372
