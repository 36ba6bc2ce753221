"""Quotes of the user's typed statements. Pure.

A quote permits a model to replace what the user stated before.

A false quote loses the user's words and a missed one costs a question, so quotes are read strictly, by structure: the
user's sentence is the statement, and nothing else.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from agent_memory.capture.orders import (
    CLAUSE,
    UNSPACED,
    asks,
    denies,
    differ_in_ending,
    list_content_words,
    list_telling_words,
    supposes,
)
from agent_memory.capture.pasted import SELF
from agent_memory.capture.rules import any_of
from agent_memory.capture.spoken import own_sentences
from agent_memory.language.similarity import get_harmless_words, strip_cue
from agent_memory.language.words import query_terms, stem
from agent_memory.models import utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_memory.times import TimeMention

_MAX_CHARS: Final = 1_000
"""Characters of a typed message, and of a new text, that are compared."""
_MAX_CLAUSES: Final = 10
"""Clauses of a sentence that are read on their own."""
_MIN_RUN: Final = 2
"""Words in a row of a quote."""
_MIN_SHARE: Final = 2 / 3
"""Share of the new text's telling words that a quote holds."""
_CHARACTER: Final = f"\u0e00-\u0e7f{UNSPACED}-\uffff"
_WORD: Final = re.compile(rf"[{_CHARACTER}]|(?:(?![{_CHARACTER}])[^\W_])+(?:['\u2019][^\W_]+)?")
"""A word; in scripts without spaces a character."""


def find_quote(prompt: str, content: str, replaced: str) -> str:
    """Return the user's statement that a new text quotes, or empty.

    The message is one line without a report. One of its sentences, or of their clauses that begin alike, is the
    statement: the text has its words in the same order, and little more. Days are free, because a text has absolute
    ones; so are openings ("no,") and function words around the statement.

    Args:
        prompt: Message of the user.
        content: New text that replaces another.
        replaced: Replaced text; a quote says something else.
    """
    line, content = prompt.strip(), content[:_MAX_CHARS]
    if len(line) > _MAX_CHARS or "\n" in line or any_of("wishes", "reported").search(line):
        return ""
    statements = [
        statement
        for sentence in own_sentences(line)
        if not asks(sentence)
        for statement in _iter_statements(strip_cue(sentence))
        if _differ(statement, replaced)
    ]
    plain = next((statement for statement in statements if _is_quoted(statement, content)), "")
    return plain or next((statement for statement in statements if _is_quoted_without_days(statement, content)), "")


def share_topic(first: str, second: str) -> bool:
    """Return True if two texts share a telling word."""
    return not list_telling_words(first).isdisjoint(list_telling_words(second))


def _iter_statements(sentence: str) -> Iterator[str]:
    """Yield a sentence without openings, and its clauses that begin alike.

    A clause counts if nothing else in the sentence denies or supposes.
    """
    breaks = list(CLAUSE.finditer(sentence))
    while breaks and _is_opening(sentence[: breaks[0].start()]) and not breaks[0][0][0].isspace():
        sentence = sentence[breaks[0].end() :]
        breaks = list(CLAUSE.finditer(sentence))
    yield sentence
    alike = [clause for clause in breaks if _begin_alike(sentence, sentence[clause.end() :])][:_MAX_CLAUSES]
    starts = [0, *(clause.end() for clause in alike)]
    ends = [*(clause.start() for clause in alike), len(sentence)]
    for start, end in zip(starts, ends, strict=True):
        others = f"{sentence[:start]} {sentence[end:]}"
        if alike and not denies(others) and not supposes(others):
            yield sentence[start:end]


def _begin_alike(sentence: str, clause: str) -> bool:
    """Return True if both begin with one word, or in first person."""
    first, second = _WORD.match(sentence), _WORD.match(clause)
    if first is None or second is None:
        return False
    is_same = first[0].casefold() == second[0].casefold()
    return is_same or (SELF.match(sentence) is not None and SELF.match(clause) is not None)


