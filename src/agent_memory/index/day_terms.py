"""Days as index terms: those that a document carries, and those that a question names.

A day is indexed as terms of its own (`@2026`, `@01`, `@2026-01`, `@01-28`), not as words: a question whose "may" is a
verb, or that has a 28 of something else, then finds no date.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.times import times_in
from agent_memory.times.days import MONTHS, get_months, get_years

if TYPE_CHECKING:
    from datetime import date, datetime

_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_MONTH: Final = re.compile(rf"\b(?:{'|'.join(MONTHS)})", re.IGNORECASE)
_MAX_CHARS: Final = 2_000


def day_terms(day: date) -> tuple[str, ...]:
    """Return the terms under which something of that day is indexed."""
    month = f"{day.month:02}"
    return f"@{day.year}", f"@{month}", f"@{day.year}-{month}", f"@{month}-{day.day:02}"


def is_day_term(term: str) -> bool:
    """Return True if a term is a day, month or year, not a word."""
    return term.startswith("@")


def named_days(question: str, now: datetime) -> set[str]:
    """Return the terms of the days, months and years that a question names."""
    terms = {f"@{year}" for year in _YEAR.findall(question)}
    for mention in times_in(question[:_MAX_CHARS], now, is_ahead=False):
        words = question[mention.start : mention.end]
        is_yearless = _MONTH.search(words) and not _YEAR.search(words)
        for days in mention.named:
            year, month, both, day = day_terms(days.first_day)
            if days.length == 1:
                terms |= {month, day} if is_yearless else {year, month, both, day}
            elif days == get_months(days.first_day.year, days.first_day.month):
                terms |= {month} if is_yearless else {month, both} | ({year} if year[1:] in words else set())
            elif days == get_years(days.first_day.year):
                terms.add(year)
    return terms
