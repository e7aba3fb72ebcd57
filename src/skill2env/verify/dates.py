"""Days to which probes move the clock."""

from datetime import UTC, date, datetime, timedelta

DAY_SEC = 86_400
_WEEK = ("saturday", "sunday", "monday", "tuesday", "wednesday", "thursday", "friday")


def days_ahead(today: date) -> dict[str, int]:
    """Days by which to move the clock: a week of them, and the days on which calendars go wrong.

    Args:
        today: in UTC.

    Returns:
        Name of the day to its distance; the same names in the same order whatever day it is.
    """
    found = {(today + timedelta(number)).strftime("%A").lower(): number for number in range(1, 8)}
    found = {name: found[name] for name in _WEEK}
    leap = next(year for year in range(today.year, today.year + 9) if _has_leap_day(year, today))
    special = {
        "next-year": today + timedelta(365),
        "month-end": _month_end(today + timedelta(1)),
        "year-end": date(today.year + (today >= date(today.year, 12, 31)), 12, 31),
        "new-year": date(today.year + 1, 1, 1),
        "leap-day": date(leap, 2, 29),
        "clocks-forward": _last_sunday(today, 3),
        "clocks-back": _last_sunday(today, 10),
    }
    return found | {name: (day - today).days for name, day in special.items()}


def saturday_next_year(today: date) -> int:
    """Days to a Saturday about a year ahead."""
    return 365 + (5 - (today + timedelta(365)).weekday()) % 7


def today() -> date:
    """The date in UTC: probes move the clock away from it."""
    return datetime.now(UTC).date()


def _month_end(day: date) -> date:
    return (day.replace(day=28) + timedelta(4)).replace(day=1) - timedelta(1)


def _has_leap_day(year: int, after: date) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) and date(year, 2, 29) > after


def _last_sunday(after: date, month: int) -> date:
    for year in (after.year, after.year + 1):
        last = date(year, month, 31)
        last -= timedelta((last.weekday() + 1) % 7)
        if last > after:
            return last
    raise AssertionError("one of two years has it")
