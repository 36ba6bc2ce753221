"""Passages of talk: a turn with the question that it answers. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.passages.sections import LINE, MOST_CHARS, TextPassage, cut_passages
from agent_memory.language.sentences import find_breaks
from agent_memory.language.speakers import parse_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

_QUESTION: Final = re.compile(r"[?؟](?=[\s\"')\]*_”\u2019»]|\Z)|\uff1f")
_MOST_ASKED: Final = 150
"""Characters of a question in an exchange; of a longer turn its last question."""
_SHORT_REPLY: Final = 60
"""Characters up to which a reply of a named person keeps what it replies to."""
_LEAST_CHARS: Final = 12
"""Characters of a turn that answers nothing: a shorter one, such as "ok", is not a passage."""
_MOST_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """A turn of a conversation.

    Attributes:
        text: Words of the turn.
        speaker: Name or role of the speaker.
        is_named: Whether `speaker` is a name, which then precedes the words.
        start: Place of the words in the text that they are from.
        id: Record of the turn, if it has one.
    """

    text: str
    speaker: str = ""
    is_named: bool = False
    start: int = 0
    id: str = ""


@dataclass(frozen=True, slots=True)
class TalkExchange:
    """Passages of a turn, and the turn that it answers, if any.

    Attributes:
        passages: Passages of the turn; each begins with what is answered.
        answered: Question or proposal that the turn answers.
        is_whole: Whether the passages have all words of that.
        speaker: Name of who says what the passages are about: of a short reply the one who proposed it.
    """

    passages: Sequence[TextPassage]
    answered: SpokenTurn | None = None
    is_whole: bool = False
    speaker: str = ""


def asks(text: str) -> bool:
    """Return True if a word ends with a question mark."""
    return _QUESTION.search(text) is not None


def cut_turn(turn: SpokenTurn, before: Sequence[SpokenTurn] = ()) -> TalkExchange:
    """Return the passages of a turn.

    Args:
        turn: Turn to cut.
        before: Few turns before it in the same conversation, oldest first.
    """
    answered = _find_answered(turn, before)
    lead = "" if answered is None else f"{_label(answered)}{_cut_question(answered.text)}\n"
    context = lead + (_label(turn) if turn.is_named or lead else "")
    place = turn.start
    passages = [
        replace(passage, text=f"{context}{passage.text}", start=place + passage.start, end=place + passage.end)
        for passage in cut_passages(turn.text, most=MOST_CHARS - len(context))
    ]
    if answered is None and len(turn.text.strip()) < _LEAST_CHARS:
        return TalkExchange(())
    is_whole = answered is not None and len(_join_lines(answered.text)) <= _MOST_ASKED
    author = turn if answered is None or asks(answered.text) else answered
    return TalkExchange(passages, answered, is_whole and bool(passages), author.speaker if author.is_named else "")


def split_turns(text: str) -> list[SpokenTurn]:
    """Return the turns of a text with lines such as `Name: words`."""
    turns: list[SpokenTurn] = []
    for line in LINE.finditer(text):
        spoken = parse_turn(line[0]) if not line[0].lstrip().startswith("{") else None
        if spoken is not None and spoken.words.strip():
            start = line.end() - len(spoken.words)
            turns.append(SpokenTurn("", spoken.speaker, is_named=True, start=start))
        elif not turns:
            turns.append(SpokenTurn("", start=line.start()))
    ends = [_find_line(text, turn.start) for turn in turns[1:]] + [len(text)]
    complete = [replace(turn, text=text[turn.start : end].rstrip()) for turn, end in zip(turns, ends, strict=True)]
    return [turn for turn in complete if turn.text.strip()]


def _label(turn: SpokenTurn) -> str:
    """Return the label of a turn, or an empty string."""
    return f"{turn.speaker[:_MOST_NAME]}: " if turn.speaker else ""


def _find_line(text: str, place: int) -> int:
    return text.rfind("\n", 0, place) + 1


def _find_answered(turn: SpokenTurn, before: Sequence[SpokenTurn]) -> SpokenTurn | None:
    """Return the turn that one answers.

    That is the question directly before it; of a short reply of a named person also what was asked or proposed since
    the person's own last turn.
    """
    since: list[SpokenTurn] = []
    for earlier in reversed(before):
        if earlier.speaker == turn.speaker:
            break
        since.append(earlier)
    if since and asks(since[0].text):
        return since[0]
    if not turn.is_named or not _LEAST_CHARS <= len(_join_lines(turn.text)) <= _SHORT_REPLY:
        return None
    return next((earlier for earlier in since if asks(earlier.text) or not _is_short(earlier)), None)


def _is_short(turn: SpokenTurn) -> bool:
    return len(_join_lines(turn.text)) <= _SHORT_REPLY


def _cut_question(text: str) -> str:
    """Return a question as one line, shortened to its last question."""
    flat = _join_lines(text)
    if len(flat) <= _MOST_ASKED:
        return flat
    ends = [question.end() for question in _QUESTION.finditer(flat)]
    flat = flat[: ends[-1] if ends else None][-_MOST_ASKED:]
    start = next(find_breaks(flat), 0)
    return flat[start:] if start else f"…{flat[1:]}"


def _join_lines(text: str) -> str:
    return " ".join(text.split())
