"""Timestamps of logs, `git log`, `date`, mail and Apache: day, time and year in a fixed order."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from agent_memory.times.days import MONTHS, WEEKDAYS

_MONTH: Final = rf"(?:{'|'.join(MONTHS)})"
_TIME: Final = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE: Final = r"(?:[+-]\d\d:?\d\d|Z|[A-Z]{3,5})"
_WEEKDAY: Final = rf"(?:{'|'.join(day[:3] for day in WEEKDAYS)})"
_TIMESTAMP: Final = re.compile(
    rf"(?<![\w/])(?:(?:{_WEEKDAY}\s)?(?P<month>{_MONTH})\s{{1,2}}(?P<day>\d\d?)\s{_TIME}(?:\s{_ZONE})?\s(?P<year>\d{{4}})"
    rf"|(?:{_WEEKDAY},?\s)?(?P<day2>\d\d?)[\s-](?P<month2>{_MONTH})[\s-](?P<year2>\d{{4}})\s{_TIME}"
    rf"|(?P<day3>\d\d)/(?P<month3>{_MONTH})/(?P<year3>\d{{4}}):{_TIME})(?:\s[+-]\d\d:?\d\d|\s(?:UTC|GMT)\b)?(?!\w)",
    re.IGNORECASE,
)


def replace_timestamps(text: str) -> tuple[str, dict[int, int]]:
    """Replace timestamps by ISO dates of the same length.

    Returns the ends, too: that of each date with that of its timestamp.
    """
    ends: dict[int, int] = {}

    def replace(match: re.Match[str]) -> str:
        groups = match.groupdict()
        day, month, year = (next(groups[name + suffix] for suffix in ("", "2", "3") if groups[name + suffix])
                            for name in ("day", "month", "year"))  # fmt: skip
        try:
            iso = date(int(year), MONTHS.index(month.lower()) + 1, int(day)).isoformat()
        except ValueError:
            return match[0]
        ends[match.start() + len(iso)] = match.end()
        return iso.ljust(len(match[0]))

    return _TIMESTAMP.sub(replace, text), ends
