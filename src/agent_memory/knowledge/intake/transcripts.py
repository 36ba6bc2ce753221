"""From a text that people wrote a talk down in to the conversation it is: `Name: words`, a line or more a turn.

`agent_memory.language.speakers` reads a turn; this says when a whole text is a talk. Lists of fields and of changes
have lines of the same form, so that is said with care: a text that is none stays a document.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.intake.drafting import PERSON, UNKNOWN, ReceivedTurn
from agent_memory.knowledge.intake.turns import ROLES, FileConversation, find_days
from agent_memory.language.speakers import turn_of

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.language.speakers import Turn as SpokenTurn

_FIELD_WORDS: Final = """
    a added address author changed company cons date deadline depends deprecated description due duration email end
    environment expected fixed from goal host id input kind language license location name output owner password path
    phone port priority pros q removed result risk role security severity size source start state status steps subject
    summary tag tags tel time title to type url user-agent username value version website
"""
_FIELDS: Final = frozenset(_FIELD_WORDS.split())
"""Words before a colon that name a field or a kind of change, besides those that no turn begins with."""
_LEAST_TURNS: Final = 4
_LEAST_EACH: Final = 2
"""Turns of each person, on average: two people who speak twice each."""
_LEAST_PEOPLE: Final = 2
_LEAST_SHARE: Final = 0.6
"""Of the lines that hold something, behind the heading: the rest goes on with what the turn before it says."""
_LEAST_WORDS: Final = 4
"""In the middle one of the turns by length: fields hold a word or two."""
_LEAST_CHANGES: Final = 0.4
"""Share of the turns that somebody else says than the turn before: kinds of changes stand together in lists."""
_MOST_BEFORE: Final = 10
"""Lines that may stand before the first turn, such as a heading, a date, who was there."""
_WORDS: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|\w+")
"""A word, or a sign of a script without spaces."""
_MARKED_HEADING: Final = re.compile(r"\s*#{1,6} ")
_HEADING: Final = re.compile(r"(?:#{1,6} +)?")


def transcript_in(text: str, name: str) -> FileConversation | None:
    """Return the conversation that a text writes down; None where it is another sort of text.

    Args:
        text: All of it.
        name: Of the file; the conversation is called so where no heading stands before its first turn. A day in the
            heading, or else in the name, is the day of the talk; one in a heading further down that of what follows.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    spoken = [_turn(line) for line in lines]
    first = next((place for place, turn in enumerate(spoken) if turn is not None), None)
    if first is None or first > _MOST_BEFORE or not _is_talk(spoken[first:]):
        return None
    said_at = _day_in([*lines[:first], name])
    turns: list[ReceivedTurn] = []
    texts: list[list[str]] = []
    day = said_at
    for line, said in zip(lines[first:], spoken[first:], strict=True):
        if _MARKED_HEADING.match(line):  # of a part of the talk: nobody says it
            day = _day_in([line]) or day
        elif said is not None:
            turns.append(_of(said, day))
            texts.append([turns[-1].text])
        else:
            texts[-1].append(line.strip())
    turns = [replace(turn, text="\n".join(text)) for turn, text in zip(turns, texts, strict=True)]
    title = _HEADING.sub("", lines[0].strip(), count=1).rstrip("#").rstrip() if first else ""
    begun = hashlib.sha256(turns[0].text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return FileConversation(title or name, f"{name}:{begun}", turns, said_at, "transcript")


def _turn(line: str) -> SpokenTurn | None:
    turn = turn_of(f"{line} ") if not line.lstrip().startswith("{") else None
    return turn if turn is not None and turn.words.strip() and turn.speaker.casefold() not in _FIELDS else None


def _is_talk(spoken: list[SpokenTurn | None]) -> bool:
    turns = [turn for turn in spoken if turn is not None]
    who = [turn.speaker.casefold() for turn in turns]
    people = len(set(who))
    if people < _LEAST_PEOPLE or len(turns) < max(_LEAST_TURNS, _LEAST_EACH * people):
        return False
    changes = sum(one != other for one, other in pairwise(who))
    return (
        len(turns) >= _LEAST_SHARE * len(spoken)
        and changes >= _LEAST_CHANGES * (len(turns) - 1)
        and median(len(_WORDS.findall(turn.words)) for turn in turns) >= _LEAST_WORDS
    )


def _day_in(texts: list[str]) -> datetime | None:
    """Return the first day that they name as `2026-03-02`."""
    return next((day for text in texts for day in find_days(text)), None)


def _of(said: SpokenTurn, said_at: datetime | None) -> ReceivedTurn:
    """Return a turn of a person, or unknown for a role label."""
    is_role = said.speaker.casefold() in ROLES
    return ReceivedTurn(said.words.strip(), UNKNOWN if is_role else PERSON, "" if is_role else said.speaker, said_at)
