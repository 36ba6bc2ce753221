"""From a text to the times that it names."""

from __future__ import annotations

from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.times.reading import dates, relative
from agent_memory.times.reading.combining import ADDING, BOUNDING
from agent_memory.times.reading.grammar import NODE_SETS, Seen, Tables, rewritten
from agent_memory.times.reading.languages import language_of, lexicon_of
from agent_memory.times.reading.mention import TimeMention
from agent_memory.times.reading.tokens import TAG_SETS, tokens

if TYPE_CHECKING:
    import re
    from collections.abc import Callable
    from datetime import date, datetime

    from agent_memory.times.reading.grammar import Item, Node, Stage
    from agent_memory.times.reading.lexicon import Lexicon

_NAMING: Final = (*dates.RULES, *relative.RULES)
_MAX_CHARS: Final = 20_000
"""Of a text, that are read."""
_CUE_REACH: Final = 80
"""Characters that a word such as "will" or "was" is looked at behind."""


class _Grammar(NamedTuple):
    lexicon: Lexicon
    tables: Tables
    stages: tuple[Stage, ...]
    cues: re.Pattern[str]
    read: re.Pattern[str]


def times_in(text: str, said_at: datetime, language: str | None = None) -> list[TimeMention]:
    """Return the times that a text names, in order; they do not overlap.

    Args:
        text: Any; what is behind its first 20,000 characters is not read.
        said_at: When it was said; days are those of its zone.
        language: Such as "en"; told by the text where it is None. One of no lexicon is read as English.
    """
    text = text[:_MAX_CHARS]
    grammar = _grammar(language_of(text) if language is None else language)
    items = tokens(text, grammar.lexicon)
    row = grammar.tables.row(items)
    cues = [items[each.start()] for each in grammar.cues.finditer(row)]
    seen = _seen(cues, said_at, day_first=grammar.lexicon.day_first)
    for stage in grammar.stages:
        before = row
        items, row = rewritten(items, row, grammar.tables, stage, seen)
        if stage is grammar.stages[0] and row is before:
            return []  # all that the later ones read rests on a day, a month or the like
    return [_mention(items[each.start()]) for each in grammar.read.finditer(row)]


@cache
def _grammar(language: str) -> _Grammar:
    lexicon = lexicon_of(language)
    tables = Tables([*TAG_SETS, *sorted(lexicon.sets(), key=sorted), *NODE_SETS])
    stages = tuple(tables.compiled(rules) for rules in (_NAMING, ADDING, BOUNDING))
    return _Grammar(lexicon, tables, stages, tables.any_of("AHEAD", "PAST"), tables.any_of("NODE", "BOUND"))


def _seen(cues: list[Item], said_at: datetime, *, day_first: bool) -> Callable[[int], Seen]:
    """Return what tells, of a character, whether the last word before it that tells a tense looks ahead."""
    back, ahead = (Seen(said_at, said_at.date(), each, day_first) for each in (False, True))
    starts = [cue.start for cue in cues]

    def seen(at: int) -> Seen:
        place = bisect_right(starts, at) - 1
        return ahead if place >= 0 and "AHEAD" in cues[place].tags and at - starts[place] <= _CUE_REACH else back

    return seen


def _mention(item: Item) -> TimeMention:
    node: Node = item.tags["NODE"] if "NODE" in item.tags else item.tags["BOUND"]
    first, behind = _bounds(node)
    named = node.named or (node.days,)
    return TimeMention(item.start, item.end, first, behind, node.rule, node.bound, named, node.clock)


def _bounds(node: Node) -> tuple[date | None, date | None]:
    """Return the first day and the one behind the last: "until Friday" has Friday, "until March" no March."""
    if node.bound in {"at", "range"}:
        return node.days.first, node.days.behind
    days = node.named[0] if node.named else node.days
    is_day = (days.behind - days.first).days == 1
    return {
        "since": (days.first, None),
        "after": (days.behind, None),
        "before": (None, days.first),
        "until": (None, days.behind if is_day else days.first),
        "by": (None, days.behind),
    }[node.bound]
