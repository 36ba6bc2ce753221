"""Rules over named days: "end of May", "Friday at 5 pm", "since March", "from May to July"."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from agent_memory.times.calendar_rules import find_yearly, make_day
from agent_memory.times.days import Days, add_days, half_of, moved, one_day, week_of
from agent_memory.times.grammar import Node, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_memory.times.grammar import Viewpoint

_HOURS: Final = 24
_WEEKDAY_RULES: Final = ("weekday", "weekday by", "weekday of", "day name")


def _join_weekday(view: Viewpoint, weekday: Node, node: Node) -> Node | None:
    """Return the date next to a day of the week; its year is one in which both fit."""
    if weekday.rule not in _WEEKDAY_RULES or node.rule in _WEEKDAY_RULES:
        return None
    if node.again is None:
        return node
    return _find_weekday(view, weekday, [node.again]) or (weekday if view.variant else node)


def _find_weekday(view: Viewpoint, weekday: Node, makers: Sequence[Callable[[int], Days]]) -> Node | None:
    """Return the one day, among the last and next of each maker, that is on a day of the week."""
    nodes = [find_yearly(view._replace(ahead=ahead), make) for make in makers for ahead in (False, True)]
    fits = {node.days for node in nodes if node and node.days.first.weekday() == weekday.days.first.weekday()}
    return Node(fits.pop()) if len(fits) == 1 else None


def _keep(_view: Viewpoint, node: Node, hour: int = 0, hour2: int = 0, unit: str = "day") -> Node | None:
    """Return the day next to a time of day."""
    return node if unit == "day" and max(hour, hour2) <= _HOURS else None


def _weekday_pair(view: Viewpoint, weekday: Node, pair: tuple[int, int]) -> Node | None:
    """Return "Friday 7.6" if one order of the numbers is on that day."""
    if weekday.rule not in _WEEKDAY_RULES:
        return None
    return _find_weekday(view, weekday, [make_day(*pair), make_day(*pair[::-1])])


def _half(_view: Viewpoint, node: Node, *, late: bool) -> Node:
    rule = "end of" if late else "beginning of"
    if node.days.length == 1:
        return node._replace(rule=rule)
    again = node.again
    halves = (lambda year: half_of(again(year), late=late)) if again else None
    return Node(half_of(node.days, late=late), halves, rule=rule)


def _middle(_view: Viewpoint, node: Node) -> Node | None:
    """Return the middle third."""
    third = node.days.length // 3
    return Node(Days(add_days(node.days.first, third), add_days(node.days.behind, -third))) if third > 1 else None


def _week(_view: Viewpoint, node: Node, unit: str = "week") -> Node | None:
    return Node(week_of(node.days.first)) if unit == "week" else None


def _from_day(_view: Viewpoint, count: int, unit: str, node: Node, *, sign: int) -> Node:
    return Node(one_day(moved(node.days.first, unit, sign * count)))


def _units_of(_view: Viewpoint, count: int, unit: str, node: Node, rel: int = 1) -> Node | None:
    """Return the first or last units of a span."""
    days = node.days
    if rel > 0:
        days = Days(days.first, moved(days.first, unit, count))
    elif rel < 0:
        days = Days(moved(days.behind, unit, -count), days.behind)
    return Node(days) if node.days.first <= days.first and days.behind <= node.days.behind else None


def _day_of(_view: Viewpoint, unit: str, node: Node, day: int = 0, rel: int = -1) -> Node | None:
    """Return the nth or last day of a span."""
    found = add_days(node.days.first if day else node.days.behind, day - 1)
    return Node(one_day(found)) if unit == "day" and rel < 0 and found < node.days.behind else None


_AT: Final = "(AT|FROM|BETWEEN|FOR|ON|COMMA)?"
JOINING_RULES: Final = (
    Rule("date", "weekday:DAY_NODE (COMMA|OF|ON)? node:DAY_NODE", _join_weekday),
    Rule("date", "SHORT_WEEKDAY DOT? COMMA? node:DAY_NODE", _keep),
    Rule("date", "weekday:DAY_NODE COMMA? pair:PAIR", _weekday_pair),
    Rule("clock", f"node:DAY_NODE COMMA? PART? {_AT} CLOCK (UP_TO CLOCK)?", _keep),
    Rule("clock", "node:DAY_NODE PART? AT hour:DIGITS OCLOCK? PART?", _keep),
    Rule("clock", "node:DAY_NODE PART? (FROM|BETWEEN) hour:DAY (UP_TO|AND) (CLOCK|hour2:DAY)", _keep),
    Rule("clock", f"{_AT} CLOCK (UP_TO CLOCK)? (COMMA|ON|OF|IN)? node:DAY_NODE", _keep),
    Rule("clock", f"{_AT} hour:DAY UP_TO CLOCK (ON|OF)? node:DAY_NODE", _keep),
    Rule("clock", "(FROM|BETWEEN) hour:DAY (UP_TO|AND) hour2:DAY (ON|OF)? node:DAY_NODE", _keep),
    Rule("clock", "hour:DAY UP_TO hour2:DAY node:DAY_NODE", _keep),
    Rule("part of a day", "node:DAY_NODE (IN THE|AT)? PART", _keep),
    Rule("part of a day", "(IN|ON|AT)? THE? PART (ON|OF) node:DAY_NODE", _keep),
    Rule("end of", "unit:END_OF ON? node:DAY_NODE", _keep),
    Rule("end of", "THE? (END|LATE) (DASH|OF|IN)? THE? node:SPAN", partial(_half, late=True)),
    Rule("beginning of", "THE? EARLY (DASH|OF|IN)? THE? node:SPAN", partial(_half, late=False)),
    Rule("middle of", "THE? MID (DASH|OF)? THE? node:NODE", _middle),
    Rule("week of", "THE? (WEEK_OF|unit:UNIT OF) ON? node:DAY_NODE", _week),
    Rule("from a day", "count:NUMBER unit:UNIT (AFTER|FROM) node:DAY_NODE", partial(_from_day, sign=1)),
    Rule("before a day", "count:NUMBER unit:UNIT BEFORE node:DAY_NODE", partial(_from_day, sign=-1)),
    Rule("units of", "THE? (rel:REL|NTH) count:NUMBER unit:UNIT (OF|IN) node:SPAN", _units_of),
    Rule("day of", "THE? (day:ORDINAL|rel:REL) unit:UNIT (OF|IN) node:NODE", _day_of),
)  # fmt: skip


def _range(_view: Viewpoint, first: Node, last: Node) -> Node | None:
    """Return the span from one to another; an end without a year takes that of the other."""
    start, end = first.days, last.days
    if first.again is not None:
        start = _move(first, end.first.year, (0, -1), lambda days: days.first <= end.first)
    elif last.again is not None:
        end = _move(last, start.first.year, (0, 1), lambda days: days.first >= start.first)
    if last.rule == "weekday":
        end = one_day(add_days(start.first, (end.first - start.first).days % 7))
    if first.rule == "end of":
        start = one_day(start.behind)
    if last.rule == "end of":  # until it is over
        end = one_day(end.behind)
        return Node(Days(start.first, end.first), bound="range", named=(start, end))
    if start.first > end.first or start.behind >= end.behind:
        return None
    return Node(Days(start.first, end.behind), bound="range", named=(start, end))


def _move(node: Node, year: int, steps: tuple[int, int], is_fit: Callable[[Days], bool]) -> Days:
    years = [node.again(year + step) for step in steps] if node.again else []
    return next((days for days in years if is_fit(days)), node.days)


def _bound(name: str) -> Callable[[Viewpoint, Node], Node]:
    def read(_view: Viewpoint, node: Node) -> Node:
        named = node.days
        if node.rule == "end of" and node.days.length > 1 and name in {"before", "by", "until"}:
            named = one_day(named.behind)
        if node.rule == "beginning of" and name == "after":
            named = one_day(named.first)
        return node._replace(bound=name, named=(named,), rule=name)

    return read


_GREATER, _LESSER = "(LATER|AFTER|MORE)", "(EARLIER|BEFORE|LESS)"
BOUNDING_RULES: Final = (
    Rule("range", "(FROM|BETWEEN)? first:SPAN UP_TO (THE|ON|AT)? last:SPAN", _range),
    Rule("range", "(FROM|SINCE) first:SPAN UP_TO (THE|ON|AT)? last:SPAN", _range),
    Rule("range", "BETWEEN first:SPAN AND THE? last:SPAN", _range),
    Rule("since", "SINCE (ON|FROM|IN|OF)? node:SPAN", _bound("since")),
    Rule("since", "FROM node:SPAN (MORE|ON)", _bound("since")),
    Rule("since", f"node:SPAN (AND|OR) {_GREATER}", _bound("since")),
    Rule("since", "(ON|IN) OR AFTER node:SPAN", _bound("since")),
    Rule("by", "(ON|IN) OR BEFORE node:SPAN", _bound("by")),
    Rule("since", "NO (BEFORE|EARLIER THAN) node:SPAN", _bound("since")),
    Rule("after", f"(AFTER|{_GREATER} THAN) node:SPAN", _bound("after")),
    Rule("before", f"(BEFORE|{_LESSER} THAN) node:SPAN", _bound("before")),
    Rule("by", "(BY|NO LATER THAN|NO AFTER) (ON|IN)? node:SPAN", _bound("by")),
    Rule("by", f"node:SPAN (AND|OR) {_LESSER}", _bound("by")),
    Rule("until", "UNTIL (ON|IN|THE)? node:SPAN", _bound("until")),
)
