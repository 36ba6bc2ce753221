"""Times that a text names, resolved if its words settle the day."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.times.combination_rules import BOUNDING_RULES, JOINING_RULES
from agent_memory.times.day_rules import CALENDAR_RULES, RELATIVE_RULES
from agent_memory.times.days import WEEKDAYS
from agent_memory.times.grammar import ReadingContext, apply_rules
from agent_memory.times.tense import TenseReader
from agent_memory.times.tokens import replace_timestamps, tokenize
from agent_memory.times.vocabulary import detect_language, get_vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date, datetime

    from agent_memory.times.days import Bounds, DaySpan
    from agent_memory.times.grammar import DayNode, Token

_STAGES: Final = ((*CALENDAR_RULES, *RELATIVE_RULES), JOINING_RULES, BOUNDING_RULES)
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
_YEAR: Final = re.compile(r"\d{4}")
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
    """Return True if an unread neighbour may change the days."""
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
