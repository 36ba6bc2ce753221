"""Explicit cues that a statement should last, such as "remember".

The words are the rules with a `cue` in `patterns/`. This module decides whether they are meant. Pure.
"""

from __future__ import annotations

import re
from datetime import datetime, time
from typing import TYPE_CHECKING, Final

from agent_memory.capture.rules import any_of
from agent_memory.capture.spoken import is_question, without_quotations
from agent_memory.language.sentences import CLAUSE_END, find_breaks

if TYPE_CHECKING:
    from collections.abc import Iterator

_PART_END: Final = re.compile(rf"[.!?\u3002\uff01\uff1f]|{CLAUSE_END.pattern}")
"""End of a part of a sentence: of a clause, or of a sentence in parentheses or before an abbreviation."""
_LABELLED: Final = r"^\W*(?:(?:%s)\W*)+[:\uff1a]\W*$"
_COLONS: Final = (":", "\uff1a")


def is_stated(pattern: re.Pattern[str], sentence: str, *, may_be_asked: bool = True) -> bool:
    """Return True if a sentence states the pattern itself.

    It is neither quoted, denied, conditional, asked nor reported.

    Args:
        pattern: Words to find.
        sentence: Sentence of the user's own.
        may_be_asked: Accept a polite request in the form of a question ("can you always …?").
    """
    if pattern.search(sentence) is None:
        return False
    own = without_quotations(sentence)
    is_asked = is_question(own) or any_of("orders", "asks").search(own)
    if is_asked and not (may_be_asked and any_of("orders", "request").search(own)):
        return False
    return any(
        _is_meant(own[: match.start()]) for match in _iter_matches(pattern, sentence) if not _is_quoted(match, own)
    )


def _iter_matches(pattern: re.Pattern[str], sentence: str) -> Iterator[re.Match[str]]:
    position = 0
    while match := pattern.search(sentence, position):
        yield match
        position = max(match.end(), match.start() + 1)


def _is_quoted(match: re.Match[str], own: str) -> bool:
    """Return True if a match is in a quotation, blank in `own`."""
    start = match.end() - len(match[0].lstrip())
    return own[start : start + 1].isspace()


def _is_meant(before: str) -> bool:
    """Return True if the words before a cue let it count."""
    clause = _PART_END.split(before)[-1]
    if any(any_of("orders", key).search(clause) for key in ("denies", "supposes")):
        return False
    is_labelled = not any(colon in before for colon in _COLONS) or any_of("wishes", "labels", _LABELLED).match(before)
    is_reported = any(any_of(name, "reported").search(before) for name in ("wishes", "cues"))
    return bool(is_labelled) and not is_reported


def find_end(text: str, said_at: datetime) -> datetime | None:
    """Return the end of the last day of a text, or None.

    None unless "until Friday" ends a text of one clause, with no other day: else other words would expire with it.

    Args:
        text: Statement of the user.
        said_at: Time of saying, with a zone.
    """
    if any_of("cues", "until").search(text) is None:
        return None
    from agent_memory.times import tense, times_in  # its grammar is for statements with an end

    local = said_at.astimezone()
    mentions = times_in(text, local)
    if len(mentions) != 1 or mentions[0].bound != "until" or any(map(str.isalnum, text[mentions[0].end :])):
        return None
    before, day = text[: mentions[0].start], mentions[0].named[0].end_day  # "until May" may include May
    has_clauses = any((CLAUSE_END.search(before), tense.CLAUSE_END.search(before), *find_breaks(before)))
    if has_clauses or not mentions[0].is_resolved or day <= local.date():
        return None
    return datetime.combine(day, time.min, local.tzinfo)
