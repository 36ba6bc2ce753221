"""What words make of named days: "the week of", "end of", a time of day with them, "since", "from .. to"."""

from __future__ import annotations

from datetime import date, time
from typing import TYPE_CHECKING, Final

from agent_memory.times.days import Days, one_day, week_of
from agent_memory.times.reading import calendars
from agent_memory.times.reading.grammar import Node, Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.times.reading.grammar import Seen, Values

_WEEK, _MONTHS, _DAYS = 7, 12, 31
_LONG: Final = 27
"""Days from which on a stretch is at least a month."""
_WEEKDAYS: Final = ("weekday", "weekday by", "relative day")


def _second(values: Values, seen: Seen) -> Node | None:
    """Return the date behind a day of the week."""
    del seen
    one: Node | None = values.get("one")
    node: Node = values["node"]
    if one is not None and (one.rule not in _WEEKDAYS or node.rule in _WEEKDAYS):
        return None
    return node


def _first(values: Values, seen: Seen) -> Node | None:
    """Return the date before a day of the week."""
    del seen
    node: Node = values["node"]
    return node if values["other"].rule == "weekday" and node.rule not in _WEEKDAYS else None


def _pair(values: Values, seen: Seen) -> Node | None:
    month, day = values["pair"]
    if (seen.day_first or month > _MONTHS) and day <= _MONTHS:
        month, day = day, month
    one: Node = values["one"]
    if one.rule not in _WEEKDAYS or month > _MONTHS:
        return None
    if "sure" in values:  # 11-4 may be hours, and 4.30 a time of day: the day of the week decides
        fits = [
            year
            for year in (seen.today.year, seen.today.year + 1, seen.today.year - 1)
            if _is_on(one, year, month, day)
        ]
        return Node(one_day(date(fits[0], month, day))) if fits else None
    return calendars.yearly(calendars.day_of(month, day), seen)


def _is_on(weekday: Node, year: int, month: int, day: int) -> bool:
    return date(year, month, day).weekday() == weekday.days.first.weekday()


def _pair_on(values: Values, seen: Seen) -> Node | None:
    return _pair({**values, "pair": values["pair"] or values["pair2"], "sure": None}, seen)


def _clocked(values: Values, seen: Seen) -> Node | None:
    """Return a day with the times of day told."""
    del seen
    node: Node = values["node"]
    if (node.days.behind - node.days.first).days > 1:
        return None
    told = [calendars.hour_and_minute(values[name]) for name in ("clock", "clock2") if values.get(name) is not None]
    return node._replace(clock=tuple(time(hour % 24, minute) for hour, minute in told))


def _half(values: Values, seen: Seen, *, late: bool) -> Node | None:
    del seen
    node: Node = values["node"]
    name = "end of" if late else "beginning of"
    if (node.days.behind - node.days.first).days == 1:
        return node._replace(rule=name)
    again = node.again
    halves = None if again is None else _halves(again, late=late)
    return Node(calendars.halved(node.days, late=late), rule=name, again=halves)


def _halves(again: Callable[[int], Days | None], *, late: bool) -> Callable[[int], Days | None]:
    def make(year: int) -> Days | None:
        days = again(year)
        return None if days is None else calendars.halved(days, late=late)

    return make


def _late(values: Values, seen: Seen) -> Node | None:
    return _half(values, seen, late=True)


def _early(values: Values, seen: Seen) -> Node | None:
    return _half(values, seen, late=False)


def _later(values: Values, seen: Seen) -> Node | None:
    """Return what is left of a stretch: its second half, from today on where that has begun."""
    node = _half(values, seen, late=True)
    if node is None:
        return None
    first = max(node.days.first, seen.today)
    return node._replace(days=Days(first, node.days.behind)) if first < node.days.behind else node


def _earlier(values: Values, seen: Seen) -> Node | None:
    """Return what has gone of a stretch: its first half, to today where that is not over."""
    node = _half(values, seen, late=False)
    if node is None:
        return None
    behind = min(node.days.behind, seen.today)
    return node._replace(days=Days(node.days.first, behind)) if node.days.first < behind else node


def _mid(values: Values, seen: Seen) -> Node | None:
    """Return the middle third of a stretch."""
    del seen
    node: Node = values["node"]
    length = (node.days.behind - node.days.first).days
    if length < _WEEK:
        return None
    third = length // 3
    return Node(Days(calendars.days_from(node.days.first, third), calendars.days_from(node.days.behind, -third)))


def _week(values: Values, seen: Seen) -> Node | None:
    del seen
    node: Node = values["node"]
    return Node(week_of(node.days.first), again=None)


def _from_day(values: Values, seen: Seen) -> Node:
    """Return the day so many units before or after another."""
    del seen
    node: Node = values["node"]
    count = values["count"] * (-1 if values.get("before") is not None else 1)
    return Node(one_day(calendars.moved(node.days.first, values["unit"], count)))


