"""Speakers and listeners of a text. Pure.

A turn has the form `Name: words` or `<Name> words`, also with a time, a bullet, emphasis or a verb ("Jon says:"). A
JSON object with a speaker and a text is a turn, too.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from agent_memory.late import compile_late

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
_TURN: Final = compile_late(
    rf"\s*(?:[-*>•] +)?(?:{_TIME}[ ,|\u2013-]*)?"
    rf"(?:<(?P<nick>{_NAME})>|(?P<mark>\*\*|__|[*_`])?@?(?P<name>{_NAME}){_SAYS}(?P<after>(?: *{_TIME})?)"
    r"(?(mark)(?::(?P=mark)|(?P=mark) *:)|:))\s",
    re.IGNORECASE,
)
_SPEAKERS: Final = ("speaker", "author", "name", "from", "user", "sender", "role")
_WORDS: Final = ("text", "content", "message", "words", "body", "utterance")
_LEAST_LINES: Final = 4

_CAPITALISED: Final = compile_late(r"\b[^\W\d_a-z][^\W\d_]+(?=[,!.?…]|$)")
_CAPITALISED_ASCII: Final = compile_late(r"\b[A-Z][a-z]+(?=[,!.?]|$)")  # the same, in a third of the time
_HEAD: Final = 120
_ENDS: Final = ".!?…"
_GREETED: Final = compile_late(
    r"\b(?:[Hh]ey|[Hh]i|[Hh]ello|[Tt]hanks|[Mm]orning|[Ee]vening|[Nn]ight|[Bb]ye)[ ,]+([^\W\d_a-z][^\W\d_]+)"
)


class SpeakerTurn(NamedTuple):
    """Speaker of a turn, as written, and the words."""

    speaker: str
    words: str


def parse_turn(text: str) -> SpeakerTurn | None:
    """Return a text as a turn of a conversation, or None."""
    if text.lstrip().startswith("{"):
        return _parse_object(text)
    head = text[:_HEAD]
    match = _TURN.match(text) if ":" in head or ">" in head else None
    if match is None:
        return None
    speaker = match["name"] or match["nick"]
    return SpeakerTurn(speaker, text[match.end() :]) if speaker.casefold() not in _LABELS else None


def _parse_object(text: str) -> SpeakerTurn | None:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    # JSON may name half a surrogate pair, which neither a tokenizer nor SQLite accepts.
    speaker, words = (
        next((fields[key] for key in keys if isinstance(fields.get(key), str)), "").encode("utf-8", "replace").decode()
        for keys in (_SPEAKERS, _WORDS)
    )
    return SpeakerTurn(speaker, words) if speaker.strip() and words.strip() else None


def get_speaker(text: str) -> str | None:
    """Return the folded speaker of a turn, None for other texts."""
    turn = parse_turn(text)
    return turn.speaker.casefold() if turn is not None else None


def normalize_turn(text: str) -> str:
    """Return a turn as `Name: words`, other texts unchanged."""
    turn = parse_turn(text)
    return f"{turn.speaker}: {turn.words.lstrip()}" if turn is not None else text


def find_speakers(text: str) -> frozenset[str]:
    """Return the speakers if a text is a conversation of several lines."""
    lines = text.split("\n")
    if len(lines) < _LEAST_LINES:
        return frozenset()
    spoken = [speaker for line in lines if (speaker := get_speaker(line)) is not None]
    people = frozenset(spoken)
    return people if len(people) > 1 and len(spoken) >= max(_LEAST_LINES, 2 * len(people)) else frozenset()


def find_addressed(text: str) -> frozenset[str]:
    """Return the folded names that a text addresses ("Thanks, Kate!").

    Some are not names ("Well, ..."), so the caller counts how else a word is used. Texts without "?" and "!" are
    skipped, since most are facts.
    """
    if "!" not in text and not has_question(text):
        return frozenset()
    turn = parse_turn(text)
    words = text if turn is None else turn.words
    matches = (_CAPITALISED_ASCII if words.isascii() else _CAPITALISED).finditer(words)
    names = [match[0] for match in matches if _is_alone(words, match)]
    return frozenset(map(str.casefold, [*names, *_GREETED.findall(words)]))


def _is_alone(text: str, match: re.Match[str]) -> bool:
    before, after = text[max(0, match.start() - 3) : match.start()].rstrip(), text[match.end() : match.end() + 1]
    if not before or before[-1] in _ENDS:
        return after in {",", "!"}
    return before[-1] == "," and (not after or after in _ENDS)


def has_question(text: str) -> bool:
    """Return True if a text has a question mark."""
    return "?" in text or "\uff1f" in text or "؟" in text
