"""Periods that a question names, such as "last week" or "before June"."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from typing import Final, NamedTuple

from agent_memory.times.days import MONTHS, Bounds, Period, add_days, get_unit
from agent_memory.times.mentions import TimeMention, times_in

_MAX_CHARS: Final = 2_000
_MAX_PERIODS: Final = 4
"""Each period is searched by itself."""
_DATED: Final = re.compile(rf"\d{{4}}|\d[./-]\d|\b[qh][1-4]\b|\b(?:{'|'.join(MONTHS)})", re.IGNORECASE)
"""Finds words that a stored text may hold as well, unlike "last week"."""
_HAS_YEAR: Final = re.compile(r"\d{4}")
_COUNTED: Final = re.compile(r"\b(?:day|week|month|year)s?\b", re.IGNORECASE)
_DAY: Final = re.compile(r"\d")
_LEADS_UP: Final = re.compile(
    r"(?:^|\s)(?:(?:in|on|of|since|until|till|during|before|prior|earlier|than|after|following|later|by|from|between"
    r"|and|to|up|through|starting|as|early|late|mid|the|end)[\s-]{1,20}){1,12}$",
    re.IGNORECASE,
)
_BETWEEN: Final = re.compile(r"^(?:the|from|between|since|until|before|after|by|on)\s+", re.IGNORECASE)
_OUTSIDE: Final = re.compile(
    r"\b(?:except|excluding|every|each|besides|without|other\s+than|apart\s+from|outside|not|n['\u2019]t)"
    r"\s+(?:(?:in|on|for|from|of|during|until|the)\s+)*$",
    re.IGNORECASE,
)
_ON_A_DAY: Final = re.compile(r"\b(?:on|from|or|and|to|until|between)\s+(?:the\s+)?$", re.IGNORECASE)
_REACH: Final = 60
"""Characters before a period that may lead up to it."""
_AGO_UNIT: Final = re.compile(r"(week|month|quarter|year)", re.IGNORECASE)
_AT_LEAST: Final = re.compile(r"\b(?:more|longer|older)\s+than\s+$", re.IGNORECASE)
_AT_MOST: Final = re.compile(r"\b(?:less|fewer)\s+than\s+$", re.IGNORECASE)


class QuestionPeriods(NamedTuple):
    """Periods of a question, and the question without their words.

    Attributes:
        periods: First periods that it names, each once; the answer may be in any of them.
        topic: Question without all periods and the words that lead up to them.
        without_relative: Question without periods that depend on the moment of asking, such as "last week".
        date_words: Words of days, which a text may hold.
    """

    periods: tuple[Period, ...]
    topic: str
    without_relative: str
    date_words: str


def named_periods(question: str, now: datetime) -> tuple[Period, ...]:
    """Return the first periods that a question names."""
    return read_periods(question, now).periods


def read_periods(question: str, now: datetime) -> QuestionPeriods:
    """Read the periods of a question.

    A month, day or season without a year is the latest that has begun. A date such as 3/4/2026 is both days. Future
    days are not periods: nothing is stored about them.

    Args:
        question: Any text; one of more than 2,000 characters has no periods.
        now: Aware moment of asking; bounds are whole days in its zone.
    """
    if len(question) > _MAX_CHARS:
        return QuestionPeriods((), question, question, "")
    asked = [
        (mention, bounds)
        for mention in times_in(question, now, is_ahead=False)
        if (bounds := _find_bounds(question, mention, now.date()))
    ]
    periods = dict.fromkeys(_make_period(*bounds, now) for _, pairs in asked for bounds in pairs)
    mentions = [mention for mention, _ in asked]
    words = [question[mention.start : mention.end] for mention in mentions]
    relative = [mention for mention, text in zip(mentions, words, strict=True) if not _DATED.search(text)]
    date_words = " ".join(
        _BETWEEN.sub("", text)
        for mention, text in zip(mentions, words, strict=True)
        if _DATED.search(text) and _DAY.search(text) and all(days.length == 1 for days in mention.named)
    )
    topic, without_relative = _leave_out(question, mentions), _leave_out(question, relative)
    return QuestionPeriods(tuple(periods)[:_MAX_PERIODS], topic, without_relative, date_words)


def _find_bounds(question: str, mention: TimeMention, today: date) -> list[Bounds]:
    """Return the past bounds of each reading.

    There are none if the question does not ask for the period.
    """
    lead = question[max(0, mention.start - _REACH) : mention.start]
    words, after = question[mention.start : mention.end], question[mention.end : mention.end + 2]
    is_habit = mention.rule == "weekday" and not _ON_A_DAY.search(lead)
    is_deadline = words[:3].lower() == "by " and not _DATED.search(words)
    is_path = (
        lead[-1:] in {*"/\\_-.@#$"} or after[:1] in {*"/\\_@'\u2019"} or (after[:1] == "." and after[1:].isalnum())
    )
    if is_habit or is_deadline or is_path or (None, None) in mention.readings or _OUTSIDE.search(lead):
        return []
    now = today if mention.rule == "weekday" else add_days(today, 1)
    has_year = _HAS_YEAR.search(words) is not None
    readings = mention.readings[:1] if mention.rule == "vague" else mention.readings
    bounds = [_widen_bounds(words, lead, mention.rule, reading, today) for reading in readings]
    return [
        (first_day, end_day)
        for first_day, end_day in bounds
        if has_year or (first_day < now if first_day else end_day is not None and end_day <= now)
    ]


def _widen_bounds(words: str, lead: str, rule: str, bounds: Bounds, today: date) -> Bounds:
    """Widen bounds such as "two weeks ago" and "the last three days"."""
    first_day, end_day = bounds
    if rule in {"ago", "vague"} and first_day and end_day:
        first_day, end_day = _widen_ago(words, first_day, end_day)
        if _AT_LEAST.search(lead):
            return None, end_day
        return first_day, None if _AT_MOST.search(lead) else end_day
    if rule == "units" and first_day:
        return add_days(first_day, 1) if _COUNTED.search(words) else first_day, add_days(today, 1)
    return bounds


def _widen_ago(words: str, first_day: date, end_day: date) -> tuple[date, date]:
    """Widen "two weeks ago" to the week of that day."""
    unit = _AGO_UNIT.search(words)
    if unit is None:
        return first_day, end_day
    name = unit[1].lower()
    return get_unit(first_day, name).first_day, get_unit(add_days(end_day, -1), name).end_day


def _leave_out(question: str, mentions: list[TimeMention]) -> str:
    """Remove mentions and the words that lead up to them."""
    text, end = "", 0
    for mention in mentions:
        piece = question[end : mention.start]
        lead = _LEADS_UP.search(piece, max(0, len(piece) - _REACH))
        text += f"{piece[: lead.start()]} " if lead is not None else piece
        end = mention.end
    return " ".join((text + question[end:]).split()) if mentions else question


def _make_period(first_day: date | None, end_day: date | None, now: datetime) -> Period:
    start, end = (None if day is None else datetime.combine(day, time.min, now.tzinfo) for day in (first_day, end_day))
    return Period(start, end)
