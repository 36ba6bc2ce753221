"""Rules over named days: "end of May", "since March", "May to July"."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from agent_memory.times.day_rules import build_yearly_day, find_yearly
from agent_memory.times.days import DaySpan, add_days, get_half, get_week, make_day, shift
from agent_memory.times.grammar import DayNode, ReadingContext, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_HOURS: Final = 24
_WEEKDAY_RULES: Final = ("weekday", "weekday by", "weekday of", "day name")


def _join_weekday(view: ReadingContext, weekday: DayNode, node: DayNode) -> DayNode | None:
    """Resolve a date next to its weekday, in a year that fits."""
    if weekday.rule not in _WEEKDAY_RULES or node.rule in _WEEKDAY_RULES:
        return None
    if node.in_year is None:
        return node
    return _find_weekday(view, weekday, [node.in_year]) or (weekday if view.has_second_meaning else node)


def _find_weekday(view: ReadingContext, weekday: DayNode, makers: Sequence[Callable[[int], DaySpan]]) -> DayNode | None:
    """Return the only candidate on that weekday, or None."""
    nodes = [find_yearly(view._replace(is_future=is_future), make) for make in makers for is_future in (False, True)]
    fits = {node.days for node in nodes if node and node.days.first_day.weekday() == weekday.days.first_day.weekday()}
    return DayNode(fits.pop()) if len(fits) == 1 else None


def _keep_day(_view: ReadingContext, node: DayNode, hour: int = 0, hour2: int = 0, unit: str = "day") -> DayNode | None:
    """Resolve a day next to a time of day."""
    return node if unit == "day" and max(hour, hour2) <= _HOURS else None


def _read_weekday_pair(view: ReadingContext, weekday: DayNode, pair: tuple[int, int]) -> DayNode | None:
    """Resolve "Friday 7.6" if one order of the numbers fits."""
    if weekday.rule not in _WEEKDAY_RULES:
        return None
    return _find_weekday(view, weekday, [build_yearly_day(*pair), build_yearly_day(*pair[::-1])])


def _read_half(_view: ReadingContext, node: DayNode, *, late: bool) -> DayNode:
    rule = "end of" if late else "beginning of"
    if node.days.length == 1:
        return node._replace(rule=rule)
    in_year = node.in_year
    halves = (lambda year: get_half(in_year(year), late=late)) if in_year else None
    return DayNode(get_half(node.days, late=late), halves, rule=rule)


def _read_middle(_view: ReadingContext, node: DayNode) -> DayNode | None:
    """Resolve the middle third of a span."""
    third = node.days.length // 3
    return (
        DayNode(DaySpan(add_days(node.days.first_day, third), add_days(node.days.end_day, -third)))
        if third > 1
        else None
    )


def _read_week(_view: ReadingContext, node: DayNode, unit: str = "week") -> DayNode | None:
    return DayNode(get_week(node.days.first_day)) if unit == "week" else None


def _read_distance(_view: ReadingContext, count: int, unit: str, node: DayNode, *, sign: int) -> DayNode:
    return DayNode(make_day(shift(node.days.first_day, unit, sign * count)))


def _read_units(_view: ReadingContext, count: int, unit: str, node: DayNode, offset: int = 1) -> DayNode | None:
    """Resolve the first or last units of a span."""
    days = node.days
    if offset > 0:
        days = DaySpan(days.first_day, shift(days.first_day, unit, count))
    elif offset < 0:
        days = DaySpan(shift(days.end_day, unit, -count), days.end_day)
    return DayNode(days) if node.days.first_day <= days.first_day and days.end_day <= node.days.end_day else None


def _read_day_in_span(
    _view: ReadingContext, unit: str, node: DayNode, day: int = 0, offset: int = -1
) -> DayNode | None:
    """Resolve the nth or last day of a span."""
    nth_day = add_days(node.days.first_day if day else node.days.end_day, day - 1)
    return DayNode(make_day(nth_day)) if unit == "day" and offset < 0 and nth_day < node.days.end_day else None


_AT: Final = "(AT|FROM|BETWEEN|FOR|ON|COMMA)?"
JOINING_RULES: Final = (
    Rule("date", "weekday:DAY_NODE (COMMA|OF|ON)? node:DAY_NODE", _join_weekday),
    Rule("date", "SHORT_WEEKDAY DOT? COMMA? node:DAY_NODE", _keep_day),
    Rule("date", "weekday:DAY_NODE COMMA? pair:PAIR", _read_weekday_pair),
    Rule("clock", f"node:DAY_NODE COMMA? PART_OF_DAY? {_AT} CLOCK (UP_TO CLOCK)?", _keep_day),
    Rule("clock", "node:DAY_NODE PART_OF_DAY? AT hour:DIGITS OCLOCK? PART_OF_DAY?", _keep_day),
    Rule("clock", "node:DAY_NODE PART_OF_DAY? (FROM|BETWEEN) hour:DAY (UP_TO|AND) (CLOCK|hour2:DAY)", _keep_day),
    Rule("clock", f"{_AT} CLOCK (UP_TO CLOCK)? (COMMA|ON|OF|IN)? node:DAY_NODE", _keep_day),
    Rule("clock", f"{_AT} hour:DAY UP_TO CLOCK (ON|OF)? node:DAY_NODE", _keep_day),
    Rule("clock", "(FROM|BETWEEN) hour:DAY (UP_TO|AND) hour2:DAY (ON|OF)? node:DAY_NODE", _keep_day),
    Rule("clock", "hour:DAY UP_TO hour2:DAY node:DAY_NODE", _keep_day),
    Rule("part of a day", "node:DAY_NODE (IN THE|AT)? PART_OF_DAY", _keep_day),
    Rule("part of a day", "(IN|ON|AT)? THE? PART_OF_DAY (ON|OF) node:DAY_NODE", _keep_day),
    Rule("end of", "unit:END_OF ON? node:DAY_NODE", _keep_day),
    Rule("end of", "THE? (END|LATE) (DASH|OF|IN)? THE? node:SPAN", partial(_read_half, late=True)),
    Rule("beginning of", "THE? EARLY (DASH|OF|IN)? THE? node:SPAN", partial(_read_half, late=False)),
    Rule("middle of", "THE? MID (DASH|OF)? THE? node:NODE", _read_middle),
    Rule("week of", "THE? (WEEK_OF|unit:UNIT OF) ON? node:DAY_NODE", _read_week),
    Rule("from a day", "count:NUMBER unit:UNIT (AFTER|FROM) node:DAY_NODE", partial(_read_distance, sign=1)),
    Rule("before a day", "count:NUMBER unit:UNIT BEFORE node:DAY_NODE", partial(_read_distance, sign=-1)),
    Rule("units of", "THE? (offset:OFFSET|NTH) count:NUMBER unit:UNIT (OF|IN) node:SPAN", _read_units),
    Rule("day of", "THE? (day:ORDINAL|offset:OFFSET) unit:UNIT (OF|IN) node:NODE", _read_day_in_span),
)  # fmt: skip


def _read_range(_view: ReadingContext, first: DayNode, last: DayNode) -> DayNode | None:
    """Resolve a span; an end without a year takes the other's."""
    start, end = first.days, last.days
    if first.in_year is not None:
        start = _move_to_year(first, end.first_day.year, (0, -1), lambda days: days.first_day <= end.first_day)
    elif last.in_year is not None:
        end = _move_to_year(last, start.first_day.year, (0, 1), lambda days: days.first_day >= start.first_day)
    if last.rule == "weekday":
        end = make_day(add_days(start.first_day, (end.first_day - start.first_day).days % 7))
    if first.rule == "end of":
        start = make_day(start.end_day)
    if last.rule == "end of":  # until it is over
        end = make_day(end.end_day)
        return DayNode(DaySpan(start.first_day, end.first_day), bound="range", named=(start, end))
    if start.first_day > end.first_day or start.end_day >= end.end_day:
        return None
    return DayNode(DaySpan(start.first_day, end.end_day), bound="range", named=(start, end))


