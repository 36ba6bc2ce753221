"""Days of the calendar: "24.07.2026", "Q3 2025", "in summer"; the last that have begun where no year is told."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, datetime

from agent_memory.times.asked import doubts
from agent_memory.times.asked.english import NTH, SEASONS
from agent_memory.times.days import Days, latest_months, month_of, months_in, one_day, some_months, week_of


def iso_day(match: re.Match[str], now: datetime) -> list[Days]:
    """Return the days of "2026-07-24", and of a moment of that day in the zone of `now`."""
    year, month, day = (int(part) for part in re.split("[-/]", match["iso"]))
    clock = match["clock"]
    if clock and clock[0] in "Tt":
        moment = datetime.fromisoformat(f"{date(year, month, day)}T{clock[1:].upper()}")
        return [one_day((moment if moment.tzinfo is None else moment.astimezone(now.tzinfo)).date())]
    return [one_day(date(year, month, day))]


def iso_month(match: re.Match[str], _: datetime) -> list[Days]:
    """Return the days of "2026-07"."""
    if doubts.is_labelled(match.string, match.start()):
        return []
    year, month = match["iso_month"].split("-")
    return [some_months(int(year), int(month))]


def iso_week(match: re.Match[str], _: datetime) -> list[Days]:
    """Return the days of "2026-W18"."""
    year, week, *day = (int(part) for part in re.findall(r"\d+", re.sub(r"(?i)w", "-", match["iso_week"])))
    first = date.fromisocalendar(year, week, day[0] if day else 1)
    return [one_day(first) if day else week_of(first)]


def calendar_week(match: re.Match[str], now: datetime) -> list[Days]:
    """Return the days of "calendar week 18"."""
    number = int(re.sub(r"\D", "", match["week"] or match["week_number"]))
    year = _of(match, "year8", now)
    first = date.fromisocalendar(year or now.date().isocalendar().year, number, 1)
    if year is None and first > now.date():
        first = date.fromisocalendar(now.date().isocalendar().year - 1, number, 1)
    return [week_of(first)]


def dotted_day(match: re.Match[str], _: datetime) -> list[Days]:
    """Return the days of "24.07.2026"."""
    text, start, said = match.string, match.start(), match["dotted"]
    day, month, year = said.split(".")
    is_short = len(year.strip()) == 2  # noqa: PLR2004
    if doubts.is_labelled(text, start) or (is_short and doubts.is_version(text, start, said)):
        return []
    return [one_day(date(_full(int(year)), int(month), int(day)))]


def slashed_day(match: re.Match[str], _: datetime) -> list[Days]:
    """Return the days of "3/4/2026", which may be two."""
    one, other, year = (int(part) for part in match["slashed"].split("/"))
    if year < 100 and doubts.is_fraction(match.string, match.start()):  # noqa: PLR2004 - of two figures
        return []
    found: dict[Days, None] = {}
    for month, day in ((one, other), (other, one)):
        with suppress(ValueError):
            found[one_day(date(_full(year), month, day))] = None
    return list(found)


def day_of_month(match: re.Match[str], now: datetime) -> list[Days]:
    """Return the days of "3 May"."""
    text, (start, end) = match.string, match.span()
    said, name = match["day1"] or match["day2"], match["month1"] or match["month2"]
    year = _of(match, "year1", now) or _of(match, "year2", now)
    is_plain = said.isdigit() and not year
    if is_plain and match["day2"] and doubts.is_counted(text, start, end):  # "in May 5 users": it is the month
        return _month_alone(match, name, now)
    is_number = match["day1"] and doubts.is_labelled(text, start)
    if is_number or (is_plain and doubts.is_other_word(name, text, start, end)):
        return []
    number, month = int(re.sub(r"\D", "", said)), month_of(name)
    if year:
        return [one_day(date(year, month, number))]
    return [] if _is_ahead(match) else _latest_day(month, number, now.date())


def _latest_day(month: int, number: int, today: date) -> list[Days]:
    for back in range(9):  # to the last 29 February
        with suppress(ValueError):
            if (day := date(today.year - back, month, number)) <= today:
                return [one_day(day)]
    return []


def quarter(match: re.Match[str], now: datetime) -> list[Days]:
    """Return the days of "Q3 2025"."""
    text, (start, end) = match.string, match.span()
    if match["quarter_behind"]:
        return [some_months(int(match["quarter_year"]), 3 * int(match["quarter_behind"][1]) - 2, 3)]
    year = _of(match, "slashed_year", now) or _of(match, "year3", now)
    is_number = match["quarter"] and (text[end : end + 1] == ":" or doubts.is_labelled(text, start))
    if not year and (is_number or _is_ahead(match)):
        return []
    number = int(match["quarter"][1]) if match["quarter"] else NTH[match["nth"].lower()]
    return [months_in(year, 3 * number - 2, 3, now.date())]


def half_year(match: re.Match[str], now: datetime) -> list[Days]:
    """Return the days of "first half of 2025"."""
    is_second = "2" in (match["half"] or "") or (match["nth_half"] or "").lower() == "second"
    return [months_in(_of(match, "year7", now), 7 if is_second else 1, 6, now.date())]


def season(match: re.Match[str], now: datetime) -> list[Days]:
    """Return the days of "in summer"."""
    text, (start, end), year = match.string, match.span(), _of(match, "year4", now)
    is_time = doubts.is_led(text, start) and doubts.ends_there(text, end) and not _is_ahead(match)
    return [months_in(year, SEASONS[match["season"].lower()], 3, now.date())] if year or is_time else []


def whole_month(match: re.Match[str], now: datetime) -> list[Days]:
    """Return the days of "July 2025"."""
    year = _of(match, "year5", now)
    return [some_months(year, month_of(match["month3"]))] if year else _month_alone(match, match["month3"], now)


def _month_alone(match: re.Match[str], name: str, now: datetime) -> list[Days]:
    start = match.start()
    if doubts.is_no_month(name, match.string, start, match.end()) or _is_ahead(match):
        return []
    return [latest_months(month_of(name), 1, now.date())]


def whole_year(match: re.Match[str], _: datetime) -> list[Days]:
    """Return the days of "in 2025"."""
    text, (start, end) = match.string, match.span()
    is_called = match["called"] and not doubts.is_of_another_kind(text, start)
    is_year = is_called or (doubts.is_led(text, start) and not doubts.is_measure(text, start, end))
    return [some_months(int(match["year6"]), 1, 12)] if is_year else []


def _of(match: re.Match[str], group: str, now: datetime) -> int | None:
    """Return the year that an expression tells, None where it tells none."""
    said = match[group]
    if said is None:
        return None
    if said[0].isdigit():
        return int(said)
    if said[0] in "'\u2019":
        return 2000 + int(said[1:])
    return now.year - (said.split()[0].lower() not in {"this", "the"})


def _is_ahead(match: re.Match[str]) -> bool:
    return doubts.is_ahead(match.string, match.start())


def _full(year: int) -> int:
    return year + 2000 * (year < 100)  # noqa: PLR2004 - of two figures