def _units_of(values: Values, seen: Seen) -> Node | None:
    """Return the first or the last so many units of a stretch."""
    del seen
    days = values["node"].days
    if values["last"] is None:
        named = Days(days.first, calendars.moved(days.first, values["unit"], values["count"]))
    else:
        named = Days(calendars.moved(days.behind, values["unit"], -values["count"]), days.behind)
    return Node(named) if named.first >= days.first and named.behind <= days.behind else None


def _nth_day(values: Values, seen: Seen) -> Node | None:
    """Return the 15th of a month."""
    del seen
    node: Node = values["node"]
    day = calendars.days_from(node.days.first, values["day"] - 1)
    is_month = _LONG < (node.days.behind - node.days.first).days <= _DAYS
    return Node(one_day(day)) if is_month and day < node.days.behind else None


def _in_year(values: Values, seen: Seen) -> Node | None:
    node: Node = values["node"]
    year = values["year"].days.first.year if "year" in values else seen.today.year + values["rel"]
    days = None if node.again is None else node.again(year)
    return None if days is None else Node(days)


def _of_named_year(values: Values, seen: Seen) -> Node | None:
    return _in_year(values, seen) if values["year"].rule == "year" else None


_AT, _TO = "(FROM|BETWEEN|AT)?", "(TO|DASH|AND)"


def _nth_day_of(values: Values, seen: Seen) -> Node | None:
    """Return the first, the third or the last day of a stretch."""
    del seen
    days = values["node"].days
    day = (
        calendars.days_from(days.behind, -1)
        if values["day"] is None
        else calendars.days_from(days.first, values["day"] - 1)
    )
    return Node(one_day(day)) if days.first <= day < days.behind else None


ADDING: Final = (
    Rule("date", "one:DAY_NODE COMMA? (OF|ON)? node:DAY_NODE", _second),
    Rule("date", "node:DAY_NODE (COMMA|OPEN)? CJK_WEEKDAY CLOSE?", _second),
    Rule("date", "node:DAY_NODE COMMA? other:DAY_NODE", _first),
    Rule("late", "node:NODE OF? LATE_MARK", _late),
    Rule("early", "node:NODE OF? EARLY_MARK", _early),
    Rule("date", "WEEKDAY COMMA? node:DAY_NODE", _second),
    Rule("day in digits", "one:DAY_NODE COMMA? (pair:SPREAD|pair2:DOTTED)", _pair_on),
    Rule("day in digits", "one:DAY_NODE COMMA? pair:SLASHED", _pair),
    Rule("clock", f"node:DAY_NODE COMMA? PART? (AT|FOR|ON|FROM|BETWEEN)? clock:CLOCK ({_TO} clock2:CLOCK)?", _clocked),
    Rule("clock", f"node:DAY_NODE PART? (AT|FROM|BETWEEN) clock:HOUR ({_TO} (clock2:CLOCK|HOUR))? OCLOCK?", _clocked),
    Rule("clock", "node:DAY_NODE clock:HOUR OCLOCK", _clocked),
    Rule("clock", f"{_AT} clock:CLOCK ({_TO} (clock2:CLOCK|HOUR))? (COMMA|ON|OF|IN)? node:DAY_NODE", _clocked),
    Rule("clock", f"{_AT} clock:HOUR {_TO} (clock2:CLOCK|HOUR) (OF|ON)? node:DAY_NODE", _clocked),
    Rule("part of a day", "node:DAY_NODE (IN THE|AT)? PART", _clocked),
    Rule("part of a day", "((IN|ON) THE|AT)? PART (ON|OF) node:DAY_NODE", _clocked),
    Rule("clock", "AT clock:HOUR OCLOCK? (IN THE PART)? ON? node:DAY_NODE", _clocked),
    Rule("day of", "THE? (day:ORDINAL|LAST) DAY_WORD (OF|IN) node:NODE", _nth_day_of),
    Rule("later", "LATER IN? node:NODE", _later),
    Rule("end of", "THE? END OF? THE? node:NODE", _late),
    Rule("late", "(LATE DASH? (IN THE?)?) node:NODE", _late),
    Rule("earlier", "EARLIER IN? node:NODE", _earlier),
    Rule("early", "(EARLY DASH? (IN THE?)?) node:NODE", _early),
    Rule("beginning of", "THE? BEGINNING OF THE? node:NODE", _early),
    Rule("middle of", "(MID DASH?|THE? MIDDLE OF) node:NODE", _mid),
    Rule("week of", "THE? WEEK_WORD (OF|START ON?) node:DAY_NODE", _week),
    Rule("week of", "FOR THE WEEK_WORD (OF|START ON?) node:DAY_NODE", _week),
    Rule("week of", "W SEP C node:DAY_NODE", _week),
    Rule("units of", "THE? (FIRST|last:LAST) count:NUM unit:UNIT (OF|IN) node:NODE", _units_of),
    Rule("from a day", "count:NUM unit:UNIT (before:BEFORE|AFTER|FROM) node:DAY_NODE", _from_day),
    Rule("day of a month", "THE? day:ORDINAL DAY_WORD? OF node:NODE", _nth_day),
    Rule("of a year", "node:YEARLESS OF? rel:REL YEAR_WORD", _in_year),
    Rule("of a year", "node:YEARLESS COMMA? (IN|OF) year:NODE", _of_named_year),
)  # fmt: skip


