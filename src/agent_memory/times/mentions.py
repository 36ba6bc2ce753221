"""Times that a text names, as far as its words settle the day."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.times.calendar_rules import CALENDAR_RULES
from agent_memory.times.combination_rules import BOUNDING_RULES, JOINING_RULES
from agent_memory.times.grammar import Viewpoint, apply_rules
from agent_memory.times.relative_rules import RELATIVE_RULES
from agent_memory.times.stamps import replace_stamps
from agent_memory.times.tense import TenseReader
from agent_memory.times.tokens import tokenize
from agent_memory.times.vocabulary import detect_language, get_vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date, datetime

    from agent_memory.times.days import Days
    from agent_memory.times.grammar import Node, Token

_STAGES: Final = ((*CALENDAR_RULES, *RELATIVE_RULES), JOINING_RULES, BOUNDING_RULES)
_NODE_KINDS: Final = frozenset(("NODE", "DAY_NODE", "BOUND"))
_COUNTS: Final = frozenset(("DIGITS", "COUNT", "NUM", "TENS", "SPREAD", "YEAR"))
_DASHES: Final = frozenset(("DASH", "SLASH"))
_CUTTING_KINDS: Final = tuple(
    frozenset(kinds.split())
    for kinds in (
        "NTH NTH_DIGITS REL COMING MONTH VAGUE WEEK_OF EVERY UNIT MID EARLY LATE END",
        "NTH NTH_DIGITS YEAR YEAR_MONTH DATE_PAIR PAIR MONTH WEEKDAY SEASON LATER EARLIER",
    )
)
"""Kinds of words of time that belong to the days after and before them."""
_GLUE_KINDS: Final = frozenset(("OF", "DASH", "SLASH", "TO", "THE", "IN", "OR"))
_MONTHS: Final = 12
_MAX_CHARS: Final = 20_000
_IMPLIED_TENSES: Final = {"since": False, "by": True, "until": True}
"""Bounds that look ahead or back by themselves."""
_READINGS: Final = ((False, False), (True, False), (False, True), (True, True))
"""Tense and meaning of words on which people differ: (is ahead, is variant)."""


class TimeMention(NamedTuple):
    """A span of whole days that a text names, in the zone of the moment it was said.

    Attributes:
        start, end: Place in the text, half-open.
        first: First day; None for no beginning ("until Friday") and for an unresolved mention.
        behind: Day after the last; None for no end ("since 2024") and for an unresolved mention.
        rule: Name of the rule.
        bound: "at", "range", "since", "after", "before", "until" or "by".
        named: The days named: two spans for a range, else one.
        readings: First day and day after the last, of each reading; several if the words settle no day, and (None,
            None) among them if unread words next to it may change the days.
    """

    start: int
    end: int
    first: date | None
    behind: date | None
    rule: str
    bound: str = "at"
    named: tuple[Days, ...] = ()
    readings: tuple[tuple[date | None, date | None], ...] = ()

    @property
    def is_resolved(self) -> bool:
        """True if the words settle the days."""
        return len(self.readings) == 1


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
    text, stamp_ends = replace_stamps(text[:_MAX_CHARS])
    language = detect_language(text) if language is None else language
    vocabulary = get_vocabulary(language)
    tokens = tokenize(text, vocabulary)
    if all(token.kind in {"OTHER", "PLURAL", "NAME", "COMMA", "DOT"} for token in tokens):
        return []
    tense = TenseReader(text, language)
    day_first = _find_order(tokens) if vocabulary.day_first is None else vocabulary.day_first
    rows: list[list[Token]] = []
    for ahead, variant in _READINGS:
        base = Viewpoint(said_at, ahead, variant if day_first is None else day_first, variant)
        row = _read_row(tokens, partial(_get_view, base, tense, is_ahead))
        if row is tokens:
            return []
        rows.append(row)
    others = [{token.start: token for token in row} for row in rows[1:]]
    mentions = []
    for at, token in enumerate(rows[0]):
        if token.kind in _NODE_KINDS:
            tokens_there = [token, *(row.get(token.start) for row in others)]
            mention = _make_mention(token, tokens_there, is_cut=_is_cut(rows[0], at))
            end = mention.end - text.endswith(".", mention.start, mention.end)
            mentions.append(mention._replace(end=stamp_ends.get(end, end)))
    return mentions


def _read_row(tokens: list[Token], view: Callable[[int], Viewpoint]) -> list[Token]:
    """Return the tokens with those of a time as one; the same list if none is read."""
    row = apply_rules(tokens, _STAGES[0], view)
    if len(row) == len(tokens) and not any(token.kind in _NODE_KINDS for token in row):
        return tokens
    for stage in _STAGES[1:]:
        row = apply_rules(row, stage, view)
    return row


def _find_order(tokens: list[Token]) -> bool | None:
    """Return True if the text writes the day before the month, None if no number above 12 tells."""
    orders = {
        token.value[0] > _MONTHS
        for token in tokens
        if token.kind in {"PAIR", "DATE_PAIR"} and (token.value[0] > _MONTHS) != (token.value[1] > _MONTHS)
    }
    return orders.pop() if len(orders) == 1 else None


def _is_cut(row: list[Token], at: int) -> bool:
    """Return True if an unread word of time next to a mention may change its days, as in "first Sunday"."""
    before, after = row[max(0, at - 2) : at], row[at + 1 : at + 3]
    for side, kinds in zip((before[::-1], after), _CUTTING_KINDS, strict=True):
        glue, far = (side[0].kind, side[-1].kind) if len(side) > 1 else ("", "")
        if (side and side[0].kind in kinds) or (glue in _GLUE_KINDS and far in kinds | _COUNTS):
            return True
        if glue in {*_DASHES, "IN", "OF"} and far in _NODE_KINDS:
            return True
        if (glue == "AND" and side is not after and far == "UNIT") or (glue in {"BEFORE", "AFTER"} and far == "REL"):
            return True
    return False


def _get_view(base: Viewpoint, tense: TenseReader, default: bool | None, at: int) -> Viewpoint:  # noqa: FBT001
    known = tense.is_ahead(at)
    known = default if known is None else known
    return base if known is None else base._replace(ahead=known)


def _make_mention(token: Token, tokens: list[Token | None], *, is_cut: bool) -> TimeMention:
    """Return one mention of a token, by the tokens at its place in each reading, in the order of `_READINGS`."""
    node: Node = token.value
    implied = _IMPLIED_TENSES.get(node.bound)
    readings = {}
    for (ahead, _), reading in zip(_READINGS, tokens, strict=True):
        if (
            reading is not None
            and reading.kind in _NODE_KINDS
            and reading.end == token.end
            and (implied is None or ahead is implied)
        ):
            readings[_get_bounds(reading.value)] = reading.value
    node = next(iter(readings.values()), node)
    if is_cut:
        readings[None, None] = node
    first, behind = next(iter(readings)) if len(readings) == 1 else (None, None)
    return TimeMention(
        token.start,
        token.end,
        first,
        behind,
        node.rule,
        node.bound,
        node.named or (node.days,),
        tuple(readings),
    )


def _get_bounds(node: Node) -> tuple[date | None, date | None]:
    """Return first day and day after the last: "until Friday" includes Friday, "until March" no day of March."""
    if node.bound in {"at", "range"}:
        return node.days.first, node.days.behind
    days = node.named[0]
    return {
        "since": (days.first, None),
        "after": (days.behind, None),
        "before": (None, days.first),
        "until": (None, node.days.behind if days.length == 1 else days.first),
        "by": (None, node.days.behind),
    }[node.bound]