def _move_to_year(node: DayNode, year: int, steps: tuple[int, int], is_fit: Callable[[DaySpan], bool]) -> DaySpan:
    years = [node.in_year(year + step) for step in steps] if node.in_year else []
    return next((days for days in years if is_fit(days)), node.days)


def _make_bound_reader(name: str) -> Callable[[ReadingContext, DayNode], DayNode]:
    def read(_view: ReadingContext, node: DayNode) -> DayNode:
        named = node.days
        if node.rule == "end of" and node.days.length > 1 and name in {"before", "by", "until"}:
            named = make_day(named.end_day)
        if node.rule == "beginning of" and name == "after":
            named = make_day(named.first_day)
        return node._replace(bound=name, named=(named,), rule=name)

    return read


_GREATER, _LESSER = "(LATER|AFTER|MORE)", "(EARLIER|BEFORE|LESS)"
BOUNDING_RULES: Final = (
    Rule("range", "(FROM|BETWEEN)? first:SPAN UP_TO (THE|ON|AT)? last:SPAN", _read_range),
    Rule("range", "(FROM|SINCE) first:SPAN UP_TO (THE|ON|AT)? last:SPAN", _read_range),
    Rule("range", "BETWEEN first:SPAN AND THE? last:SPAN", _read_range),
    Rule("since", "SINCE (ON|FROM|IN|OF)? node:SPAN", _make_bound_reader("since")),
    Rule("since", "FROM node:SPAN (MORE|ON)", _make_bound_reader("since")),
    Rule("since", f"node:SPAN (AND|OR) {_GREATER}", _make_bound_reader("since")),
    Rule("since", "(ON|IN) OR AFTER node:SPAN", _make_bound_reader("since")),
    Rule("by", "(ON|IN) OR BEFORE node:SPAN", _make_bound_reader("by")),
    Rule("since", "NO (BEFORE|EARLIER THAN) node:SPAN", _make_bound_reader("since")),
    Rule("after", f"(AFTER|{_GREATER} THAN) node:SPAN", _make_bound_reader("after")),
    Rule("before", f"(BEFORE|{_LESSER} THAN) node:SPAN", _make_bound_reader("before")),
    Rule("by", "(BY|NO LATER THAN|NO AFTER) (ON|IN)? node:SPAN", _make_bound_reader("by")),
    Rule("by", f"node:SPAN (AND|OR) {_LESSER}", _make_bound_reader("by")),
    Rule("until", "UNTIL (ON|IN|THE)? node:SPAN", _make_bound_reader("until")),
)