def _range(values: Values, seen: Seen) -> Node | None:
    """Return the stretch from one to another; where only one has a year, the other is the next to it."""
    del seen
    one: Node = values["one"]
    two: Node = values["two"]
    first, last = one.days, two.days
    if one.again is not None:
        year = last.first.year
        first = _fitting(one, (year, year - 1), lambda days: days.first <= last.first) or first
    elif two.again is not None and first.first.year:
        last = _fitting(two, (first.first.year, first.first.year + 1), lambda days: days.first >= first.first) or last
    if one.rule == "end of":
        first = Days(first.behind, calendars.days_from(first.behind, 1))
    if two.rule == "end of":  # until it is over
        last = Days(last.behind, calendars.days_from(last.behind, 1))
        return Node(Days(first.first, last.first), rule="range", bound="range", named=(first, last))
    if two.rule == "weekday":
        last = one_day(calendars.days_from(first.first, (last.first - first.first).days % 7))
    if first.first > last.first:
        return None
    return Node(Days(first.first, last.behind), rule="range", bound="range", named=(first, last), clock=one.clock)


def _fitting(node: Node, years: tuple[int, int], fits: Callable[[Days], bool]) -> Days | None:
    for year in years:
        days = node.again(year) if node.again is not None else None
        if days is not None and fits(days):
            return days
    return None


def _bound(name: str) -> Callable[[Values, Seen], Node]:
    def read(values: Values, seen: Seen) -> Node:
        del seen
        node: Node = values["node"]
        named = node.days
        if node.rule in {"end of", "end of a unit"} and name in {"before", "by", "until"}:
            named = Days(named.behind, calendars.days_from(named.behind, 1))
        if node.rule == "beginning of" and name == "after":
            named = one_day(named.first)
        return Node(node.days, rule=name, bound=name, named=(named,), clock=node.clock)

    return read


BOUNDING: Final = (
    Rule("range", "one:NODE TO two:NODE UNTIL_MARK?", _range),
    Rule("since", "node:NODE ONWARD_MARK", _bound("since")),
    Rule("after", "node:NODE GREATER_MARK", _bound("after")),
    Rule("before", "node:NODE LESSER_MARK", _bound("before")),
    Rule("until", "node:NODE UNTIL_MARK", _bound("until")),
    Rule("before", "BEFORE OF node:NODE", _bound("before")),
    Rule("after", "AFTER OF node:NODE", _bound("after")),
    Rule("range", "(FROM|BETWEEN)? one:NODE (TO|DASH) (THE|ON)? two:NODE", _range),
    Rule("range", "BETWEEN one:NODE AND two:NODE", _range),
    Rule("since", "SINCE node:NODE", _bound("since")),
    Rule("since", "START (ON|FROM|IN|OF)? node:NODE", _bound("since")),
    Rule("after", "AFTER node:NODE", _bound("after")),
    Rule("before", "BEFORE node:NODE", _bound("before")),
    Rule("until", "UNTIL node:NODE", _bound("until")),
    Rule("by", "BY node:NODE", _bound("by")),
    Rule("since", "node:NODE (AND|OR) GREATER", _bound("since")),
    Rule("since", "FROM node:NODE ONWARD", _bound("since")),
    Rule("until", "node:NODE (AND|OR) LESSER", _bound("by")),
    Rule("after", "LATER THAN node:NODE", _bound("after")),
    Rule("before", "EARLIER THAN node:NODE", _bound("before")),
    Rule("before", "PRIOR TO node:NODE", _bound("before")),
    Rule("by", "ENDING (ON|IN)? node:NODE", _bound("by")),
    Rule("by", "THROUGH node:NODE", _bound("by")),
    Rule("until", "UP TO node:NODE", _bound("until")),
    Rule("since", "AS (OF|EARLY AS) node:NODE", _bound("since")),
    Rule("by", "NO LATER THAN node:NODE", _bound("by")),
    Rule("since", "NO EARLIER THAN node:NODE", _bound("since")),
    Rule("by", "NO LATER THAN node:NODE", _bound("by")),
    Rule("until", "AS LATE AS node:NODE", _bound("until")),
)
