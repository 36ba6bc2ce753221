"""Readers of the rules for days, such as "end of May"."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_memory.times.days import (
    DaySpan,
    add_days,
    get_half,
    get_iso_week,
    get_months,
    get_nth_weekday,
    get_unit,
    get_week,
    get_week_in_month,
    get_years,
    make_day,
    shift,
)
from agent_memory.times.grammar import DayNode, ReadingContext

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LEAP_YEARS: Final = 8
"""Years among which one has 29 February."""
_LIKELY_YEARS: Final = range(1900, 2100)
_MONTHS: Final = 12
_WEEKDAY_MONTHS: Final = 13
"""Months in which "Friday the 13th" comes at least once."""
_MAX_SECONDS: Final = 100_000_000
_NEAR: Final = 2
"""Days ahead at which people differ whether "next Friday" is that day or one week later."""


def find_yearly(view: ReadingContext, make: Callable[[int], DaySpan]) -> DayNode | None:
    """Return the nearest past or next occurrence of yearly days."""
    for step in range(_LEAP_YEARS):
        try:
            days = make(view.today.year + (step if view.is_future else -step))
        except ValueError:
            continue
        if days.end_day > view.today if view.is_future else days.first_day <= view.today:
            return DayNode(days, make)
    return None


def _read_in_year(
    view: ReadingContext, make: Callable[[int], DaySpan], year: int | None, offset: int | None = None
) -> DayNode | None:
    if year is None and offset is None:
        return find_yearly(view, make)
    return DayNode(make(view.today.year + (offset or 0) if year is None else year))


def build_yearly_day(month: int, day: int) -> Callable[[int], DaySpan]:
    """Return a function that makes a day of a given year."""
    return lambda year: make_day(date(year, month, day))


def _read_date(view: ReadingContext, value: tuple[int, int, int] | datetime) -> DayNode:
    """Resolve a date, or a moment in the zone of saying."""
    if isinstance(value, datetime):
        return DayNode(make_day(value.astimezone(view.moment.tzinfo).date()))
    return DayNode(make_day(date(*value)))


def _order_pair(view: ReadingContext, first: int, second: int) -> tuple[int, int]:
    """Return month and day, in their order if both may be months."""
    is_day_first = first > _MONTHS or (view.day_first and second <= _MONTHS)
    return (second, first) if is_day_first else (first, second)


def _read_date_pair(view: ReadingContext, pair: tuple[int, int, int]) -> DayNode:
    month, day = _order_pair(view, pair[0], pair[1])
    return DayNode(make_day(date(pair[2], month, day)))


def _read_pair(view: ReadingContext, pair: tuple[int, int], year: int | None = None) -> DayNode | None:
    return _read_in_year(view, build_yearly_day(*_order_pair(view, pair[0], pair[1])), year)


def _read_month_day(view: ReadingContext, month: int, day: int, year: int | None = None) -> DayNode | None:
    return _read_in_year(view, build_yearly_day(month, day), year)


def _read_month(
    view: ReadingContext, month: int, year: int | None = None, offset: int | None = None, unit: str = "year"
) -> DayNode | None:
    return _read_in_year(view, partial(get_months, month=month), year, offset) if unit == "year" else None


def _read_month_by(view: ReadingContext, offset: int, month: int) -> DayNode:
    """Resolve "last May", "next May" and "this May"."""
    year, now = view.today.year, view.today.month
    if offset:
        year += (month <= now) if offset > 0 else -(month >= now)
    return DayNode(get_months(year, month))


def _read_day_span(
    view: ReadingContext,
    month: int,
    day: int = 0,
    last: int = 0,
    pair: tuple[int, int] | None = None,
    year: int | None = None,
) -> DayNode | None:
    """Resolve days of one month, "3 to 12 September"."""
    day, last = pair or (day, last)
    if day >= last:
        return None
    node = _read_in_year(
        view, lambda year: DaySpan(date(year, month, day), make_day(date(year, month, last)).end_day), year
    )
    if node is None:
        return None
    ends = make_day(node.days.first_day), make_day(add_days(node.days.end_day, -1))
    return node._replace(bound="range", named=ends)


def _read_pair_span(
    view: ReadingContext, pair: tuple[int, int], pair2: tuple[int, ...], year: int | None = None
) -> DayNode | None:
    month, day = _order_pair(view, *pair2[:2])
    last = _read_in_year(view, build_yearly_day(month, day), pair2[2] if pair2[2:] else year)
    if last is None:
        return None
    for step in (0, -1):
        first = _read_pair(view, pair, last.days.first_day.year + step)
        if first is not None and first.days.first_day <= last.days.first_day:
            return DayNode(
                DaySpan(first.days.first_day, last.days.end_day), bound="range", named=(first.days, last.days)
            )
    return None


def _read_year(_view: ReadingContext, year: int, unit: str = "year") -> DayNode | None:
    return DayNode(get_years(year)) if unit == "year" and year in _LIKELY_YEARS else None


def _read_years(_view: ReadingContext, year: int, last: int) -> DayNode | None:
    if not _LIKELY_YEARS.start <= year < last < _LIKELY_YEARS.stop:
        return None
    return DayNode(get_years(year, last - year + 1), bound="range", named=(get_years(year), get_years(last)))


def _read_year_month(_view: ReadingContext, value: tuple[int, int]) -> DayNode:
    return DayNode(get_months(*value))


def _read_decade(_view: ReadingContext, value: tuple[int, int]) -> DayNode:
    return DayNode(get_years(*value))


def _read_numbered_week(_view: ReadingContext, value: tuple[int, int]) -> DayNode:
    return DayNode(get_iso_week(*value))


def _read_season(
    view: ReadingContext, season: int, year: int | None = None, offset: int | None = None
) -> DayNode | None:
    return _read_in_year(view, partial(get_months, month=season, length=3), year, offset)


def _read_season_by(view: ReadingContext, offset: int, season: int) -> DayNode:
    """Resolve "last summer", "this summer" and "next summer"."""
    days = get_months(view.today.year, season, 3)
    if offset < 0 and days.end_day > view.today:
        days = get_months(view.today.year - 1, season, 3)
    if offset > 0 and days.first_day <= view.today:
        days = get_months(view.today.year + 1, season, 3)
    return DayNode(days)


def _read_part_of_year(
    view: ReadingContext, part: str, year: int | None = None, offset: int | None = None
) -> DayNode | None:
    return _read_nth_part(view, int(part[1]), "quarter" if part[0] == "q" else "half", year, offset)


def _read_part_in_year(view: ReadingContext, nth: int, unit: str, parent: str, offset: int = 0) -> DayNode | None:
    return _read_nth_part(view, nth, unit, None, offset) if parent == "year" else None


def _read_nth_part(
    view: ReadingContext, nth: int, unit: str, year: int | None = None, offset: int | None = None
) -> DayNode | None:
    if unit == "week":
        return _read_week(view, nth, year, offset) if year is not None or offset is not None else None
    length = {"quarter": 3, "half": 6}.get(unit)
    if length is None or length * nth > _MONTHS:
        return None
    return _read_in_year(view, partial(get_months, month=length * (nth - 1) + 1, length=length), year, offset)


def _read_year_part(view: ReadingContext, value: tuple[int, Any]) -> DayNode | None:
    year, part = value
    if isinstance(part, str):
        return _read_part_of_year(view, part, year)
    week, weekday = part
    days = get_iso_week(year, week)
    return DayNode(make_day(add_days(days.first_day, weekday - 1)) if weekday else days)


def _read_week(view: ReadingContext, week: int, year: int | None = None, offset: int | None = None) -> DayNode | None:
    """Resolve a calendar week; without a year, of this year."""
    return DayNode(get_iso_week(view.today.isocalendar().year + (offset or 0) if year is None else year, week))


def _read_week_of_month(
    view: ReadingContext, unit: str, month: int, nth: int = -1, year: int | None = None
) -> DayNode | None:
    if unit != "week":
        return None
    return _read_in_year(view, lambda year: get_week_in_month(get_months(year, month), nth), year)


def _read_nth_weekday(
    view: ReadingContext, weekday: int, month: int, nth: int = -1, year: int | None = None
) -> DayNode | None:
    return _read_in_year(view, lambda year: make_day(get_nth_weekday(get_months(year, month), weekday, nth)), year)


def _read_monthly(view: ReadingContext, day: int, weekday: int | None = None) -> DayNode | None:
    """Resolve "the 15th" or "Friday the 13th"."""
    for step in range(_WEEKDAY_MONTHS):
        month = get_unit(view.today, "month", step if view.is_future else -step)
        nth_day = add_days(month.first_day, day - 1)
        is_near = nth_day >= view.today if view.is_future else nth_day <= view.today
        if nth_day < month.end_day and is_near and weekday in {None, nth_day.weekday()}:
            return DayNode(make_day(nth_day))
    return None


def _read_last_week(_view: ReadingContext, unit: str, year: int) -> DayNode | None:
    return DayNode(get_week(date(year, 12, 28))) if unit == "week" else None


def _read_weekday(view: ReadingContext, weekday: int) -> DayNode:
    """Resolve a weekday to the last before today, or the next."""
    ahead = (weekday - view.today.weekday()) % 7
    return DayNode(make_day(add_days(view.today, ahead if view.is_future else ahead - 7)))


def _read_weekday_by(view: ReadingContext, offset: int, weekday: int) -> DayNode:
    """Resolve "last Monday", "this Monday" and "next Monday".

    People differ about a day of the present week: "last Monday" on a Wednesday, "next Friday" on a Thursday. There
    it has two readings.
    """
    step = weekday - view.today.weekday()
    if view.has_second_meaning and (step < 0 if offset < 0 else offset > 0 and 0 < step <= _NEAR):
        return DayNode(make_day(add_days(view.today, step)))
    return DayNode(make_day(add_days(view.today, 7 * offset + step)))


def _read_coming_weekday(view: ReadingContext, offset: int, weekday: int) -> DayNode:
    """Resolve "the coming Monday" and "the past Monday"."""
    return DayNode(make_day(add_days(view.today, offset * ((offset * (weekday - view.today.weekday()) - 1) % 7 + 1))))


def _read_weekday_in_unit(view: ReadingContext, offset: int, weekday: int, unit: str) -> DayNode | None:
    """Resolve "Friday of last week"; of a month, the first."""
    if unit == "week":
        return DayNode(make_day(add_days(get_week(view.today).first_day, 7 * offset + weekday)))
    return _read_weekday_in_month(view, weekday, unit, 1, offset)


def _read_weekday_in_month(
    view: ReadingContext, weekday: int, unit: str, nth: int = -1, offset: int = 0
) -> DayNode | None:
    if unit != "month":
        return None
    return DayNode(make_day(get_nth_weekday(get_unit(view.today, unit, offset), weekday, nth)))


def _read_part_of_month(
    view: ReadingContext, unit: str, nth: int = -1, offset: int = 0, part: str = "day"
) -> DayNode | None:
    """Resolve the nth or last day or week of a month."""
    days = get_unit(view.today, unit, offset)
    if part == "week" and unit == "month":
        return DayNode(get_week_in_month(days, nth))
    day = add_days(days.first_day if nth > 0 else days.end_day, nth - (nth > 0))
    return DayNode(make_day(day)) if part == "day" and days.first_day <= day < days.end_day else None


def _read_unit(view: ReadingContext, unit: str, offset: int = 0) -> DayNode:
    return DayNode(get_unit(view.today, unit, offset))


def _read_next_but_one(view: ReadingContext, unit: str, offset: int) -> DayNode | None:
    return DayNode(get_unit(view.today, unit, 2 * offset)) if offset else None


def _read_units(view: ReadingContext, offset: int, unit: str, count: int) -> DayNode | None:
    """Resolve "the last 3 weeks": whole quarters, else counted from today."""
    if offset == 0:
        return None
    if unit in {"quarter", "decade"}:
        steps = (1, count) if offset > 0 else (-count, -1)
        return DayNode(
            DaySpan(get_unit(view.today, unit, steps[0]).first_day, get_unit(view.today, unit, steps[1]).end_day)
        )
    if offset > 0:
        first = add_days(view.today, 1)
        return DayNode(DaySpan(first, shift(first, unit, count)))
    return DayNode(DaySpan(shift(view.today, unit, -count), view.today))


def _read_hours(view: ReadingContext, offset: int, count: int, unit: int) -> DayNode | None:
    """Resolve the days of "the last 24 hours"."""
    if offset == 0 or count * unit > _MAX_SECONDS:
        return None
    first, last = sorted((view.today, (view.moment + timedelta(seconds=offset * count * unit)).date()))
    return DayNode(DaySpan(first, add_days(last, 1)))


def _read_weekend(view: ReadingContext, unit: str) -> DayNode | None:
    """Resolve "the weekend" to the last begun or the next."""
    if unit != "weekend":
        return None
    days = get_unit(view.today, unit)
    return DayNode(days if view.is_future or days.first_day <= view.today else get_unit(view.today, unit, -1))


def _read_rest(view: ReadingContext, unit: str, offset: int = 0) -> DayNode | None:
    days = DaySpan(view.today, get_unit(view.today, unit).end_day)
    ends = make_day(days.first_day), make_day(add_days(days.end_day, -1))
    return None if offset else DayNode(days) if days.length == 1 else DayNode(days, bound="range", named=ends)


def _read_end(view: ReadingContext, unit: str) -> DayNode:
    days = get_unit(view.today, unit)
    return DayNode(days if unit == "day" else get_half(days, late=True), rule="end of")


def _read_later(view: ReadingContext, unit: str, offset: int = 0) -> DayNode | None:
    """Resolve "later this week" to its second half from today on."""
    days = get_half(get_unit(view.today, unit, offset), late=True)
    return DayNode(DaySpan(max(days.first_day, view.today), days.end_day)) if unit != "day" else None


def _read_earlier(view: ReadingContext, unit: str, offset: int = 0) -> DayNode | None:
    """Resolve "earlier this week" to its first half until today."""
    days = get_half(get_unit(view.today, unit, offset), late=False)
    return DayNode(DaySpan(days.first_day, min(days.end_day, view.today))) if unit != "day" else None


def _read_added_units(view: ReadingContext, count: int, unit: str, *, sign: int) -> DayNode:
    return DayNode(make_day(shift(view.today, unit, sign * count)))


def _read_vague(view: ReadingContext, count: int, unit: str) -> DayNode:
    """Resolve "a few weeks ago", which has two readings."""
    count = count // 2 if view.has_second_meaning else count
    return DayNode(DaySpan(shift(view.today, unit, -count), add_days(shift(view.today, unit, -1), 1)))


def _read_vague_last(view: ReadingContext, count: int, unit: str) -> DayNode:
    """Resolve "the last few weeks", which has two readings."""
    node = _read_vague(view, count, unit)
    return node._replace(days=DaySpan(node.days.first_day, add_days(view.today, 1)))


def _read_added_seconds(view: ReadingContext, count: int, unit: int, *, sign: int) -> DayNode | None:
    if count * unit > _MAX_SECONDS:
        return None
    return DayNode(make_day((view.moment + timedelta(seconds=sign * count * unit)).date()))


def _read_day_name(view: ReadingContext, step: int | tuple[int, int]) -> DayNode | None:
    if isinstance(step, tuple):  # a weekday of a week, in Chinese or Japanese
        return _read_weekday_in_unit(view, step[0], step[1], "week")
    return DayNode(make_day(add_days(view.today, step)))


def _read_now(view: ReadingContext) -> DayNode | None:
    return _read_day_name(view, 0)


_HOURS: Final = 24
_WEEKDAY_RULES: Final = ("weekday", "weekday by", "weekday of", "day name")


def _read_joined_weekday(view: ReadingContext, weekday: DayNode, node: DayNode) -> DayNode | None:
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


def _read_same_day(
    _view: ReadingContext, node: DayNode, hour: int = 0, hour2: int = 0, unit: str = "day"
) -> DayNode | None:
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


def _read_period(_view: ReadingContext, node: DayNode, unit: str = "week") -> DayNode | None:
    return DayNode(get_week(node.days.first_day)) if unit == "week" else None


def _read_distance(_view: ReadingContext, count: int, unit: str, node: DayNode, *, sign: int) -> DayNode:
    return DayNode(make_day(shift(node.days.first_day, unit, sign * count)))


def _read_unit_span(_view: ReadingContext, count: int, unit: str, node: DayNode, offset: int = 1) -> DayNode | None:
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


def _read_bound(_view: ReadingContext, node: DayNode, *, name: str) -> DayNode:
    named = node.days
    if node.rule == "end of" and node.days.length > 1 and name in {"before", "by", "until"}:
        named = make_day(named.end_day)
    if node.rule == "beginning of" and name == "after":
        named = make_day(named.first_day)
    return node._replace(bound=name, named=(named,), rule=name)


READERS: Final[dict[str, Callable[..., DayNode | None]]] = {
    name.removeprefix("_read_"): read for name, read in globals().items() if name.startswith("_read_")
}
"""Readers of rules by the names in `rules.txt`."""
