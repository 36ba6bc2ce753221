"""Stretches of time that a question names: "last week", "before June", "between 20 and 31 July", "on 24.07.2026".

The one place that reads time out of words. Pure functions of the text and the moment of asking; English. A month, day
or season without a year is the last one that has begun; a date such as 3/4/2026 may be either. Bounds are whole days
in the zone of that moment.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.times.asked.bounds import bounds_of, spelt_out
from agent_memory.times.asked.doubts import REACH
from agent_memory.times.asked.expressions import expressions
from agent_memory.times.period import Period

if TYPE_CHECKING:
    from agent_memory.times.asked.expressions import Named

_MAX_CHARS: Final = 2_000  # of a question; days in what is longer are not asked for
_MOST: Final = 4  # each is searched by itself

_LEADS_UP: Final = re.compile(
    r"(?:^|\s)(?:(?:in|on|of|since|until|till|during|before|prior|earlier|than|after|following|later|by|from|between"
    r"|and|to|up|through|starting|as|early|late|mid|the|end)[\s-]{1,20}){1,12}$",
    re.IGNORECASE,
)


class Reading(NamedTuple):
    """What a question says of time.

    Attributes:
        periods: The first stretches of time it names, each once; what it asks for may lie in any.
        rest: The question without them, and without what leads up to them.
        kept: The question without those that depend on the moment of asking: no text holds these words for that.
        dates: The words of days, which a text may hold.
    """

    periods: tuple[Period, ...]
    rest: str
    kept: str
    dates: str


def named_periods(question: str, now: datetime) -> tuple[Period, ...]:
    """Return the first stretches of time that a question names, see `Reading`."""
    return read_periods(question, now).periods


def read_periods(question: str, now: datetime) -> Reading:
    """Read the time out of a question.

    Args:
        question: Any text.
        now: The moment of asking, aware.
    """
    if len(question) > _MAX_CHARS:
        return Reading((), question, question, "")
    text = spelt_out(question)
    asked = list(bounds_of(text, list(expressions(text, now))))
    if not asked:
        return Reading((), question, question, "")
    periods = dict.fromkeys([_period(first, behind, now) for _, bounds in asked for first, behind in bounds])
    named = [one for one, _ in asked]
    dates = " ".join(one.words for one in named if one.words)
    kept = _without(text, [one for one in named if one.is_relative])
    return Reading(tuple(periods)[:_MOST], _without(text, named), kept, dates)


def _without(text: str, named: list[Named]) -> str:
    """Leave out expressions, and what leads up to them."""
    kept, behind = "", 0
    for one in named:
        piece = text[behind : one.start]
        lead = _LEADS_UP.search(piece, max(0, len(piece) - REACH))
        kept += f"{piece[: lead.start()]} " if lead is not None else piece
        behind = one.end
    return " ".join((kept + text[behind:]).split()) if named else text


def _period(first: date | None, behind: date | None, now: datetime) -> Period:
    def moment(day: date | None) -> datetime | None:
        return None if day is None else datetime.combine(day, time.min, now.tzinfo)

    return Period(moment(first), moment(behind))
