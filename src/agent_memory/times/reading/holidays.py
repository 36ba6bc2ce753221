"""Holidays that a year has one of, by their English names: fixed, by the day of the week, and by Easter."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.times.reading.calendars import easter, nth_weekday

if TYPE_CHECKING:
    from collections.abc import Callable


def _fixed(month: int, day: int) -> Callable[[int], date]:
    return lambda year: date(year, month, day)


def _nth(month: int, weekday: int, nth: int, later: int = 0) -> Callable[[int], date]:
    return lambda year: nth_weekday(year, month, weekday, nth) + timedelta(days=later)


def _by_easter(days: int) -> Callable[[int], date]:
    return lambda year: easter(year) + timedelta(days=days)


HOLIDAYS: Final[dict[str, Callable[[int], date]]] = {
    "new year": _fixed(1, 1),
    "new year's eve": _fixed(12, 31),
    "epiphany": _fixed(1, 6),
    "martin luther king": _nth(1, 0, 3),
    "groundhog": _fixed(2, 2),
    "valentine": _fixed(2, 14),
    "women": _fixed(3, 8),
    "st patrick": _fixed(3, 17),
    "april fools": _fixed(4, 1),
    "earth": _fixed(4, 22),
    "good friday": _by_easter(-2),
    "easter": _by_easter(0),
    "easter monday": _by_easter(1),
    "ascension": _by_easter(39),
    "pentecost": _by_easter(49),
    "may day": _fixed(5, 1),
    "children": _fixed(6, 1),
    "mother": _nth(5, 6, 2),
    "father": _nth(6, 6, 3),
    "memorial": _nth(5, 0, -1),
    "juneteenth": _fixed(6, 19),
    "independence": _fixed(7, 4),
    "bastille": _fixed(7, 14),
    "assumption": _fixed(8, 15),
    "labor": _nth(9, 0, 1),
    "teachers": _fixed(9, 10),
    "national day of china": _fixed(10, 1),
    "german unity": _fixed(10, 3),
    "columbus": _nth(10, 0, 2),
    "hispanic day": _fixed(10, 12),
    "reformation": _fixed(10, 31),
    "halloween": _fixed(10, 31),
    "all saints": _fixed(11, 1),
    "veterans": _fixed(11, 11),
    "thanksgiving": _nth(11, 3, 4),
    "black friday": _nth(11, 3, 4, later=1),
    "cyber monday": _nth(11, 3, 4, later=4),
    "st nicholas": _fixed(12, 6),
    "christmas eve": _fixed(12, 24),
    "christmas": _fixed(12, 25),
    "boxing": _fixed(12, 26),
}
