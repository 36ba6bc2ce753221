"""Statements of a text, by rules: sentences that say something, each with its place in the text.

Of talk a sentence keeps who said it; questions, greetings and what is too short to say anything are left out. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.models import get_duplicate_key

if TYPE_CHECKING:
    from collections.abc import Iterator

RULE: Final = "sentence"
_LEAST_WORDS: Final = 4
_MOST_CHARS: Final = 1_000
_SPEAKER: Final = re.compile(r"[ \t]*(?:[-*>][ \t]+)?(?:\*\*)?([^\W\d_][\w .'-]{0,39}?)(?:\*\*)?:(?:\*\*)?[ \t]+")
_LINE: Final = re.compile(r"[^\n]*\n?")
_MARKS: Final = re.compile(r"(?:[ \t]*(?:#{1,6}|[-*+>]|\d{1,3}[.)])[ \t]+)")
_END: Final = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=\S)")
_WORD: Final = re.compile(r"\w+")
_SMALL_TALK: Final = re.compile(
    r"(?:hi|hello|hey|thanks?|thank you|good (?:morning|evening|afternoon)|bye|see you|sure|okay|ok|great)\b"
    r"[^.]{0,24}[.!]*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that says something: `text` stands by itself, `source[start:end]` is its quote."""

    text: str
    start: int
    end: int
    speaker: str = ""


def statements_of(source: str, *, is_talk: bool) -> list[Statement]:
    """Return the statements of a text, in their order, each once."""
    found: dict[str, Statement] = {}
    for speaker, begin, end in _passages(source, is_talk=is_talk):
        for start, stop in _sentences(source, begin, end):
            said = " ".join(source[start:stop].split())
            if says_something(said):
                text = f"{speaker}: {said}" if speaker else said
                found.setdefault(get_duplicate_key(text), Statement(text, start, stop, speaker))
    return list(found.values())


def _passages(source: str, *, is_talk: bool) -> Iterator[tuple[str, int, int]]:
    """Yield who speaks and from where to where: turns of a talk, lines that belong together of anything else."""
    speaker, begin, end = "", 0, 0
    for line in _LINE.finditer(source):
        named = _SPEAKER.match(line[0]) if is_talk else None
        marked = _MARKS.match(line[0])
        if named or marked or not line[0].strip():
            yield speaker, begin, end
            speaker = named[1] if named else speaker if line[0].strip() else ""
            begin = line.start() + ((named or marked).end() if (named or marked) else 0)  # type: ignore[union-attr]
        end = line.end()
        if marked and "#" in marked[0]:  # a heading says what follows is about, and states nothing
            begin = end
    yield speaker, begin, end


def _sentences(source: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    at = begin
    cuts = [match.span() for match in _END.finditer(source, begin, end)]
    for stop, following in [*cuts, (end, end)]:
        text = source[at:stop]
        yield at + len(text) - len(text.lstrip()), stop - (len(text) - len(text.rstrip()))
        at = following


def says_something(said: str) -> bool:
    """Tell whether a sentence states something: no question, no courtesy, and neither very short nor very long."""
    return (
        len(said) <= _MOST_CHARS
        and len(_WORD.findall(said)) >= _LEAST_WORDS
        and not said.endswith("?")
        and _SMALL_TALK.fullmatch(said) is None
    )
