"""Days as index terms: those a document carries, and those a question names. Pure functions; English month names.

A day is indexed as terms of its own (`@2026`, `@01`, `@2026-01`, `@01-28`), not as words: a question whose "may" is a
verb, or that has a 28 of something else, then finds no date. Against the plain words `28 January 2026` this gains
nothing on conversations, where it stays within .002, and spares plain facts the loss that words cost them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.times.days import MONTHS, WEEKDAYS

if TYPE_CHECKING:
    from datetime import datetime

_NAME: Final = (
    r"(?P<{}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY: Final = r"(?P<{}>[0-3]?\d)(?:st|nd|rd|th)?"
_NAMED: Final = re.compile(
    r"\b(?:"
    rf"{_DAY.format('day1')}\s+(?:of\s+)?{_NAME.format('month1')}"
    rf"|{_NAME.format('month2')}\s+{_DAY.format('day2')}(?!\d)"
    rf"|{_NAME.format('month3')}"
    r")(?:,?\s+(?P<year>(?:19|20)\d\d))?\b",
    re.IGNORECASE,
)
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_ISO_DAY: Final = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_AGO: Final = re.compile(r"\b(\d{1,3}) (day|week)s? ago\b", re.IGNORECASE)
_RELATIVE: Final = re.compile(
    r"\b(today|the day before yesterday|yesterday|(?:this|last) (?:month|year)|last "
    r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday))\b",
    re.IGNORECASE,
)
_BEFORE_MAY: Final = re.compile(
    r"\b(?:in|of|since|until|during|before|after|by|last|this|early|late|mid)[ -]$", re.IGNORECASE
)


def day_terms(day: date) -> tuple[str, ...]:
    """Return the terms under which something of that day is indexed."""
    month = f"{day.month:02}"
    return f"@{day.year}", f"@{month}", f"@{day.year}-{month}", f"@{month}-{day.day:02}"


def is_day_term(term: str) -> bool:
    """Tell whether a term stands for a day, month or year, and for no word."""
    return term.startswith("@")


def named_days(question: str, now: datetime) -> set[str]:
    """Return the terms of the days, months and years a question names, outright or seen from `now`."""
    terms = {f"@{year}" for year in _YEAR.findall(question)}
    for match in _NAMED.finditer(question):
        terms |= _named(match)
    for text in _ISO_DAY.findall(question):
        with suppress(ValueError):
            terms |= set(day_terms(date.fromisoformat(text)))
    today = now.date()
    for count, unit in _AGO.findall(question):
        terms |= set(day_terms(today - timedelta(days=int(count) * (7 if unit.lower() == "week" else 1))))
    for phrase in _RELATIVE.findall(question):
        terms |= _relative(phrase.lower(), today)
    return terms


def _named(match: re.Match[str]) -> set[str]:
    name = match["month1"] or match["month2"] or match["month3"]
    day = match["day1"] or match["day2"]
    month = f"{MONTHS.index(name[:3].lower()) + 1:02}"
    year = match["year"]
    # Tell the month from the verb: "in May" and "since may" are months, "how much may we" is not.
    is_month = day or year or name.lower() not in {"may", "mar"} or _BEFORE_MAY.search(match.string[: match.start()])
    if not is_month:
        return set()
    terms = {f"@{month}"}
    if day is not None:
        terms.add(f"@{month}-{int(day):02}")
    if year is not None:
        terms |= {f"@{year}", f"@{year}-{month}"}
    return terms


def _relative(phrase: str, today: date) -> set[str]:
    back = {"today": 0, "yesterday": 1, "the day before yesterday": 2}.get(phrase)
    if back is None:
        which, unit = phrase.split()
        if unit == "year":
            return {f"@{today.year - (which == 'last')}"}
        if unit == "month":
            day = today if which == "this" else today.replace(day=1) - timedelta(days=1)
            return set(day_terms(day)[1:3])
        back = (today.weekday() - WEEKDAYS.index(unit)) % 7 or 7
    return set(day_terms(today - timedelta(days=back)))
