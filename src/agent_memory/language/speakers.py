"""Who says what in a text, by the forms in which people write talks down, and whom a text speaks to. Pure functions.

A text is a turn when it is of the form `Name: words`, whatever stands around it: a time, a mark of a list or of
emphasis, a verb ("Jon says:"), `<Name> words`, or a JSON object that names a speaker and a text.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

_LABEL_WORDS: Final = """
    note todo fixme warning tip hint fact rule important summary decision preference discovery pattern task bugfix
    question insight answer example reason update error fix problem solution context result http https file
"""
_LABELS: Final = frozenset(_LABEL_WORDS.split())
"""Words before a colon that name a kind of note, not a person."""

_NAME: Final = r"[^\W\d_][\w.'\u2019-]*(?: \w[\w.'\u2019-]*){0,2}?"
_TIME: Final = (
    r"[\[(]?(?:\d{4}-\d\d-\d\d[T, ]*|\d{1,2}[./]\d{1,2}[./]\d{2,4}[, ]*)?"
    r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?Z?(?: ?[ap]\.?m\.?)?[\])]?"
)
_SAYS: Final = r"(?: +(?:says|said|writes|wrote|asks|asked|replies|replied|answers|answered))?"
_TURN: Final = re.compile(
    rf"\s*(?:[-*>\u2022] +)?(?:{_TIME}[ ,|\u2013-]*)?"
    rf"(?:<(?P<nick>{_NAME})>|(?P<mark>\*\*|__|[*_`])?@?(?P<name>{_NAME}){_SAYS}(?P<after>(?: *{_TIME})?)"
    r"(?(mark)(?::(?P=mark)|(?P=mark) *:)|:))\s",
    re.IGNORECASE,
)
_SPEAKERS: Final = ("speaker", "author", "name", "from", "user", "sender", "role")
_WORDS: Final = ("text", "content", "message", "words", "body", "utterance")
_LEAST_LINES: Final = 4

_CAPITALISED: Final = re.compile(r"\b[^\W\d_a-z][^\W\d_]+(?=[,!.?\u2026]|$)")
_CAPITALISED_ASCII: Final = re.compile(r"\b[A-Z][a-z]+(?=[,!.?]|$)")  # the same, in a third of the time
_HEAD: Final = 120
_ENDS: Final = ".!?\u2026"
_GREETED: Final = re.compile(
    r"\b(?:[Hh]ey|[Hh]i|[Hh]ello|[Tt]hanks|[Mm]orning|[Ee]vening|[Nn]ight|[Bb]ye)[ ,]+([^\W\d_a-z][^\W\d_]+)"
)


class Turn(NamedTuple):
    """One turn of a talk: who speaks, as it is written, and what is said."""

    speaker: str
    words: str


def turn_of(text: str) -> Turn | None:
    """Return a text as one turn of a talk; None for anything else."""
    if text.lstrip().startswith("{"):
        return _of_object(text)
    head = text[:_HEAD]
    match = _TURN.match(text) if ":" in head or ">" in head else None
    if match is None:
        return None
    speaker = match["name"] or match["nick"]
    return Turn(speaker, text[match.end() :]) if speaker.casefold() not in _LABELS else None


def _of_object(text: str) -> Turn | None:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    speaker = next((said[key] for key in _SPEAKERS if isinstance(said.get(key), str)), "")
    words = next((said[key] for key in _WORDS if isinstance(said.get(key), str)), "")
    return Turn(_as_text(speaker), _as_text(words)) if speaker.strip() and words.strip() else None


def _as_text(value: str) -> str:
    """Replace half a surrogate pair, which JSON may name and neither a tokenizer nor sqlite takes."""
    return value.encode("utf-8", "replace").decode("utf-8")


def speaker_of(text: str) -> str | None:
    """Return the folded name of who speaks when a text is one turn of a talk; None for anything else."""
    turn = turn_of(text)
    return turn.speaker.casefold() if turn is not None else None


def plainly(text: str) -> str:
    """Return a turn as `Name: words`, in whatever form it is written; any other text as it is."""
    turn = turn_of(text)
    return f"{turn.speaker}: {turn.words.lstrip()}" if turn is not None else text


def speakers_within(text: str) -> frozenset[str]:
    """Return who speaks when one text holds a whole talk: several lines of turns by at least two people."""
    lines = text.split("\n")
    if len(lines) < _LEAST_LINES:
        return frozenset()
    spoken = [speaker for line in lines if (speaker := speaker_of(line)) is not None]
    people = frozenset(spoken)
    return people if len(people) > 1 and len(spoken) >= max(_LEAST_LINES, 2 * len(people)) else frozenset()


def addressed_in(text: str) -> frozenset[str]:
    """Return the folded names that a text calls: capitalised words that stand alone ("Kate, did you", "Thanks, Kate!").

    Some are no names ("Well, ..."): only a word that is hardly ever used in another way is the name of a listener. A
    text that neither asks nor exclaims is not looked at: it is a fact more often than not, and facts are many.
    """
    if "!" not in text and not asks(text):
        return frozenset()
    turn = turn_of(text)
    words = text if turn is None else turn.words
    found = (_CAPITALISED_ASCII if words.isascii() else _CAPITALISED).finditer(words)
    called = [match[0] for match in found if _stands_alone(words, match)]
    return frozenset(map(str.casefold, [*called, *_GREETED.findall(words)]))


def _stands_alone(text: str, match: re.Match[str]) -> bool:
    before, after = text[max(0, match.start() - 3) : match.start()].rstrip(), text[match.end() : match.end() + 1]
    if not before or before[-1] in _ENDS:
        return after in {",", "!"}
    return before[-1] == "," and (not after or after in _ENDS)


def asks(text: str) -> bool:
    """Tell whether a text holds a question."""
    return "?" in text or "\uff1f" in text or "\u061f" in text
