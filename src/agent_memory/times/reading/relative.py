"""What names days by the moment it is said: "yesterday", "on Monday", "two weeks ago", "next quarter"."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.times.days import Days, one_day, some_months, week_of
from agent_memory.times.reading import calendars
from agent_memory.times.reading.grammar import Node, Rule
from agent_memory.times.reading.holidays import HOLIDAYS

if TYPE_CHECKING:
    from agent_memory.times.reading.grammar import Seen, Values

_WEEKS_OF_MONTH: Final = 5
_ALIGNED: Final = ("quarter", "decade", "century")
_MOST_SECONDS: Final = 100_000_000


def _weekday(values: Values, seen: Seen) -> Node:
    return Node(calendars.weekday_from(values["weekday"], seen))


def _weekday_of_week(values: Values, seen: Seen) -> Node:
    """Return a day of this, the next or the last week."""
    monday = week_of(seen.today).first
    return Node(one_day(monday + timedelta(days=7 * values["rel"] + values["weekday"])))


def _next_weekday(values: Values, seen: Seen) -> Node:
    return Node(one_day(calendars.days_from(seen.today, (values["weekday"] - seen.today.weekday() - 1) % 7 + 1)))


def _day_of_month(values: Values, seen: Seen) -> Node | None:
    """Return the 15th of the month, or of another one: this one's where nothing is said."""
    days = calendars.unit_at(seen.today, "month", values.get("rel") or 0)
    day = days.first + timedelta(days=values["day"] - 1)
    return Node(one_day(day)) if day < days.behind else None


def _unit(values: Values, seen: Seen) -> Node:
    return Node(calendars.unit_at(seen.today, values["unit"], values.get("rel") or 0))


def _units(values: Values, seen: Seen) -> Node | None:
    """Return so many units up to today, or from tomorrow on."""
    if values["rel"] == 0:
        return None
    today, unit, count = seen.today, values["unit"], values["count"]
    if unit in _ALIGNED:
        ends = (1, count) if values["rel"] > 0 else (-count, -1)
        return Node(
            Days(*(calendars.unit_at(today, unit, ends[0]).first, calendars.unit_at(today, unit, ends[1]).behind))
        )
    if values["rel"] > 0:
        first = calendars.moved(today, "business" if unit == "business" else "day", 1)
        if unit == "business":
            return Node(Days(first, calendars.days_from(calendars.moved(today, unit, count), 1)))
        return Node(Days(first, calendars.moved(first, values["unit"], values["count"])))
    return Node(Days(calendars.moved(today, values["unit"], -values["count"]), today))


def _within(values: Values, seen: Seen) -> Node:
    return Node(Days(seen.today, calendars.moved(seen.today, values["unit"], max(1, values["count"]))))


def _rest(values: Values, seen: Seen) -> Node:
    """Return what is left of a unit, with today."""
    days = Days(seen.today, calendars.unit_at(seen.today, values["unit"], 0).behind)
    if values["unit"] == "day":
        return Node(days)
    ends = (one_day(days.first), one_day(calendars.days_from(days.behind, -1)))
    return Node(days, bound="range", named=ends)


def _to_date(values: Values, seen: Seen) -> Node | None:
    first = calendars.unit_at(seen.today, values["unit"], 0).first
    return Node(Days(first, max(seen.today, first + timedelta(days=1))))


def _time_units(values: Values, seen: Seen) -> Node | None:
    """Return the days of some hours, minutes or seconds before or behind the moment."""
    seconds = values["unit"] * (values.get("count") or 1)
    if values["rel"] == 0 or seconds > _MOST_SECONDS:
        return None
    other = seen.moment + timedelta(seconds=seconds * values["rel"])
    first, last = sorted((seen.moment, other))
    last = max(last - timedelta(seconds=1), first)
    return Node(Days(first.date(), last.date() + timedelta(days=1)), clock=(first.time(), last.time()))