def _is_opening(clause: str) -> bool:
    """Return True if a clause only opens a sentence ("by the way").

    It has one content word at most and no name, and supposes nothing.
    """
    has_name = any(word[:1].isupper() for word in _WORD.findall(clause)[1:])
    return len(list_content_words(clause)) <= 1 and not has_name and not supposes(clause)


def _differ(statement: str, replaced: str) -> bool:
    """Return True if a statement adds words to a text, or denies it."""
    has_new = not set(query_terms(statement)) <= set(query_terms(replaced))
    return has_new or denies(statement) != denies(replaced)


def _is_quoted(statement: str, content: str) -> bool:
    """Return True if a text has a statement's words, and little more.

    With another subject ("the user") in the text, the statement has one word for its own ("I").
    """
    typed_words, new_words = _list_words(statement), _list_words(content)
    typed_stems = _stem_words(typed_words)
    new_stems = [_find_form(word, typed_stems) for word in _stem_words(new_words)]  # "lives" for "live"
    run = SequenceMatcher(None, typed_stems, new_stems, autojunk=False).find_longest_match()
    if run.size < _MIN_RUN or run.a + run.size < len(typed_words):
        return False
    quote = content[new_words[run.b].start() : new_words[run.b + run.size - 1].end()]
    before, lead, tail = typed_words[: run.a], new_words[: run.b], new_words[run.b + run.size :]
    if not lead:
        beginning = statement[: typed_words[run.a].start()]
        before = _list_words(any_of("orders", "changed").sub("", any_of("orders", "request").sub("", beginning)))
    if len(before) > min(len(lead), 1) or any(list_content_words(word[0]) for word in before):
        return False
    around = " ".join(word[0] for word in (*before, *lead, *tail))
    quoted, telling = list_telling_words(quote), list_telling_words(content)
    return not (denies(around) or supposes(around)) and bool(quoted) and len(quoted) >= _MIN_SHARE * len(telling)


def _list_words(text: str) -> list[re.Match[str]]:
    """List the words of a text, except harmless ones such as "now"."""
    return [word for word in _WORD.finditer(text) if word[0].casefold() not in get_harmless_words()]


def _stem_words(words: list[re.Match[str]]) -> list[str]:
    return [stem(word[0].casefold()) for word in words]


def _find_form(word: str, typed_stems: list[str]) -> str:
    """Return the typed word that has another ending, or the word."""
    return word if word in typed_stems else next((form for form in typed_stems if differ_in_ending(word, form)), word)


def _is_quoted_without_days(statement: str, content: str) -> bool:
    """Return True if a text quotes a statement except for its days.

    Each day of the text is among the statement's, or today if that has none. "Until Friday" is not left out.
    """
    from agent_memory.times import times_in  # its grammar is for texts with days

    now = utc_now().astimezone()
    typed_days, new_days = times_in(statement, now), times_in(content, now)
    if not (typed_days or new_days) or not all(_is_among(day, typed_days, now.date()) for day in new_days):
        return False
    if any(map(_has_end_alone, typed_days)) and not any(map(_has_end_alone, new_days)):
        return False
    return _is_quoted(_drop(statement, typed_days), _drop(content, new_days))


def _has_end_alone(day: TimeMention) -> bool:
    """Return True for "until Friday"."""
    return any(first is None and behind is not None for first, behind in day.readings)


def _is_among(day: TimeMention, typed_days: Sequence[TimeMention], today: date) -> bool:
    """Return True if a day overlaps typed days that are open alike.

    Without typed days, today counts.
    """
    if not day.is_resolved:
        return any(mention.readings == day.readings for mention in typed_days)
    readings = [reading for mention in typed_days for reading in mention.readings if any(reading)]
    if not readings and day.first_day == today:
        return True  # "since today", too
    readings = readings or [(today, today + timedelta(days=1))]
    spans = [
        (first or date.min, end or date.max)
        for first, end in readings
        if (first is None, end is None) == (day.first_day is None, day.end_day is None)
    ]
    first_day, end_day = day.first_day or date.min, day.end_day or date.max
    return any(first_day < end and start < end_day for start, end in spans)


def _drop(text: str, days: Sequence[TimeMention]) -> str:
    for day in reversed(days):
        text = f"{text[: day.start]} {text[day.end :]}"
    return text
