"""Rules for days counted from the moment of saying: "yesterday", "on Monday", "two weeks ago", "next quarter"."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from agent_memory.times.calendar_rules import find_monthly
from agent_memory.times.days import (
    Days,
    add_days,
    get_half,
    get_nth_weekday,
    get_unit,
    get_week,
    get_week_in_month,
    make_day,
    shift,
)
from agent_memory.times.grammar import Node, Rule

if TYPE_CHECKING:
    from agent_memory.times.grammar import Viewpoint

_MAX_SECONDS: Final = 100_000_000
_NEAR: Final = 2
"""Days ahead at which people differ whether "next Friday" is that day or one week later."""


def _weekday(view: Viewpoint, weekday: int) -> Node:
    """Resolve a weekday to the last before today, or the next."""
    ahead = (weekday - view.today.weekday()) % 7
    return Node(make_day(add_days(view.today, ahead if view.is_future else ahead - 7)))


def _weekday_by(view: Viewpoint, offset: int, weekday: int) -> Node:
    """Resolve "last Monday", "this Monday" and "next Monday".

    People differ about a day of the present week: "last Monday" on a Wednesday, "next Friday" on a Thursday. There
    it has two readings.
    """
    step = weekday - view.today.weekday()
    if view.has_second_meaning and (step < 0 if offset < 0 else offset > 0 and 0 < step <= _NEAR):
        return Node(make_day(add_days(view.today, step)))
    return Node(make_day(add_days(view.today, 7 * offset + step)))


def _coming_weekday(view: Viewpoint, offset: int, weekday: int) -> Node:
    """Resolve "the coming Monday" and "the past Monday"."""
    return Node(make_day(add_days(view.today, offset * ((offset * (weekday - view.today.weekday()) - 1) % 7 + 1))))


def _weekday_of(view: Viewpoint, offset: int, weekday: int, unit: str) -> Node | None:
    """Resolve "Friday of last week"; of a month, the first."""
    if unit == "week":
        return Node(make_day(add_days(get_week(view.today).first_day, 7 * offset + weekday)))
    return _nth_weekday(view, weekday, unit, 1, offset)


def _nth_weekday(view: Viewpoint, weekday: int, unit: str, nth: int = -1, offset: int = 0) -> Node | None:
    if unit != "month":
        return None
    return Node(make_day(get_nth_weekday(get_unit(view.today, unit, offset), weekday, nth)))


def _part_of_month(view: Viewpoint, unit: str, nth: int = -1, offset: int = 0, part: str = "day") -> Node | None:
    """Resolve the nth or last day or week of a month."""
    days = get_unit(view.today, unit, offset)
    if part == "week" and unit == "month":
        return Node(get_week_in_month(days, nth))
    day = add_days(days.first_day if nth > 0 else days.end_day, nth - (nth > 0))
    return Node(make_day(day)) if part == "day" and days.first_day <= day < days.end_day else None


def _unit(view: Viewpoint, unit: str, offset: int = 0) -> Node:
    return Node(get_unit(view.today, unit, offset))


def _next_but_one(view: Viewpoint, unit: str, offset: int) -> Node | None:
    return Node(get_unit(view.today, unit, 2 * offset)) if offset else None


def _units(view: Viewpoint, offset: int, unit: str, count: int) -> Node | None:
    """Resolve "the last 3 weeks": whole quarters, else counted from today."""
    if offset == 0:
        return None
    if unit in {"quarter", "decade"}:
        steps = (1, count) if offset > 0 else (-count, -1)
        return Node(Days(get_unit(view.today, unit, steps[0]).first_day, get_unit(view.today, unit, steps[1]).end_day))
    if offset > 0:
        first = add_days(view.today, 1)
        return Node(Days(first, shift(first, unit, count)))
    return Node(Days(shift(view.today, unit, -count), view.today))


def _hours(view: Viewpoint, offset: int, count: int, unit: int) -> Node | None:
    """Resolve the days of "the last 24 hours"."""
    if offset == 0 or count * unit > _MAX_SECONDS:
        return None
    first, last = sorted((view.today, (view.moment + timedelta(seconds=offset * count * unit)).date()))
    return Node(Days(first, add_days(last, 1)))


def _weekend(view: Viewpoint, unit: str) -> Node | None:
    """Resolve "the weekend" to the last begun or the next."""
    if unit != "weekend":
        return None
    days = get_unit(view.today, unit)
    return Node(days if view.is_future or days.first_day <= view.today else get_unit(view.today, unit, -1))


def _rest(view: Viewpoint, unit: str, offset: int = 0) -> Node | None:
    days = Days(view.today, get_unit(view.today, unit).end_day)
    ends = make_day(days.first_day), make_day(add_days(days.end_day, -1))
    return None if offset else Node(days) if days.length == 1 else Node(days, bound="range", named=ends)


def _end(view: Viewpoint, unit: str) -> Node:
    days = get_unit(view.today, unit)
    return Node(days if unit == "day" else get_half(days, late=True), rule="end of")


def _later(view: Viewpoint, unit: str, offset: int = 0) -> Node | None:
    """Resolve "later this week" to its second half from today on."""
    days = get_half(get_unit(view.today, unit, offset), late=True)
    return Node(Days(max(days.first_day, view.today), days.end_day)) if unit != "day" else None


def _earlier(view: Viewpoint, unit: str, offset: int = 0) -> Node | None:
    """Resolve "earlier this week" to its first half until today."""
    days = get_half(get_unit(view.today, unit, offset), late=False)
    return Node(Days(days.first_day, min(days.end_day, view.today))) if unit != "day" else None


def _count_units(view: Viewpoint, count: int, unit: str, *, sign: int) -> Node:
    return Node(make_day(shift(view.today, unit, sign * count)))


def _vague(view: Viewpoint, count: int, unit: str) -> Node:
    """Resolve "a few weeks ago", which has two readings."""
    count = count // 2 if view.has_second_meaning else count
    return Node(Days(shift(view.today, unit, -count), add_days(shift(view.today, unit, -1), 1)))


def _vague_last(view: Viewpoint, count: int, unit: str) -> Node:
    """Resolve "the last few weeks", which has two readings."""
    node = _vague(view, count, unit)
    return node._replace(days=Days(node.days.first_day, add_days(view.today, 1)))


def _count_seconds(view: Viewpoint, count: int, unit: int, *, sign: int) -> Node | None:
    if count * unit > _MAX_SECONDS:
        return None
    return Node(make_day((view.moment + timedelta(seconds=sign * count * unit)).date()))


def _day_name(view: Viewpoint, step: int | tuple[int, int]) -> Node | None:
    if isinstance(step, tuple):  # a weekday of a week, in Chinese or Japanese
        return _weekday_of(view, step[0], step[1], "week")
    return Node(make_day(add_days(view.today, step)))


_OFFSET_OR_THE: Final = "(THE|THE? offset:OFFSET)"
RELATIVE_RULES: Final = (
    Rule("weekday", "(?<!EVERY|ARTICLE_A) (?<!EVERY WEEKDAY (AND|OR)) THE? weekday:WEEKDAY (?!DIGITS|NAME)", _weekday),
    Rule("weekday", "(?<=ON|BY|UNTIL|SINCE|FROM|TO|BEFORE|AFTER|AND|OR) weekday:WEEKDAY (?=NAME)", _weekday),
    Rule("weekday", "(?<=ON) weekday:SHORT_WEEKDAY", _weekday),
    Rule("weekday", "weekday:SHORT_WEEKDAY (?=AT? CLOCK|AT)", _weekday),
    Rule("weekday by", "THE? offset:COMING_OFFSET weekday:ANY_WEEKDAY", _coming_weekday),
    Rule("weekday by", "THE? offset:OFFSET weekday:ANY_WEEKDAY", _weekday_by),
    Rule("weekday by", "THE? weekday:WEEKDAY offset:OFFSET", _weekday_by),
    Rule("weekday of", "THE? weekday:ANY_WEEKDAY (OF|COMMA)? THE? offset:OFFSET unit:UNIT", _weekday_of),
    Rule("weekday of", "offset:OFFSET unit:UNIT (ON|COMMA)? weekday:ANY_WEEKDAY", _weekday_of),
    Rule(
        "weekday of a month",
        f"THE? (nth:ORDINAL|OFFSET) weekday:ANY_WEEKDAY (OF|IN) {_OFFSET_OR_THE} unit:UNIT",
        _nth_weekday,
    ),
    Rule("day of a month", f"THE? nth:ORDINAL OF {_OFFSET_OR_THE} unit:UNIT", _part_of_month),
    Rule("part of a month", f"THE? (nth:ORDINAL|OFFSET) part:UNIT OF {_OFFSET_OR_THE} unit:UNIT", _part_of_month),
    Rule(
        "day of a month",
        "(?<=ON|BY|SINCE|UNTIL|BEFORE|AFTER) THE? day:NTH_DIGITS (?!OF|UNIT|ANY_WEEKDAY)",
        find_monthly,
    ),
    Rule("unit", "THE? offset:ANY_OFFSET unit:UNIT (?!OF)", _unit),
    Rule("unit", "THE? unit:UNIT offset:OFFSET", _unit),
    Rule("weekend", "(THE|ON|AT) unit:UNIT (?!OF)", _weekend),
    Rule("later in a unit", "LATER IN? (THE|offset:OFFSET) unit:UNIT", _later),
    Rule("earlier in a unit", "EARLIER IN? (THE|offset:OFFSET) unit:UNIT", _earlier),
    Rule("next but one", "THE? unit:UNIT (BEFORE|AFTER) offset:OFFSET (?!ANY_WEEKDAY|UNIT)", _next_but_one),
    Rule("units", "IN? THE? offset:ANY_OFFSET count:NUMBER OF? unit:UNIT (?!OF)", _units),
    Rule("units", "IN THE offset:ANY_OFFSET unit:UNIT (?!OF)", partial(_units, count=1)),
    Rule("units", "IN? THE? offset:ANY_OFFSET count:NUMBER unit:TIME_UNIT", _hours),
    Rule("units", "THE? count:NUMBER offset:OFFSET unit:UNIT (?!OF)", _units),
    Rule("ago", "count:NUMBER unit:UNIT (AGO|BEFORE NOW)", partial(_count_units, sign=-1)),
    Rule("ago", "AGO_BEFORE count:NUMBER unit:UNIT", partial(_count_units, sign=-1)),
    Rule("ahead", "IN count:NUMBER unit:UNIT (?!AGO)", partial(_count_units, sign=1)),
    Rule("ahead", "count:NUMBER unit:UNIT (LATER|FROM NOW)", partial(_count_units, sign=1)),
    Rule("vague", "THE? OFFSET count:VAGUE OF? unit:UNIT", _vague_last),
    Rule("vague", "ARTICLE_A? count:VAGUE OF? unit:UNIT AGO", _vague),
    Rule("seconds ago", "count:NUMBER unit:TIME_UNIT AGO", partial(_count_seconds, sign=-1)),
    Rule("seconds ahead", "IN count:NUMBER unit:TIME_UNIT (?!AGO)", partial(_count_seconds, sign=1)),
    Rule("seconds ahead", "count:NUMBER unit:TIME_UNIT (LATER|FROM NOW) (?!OFFSET)", partial(_count_seconds, sign=1)),
    Rule("day name", "(?<!THE|ON|DAY_NAME) step:DAY_NAME", _day_name),
    Rule("day name", "(?<=TO|UNTIL|AND|DASH|BETWEEN|FROM) NOW", lambda view: _day_name(view, 0)),
    Rule("part of a day", "step:OFFSET PART_OF_DAY", _day_name),
    Rule("rest of a unit", "THE? REST OF? (THE|offset:OFFSET) unit:UNIT", _rest),
    Rule("end of a unit", "THE? unit:END_OF (?!ON|ANY_WEEKDAY|DAY_NAME)", _end),
    Rule("end of a unit", "THE? END OF? THE? unit:UNIT (?!OF)", _end),
)
