"""Index terms of documents and questions, and the turns of talks.

A day is indexed as terms of its own (`@2026`, `@01`, `@2026-01`, `@01-28`), not as words: a question whose "may" is a
verb, or that has a 28 of something else, then finds no date. A document is in the session that made it, between those
made just before and after. A text in the form of a turn also has a speaker, and is in the talk of its day if no session
is known. English where language matters; in any other language the parts that do not apply stay silent.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.index.results import Question
from agent_memory.language.questions import (
    asks_for_anything,
    find_capitalised,
    find_identifiers,
    find_named_speakers,
    is_foreign,
    is_unlatin,
    remove_names,
)
from agent_memory.language.speakers import find_addressed, find_speakers, get_speaker, has_question
from agent_memory.language.words import index_terms, query_terms
from agent_memory.late import compile_late
from agent_memory.models import GROUP
from agent_memory.times import read_periods, times_in
from agent_memory.times.days import MONTHS, get_months, get_years

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet
    from datetime import date, datetime

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.models import Document

_ASKS_TIME: Final = compile_late(
    r"^\W*(?:when|since when|how long|(?:in |on |at )?(?:what|which) (?:date|day|week|weekend|month|year|time)s?)\b",
    re.IGNORECASE,
)
_MAX_CHARS: Final = 10_000
"""As much as a record may hold; a longer query is cut, so that no input can hold up the other callers."""
_MAX_EMBEDDED_CHARS: Final = 2_000  # more than any model of ours reads of a query
_YEAR: Final = compile_late(r"\b(?:19|20)\d\d\b")
_MONTH: Final = compile_late(rf"\b(?:{'|'.join(MONTHS)})", re.IGNORECASE)
_MAX_DATED_CHARS: Final = 2_000
NO_SESSION: Final = 0
"""Number of a document without a session."""
LEAST_ROWS: Final = 4
"""Documents from which a session says something about each of them."""
LEAST_SPEAKERS: Final = 2
TURNS_EACH: Final = 2
"""Two people who speak twice each: less is more likely a list of `Label: text` notes."""


class DocumentTurn(NamedTuple):
    """A document's place in a talk.

    Attributes:
        session: Number of its session, or `NO_SESSION`.
        speaker: Folded name of its speaker; empty if its form does not show that.
        speakers: Speakers in a whole talk that it holds.
        called: Folded words that it addresses, see `find_addressed`.
        asks: True if it holds a question.
    """

    session: int
    speaker: str
    speakers: frozenset[str]
    called: frozenset[str]
    asks: bool


class SessionRow(NamedTuple):
    """Place of a row in its session, by moment, then by arrival."""

    moment: float
    arrival: int
    number: int


def read_question(
    query: str,
    now: datetime,
    speakers: AbstractSet[str] = frozenset(),
    is_listener: Callable[[str], bool] = lambda _: False,
    is_stranger: Callable[[str], bool] = lambda _: False,
) -> Question:
    """Read a query.

    Args:
        query: Any text; only its first 10,000 characters count.
        now: What "yesterday" is counted from.
        speakers: Folded names of those who speak in remembered talks.
        is_listener: Returns True if a folded, capitalised word names a person whom texts only address.
        is_stranger: Returns True if such a word names a person in a talk whom no text names.
    """
    # Half a surrogate pair is not text: tokenizers and sqlite would raise on it.
    query = query[:_MAX_CHARS].encode("utf-8", "replace").decode("utf-8")
    time = read_periods(query, now)
    topic = time.without_relative if query_terms(time.without_relative) else query  # words of time alone are words, too
    weights = {term: float(count) for term, count in Counter(query_terms(topic)).items()}
    if all(
        period.start and period.end for period in time.periods
    ):  # the last day before a time is not what is asked for
        weights |= dict.fromkeys(named_days(query, now), 1.0)
    named = find_named_speakers(query, speakers)
    foreign = is_foreign(query)  # in other languages not only names are capitalised
    silent = {word for word in find_capitalised(query) if is_listener(word) or (not foreign and is_stranger(word))}
    return Question(
        weights,
        named,
        asks_time=_ASKS_TIME.match(query) is not None,
        embedded_text=remove_names(topic, named | silent)[:_MAX_EMBEDDED_CHARS],
        identifiers=find_identifiers(topic),
        is_unlatin=is_unlatin(query),
        periods=time.periods,
        dates=frozenset(query_terms(time.date_words)),
        asks_for_period=bool(time.periods) and asks_for_anything(time.topic),
    )


def document_terms(document: Document) -> list[str]:
    """List the terms of a text, its facets and its day.

    The group is left out.
    """
    labels = " ".join([value for name, value in document.facets if name != GROUP])
    return [*index_terms(f"{document.text}\n{labels}"), *day_terms(document.moment.date())]


def day_terms(day: date) -> tuple[str, ...]:
    """Return the terms under which something of that day is indexed."""
    month = f"{day.month:02}"
    return f"@{day.year}", f"@{month}", f"@{day.year}-{month}", f"@{month}-{day.day:02}"


def is_day_term(term: str) -> bool:
    """Return True if a term is a day, month or year."""
    return term.startswith("@")


def named_days(question: str, now: datetime) -> set[str]:
    """Return the terms of the days, months and years of a question."""
    terms = {f"@{year}" for year in _YEAR.findall(question)}
    for mention in times_in(question[:_MAX_DATED_CHARS], now, is_ahead=False):
        words = question[mention.start : mention.end]
        is_yearless = _MONTH.search(words) and not _YEAR.search(words)
        for days in mention.named:
            year, month, both, day = day_terms(days.first_day)
            if days.length == 1:
                terms |= {month, day} if is_yearless else {year, month, both, day}
            elif days == get_months(days.first_day.year, days.first_day.month):
                terms |= {month} if is_yearless else {month, both} | ({year} if year[1:] in words else set())
            elif days == get_years(days.first_day.year):
                terms.add(year)
    return terms


def read_turn(document: Document) -> DocumentTurn:
    """Read a document's turn.

    A text that holds a whole talk is not a turn of another.
    """
    people = find_speakers(document.text)
    speaker = "" if people else get_speaker(document.text) or ""
    place = document.session or (f"@{document.moment.date()}" if speaker else "")
    session = session_number(place) if place and not people else NO_SESSION
    return DocumentTurn(session, speaker, people, find_addressed(document.text), has_question(document.text))


@lru_cache(maxsize=1_024)
def session_number(session: str) -> int:
    """Return the 64-bit number of a session, never `NO_SESSION`."""
    return int.from_bytes(blake2b(session.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1


def find_talkers(sessions: NDArray[np.uint64], speakers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the speakers who take part in a talk.

    As `TalkIndex`, for many turns at once, in arrays.

    Args:
        sessions: Session of each turn, shape (turns,).
        speakers: Speaker of each turn.
    """
    import numpy as np  # nothing slow at import

    pairs = np.unique(np.stack([sessions.astype(np.uint64), speakers.astype(np.uint64)], axis=1), axis=0)
    session, people = np.unique(pairs[:, 0], return_counts=True)
    _, turns = np.unique(sessions, return_counts=True)
    is_talk = (people >= LEAST_SPEAKERS) & (turns >= np.maximum(LEAST_ROWS, TURNS_EACH * people))
    return np.unique(pairs[np.isin(pairs[:, 0], session[is_talk]), 1]).astype(np.uint32)
