"""What a question asks for: its terms, the days it names, whom it is about, and whether it wants a time.

Pure functions of the request and the names that are known. English where language matters; in any other language the
parts that do not apply stay silent.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from agent_memory.index.day_terms import named_days
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
from agent_memory.language.words import query_terms
from agent_memory.times import read_periods

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet
    from datetime import datetime

_ASKS_TIME: Final = re.compile(
    r"^\W*(?:when|since when|how long|(?:in |on |at )?(?:what|which) (?:date|day|week|weekend|month|year|time)s?)\b",
    re.IGNORECASE,
)
_MAX_CHARS: Final = 10_000
"""As much as a record may hold; a longer query is cut, so that no input can hold up the other callers."""

_MAX_EMBEDDED_CHARS: Final = 2_000  # more than any model of ours reads of a query


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
        is_listener: Tells of a capitalised word, folded, whether it is the name of somebody whom texts only call.
        is_stranger: Tells of one whether it is that of somebody in a talk whom no text names.
    """
    # Half a surrogate pair is no text: tokenizers and sqlite would raise on it.
    query = query[:_MAX_CHARS].encode("utf-8", "replace").decode("utf-8")
    time = read_periods(query, now)
    topic = time.without_relative if query_terms(time.without_relative) else query  # words of time alone are words, too
    weights = {term: float(count) for term, count in Counter(query_terms(topic)).items()}
    if all(each.start and each.end for each in time.periods):  # the last day before a time is not what is asked for
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
