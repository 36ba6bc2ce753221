"""Times that a text names, and periods that a question names.

A time is resolved if its words settle the day.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.late import compile_late
from agent_memory.times.day_readers import READERS
from agent_memory.times.days import MONTHS, WEEKDAYS, Bounds, DaySpan, Period, add_days, get_unit
from agent_memory.times.grammar import (
    DayNode,
    ReadingContext,
    Rule,
    TenseReader,
    Token,
    apply_rules,
    detect_language,
    get_vocabulary,
    replace_timestamps,
    tokenize,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def _load_stages() -> list[tuple[Rule, ...]]:
    """Load the rules of each stage from `rules.txt`."""
    parts: dict[str, str] = {}
    stages: dict[str, list[Rule]] = {}
    for line in Path(__file__).with_name("rules.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            rules = stages[line.strip("[]")] = []
        elif " | " in line and not line.startswith("#"):
            name, pattern, reader = line.split(" | ")
            rules.append(Rule(name.strip(), pattern.format(**parts), _fix_arguments(*reader.split())))
        elif " = " in line and not line.startswith("#"):
            name, _, parts[name] = line.partition(" = ")
    return [tuple(rules) for rules in stages.values()]


def _fix_arguments(name: str, *fixed: str) -> Callable[..., Any]:
    """Return a reader with its fixed arguments, such as `sign=-1`."""
    pairs = (argument.partition("=") for argument in fixed)
    values = {key: int(value) if value.lstrip("-").isdigit() else value for key, _, value in pairs}
    return partial(READERS[name], **values) if values else READERS[name]


_STAGES: Final = _load_stages()
_NODE_KINDS: Final = frozenset(("NODE", "DAY_NODE", "BOUND"))
_COUNTS: Final = frozenset(("DIGITS", "COUNT", "NUM", "TENS", "SPREAD", "YEAR"))
_DASHES: Final = frozenset(("DASH", "SLASH"))
_CUTTING_KINDS: Final = tuple(
    frozenset(kinds.split())
    for kinds in (
        "NTH NTH_DIGITS OFFSET COMING_OFFSET MONTH VAGUE WEEK_OF EVERY UNIT MID EARLY LATE END",
        "NTH NTH_DIGITS YEAR YEAR_MONTH DATE_PAIR PAIR MONTH WEEKDAY SEASON LATER EARLIER",
    )
)
"""Kinds of words of time that belong to the days after and before them."""
_GLUE_KINDS: Final = frozenset(("OF", "DASH", "SLASH", "TO", "THE", "IN", "OR"))
_MONTHS: Final = 12
_MAX_CHARS: Final = 20_000
_SAYING_CHARS: Final = 2_000
"""Characters that are read for the day of saying."""
_YEAR: Final = compile_late(r"\d{4}")
_IMPLIED_TENSES: Final = {"since": False, "by": True, "until": True}
"""Bounds that look ahead or back by themselves."""
_READINGS: Final = ((False, False), (True, False), (False, True), (True, True))
"""Tense, and meaning of words on which people differ: (is_future, has_second_meaning)."""


class TimeMention(NamedTuple):
    """Whole days that a text names, in the zone of saying.

    Attributes:
        start, end: Place in the text, half-open.
        first_day: First day; None for no beginning ("until Friday") and for an unresolved mention.
        end_day: Day after the last, exclusive like a slice; None for no end ("since 2024") and if unresolved.
        rule: Name of the rule.
        bound: "at", "range", "since", "after", "before", "until" or "by".
        named: The days named: two spans for a range, else one.
        readings: First and end day of each reading; several if the words settle no day, and (None, None) among them
            if unread words next to it may change the days.
    """

    start: int
    end: int
    first_day: date | None
    end_day: date | None
    rule: str
    bound: str = "at"
    named: tuple[DaySpan, ...] = ()
    readings: tuple[Bounds, ...] = ()

    @property
    def is_resolved(self) -> bool:
        """True if the words settle the days."""
        return len(self.readings) == 1

    @property
    def first(self) -> date | None:
        """Earlier name of `first_day`, until 1.0."""
        return self.first_day

    @property
    def behind(self) -> date | None:
        """Earlier name of `end_day`, until 1.0."""
        return self.end_day


def times_in(
    text: str, said_at: datetime, language: str | None = None, *, is_ahead: bool | None = None
) -> list[TimeMention]:
    """Return the times that a text names, in order, without overlap.

    A mention is resolved only if each possible reading gives the same days: with the tense of its clause, or in past
    and future if that is unknown; with both orders of day and month. Else its days are None.

    Args:
        text: Any text; the first 20,000 characters are read.
        said_at: Aware moment of saying; days are those of its zone.
        language: Such as "en"; detected if None.
        is_ahead: Tense to use if the words do not tell it, such as False for a question about the past.
    """
    text, timestamp_ends = replace_timestamps(text[:_MAX_CHARS])
    language = detect_language(text) if language is None else language
    vocabulary = get_vocabulary(language)
    tokens = tokenize(text, vocabulary)
    if all(token.kind in {"OTHER", "PLURAL", "NAME", "COMMA", "DOT"} for token in tokens):
        return []
    tense = TenseReader(text, language)
    day_first = _find_order(tokens) if vocabulary.day_first is None else vocabulary.day_first
    rows: list[list[Token]] = []
    for is_future, is_second in _READINGS:
        base = ReadingContext(said_at, is_future, is_second if day_first is None else day_first, is_second)
        row = _read_row(tokens, partial(_get_view, base, tense, is_ahead))
        if row is tokens:
            return []
        rows.append(row)
    tokens_by_start = [{token.start: token for token in row} for row in rows[1:]]
    mentions = []
    for number, token in enumerate(rows[0]):
        if token.kind in _NODE_KINDS:
            readings = [token, *(row.get(token.start) for row in tokens_by_start)]
            mention = _make_mention(token, readings, is_cut=_is_cut(rows[0], number))
            end = mention.end - text.endswith(".", mention.start, mention.end)
            mentions.append(mention._replace(end=timestamp_ends.get(end, end)))
    return mentions


def _read_row(tokens: list[Token], view: Callable[[int], ReadingContext]) -> list[Token]:
    """Merge the tokens of each time, or return the same list."""
    row = apply_rules(tokens, _STAGES[0], view)
    if not any(token.kind in _NODE_KINDS for token in row):
        return tokens
    for stage in _STAGES[1:]:
        row = apply_rules(row, stage, view)
    return row


def _find_order(tokens: list[Token]) -> bool | None:
    """Return True if the day is before the month, None if unknown."""
    orders = {
        token.value[0] > _MONTHS
        for token in tokens
        if token.kind in {"PAIR", "DATE_PAIR"} and (token.value[0] > _MONTHS) != (token.value[1] > _MONTHS)
    }
    return orders.pop() if len(orders) == 1 else None


def _is_cut(row: list[Token], number: int) -> bool:
    """Return True if an unread neighbor may change the days."""
    before, after = row[max(0, number - 2) : number], row[number + 1 : number + 3]
    for side, kinds in zip((before[::-1], after), _CUTTING_KINDS, strict=True):
        glue, far = (side[0].kind, side[-1].kind) if len(side) > 1 else ("", "")
        if (side and side[0].kind in kinds) or (glue in _GLUE_KINDS and far in kinds | _COUNTS):
            return True
        if glue in {*_DASHES, "IN", "OF"} and far in _NODE_KINDS:
            return True
        if (glue == "AND" and side is not after and far == "UNIT") or (glue in {"BEFORE", "AFTER"} and far == "OFFSET"):
            return True
    return False


def _get_view(base: ReadingContext, tense: TenseReader, default: bool | None, start: int) -> ReadingContext:  # noqa: FBT001
    is_future = tense.is_ahead(start)
    is_future = default if is_future is None else is_future
    return base if is_future is None else base._replace(is_future=is_future)


def _make_mention(token: Token, tokens: list[Token | None], *, is_cut: bool) -> TimeMention:
    """Build a mention from the token of each reading.

    Args:
        token: Token of the first reading.
        tokens: Tokens at the same place, in the order of `_READINGS`.
        is_cut: True if unread words may change the days.
    """
    node: DayNode = token.value
    implied = _IMPLIED_TENSES.get(node.bound)
    readings = {}
    for (is_future, _), reading in zip(_READINGS, tokens, strict=True):
        if (
            reading is not None
            and reading.kind in _NODE_KINDS
            and reading.end == token.end
            and (implied is None or is_future is implied)
        ):
            readings[_get_bounds(reading.value)] = reading.value
    node = next(iter(readings.values()), node)
    if is_cut:
        readings[None, None] = node
    first_day, end_day = next(iter(readings)) if len(readings) == 1 else (None, None)
    return TimeMention(
        token.start,
        token.end,
        first_day,
        end_day,
        node.rule,
        node.bound,
        node.named or (node.days,),
        tuple(readings),
    )


def _get_bounds(node: DayNode) -> Bounds:
    """Return the bounds; "until Friday" includes Friday, "until March" not March."""
    if node.bound in {"at", "range"}:
        return node.days.first_day, node.days.end_day
    days = node.named[0]
    return {
        "since": (days.first_day, None),
        "after": (days.end_day, None),
        "before": (None, days.first_day),
        "until": (None, node.days.end_day if days.length == 1 else days.first_day),
        "by": (None, node.days.end_day),
    }[node.bound]


def describe_saying(text: str, said_at: datetime) -> str:
    """Return the day of saying if dates depend on it, else "".

    The day is written as "2026-11-26 (Thu)".

    Args:
        text: Stored text; its first 2,000 characters are read.
        said_at: Aware moment of saying, in the speaker's zone.
    """
    text = text[:_SAYING_CHARS]
    for mention in times_in(text, said_at):
        if not mention.is_resolved or not _YEAR.search(text, mention.start, mention.end):
            return f"{said_at:%Y-%m-%d} ({WEEKDAYS[said_at.weekday()][:3].capitalize()})"
    return ""


_MAX_QUESTION_CHARS: Final = 2_000
_MAX_PERIODS: Final = 4
"""Each period is searched by itself."""
_DATED: Final = compile_late(rf"\d{{4}}|\d[./-]\d|\b[qh][1-4]\b|\b(?:{'|'.join(MONTHS)})", re.IGNORECASE)
"""Finds words that a stored text may hold as well, unlike "last week"."""
_HAS_YEAR: Final = compile_late(r"\d{4}")
_COUNTED: Final = compile_late(r"\b(?:day|week|month|year)s?\b", re.IGNORECASE)
_DAY: Final = compile_late(r"\d")
_LEADS_UP: Final = compile_late(
    r"(?:^|\s)(?:(?:in|on|of|since|until|till|during|before|prior|earlier|than|after|following|later|by|from|between"
    r"|and|to|up|through|starting|as|early|late|mid|the|end)[\s-]{1,20}){1,12}$",
    re.IGNORECASE,
)
_BETWEEN: Final = compile_late(r"^(?:the|from|between|since|until|before|after|by|on)\s+", re.IGNORECASE)
_OUTSIDE: Final = compile_late(
    r"\b(?:except|excluding|every|each|besides|without|other\s+than|apart\s+from|outside|not|n['\u2019]t)"
    r"\s+(?:(?:in|on|for|from|of|during|until|the)\s+)*$",
    re.IGNORECASE,
)
_ON_A_DAY: Final = compile_late(r"\b(?:on|from|or|and|to|until|between)\s+(?:the\s+)?$", re.IGNORECASE)
_REACH: Final = 60
"""Characters before a period that may lead up to it."""
_AGO_UNIT: Final = compile_late(r"(week|month|quarter|year)", re.IGNORECASE)
_AT_LEAST: Final = compile_late(r"\b(?:more|longer|older)\s+than\s+$", re.IGNORECASE)
_AT_MOST: Final = compile_late(r"\b(?:less|fewer)\s+than\s+$", re.IGNORECASE)


class QuestionPeriods(NamedTuple):
    """Periods of a question, and the question without their words.

    Attributes:
        periods: First periods that it names, each once; the answer may be in any of them.
        topic: Question without all periods and the words that lead up to them.
        without_relative: Question without periods that depend on the moment of asking, such as "last week".
        date_words: Words of days, which a text may hold.
    """

    periods: tuple[Period, ...]
    topic: str
    without_relative: str
    date_words: str


def named_periods(question: str, now: datetime) -> tuple[Period, ...]:
    """Return the first periods that a question names."""
    return read_periods(question, now).periods


def read_periods(question: str, now: datetime) -> QuestionPeriods:
    """Read the periods of a question.

    A month, day or season without a year is the latest that has begun. A date such as 3/4/2026 is both days. Future
    days are not periods: nothing is stored about them.

    Args:
        question: Any text; one of more than 2,000 characters has no periods.
        now: Aware moment of asking; bounds are whole days in its zone.
    """
    if len(question) > _MAX_QUESTION_CHARS:
        return QuestionPeriods((), question, question, "")
    asked = [
        (mention, bounds)
        for mention in times_in(question, now, is_ahead=False)
        if (bounds := _find_bounds(question, mention, now.date()))
    ]
    periods = dict.fromkeys(_make_period(*bounds, now) for _, pairs in asked for bounds in pairs)
    mentions = [mention for mention, _ in asked]
    words = [question[mention.start : mention.end] for mention in mentions]
    relative = [mention for mention, text in zip(mentions, words, strict=True) if not _DATED.search(text)]
    date_words = " ".join(
        _BETWEEN.sub("", text)
        for mention, text in zip(mentions, words, strict=True)
        if _DATED.search(text) and _DAY.search(text) and all(days.length == 1 for days in mention.named)
    )
    topic, without_relative = _leave_out(question, mentions), _leave_out(question, relative)
    return QuestionPeriods(tuple(periods)[:_MAX_PERIODS], topic, without_relative, date_words)


def _find_bounds(question: str, mention: TimeMention, today: date) -> list[Bounds]:
    """Return the past bounds of each reading.

    There are none if the question does not ask for the period.
    """
    lead = question[max(0, mention.start - _REACH) : mention.start]
    words, after = question[mention.start : mention.end], question[mention.end : mention.end + 2]
    is_habit = mention.rule == "weekday" and not _ON_A_DAY.search(lead)
    is_deadline = words[:3].lower() == "by " and not _DATED.search(words)
    is_path = (
        lead[-1:] in {*"/\\_-.@#$"} or after[:1] in {*"/\\_@'\u2019"} or (after[:1] == "." and after[1:].isalnum())
    )
    if is_habit or is_deadline or is_path or (None, None) in mention.readings or _OUTSIDE.search(lead):
        return []
    now = today if mention.rule == "weekday" else add_days(today, 1)
    has_year = _HAS_YEAR.search(words) is not None
    readings = mention.readings[:1] if mention.rule == "vague" else mention.readings
    bounds = [_widen_bounds(words, lead, mention.rule, reading, today) for reading in readings]
    return [
        (first_day, end_day)
        for first_day, end_day in bounds
        if has_year or (first_day < now if first_day else end_day is not None and end_day <= now)
    ]


def _widen_bounds(words: str, lead: str, rule: str, bounds: Bounds, today: date) -> Bounds:
    """Widen bounds such as "two weeks ago" and "the last three days"."""
    first_day, end_day = bounds
    if rule in {"ago", "vague"} and first_day and end_day:
        first_day, end_day = _widen_ago(words, first_day, end_day)
        if _AT_LEAST.search(lead):
            return None, end_day
        return first_day, None if _AT_MOST.search(lead) else end_day
    if rule == "units" and first_day:
        return add_days(first_day, 1) if _COUNTED.search(words) else first_day, add_days(today, 1)
    return bounds


def _widen_ago(words: str, first_day: date, end_day: date) -> tuple[date, date]:
    """Widen "two weeks ago" to the week of that day."""
    unit = _AGO_UNIT.search(words)
    if unit is None:
        return first_day, end_day
    name = unit[1].lower()
    return get_unit(first_day, name).first_day, get_unit(add_days(end_day, -1), name).end_day


def _leave_out(question: str, mentions: list[TimeMention]) -> str:
    """Remove mentions and the words that lead up to them."""
    text, end = "", 0
    for mention in mentions:
        piece = question[end : mention.start]
        lead = _LEADS_UP.search(piece, max(0, len(piece) - _REACH))
        text += f"{piece[: lead.start()]} " if lead is not None else piece
        end = mention.end
    return " ".join((text + question[end:]).split()) if mentions else question


def _make_period(first_day: date | None, end_day: date | None, now: datetime) -> Period:
    start, end = (None if day is None else datetime.combine(day, time.min, now.tzinfo) for day in (first_day, end_day))
    return Period(start, end)
