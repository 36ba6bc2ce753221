"""Days that are counted from the moment of asking: "the last three days", "two weeks ago", "since Monday"."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Final

from agent_memory.times.asked import doubts
from agent_memory.times.asked.english import NUMBERS, ON_A_DAY, SEASONS
from agent_memory.times.days import (
    WEEKDAYS,
    Days,
    last_weekday,
    latest_months,
    month_of,
    months_back,
    one_day,
    some_months,
    week_of,
)

_VAGUE: Final = {"few", "couple"}
_NEARBY: Final = 2
"""Times a few: "a few days ago" is one to six, "a couple of days ago" one to four."""
_OF_A_WEEK: Final = re.compile(r",?\s+(?:of\s+)?(?:last|this|next)\s+week\b|['\u2019]s\b", re.IGNORECASE)
_BY_DATE: Final = re.compile(
    r",?\s+(?:the\s+)?(?:\d|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*\.?\s+\d)", re.IGNORECASE
)
_IN_A_WEEK: Final = re.compile(r"\b(?:ago|week)\s+on\s+$", re.IGNORECASE)
_WITHIN: Final = re.compile(r"\b(?:in|over|during|within|for|throughout)\s+the\s+$", re.IGNORECASE)
_HALF: Final = re.compile(r"\bhalf\s+$", re.IGNORECASE)
_OR: Final = re.compile(rf"\b(?:\d+|{'|'.join(NUMBERS)})\s*(?:or|to|and|-|\u2013)\s*$", re.IGNORECASE)
_HOURS: Final = {"hour": timedelta(hours=1), "minute": timedelta(minutes=1)}
_WEEKS: Final = {"day": 1, "week": 7}
_MONTHS_OF: Final = {"month": 1, "quarter": 3, "year": 12}


def last_so_many(match: re.Match[str], now: datetime) -> list[Days]:
    """Return the days of the last so many days, weeks or months."""
    count, unit = _count(match["span"]), match["span_unit"].lower()
    count *= _NEARBY if "few" in match["span"].lower() else 1
    return [Days(_back(unit, count, now), now.date() + timedelta(days=1))]


def _back(unit: str, count: int, now: datetime) -> date:
    """Return the first of the last so many days, weeks, months ..., today being the last day."""
    today = now.date()
    if unit in _HOURS:
        return (now - count * _HOURS[unit]).date()
    if unit in _WEEKS:
        return today - timedelta(days=count * _WEEKS[unit] - 1)
    if unit == "quarter":
        return months_back(today.replace(day=1), (today.month - 1) % 3 + 3 * count)
    return months_back(today, count * _MONTHS_OF[unit])


def so_long_ago(match: re.Match[str], now: datetime) -> list[Days]:
    """Return the days of "two weeks ago"."""
    led = doubts.words_before(match.string, match.start())
    if _HALF.search(led) or _OR.search(led):
        return []
    said, count, unit = match["ago"].lower().split(), _count(match["ago"]), match["ago_unit"].lower()
    if _VAGUE.isdisjoint(said):
        return [_ago(unit, count, now)]
    return [Days(_ago(unit, count * _NEARBY, now).first, _ago(unit, 1, now).behind)]


def _ago(unit: str, count: int, now: datetime) -> Days:
    today = now.date()
    if unit in _HOURS:
        return one_day((now - count * _HOURS[unit]).date())
    if unit == "day":
        return one_day(today - timedelta(days=count))
    if unit == "week":
        return week_of(today - timedelta(weeks=count))
    if unit == "year":
        return some_months(today.year - count, 1, 12)
    length = _MONTHS_OF[unit]
    back = months_back(today.replace(day=1), (today.month - 1) % length + length * count)
    return some_months(back.year, back.month, length)


def unit_of_time(match: re.Match[str], now: datetime) -> list[Days]:
    """Return the days of "last week", "this May"."""
    which, unit, today = match["which"].lower(), match["unit"].lower(), now.date()
    back = which not in {"this", "current"}
    is_past = which == "past" or (back and _WITHIN.search(doubts.words_before(match.string, match.start())) is not None)
    if unit in _HOURS or (is_past and unit in {"week", "month", "quarter", "year"}):
        first = months_back(today, 3) if unit == "quarter" else _back(unit, 1, now)
        return [Days(first, today + timedelta(days=1))]
    if unit.startswith("week") or unit in WEEKDAYS:
        return [_of_week(unit, today, back=back)]
    if unit == "year":
        return [some_months(today.year - back, 1, 12)]
    if unit in {"quarter", "month"}:
        length = 3 if unit == "quarter" else 1
        start = months_back(today.replace(day=1), (today.month - 1) % length + length * back)
        return [some_months(start.year, start.month, length)]
    text, end = match.string, match.end()
    if doubts.is_verb(match["unit"], text, end) or (unit in SEASONS and not doubts.ends_there(text, end)):
        return []
    month, length = (SEASONS[unit], 3) if unit in SEASONS else (month_of(unit), 1)
    latest = latest_months(month, length, today)
    return [some_months(latest.first.year - 1, month, length) if back and latest.behind > today else latest]


def _of_week(unit: str, today: date, *, back: bool) -> Days:
    """Return the days of a week, of its end, or of one of its days."""
    week = week_of(today - timedelta(weeks=back))
    if unit == "week":
        return week
    if unit == "weekend":
        return week._replace(first=week.first + timedelta(days=5))
    return last_weekday(unit, today) if back else one_day(week.first + timedelta(days=WEEKDAYS.index(unit)))


def weekend(match: re.Match[str], now: datetime) -> list[Days]:
    """Return the days of the last weekend that has begun."""
    if doubts.is_ahead(match.string, match.start()):
        return []
    return [_of_week("weekend", now.date(), back=now.weekday() < WEEKDAYS.index("saturday"))]


def nearby_day(match: re.Match[str], now: datetime) -> list[Days]:
    """Return the days of "yesterday"."""
    words = match["relative"].lower().split()
    back = 2 if "before" in words else 1 if words in (["yesterday"], ["last", "night"]) else 0
    return [one_day(now.date() - timedelta(days=back))]


def day_of_week(match: re.Match[str], now: datetime) -> list[Days]:
    """Return the days of the last day of that name, where what leads up to it says that it is one day."""
    text, (start, end) = match.string, match.span()
    led = doubts.words_before(text, start)
    if ON_A_DAY.search(led) is None or _IN_A_WEEK.search(led) or doubts.is_ahead(text, start, weekday=True):
        return []
    if _OF_A_WEEK.match(text, end) or _BY_DATE.match(text, end):
        return []
    if doubts.may_lie_ahead(text, start):
        return []
    return [last_weekday(match["weekday"].lower(), now.date())]


def _count(words: str) -> int:
    word = re.sub(r"^a\s+(?=few|couple)", "", words.lower()).split(maxsplit=1)[0]
    return int(word) if word.isdigit() else NUMBERS[word]
