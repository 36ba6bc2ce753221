"""Memories by weeks: each week once, none left out, and what came before a long time ago still in the total."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from agent_memory.care.statistics import MOST_WEEKS, EmbeddedTexts, MemoryStatistics, Week, by_weeks, get_monday
from tests.support import NOON

DAY = timedelta(days=1)
MONDAY = date(2026, 2, 23)
"""Of the week of `NOON`, a Sunday."""


def test_a_week_begins_on_monday() -> None:
    assert get_monday(NOON) == MONDAY
    assert get_monday(datetime(2026, 2, 23, tzinfo=UTC)) == MONDAY
    assert get_monday(datetime(2026, 3, 2, tzinfo=UTC)) == MONDAY + timedelta(days=7)


def test_weeks_without_anything_are_there_too() -> None:
    weeks = by_weeks([NOON - 14 * DAY, NOON, NOON], [NOON - 7 * DAY], [NOON - 14 * DAY], NOON)
    assert weeks == (
        Week(MONDAY - timedelta(days=14), stored=1, total=1, used=0, forgotten=1),
        Week(MONDAY - timedelta(days=7), stored=0, total=1, used=1, forgotten=0),
        Week(MONDAY, stored=2, total=3, used=0, forgotten=0),
    )


def test_nothing_stored_has_no_weeks() -> None:
    assert by_weeks([], [NOON], [NOON], NOON) == ()


def test_what_lies_in_the_future_counts_as_now() -> None:
    assert by_weeks([NOON + 400 * DAY], [], [], NOON) == (Week(MONDAY, 1, 1, 0, 0),)


def test_ten_years_are_shown_and_what_was_before_is_in_the_total() -> None:
    weeks = by_weeks([datetime(1970, 1, 1, tzinfo=UTC), NOON], [], [], NOON)
    assert len(weeks) == MOST_WEEKS
    assert (weeks[0].stored, weeks[0].total, weeks[-1].total) == (0, 1, 2)


def test_shares_of_nothing_are_none() -> None:
    assert MemoryStatistics("bob").never_used_share is None
    assert EmbeddedTexts().share is None
    assert EmbeddedTexts(4, 1).share == 0.25
    assert MemoryStatistics("bob", memories=3, items=1, never_used=1).never_used_share == 0.25


def test_programs_get_dates_as_text_and_shares() -> None:
    found = MemoryStatistics(
        "bob", memories=1, weeks=by_weeks([NOON], [], [], NOON), embedded=EmbeddedTexts(2, 1)
    ).as_dict()
    assert found["weeks"] == [{"begin": "2026-02-23", "stored": 1, "total": 1, "used": 0, "forgotten": 0}]
    assert found["embedded"] == {"texts": 2, "found": 1, "share": 0.5}
    assert found["never_used_share"] == 0.0
