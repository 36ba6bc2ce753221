"""From when to when what a sentence says holds, by the times that it names."""

from __future__ import annotations

import re
from datetime import datetime, time
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.times.mentions import times_in

if TYPE_CHECKING:
    from datetime import date

    from agent_memory.times.mentions import TimeMention

_FROM: Final = re.compile(r"(?:\bfrom|\bab|\bvon|\bdesde|\bdepuis|\bd\u00e8s)\s+$", re.IGNORECASE)
_BEGINS: Final = re.compile(
    r"\b(?:joined|joins|started|starts|began|begins|became|becomes|moved|moves|hired|founded|married|bought|adopted"
    r"|switched|promoted|appointed)\b",
    re.IGNORECASE,
)
_ENDS: Final = re.compile(r"\b(?:left|quit|resigned|stopped|ended|retired|fired|divorced|sold)\b", re.IGNORECASE)
_HELD: Final = re.compile(
    r"\b(?:was|were|worked|lived|studied|served|led|ran|owned|managed|used|taught)\b", re.IGNORECASE
)
_DURING: Final = re.compile(r"\b(?:in|during|throughout|for)\s+(?:the\s+)?$", re.IGNORECASE)
_REACH: Final = 16
"""Characters before a time that are looked at for the word that leads up to it."""


class Validity(NamedTuple):
    """From when to when something holds: its first moment, and the first at which it does not; None where not told."""

    valid_from: datetime | None
    valid_to: datetime | None


def valid_times(sentence: str, said_at: datetime) -> Validity:
    """Return from when to when what a sentence says holds, as far as it says so.

    "since March 2024" tells a beginning, "until Friday" an end, "from May to July 2023" both. A time that stands by
    itself is the beginning or the end where the sentence has a verb for that ("joined", "left"), and both where it
    tells what was so in it ("worked there in 2019"). The first that tells a beginning counts, and the first that tells
    an end; an end that is not behind the beginning is none.

    Args:
        sentence: One.
        said_at: When it was said, aware; a day begins at midnight of its zone.
    """
    first: date | None = None
    end_date: date | None = None
    verbs: dict[re.Pattern[str], bool] = {}
    for mention in times_in(sentence, said_at):
        if not verbs:  # one search each, however many times the sentence names
            verbs = {pattern: pattern.search(sentence) is not None for pattern in (_BEGINS, _ENDS, _HELD)}
        begin, end = _told(mention, sentence, verbs)
        first = begin if first is None else first
        end_date = end if end_date is None else end_date
    if first is not None and end_date is not None and end_date <= first:
        end_date = None
    return Validity(_moment(first, said_at), _moment(end_date, said_at))


def _told(mention: TimeMention, sentence: str, verbs: dict[re.Pattern[str], bool]) -> tuple[date | None, date | None]:
    if mention.bound in {"since", "after", "before", "until", "range"}:
        return mention.first, mention.behind
    if mention.bound != "at":
        return None, None
    lead = sentence[max(0, mention.start - _REACH) : mention.start]
    if _FROM.search(lead) or verbs[_BEGINS]:
        return mention.first, None
    if verbs[_ENDS]:
        return None, mention.first
    is_long = mention.first is not None and mention.behind is not None and (mention.behind - mention.first).days > 1
    if is_long and _DURING.search(lead) and verbs[_HELD]:
        return mention.first, mention.behind
    return None, None


def _moment(day: date | None, said_at: datetime) -> datetime | None:
    return None if day is None else datetime.combine(day, time.min, said_at.tzinfo)