def _nearest_day(values: Values, seen: Seen) -> Node | None:
    """Return the 15th of this month, or of the next or the last one where that is yet to come or is over."""
    at = 12 * seen.today.year + seen.today.month - 1
    for step in range(3):
        month = at + (step if seen.ahead else -step)
        days = some_months(month // 12, month % 12 + 1)
        day = days.first + timedelta(days=values["day"] - 1)
        if day < days.behind and (day >= seen.today if seen.ahead else day <= seen.today):
            return Node(one_day(day))
    return None


def _week_of_nearest(values: Values, seen: Seen) -> Node | None:
    node = _nearest_day(values, seen)
    return None if node is None else Node(week_of(node.days.first))


def _nth_weekday_by(values: Values, seen: Seen) -> Node | None:
    days = calendars.unit_at(seen.today, "month", values.get("rel") or 0)
    nth = values.get("nth") or -1
    day = calendars.nth_weekday(days.first.year, days.first.month, values["weekday"], nth)
    return Node(one_day(day)) if days.first <= day < days.behind else None


def _week_of_month_by(values: Values, seen: Seen) -> Node | None:
    days = calendars.unit_at(seen.today, "month", values.get("rel") or 0)
    nth = values.get("nth") or -1
    return Node(calendars.week_in_month(nth, days)) if nth <= _WEEKS_OF_MONTH else None


def _holiday_by(values: Values, seen: Seen) -> Node | None:
    """Return this, the next or the last such day."""
    make, rel, today = HOLIDAYS[values["holiday"]], values["rel"], seen.today
    if rel == 0:
        return Node(one_day(make(today.year)))
    found = [
        day
        for year in range(today.year - 1, today.year + 2)
        if (make(year) - today).days * rel > 0
        for day in (make(year),)
    ]
    return Node(one_day(found[0] if rel > 0 else found[-1]))


def _month_days(values: Values, seen: Seen) -> Node | None:
    """Return days of this, the next or the last month, "from 4 to 22 this month": named are its two ends."""
    month = calendars.unit_at(seen.today, "month", values.get("rel") or 0)
    first, last = (month.first + timedelta(days=values[name] - 1) for name in ("day", "day2"))
    if not first < last < month.behind:
        return None
    return Node(Days(first, calendars.days_from(last, 1)), bound="range", named=(one_day(first), one_day(last)))


def _weekdays(values: Values, seen: Seen) -> Node | None:
    """Return days of this, the next or the last week, "next week from Tuesday to Friday"."""
    monday = week_of(seen.today).first + timedelta(days=7 * values["rel"])
    first, last = (monday + timedelta(days=values[name]) for name in ("weekday", "weekday2"))
    if first >= last:
        return None
    return Node(Days(first, calendars.days_from(last, 1)), bound="range", named=(one_day(first), one_day(last)))


def _weekdays_on(values: Values, seen: Seen) -> Node:
    """Return the second Sunday from now, or two Sundays ago."""
    day = calendars.weekday_from(values["weekday"], seen._replace(ahead=values.get("back") is None)).first
    step = 7 * (values["count"] - 1) * (1 if values.get("back") is None else -1)
    return Node(one_day(calendars.days_from(day, step)))


def _next_but_one(values: Values, seen: Seen) -> Node | None:
    return Node(calendars.unit_at(seen.today, values["unit"], 2 * values["rel"])) if values["rel"] else None


def _nth_weekday_near(values: Values, seen: Seen) -> Node | None:
    """Return the first Sunday of this month, or of the next or last one where that is over or yet to come."""
    at = 12 * seen.today.year + seen.today.month - 1
    for step in range(3):
        month = at + (step if seen.ahead else -step)
        day = calendars.nth_weekday(month // 12, month % 12 + 1, values["weekday"], values["nth"])
        if day.month == month % 12 + 1 and (day >= seen.today if seen.ahead else day <= seen.today):
            return Node(one_day(day))
    return None


def _beginning_of(values: Values, seen: Seen) -> Node | None:
    unit = values["unit"]
    return None if unit == "day" else Node(calendars.halved(calendars.unit_at(seen.today, unit, 0), late=False))


def _ago(values: Values, seen: Seen) -> Node:
    return Node(one_day(calendars.moved(seen.today, values["unit"], -values["count"])))


def _ahead(values: Values, seen: Seen) -> Node:
    return Node(one_day(calendars.moved(seen.today, values["unit"], values["count"])))


def _time_ago(values: Values, seen: Seen) -> Node | None:
    return _seconds(-values["count"] * values["unit"], seen)


def _time_ahead(values: Values, seen: Seen) -> Node | None:
    return _seconds(values["count"] * values["unit"], seen)


def _seconds(count: int, seen: Seen) -> Node | None:
    if abs(count) > _MOST_SECONDS:
        return None
    moment = seen.moment + timedelta(seconds=count)
    return Node(one_day(moment.date()), clock=(moment.time(),))


def _relative_day(values: Values, seen: Seen) -> Node:
    return Node(one_day(seen.today + timedelta(days=values["relative"])))


def _two_days(values: Values, seen: Seen) -> Node | None:
    step = values["relative"]
    return Node(one_day(seen.today + timedelta(days=2 * step))) if step else None


def _day_behind(values: Values, seen: Seen) -> Node:
    del values
    return Node(one_day(seen.today + timedelta(days=1)))


def _part_of_day(values: Values, seen: Seen) -> Node:
    return Node(one_day(seen.today + timedelta(days=values["rel"])))


def _season_by(values: Values, seen: Seen) -> Node:
    number, rel = values["season"], values["rel"]
    latest = seen.today.year - (seen.today.month < number)
    days = some_months(latest, number, 3)
    if (rel == 0 and days.behind <= seen.today) or rel > 0:
        days = some_months(latest + 1, number, 3)
    elif rel < 0 and days.behind > seen.today:
        days = some_months(latest - 1, number, 3)
    return Node(days)


def _month_by(values: Values, seen: Seen) -> Node:
    """Return this, the next or the last such month."""
    number, rel, today = values["month"], values["rel"], seen.today
    if rel == 0:
        return Node(some_months(today.year, number))
    if rel > 0:
        return Node(some_months(today.year + (number <= today.month), number))
    return Node(some_months(today.year - (number >= today.month), number))


def _month_of_rel_year(values: Values, seen: Seen) -> Node:
    return Node(some_months(seen.today.year + values["rel"], values["month"]))


def _end_of(values: Values, seen: Seen) -> Node:
    days = calendars.unit_at(seen.today, values["unit"], 0)
    return Node(days if values["unit"] == "day" else calendars.halved(days, late=True))


_FROM, _TO = "(FROM|BETWEEN)?", "(TO|DASH|AND)"
RULES: Final = (
    Rule("unit", "THE? unit:UNIT rel:REL_BEHIND", _unit),
    Rule("weekday by", "THE? weekday:SURE_WEEKDAY rel:REL_BEHIND", _weekday_of_week),
    Rule("month by", "THE? month:SURE_MONTH rel:REL_BEHIND", _month_by),
    Rule("weekday", "THE? weekday:SURE_WEEKDAY PART", _weekday),
    Rule("ago", "(AGO_BEFORE|IL Y A) count:NUM unit:UNIT", _ago),
    Rule("time ago", "(AGO_BEFORE|IL Y A) count:NUM unit:TIME_UNIT", _time_ago),
    Rule("units", "THE? count:NUM unit:UNIT rel:REL_BEHIND", _units),
    Rule("end of a unit", "END (OF|THE) THE? unit:UNIT", _end_of),
    Rule("days of the month", "FROM? (day:DAY (TO|DASH)) day2:DAY MONTH_WORD rel:REL_BEHIND", _month_days),
    Rule("ago", "count:NUM unit:CJK_UNIT BACK", _ago),
    Rule("ahead", "count:NUM unit:CJK_UNIT AHEAD_OF", _ahead),
    Rule("time ago", "count:NUM unit:CJK_TIME_UNIT BACK", _time_ago),
    Rule("time ahead", "count:NUM unit:CJK_TIME_UNIT AHEAD_OF", _time_ahead),
    Rule("within", "count:NUM unit:CJK_UNIT WITHIN_MARK", _within),
    Rule("units", "rel:LATEST count:NUM unit:CJK_UNIT", _units),
    Rule("times", "rel:LATEST count:NUM unit:CJK_TIME_UNIT", _time_units),
    Rule("unit", "rel:REL_YEAR", lambda values, seen: _unit({**values, "unit": "year"}, seen)),
    Rule("unit", "rel:REL_MONTH", lambda values, seen: _unit({**values, "unit": "month"}, seen)),
    Rule("unit", "rel:REL_WEEK", lambda values, seen: _unit({**values, "unit": "week"}, seen)),
    Rule("weekday by", "rel:REL_WEEK OF? weekday:WEEKDAY", _weekday_of_week),
    Rule("weekday", "weekday:CJK_WEEKDAY", _weekday),
    Rule("day of the month", "rel:REL_MONTH OF? day:DIGITS DAY_MARK", _day_of_month),
    Rule(
        "days of the month",
        "FROM? rel:REL_MONTH OF? day:DIGITS DAY_MARK TO day2:DIGITS DAY_MARK",
        _month_days,
    ),
    Rule("day of the month", "day:DIGITS DAY_MARK", _nearest_day),
    Rule("month by", "rel:REL month:SURE_MONTH", _month_by),
    Rule("month by", "rel:REL month:CAPITAL_MONTH", _month_by),
    Rule("month of a year", "month:MONTH OF? rel:REL YEAR_WORD", _month_of_rel_year),
    Rule("weekday", "(?<!EVERY) THE? weekday:SURE_WEEKDAY", _weekday),
    Rule("weekday", "(?<=ON) weekday:WEEKDAY", _weekday),
    Rule("weekday", "weekday:CAPITAL_WEEKDAY (?=CLOCK)", _weekday),
    Rule("weekday by", "rel:REL weekday:WEEKDAY", _weekday_of_week),
    Rule("weekday by", "THIS? NEXT_ONE weekday:WEEKDAY", _next_weekday),
    Rule("weekday by", "weekday:WEEKDAY (OF|COMMA)? rel:REL WEEK_WORD", _weekday_of_week),
    Rule("weekday by", "ON? weekday:WEEKDAY OF rel:REL WEEK_WORD", _weekday_of_week),
    Rule("weekday by", "rel:REL WEEK_WORD (ON|COMMA)? weekday:WEEKDAY", _weekday_of_week),
    Rule("day of the month", "THE? day:ORDINAL (DAY_WORD)? OF (THE|rel:REL) MONTH_WORD", _day_of_month),
    Rule("unit", "THE? rel:REL CALENDAR? unit:UNIT", _unit),
    Rule("unit", "FOR THE unit:UNIT (?!OF|START|BEGINNING|AFTER|BEFORE)", _unit),
    Rule("weekend", "(OVER|AT|ON)? THE unit:WEEKEND", _unit),
    Rule("weekend", "(OVER|AT|ON) unit:WEEKEND", _unit),
    Rule("units", "THE? rel:REL count:NUM OF? BUSINESS? unit:UNIT (?!(OF|IN) (THE UNIT|REL UNIT|MONTH|YEAR))", _units),
    Rule("ago", "count:NUM A? OF? unit:UNIT AGO", _ago),
    Rule("ahead", "IN count:NUM A? OF? BUSINESS? unit:UNIT", _ahead),
    Rule("ahead", "count:NUM BUSINESS? unit:UNIT (FROM NOW|LATER (?!REL|IN))", _ahead),
    Rule("units", "(WITHIN|IN)? THE? rel:REL count:NUM OF? BUSINESS unit:BUSINESS_UNIT", _units),
    Rule("units", "THE? count:NUM rel:REL unit:UNIT", _units),
    Rule("within", "WITHIN (THE? REL)? count:NUM unit:UNIT", _within),
    Rule("to date", "unit:UNIT TO DATE_WORD", _to_date),
    Rule("to date", "unit:MONTH_OR_YEAR_TO", _to_date),
    Rule("times", "THE? rel:REL count:NUM unit:TIME_UNIT", _time_units),
    Rule("times", "THE? rel:REL unit:HOUR_UNIT", _time_units),
    Rule("day of the month", "(?<=DAY_LEAD) THE day:ORDINAL (?!x|OF|UNIT|TIME_UNIT|WEEKDAY|NUM|HOLIDAY)", _nearest_day),
    Rule("day of the month", "(?<=DAY_LEAD) day:ORDINAL_DIGITS (?!x|UNIT|TIME_UNIT|WEEKDAY|NUM|HOLIDAY)", _nearest_day),
    Rule("day of the month", "(?<=DAY_LEAD) THE day:DIGITS (?!x|UNIT|TIME_UNIT|DOT DIGITS|SEP)", _nearest_day),
    Rule("day of the month", "(?<=ON) day:DIGITS (?=COMMA? AT? CLOCK)", _nearest_day),
    Rule("day of the month", "(?<=CLOCK) ON day:DIGITS (?!x)", _nearest_day),
    Rule("days of the month", f"{_FROM} day:DAY {_TO} day2:DAY OF? (THE|rel:REL) MONTH_WORD", _month_days),
    Rule(
        "days of the month",
        f"{_FROM} THE day:DAY {_TO} THE day2:DAY OF (THE|rel:REL) MONTH_WORD",
        _month_days,
    ),
    Rule("weekdays", "rel:REL WEEK_WORD (BETWEEN|FROM)? weekday:WEEKDAY (TO|AND|DASH) weekday2:WEEKDAY", _weekdays),
    Rule("weekdays", "(BETWEEN|FROM)? weekday:WEEKDAY (TO|AND|DASH) weekday2:WEEKDAY OF? rel:REL WEEK_WORD", _weekdays),
    Rule("weekdays ahead", "IN? count:NUM weekday:WEEKDAYS FROM NOW", _weekdays_on),
    Rule("weekdays ahead", "IN count:NUM weekday:WEEKDAYS", _weekdays_on),
    Rule("weekdays ago", "count:NUM weekday:WEEKDAYS back:AGO", _weekdays_on),
    Rule("next but one", "THE? unit:UNIT (BEFORE|AFTER) rel:REL", _next_but_one),
    Rule("nth weekday", "THE? nth:ORDINAL weekday:SURE_WEEKDAY (?!OF|IN)", _nth_weekday_near),
    Rule("beginning of a unit", "THE? BEGINNING OF THE unit:UNIT", _beginning_of),
    Rule("time ahead", "count:NUM unit:TIME_UNIT (FROM NOW|LATER (?!REL|IN))", _time_ahead),
    Rule("time ahead", "WITHIN THE? (REL)? count:NUM unit:TIME_UNIT", _time_ahead),
    Rule("rest", "THE? REST OF? (THE|THIS|MY) unit:UNIT", _rest),
    Rule("week of", "THE? WEEK_WORD OF THE? day:ORDINAL_DIGITS", _week_of_nearest),
    Rule("nth weekday", "THE? (nth:ORDINAL|LAST) weekday:WEEKDAY (OF|IN) (THE|rel:REL) MONTH_WORD", _nth_weekday_by),
    Rule("week of a month", "THE? (nth:ORDINAL|LAST) WEEK_WORD (OF|IN) (THE|rel:REL) MONTH_WORD", _week_of_month_by),
    Rule("holiday", "THE? rel:REL holiday:HOLIDAY", _holiday_by),
    Rule("time ago", "count:NUM A? OF? unit:TIME_UNIT AGO", _time_ago),
    Rule("time ahead", "IN count:NUM A? OF? unit:TIME_UNIT", _time_ahead),
    Rule("relative day", "relative:RELATIVE_DAY", _relative_day),
    Rule("now", "RIGHT relative:NOW", _relative_day),
    Rule("now", "(?<=BETWEEN) relative:NOW", _relative_day),
    Rule("now", "(?<=AND) relative:NOW", _relative_day),
    Rule("now", "(?<=TO) relative:NOW", _relative_day),
    Rule("relative day", "THE? DAY_WORD (BEFORE|AFTER) relative:RELATIVE_DAY", _two_days),
    Rule("day behind", "THE DAY_WORD AFTER", _day_behind),
    Rule("part of a day", "(EARLY|LATE|LATER|EARLIER)? rel:REL PART", _part_of_day),
    Rule("season", "rel:REL season:SEASON", _season_by),
    Rule("end of a unit", "THE? unit:END_OF", _end_of),
    Rule("end of a unit", "THE? END OF THE? unit:UNIT (?!DASH)", _end_of),
    Rule("later in a unit", "LATER IN THE unit:UNIT", _end_of),
)
