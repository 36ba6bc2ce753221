"""Moments in UTC, and dates that people type."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.models import as_utc, parse_bound, to_text
from tests.rows import check_rows
from tests.support import NOON

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Kiritimati"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def test_a_bare_date_means_that_whole_local_day(zone: str) -> None:
    start, end = parse_bound("2026-03-29", end=False), parse_bound(" 2026-03-29 ", end=True)
    assert start == datetime(2026, 3, 29).astimezone(UTC)
    assert end == datetime(2026, 3, 30).astimezone(UTC) - timedelta(microseconds=1)
    if zone == "Europe/Berlin":
        assert end - start == timedelta(hours=23) - timedelta(microseconds=1), "the day the clocks go forward"


def test_a_moment_is_read_as_it_says(zone: str) -> None:
    assert parse_bound("2026-03-01T12:00:00Z", end=True) == NOON
    assert parse_bound("2026-03-01T14:00:00+02:00", end=False) == NOON
    assert parse_bound("2026-03-01T12:00:00", end=False) == datetime(2026, 3, 1, 12).astimezone(UTC)


@check_rows(
    "text", ["", "some day", "2026-13-01", "2026-02-30", "1/2/2026", "0001-01-01T00:00:00+14:00", "9" * 400, "\0"]
)
@check_rows("end", [True, False])
def test_what_is_no_date_is_refused_briefly(text: str, end: bool) -> None:
    with pytest.raises(ValueError, match=r"date|UTC") as refused:
        parse_bound(text, end=end)
    assert len(str(refused.value)) < 150


@pytest.mark.parametrize(
    ("text", "is_ahead", "start", "end"),
    [
        ("yesterday", False, "2026-03-04", "2026-03-04"),
        ("last week", False, "2026-02-23", "2026-03-01"),
        ("7d", False, "2026-02-26", "2026-02-26"),
        ("2 weeks", False, "2026-02-19", "2026-02-19"),
        ("March", False, "2026-03-01", "2026-03-31"),
        ("May 2025", False, "2025-05-01", "2025-05-31"),
        ("Monday", False, "2026-03-02", "2026-03-02"),
        ("3 days ago", False, "2026-03-02", "2026-03-02"),
        ("tomorrow", True, "2026-03-06", "2026-03-06"),
        ("7d", True, "2026-03-12", "2026-03-12"),
        ("Friday", True, "2026-03-06", "2026-03-06"),
        ("in 2 weeks", True, "2026-03-19", "2026-03-19"),
        ("until Friday", True, "2026-03-06", "2026-03-06"),
    ],
)
def test_parse_bound_words_are_local_days(text: str, is_ahead: bool, start: str, end: str, zone: str) -> None:
    now = datetime(2026, 3, 5, 12).astimezone()  # a Thursday
    bounds = [parse_bound(text, end=is_end, is_ahead=is_ahead, now=now) for is_end in (False, True)]
    days = [f"{bound.astimezone():%Y-%m-%d}" for bound in bounds]
    assert days == ([end, end] if text.startswith("until") else [start, end])
    assert f"{bounds[1].astimezone():%H:%M:%S}" == "23:59:59"


@check_rows(
    ("text", "is_ahead", "days"),
    [
        ("3/4/2026", False, "2026-03-04 or 2026-04-03"),
        ("last Monday", False, "2026-02-23 or 2026-03-02"),
        ("Thursday", True, "2026-03-05 or 2026-03-12"),
        ("on Thursday", True, "2026-03-05 or 2026-03-12"),
        ("until Thursday", True, "2026-03-05 or 2026-03-12"),
        ("Thursday", False, "2026-03-05 or 2026-02-26"),
        ("Monday", None, "2026-03-02 or 2026-03-09"),
        ("a few days ago", False, "2026-02-27 to 2026-03-04 or 2026-03-02 to 2026-03-04"),
    ],
)
def test_parse_bound_ambiguous_words_name_readings(text: str, is_ahead: bool | None, days: str) -> None:
    now = datetime(2026, 3, 5, 12).astimezone()  # a Thursday
    with pytest.raises(ValueError, match=rf"is not a single date: it may be {days}; write one of these"):
        parse_bound(text, end=True, is_ahead=is_ahead, now=now)


@check_rows("text", ["tomorrow", "next week", "in 2 weeks", "from tomorrow", "until tomorrow"])
def test_parse_bound_future_words_in_past_are_refused(text: str) -> None:
    now = datetime(2026, 3, 5, 12).astimezone()
    with pytest.raises(ValueError, match="is in the future"):
        parse_bound(text, end=True, now=now)
    assert parse_bound(text, end=True, is_ahead=True, now=now) > now


@check_rows("text", ["this week", "March", "this month", "today", "2026"])
def test_parse_bound_span_of_today_is_no_future(text: str) -> None:
    assert parse_bound(text, end=True, now=datetime(2026, 3, 5, 12).astimezone())


@check_rows("text", ["7 wears", "2 dears", "next Friday or so", "the launch", "4 March and 5 May"])
def test_parse_bound_open_words_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a single date; write 2026-01-30, .* 7d or March"):
        parse_bound(text, end=False)


def test_times_are_written_with_a_z() -> None:
    assert to_text(NOON) == "2026-03-01T12:00:00Z"
    assert to_text(NOON + timedelta(microseconds=250_000)) == "2026-03-01T12:00:00.250000Z"
    assert as_utc(NOON) == NOON
