"""Rules over tokens: the order of kinds, and its meaning.

Each kind of token is one character, so that a rule is a short regular expression over a string of such characters.
Patterns have no unbounded repetition, and at each token the longest rule wins: time is linear in the number of tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import date, datetime

    from agent_memory.times.days import DaySpan

_KINDS: Final = re.findall(
    r"\w+",
    """
    OTHER PLURAL NAME BREAK COMMA DASH SLASH DOT DIGITS COUNT YEAR DATE DATE_PAIR PAIR YEAR_MONTH CLOCK SPREAD NTH
    NTH_DIGITS DECADE YEAR_PART MONTH NAME_MONTH VERB_MONTH LOW_MONTH WEEKDAY SHORT_WEEKDAY UNIT TIME_UNIT SEASON
    PART_OF_YEAR OFFSET COMING_OFFSET WEEK_OF REST DAY_NAME NUM TENS VAGUE PART_OF_DAY AGO AGO_BEFORE
    LATER EARLIER ARTICLE_A THE OF IN ON AT FOR
    FROM TO UNTIL SINCE BEFORE AFTER BY BETWEEN AND OR MORE LESS THAN NO END EARLY LATE MID END_OF CALENDAR_WEEK OCLOCK
    EVERY MEASURE LABEL NOW DAY_NODE NODE BOUND
    """,
)
CHARS: Final = {kind: chr(0x100 + number) for number, kind in enumerate(_KINDS)}
_CLASSES: Final = {
    "DAY": "DIGITS NTH NTH_DIGITS NUM TENS",
    "NUMBER": "DIGITS COUNT NUM TENS ARTICLE_A",
    "ANY_MONTH": "MONTH NAME_MONTH VERB_MONTH",
    "ANY_WEEKDAY": "WEEKDAY SHORT_WEEKDAY",
    "ORDINAL": "NTH NTH_DIGITS",
    "SPAN": "NODE DAY_NODE",
    "ANY_OFFSET": "OFFSET COMING_OFFSET",
    "UP_TO": "TO UNTIL DASH",
    "LEADING_WORD": "IN OF SINCE UNTIL BEFORE AFTER BETWEEN EARLY LATE MID THAN END",
}
_ELEMENT: Final = re.compile(r"(?:([a-z]\w*):)?([A-Z][A-Z_]*)")


class DayNode(NamedTuple):
    """Node of the grammar: days that words name.

    Attributes:
        days: Days that the words name.
        in_year: Returns the same days of a given year; None if the words name a year.
        bound, named: Values as in `TimeMention`.
        rule: Name of the rule.
    """

    days: DaySpan
    in_year: Callable[[int], DaySpan] | None = None
    bound: str = "at"
    named: tuple[DaySpan, ...] = ()
    rule: str = ""


@dataclass(slots=True)
class Token:
    """Token or node: its span in the text, kind and value."""

    start: int
    end: int
    kind: str
    value: Any = None


class ReadingContext(NamedTuple):
    """The point from which words are understood.

    Attributes:
        moment: When they were said.
        is_future: True if they are about the future.
        day_first: True if 3/4 is in April.
        has_second_meaning: True for the second meaning of words on which people differ, such as "next Friday".
    """

    moment: datetime
    is_future: bool
    day_first: bool
    has_second_meaning: bool

    @property
    def today(self) -> date:
        """The day of saying."""
        return self.moment.date()


@dataclass(frozen=True, eq=False)  # tuples of rules are keys
class Rule:
    """Pattern of kinds; `read` gets named values, and returns None to refuse."""

    name: str
    pattern: str
    read: Callable[..., DayNode | None]

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern over characters of kinds, compiled at the first use."""
        return re.compile(_ELEMENT.sub(_replace_element, self.pattern).replace(" ", ""))


def _replace_element(match: re.Match[str]) -> str:
    name, kind = match.groups()
    chars = "".join(CHARS[part] for part in _CLASSES.get(kind, kind).split())
    return f"(?P<{name}>[{chars}])" if name else f"[{chars}]"


def apply_rules(tokens: list[Token], rules: tuple[Rule, ...], get_view: Callable[[int], ReadingContext]) -> list[Token]:
    """Merge each group of tokens that a rule reads."""
    row = "".join(CHARS[token.kind] for token in tokens)
    merged: list[Token] = []
    done = 0
    for begin in _BEGIN.finditer(row):
        start = begin.start()
        if start < done:
            continue
        stop = _INERT.search(row, start, start + _REACH)
        before = row[max(0, start - _REACH_BEFORE) : start]
        matches = _find_matches(rules, before, row[start : stop.end() if stop else start + _REACH])
        token, length = _read_matches(tokens, start, matches, get_view) if matches else (None, 0)
        if token is not None:
            merged += [*tokens[done:start], token]
            done = start + length
    return merged + tokens[done:]


_BEGIN: Final = re.compile(
    f"[^{''.join(CHARS[kind] for kind in ('OTHER', 'PLURAL', 'NAME', 'BREAK', 'COMMA', 'DOT'))}]"
)
"""Finds kinds with which a rule may begin."""
_INERT: Final = re.compile(f"[{''.join(CHARS[kind] for kind in ('OTHER', 'PLURAL', 'NAME', 'BREAK'))}]")
"""Finds kinds that no rule reads over."""
_REACH_BEFORE, _REACH = 3, 20


class RuleMatch(NamedTuple):
    """Rule that matches, number of tokens, and position of each value."""

    rule: Rule
    length: int
    values: tuple[tuple[str, int], ...]


@lru_cache(maxsize=4_096)
def _find_matches(rules: tuple[Rule, ...], before: str, row: str) -> tuple[RuleMatch, ...]:
    """Return the rules that match at the start, longest first.

    The cache helps because the same few rows come often.
    """
    text, start = before + row[:_REACH], len(before)
    matches = [
        RuleMatch(
            rule,
            match.end() - start,
            tuple((name, match.start(name) - start) for name in match.groupdict() if match[name]),
        )
        for rule in rules
        if (match := rule.regex.match(text, start)) and match.end() > start
    ]
    return tuple(sorted(matches, key=lambda match: -match.length))


def _read_matches(
    tokens: list[Token], start: int, matches: Iterable[RuleMatch], get_view: Callable[[int], ReadingContext]
) -> tuple[Token | None, int]:
    for rule, length, places in matches:
        values = {name: tokens[start + place].value for name, place in places}
        try:
            node = rule.read(get_view(tokens[start].start), **values)
        except (ValueError, OverflowError):  # 31 February, 9,000 years ago
            continue
        if node is not None and node.days.first_day < node.days.end_day:
            node = node if node.rule else node._replace(rule=rule.name)
            kind = "BOUND" if node.bound != "at" else "DAY_NODE" if node.days.length == 1 else "NODE"
            return Token(tokens[start].start, tokens[start + length - 1].end, kind, node), length
    return None, 0
