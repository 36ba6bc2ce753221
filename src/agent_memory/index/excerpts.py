"""The sentences of a long text that say most about a question. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.index.text_forms import embedded_texts, title_of
from agent_memory.language.words import index_terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

GAP: Final = " … "
"""Stands where something is left out."""

_WORDS: Final = 1.0
_NEARNESS: Final = 0.6
_TITLE: Final = 0.35
"""What a title counts besides: it says what the rest is about."""
_WHOLE_LINE: Final = 240
"""A line up to this length is kept together, a longer one is cut at the ends of its sentences."""
_LEAST: Final = 160
"""Of the best sentence so much is shown in any case: half of it may be without what is asked."""
_SHARE: Final = 0.3
"""Least share of the best sentence's score that others need to be shown with it, once there is enough."""
_FILLED: Final = 240
_PIECE_HEAD: Final = 30
_LONGEST_SIGN: Final = 24
"""An emoji of a family with skins has so many characters, about; a letter with more accents is cut through."""
_JOINER: Final = "\u200d"
_SENTENCE_END: Final = re.compile("(?<=[.!?\u2026])[\"'\u201d\u2019)\\]]*\\s+|(?<=[\u3002\uff01\uff1f])")


class _Part(NamedTuple):
    """A line or a sentence.

    Attributes:
        start, end: Where it stands.
        score: How much it says about the question.
    """

    start: int
    end: int
    score: float


def excerpt(text: str, words: Mapping[str, float], room: int, nearness: Sequence[float] = ()) -> str:
    """Return what a text says about a question, in its order, with `GAP` where something is left out.

    Args:
        text: Longer than `room`, or it is returned as it is.
        words: The question's terms, each with how much it tells.
        room: Characters, about: of its best sentence 160 are shown in any case.
        nearness: The cosine of each of the text's pieces (`embedded_texts`); empty where they are not known.
    """
    if len(text) <= room:
        return text
    parts = list(_parts(text, words, nearness))
    chosen: list[_Part] = []
    left = max(room, _LEAST)
    best_first = sorted(parts, key=lambda each: -each.score)
    for part in best_first:
        shown = sum(each.end - each.start for each in chosen)
        if shown >= _FILLED and part.score < _SHARE * best_first[0].score:
            break
        size = part.end - part.start
        if not chosen and size > left:
            return _within(text, part, words, left)
        if size <= left:
            chosen.append(part)
            left = min(left, room) - size - len(GAP)
    return _joined(text, sorted(chosen))


def _parts(text: str, words: Mapping[str, float], nearness: Sequence[float]) -> Iterator[_Part]:
    every = sum(words.values()) or 1.0
    begins = _begins(text, len(nearness))
    title = {0} if title_of(text) else set[int]()
    for number, (start, end) in enumerate(_spans(text)):
        held = set(index_terms(text[start:end]))
        score = _WORDS * sum(weight for term, weight in words.items() if term in held) / every
        ends = [*begins[1:], len(text)]
        near = [
            each for begin, until, each in zip(begins, ends, nearness, strict=False) if begin < end and start < until
        ]
        yield _Part(start, end, score + _NEARNESS * max(near, default=0.0) + (_TITLE if number in title else 0.0))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where lines stand and, of a long line, its sentences; without the space around them."""
    at = 0
    for line in text.splitlines(keepends=True):
        begin, at = at, at + len(line)
        cuts = [0, *(match.end() for match in _SENTENCE_END.finditer(line))] if len(line) > _WHOLE_LINE else [0]
        for start, end in zip(cuts, [*cuts[1:], len(line)], strict=True):
            part = line[start:end]
            if part.strip():
                first = begin + start + len(part) - len(part.lstrip())
                yield first, first + len(part.strip())


def _begins(text: str, count: int) -> list[int]:
    """Return where each of the pieces of a text begins, the title behind them left out; nothing if that is unclear."""
    pieces = embedded_texts(text) if count else []
    found: list[int] = []
    for piece in pieces if len(pieces) == count else ():
        at = text.find(piece[:_PIECE_HEAD], found[-1] + 1 if found else 0)
        if at < 0:
            return found if len(found) == count - 1 and piece == title_of(text) else []
        found.append(at)
    return found


def _within(text: str, part: _Part, words: Mapping[str, float], room: int) -> str:
    """Return of a sentence that is too long itself the stretch that holds most of a question, cut between words."""
    sentence = text[part.start : part.end]
    cuts = _cuts(sentence, max(1, room // 2))
    held = [set(index_terms(sentence[start:end])) for start, end in pairwise(cuts)]
    worth = [sum(words.get(term, 0.0) for term in one | two) for one, two in pairwise([*held, set[str]()])]
    best = cuts[max(range(len(worth)), key=lambda at: (worth[at], -at))]
    end = min(best + room, len(sentence))
    if end < len(sentence):
        space = sentence.rfind(" ", best, end)
        end = space if space > best else _whole(sentence, end)
    before = GAP.lstrip() if part.start + best > 0 else ""
    behind = GAP.rstrip() if text[part.start + end :].strip() else ""
    return f"{before}{sentence[best:end].strip()}{behind}"


def _cuts(sentence: str, size: int) -> list[int]:
    """Return where a sentence may be cut, no more than so many characters apart: behind a space, if there is one."""
    found = [0]
    while len(sentence) - found[-1] > size:
        at = found[-1] + size
        space = max(sentence.rfind(each, found[-1] + 1, at) for each in " \t\u3000")
        found.append(space + 1 if space > 0 else _whole(sentence, at))
    return [*found, len(sentence)]


def _whole(text: str, at: int) -> int:
    """Return the last place up to `at`, if one is near, where a cut takes no accented letter and no emoji apart."""
    for place in range(at, max(at - _LONGEST_SIGN, 0), -1):
        if not (_goes_on(text[place]) or text[place - 1] == _JOINER):
            return place
    return at


def _goes_on(sign: str) -> bool:
    """Tell whether a character belongs to the one before: an accent, a colour of skin, what joins two to one."""
    return sign == _JOINER or unicodedata.category(sign).startswith("M") or "\U0001f3fb" <= sign <= "\U0001f3ff"


def _joined(text: str, parts: Sequence[_Part]) -> str:
    shown, behind = "", 0
    for part in parts:
        between = text[behind : part.start]
        shown += GAP if between.strip() else between
        shown += text[part.start : part.end]
        behind = part.end
    return (shown + (GAP if text[behind:].strip() else "")).strip()
