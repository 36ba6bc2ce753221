"""Rules for days counted from the moment of saying: "yesterday", "on Monday", "two weeks ago", "next quarter"."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from agent_memory.times.calendar_rules import find_monthly
from agent_memory.times.days import (
    Days,
    add_days,
    half_of,
    moved,
    one_day,
    unit_at,
    week_in_month,
    week_of,
    weekday_in_month,
)
from agent_memory.times.grammar import Node, Rule

if TYPE_CHECKING:
    from agent_memory.times.grammar import Viewpoint

_MAX_SECONDS: Final = 100_000_000
_NEAR: Final = 2
"""Days ahead at which people differ whether "next Friday" is that day or one week later."""


def _weekday(view: Viewpoint, weekday: int) -> Node:
    """Return the last such day before today, or the next from today on."""
    ahead = (weekday - view.today.weekday()) % 7
    return Node(one_day(add_days(view.today, ahead if view.ahead else ahead - 7)))


def _weekday_by(view: Viewpoint, rel: int, weekday: int) -> Node:
    """Return "last Monday", "this Monday" or "next Monday".

    People differ about a day of the present week: "last Monday" on a Wednesday, "next Friday" on a Thursday. There
    it has two readings.
    """
    step = weekday - view.today.weekday()
    if view.variant and (step < 0 if rel < 0 else rel > 0 and 0 < step <= _NEAR):
        return Node(one_day(add_days(view.today, step)))
    return Node(one_day(add_days(view.today, 7 * rel + step)))


def _coming_weekday(view: Viewpoint, rel: int, weekday: int) -> Node:
    """Return "the coming Monday", "the past Monday"."""
    return Node(one_day(add_days(view.today, rel * ((rel * (weekday - view.today.weekday()) - 1) % 7 + 1))))


def _weekday_of(view: Viewpoint, rel: int, weekday: int, unit: str) -> Node | None:
    """Return "Friday of last week", "Monday of next month": of a month the first."""
    if unit == "week":
        return Node(one_day(add_days(week_of(view.today).first, 7 * rel + weekday)))
    return _nth_weekday(view, weekday, unit, 1, rel)


def _nth_weekday(view: Viewpoint, weekday: int, unit: str, nth: int = -1, rel: int = 0) -> Node | None:
    if unit != "month":
        return None
    return Node(one_day(weekday_in_month(unit_at(view.today, unit, rel), weekday, nth)))


def _part_of_month(view: Viewpoint, unit: str, nth: int = -1, rel: int = 0, part: str = "day") -> Node | None:
    """Return the nth or last day or week of a month or other unit."""
    days = unit_at(view.today, unit, rel)
    if part == "week" and unit == "month":
        return Node(week_in_month(days, nth))
    day = add_days(days.first if nth > 0 else days.behind, nth - (nth > 0))
    return Node(one_day(day)) if part == "day" and days.first <= day < days.behind else None


def _unit(view: Viewpoint, unit: str, rel: int = 0) -> Node:
    return Node(unit_at(view.today, unit, rel))


def _next_but_one(view: Viewpoint, unit: str, rel: int) -> Node | None:
    return Node(unit_at(view.today, unit, 2 * rel)) if rel else None


def _units(view: Viewpoint, rel: int, unit: str, count: int) -> Node | None:
    """Return "the last 3 weeks": whole quarters, else counted from today."""
    if rel == 0:
        return None
    if unit in {"quarter", "decade"}:
        steps = (1, count) if rel > 0 else (-count, -1)
        return Node(Days(unit_at(view.today, unit, steps[0]).first, unit_at(view.today, unit, steps[1]).behind))
    if rel > 0:
        first = add_days(view.today, 1)
        return Node(Days(first, moved(first, unit, count)))
    return Node(Days(moved(view.today, unit, -count), view.today))


def _hours(view: Viewpoint, rel: int, count: int, unit: int) -> Node | None:
    """Return the days of "the last 24 hours"."""
    if rel == 0 or count * unit > _MAX_SECONDS:
        return None
    first, last = sorted((view.today, (view.moment + timedelta(seconds=rel * count * unit)).date()))
    return Node(Days(first, add_days(last, 1)))


def _weekend(view: Viewpoint, unit: str) -> Node | None:
    """Return "the weekend", the last begun or the next not over."""
    if unit != "weekend":
        return None
    days = unit_at(view.today, unit)
    return Node(days if view.ahead or days.first <= view.today else unit_at(view.today, unit, -1))


def _rest(view: Viewpoint, unit: str, rel: int = 0) -> Node | None:
    days = Days(view.today, unit_at(view.today, unit).behind)
    ends = one_day(days.first), one_day(add_days(days.behind, -1))
    return None if rel else Node(days) if days.length == 1 else Node(days, bound="range", named=ends)


def _end(view: Viewpoint, unit: str) -> Node:
    days = unit_at(view.today, unit)
    return Node(days if unit == "day" else half_of(days, late=True), rule="end of")


def _later(view: Viewpoint, unit: str, rel: int = 0) -> Node | None:
    """Return "later this week": its second half, from today on."""
    days = half_of(unit_at(view.today, unit, rel), late=True)
    return Node(Days(max(days.first, view.today), days.behind)) if unit != "day" else None


def _earlier(view: Viewpoint, unit: str, rel: int = 0) -> Node | None:
    """Return "earlier this week": its first half, until today."""
    days = half_of(unit_at(view.today, unit, rel), late=False)
    return Node(Days(days.first, min(days.behind, view.today))) if unit != "day" else None


def _count_units(view: Viewpoint, count: int, unit: str, *, sign: int) -> Node:
    return Node(one_day(moved(view.today, unit, sign * count)))


def _vague(view: Viewpoint, count: int, unit: str) -> Node:
    """Return the days of "a few weeks ago": no day is certain, so it has two readings."""
    count = count // 2 if view.variant else count
    return Node(Days(moved(view.today, unit, -count), add_days(moved(view.today, unit, -1), 1)))


def _vague_last(view: Viewpoint, count: int, unit: str) -> Node:
    """Return the days of "the last few weeks", with two readings as well."""
    node = _vague(view, count, unit)
    return node._replace(days=Days(node.days.first, add_days(view.today, 1)))


def _count_seconds(view: Viewpoint, count: int, unit: int, *, sign: int) -> Node | None:
    if count * unit > _MAX_SECONDS:
        return None
    return Node(one_day((view.moment + timedelta(seconds=sign * count * unit)).date()))


def _day_name(view: Viewpoint, step: int | tuple[int, int]) -> Node | None:
    if isinstance(step, tuple):  # a weekday of a week, in Chinese or Japanese
        return _weekday_of(view, step[0], step[1], "week")
    return Node(one_day(add_days(view.today, step)))


_REL_OR_THE: Final = "(THE|THE? rel:REL)"
RELATIVE_RULES: Final = (
    Rule("weekday", "(?<!EVERY|A) (?<!EVERY WEEKDAY (AND|OR)) THE? weekday:WEEKDAY (?!DIGITS|NAME)", _weekday),
    Rule("weekday", "(?<=ON|BY|UNTIL|SINCE|FROM|TO|BEFORE|AFTER|AND|OR) weekday:WEEKDAY (?=NAME)", _weekday),
    Rule("weekday", "(?<=ON) weekday:SHORT_WEEKDAY", _weekday),
    Rule("weekday", "weekday:SHORT_WEEKDAY (?=AT? CLOCK|AT)", _weekday),
    Rule("weekday by", "THE? rel:COMING weekday:ANY_WEEKDAY", _coming_weekday),
    Rule("weekday by", "THE? rel:REL weekday:ANY_WEEKDAY", _weekday_by),
    Rule("weekday by", "THE? weekday:WEEKDAY rel:REL", _weekday_by),
    Rule("weekday of", "THE? weekday:ANY_WEEKDAY (OF|COMMA)? THE? rel:REL unit:UNIT", _weekday_of),
    Rule("weekday of", "rel:REL unit:UNIT (ON|COMMA)? weekday:ANY_WEEKDAY", _weekday_of),
    Rule("weekday of a month", f"THE? nth:ORDINAL weekday:ANY_WEEKDAY (OF|IN) {_REL_OR_THE} unit:UNIT", _nth_weekday),
    Rule("weekday of a month", f"THE? REL weekday:ANY_WEEKDAY (OF|IN) {_REL_OR_THE} unit:UNIT", _nth_weekday),
    Rule("day of a month", f"THE? nth:ORDINAL OF {_REL_OR_THE} unit:UNIT", _part_of_month),
    Rule("part of a month", f"THE? (nth:ORDINAL|REL) part:UNIT OF {_REL_OR_THE} unit:UNIT", _part_of_month),
    Rule(
        "day of a month",
        "(?<=ON|BY|SINCE|UNTIL|BEFORE|AFTER) THE? day:NTH_DIGITS (?!OF|UNIT|ANY_WEEKDAY)",
        find_monthly,
    ),
    Rule("unit", "THE? rel:ANY_REL unit:UNIT (?!OF)", _unit),
    Rule("unit", "THE? unit:UNIT rel:REL", _unit),
    Rule("weekend", "(THE|ON|AT) unit:UNIT (?!OF)", _weekend),
    Rule("later in a unit", "LATER IN? (THE|rel:REL) unit:UNIT", _later),
    Rule("earlier in a unit", "EARLIER IN? (THE|rel:REL) unit:UNIT", _earlier),
    Rule("next but one", "THE? unit:UNIT (BEFORE|AFTER) rel:REL (?!ANY_WEEKDAY|UNIT)", _next_but_one),
    Rule("units", "IN? THE? rel:ANY_REL count:NUMBER OF? unit:UNIT (?!OF)", _units),
    Rule("units", "IN THE rel:ANY_REL unit:UNIT (?!OF)", partial(_units, count=1)),
    Rule("units", "IN? THE? rel:ANY_REL count:NUMBER unit:TIME_UNIT", _hours),
    Rule("units", "THE? count:NUMBER rel:REL unit:UNIT (?!OF)", _units),
    Rule("ago", "count:NUMBER unit:UNIT (AGO|BEFORE NOW)", partial(_count_units, sign=-1)),
    Rule("ago", "AGO_BEFORE count:NUMBER unit:UNIT", partial(_count_units, sign=-1)),
    Rule("ahead", "IN count:NUMBER unit:UNIT (?!AGO)", partial(_count_units, sign=1)),
    Rule("ahead", "count:NUMBER unit:UNIT (LATER|FROM NOW)", partial(_count_units, sign=1)),
    Rule("vague", "THE? REL count:VAGUE OF? unit:UNIT", _vague_last),
    Rule("vague", "A? count:VAGUE OF? unit:UNIT AGO", _vague),
    Rule("seconds ago", "count:NUMBER unit:TIME_UNIT AGO", partial(_count_seconds, sign=-1)),
    Rule("seconds ahead", "IN count:NUMBER unit:TIME_UNIT (?!AGO)", partial(_count_seconds, sign=1)),
    Rule("seconds ahead", "count:NUMBER unit:TIME_UNIT (LATER|FROM NOW) (?!REL)", partial(_count_seconds, sign=1)),
    Rule("day name", "(?<!THE|ON|DAY_NAME) step:DAY_NAME", _day_name),
    Rule("day name", "(?<=TO|UNTIL|AND|DASH|BETWEEN|FROM) NOW", lambda view: _day_name(view, 0)),
    Rule("part of a day", "step:REL PART", _day_name),
    Rule("rest of a unit", "THE? REST OF? (THE|rel:REL) unit:UNIT", _rest),
    Rule("end of a unit", "THE? unit:END_OF (?!ON|ANY_WEEKDAY|DAY_NAME)", _end),
    Rule("end of a unit", "THE? END OF? THE? unit:UNIT (?!OF)", _end),
)
