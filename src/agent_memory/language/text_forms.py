"""Embedded pieces, title and excerpts of a text. Pure."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.language.sentences import find_sentences, trim_span
from agent_memory.language.speakers import normalize_turn
from agent_memory.language.words import index_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_TIME_WORDS: Final = """
    yesterday today tonight tomorrow last next ago week weekend month year recently since morning night Monday Tuesday
    Wednesday Thursday Friday Saturday Sunday January February March April May June July August September October
    November December
"""

_PIECE_CHARS: Final = 300
"""A vector of more blurs: on whole sessions (3,000 characters) all@5 is .830 with pieces of 900 characters, which is
what a local model reads at most, and .845 with 300 or 500."""

_MOST_OF_TITLE: Final = 240
_TITLE_SHARE: Final = 0.6
_MAX_PIECES: Final = 34  # the 10,000 characters a record may have
_SENTENCE_END: Final = re.compile(r"(?<=[.!?]\s)")


def embedded_texts(text: str) -> list[str]:
    """Return the pieces of a text that are embedded, and its title.

    The day is not in them. Before the text it costs the dense ranking .066 frac@10 on the tuning conversations (.514 to
    .448), because all turns of one day become alike; words find it. A turn becomes `Name: words`, since a model weighs
    symbols around a name like words. The title of a long text comes last.
    """
    plain = normalize_turn(text)
    pieces, title = cut_pieces(plain), find_title(plain)
    return [*pieces, title] if len(pieces) > 1 and title and title not in pieces else pieces


def find_title(text: str) -> str:
    """Return the first line if it is a title, or "".

    A title is much shorter than the mean of the other lines. Its vector helps questions in other words: among notes
    with titles (docs/benchmarks.md) any@5 rises from .34 to .37, and from .19 to .21 without a common word.
    """
    first, *rest = [line for line in text.splitlines() if line.strip()] or [""]
    most = min(_MOST_OF_TITLE, _TITLE_SHARE * sum(map(len, rest)) / len(rest)) if rest else 0
    return first.strip() if len(first) <= most else ""


def cut_pieces(text: str) -> list[str]:
    """Cut a text at the ends of lines and sentences.

    Segments and the vector cache are keyed by these pieces. Another cut would embed every long text again and change
    ranks, so this one differs from `sentences`.
    """
    if len(text) <= _PIECE_CHARS:
        return [text]
    pieces = [""]
    for part in _iter_parts(text):
        if pieces[-1] and len(pieces[-1]) + len(part) > _PIECE_CHARS:
            pieces.append("")
        pieces[-1] += part
    return [piece.strip() for piece in pieces if piece.strip()][:_MAX_PIECES]


def _iter_parts(text: str) -> Iterator[str]:
    """Yield lines, the sentences of long lines, and parts of long sentences."""
    for line in text.splitlines(keepends=True):
        sentences = [line] if len(line) <= _PIECE_CHARS else _SENTENCE_END.split(line)
        for sentence in sentences:
            for start in range(0, len(sentence), _PIECE_CHARS):
                yield sentence[start : start + _PIECE_CHARS]


def tells_time(terms: Iterable[str]) -> bool:
    """Return True if one of the index terms names a time."""
    return not _list_time_terms().isdisjoint(terms)


@lru_cache(maxsize=1)
def _list_time_terms() -> frozenset[str]:
    return frozenset(index_terms(_TIME_WORDS)) | {str(year) for year in range(1900, 2100)}


GAP: Final = " … "
"""Sign for omitted text."""

_WORDS: Final = 1.0
_NEARNESS: Final = 0.6
_TITLE: Final = 0.35
"""Added score of a title, because it says what the rest is about."""
_WHOLE_LINE: Final = 240
"""Characters of a line that is not cut into sentences."""
_LEAST: Final = 160
"""Characters of the best sentence that are always shown, since half of it may lack the answer."""
_SHARE: Final = 0.3
"""Least score relative to the best one, once `_FILLED` characters are shown."""
_FILLED: Final = 240
_PIECE_HEAD: Final = 30
_LONGEST_SIGN: Final = 24
"""Characters of the longest emoji, a family with skin tones, or of a letter with accents."""
_JOINER: Final = "\u200d"


class _TextPart(NamedTuple):
    """A line or a sentence, with its score for the question."""

    start: int
    end: int
    score: float


def excerpt(text: str, words: Mapping[str, float], room: int, nearness: Sequence[float] = ()) -> str:
    """Return the sentences of a text that say most about a question.

    `GAP` replaces the text between them.

    Args:
        text: Text to shorten; returned whole if it has at most `room` characters.
        words: Terms of the question, each with its weight.
        room: Characters to show; of the best sentence at least 160 are shown.
        nearness: Cosines of the text's pieces (`embedded_texts`) and the question; empty if unknown.
    """
    if len(text) <= room:
        return text
    best_first = sorted(_score_parts(text, words, nearness), key=lambda part: -part.score)
    chosen: list[_TextPart] = []
    remaining = max(room, _LEAST)
    for part in best_first:
        shown = sum(shown_part.end - shown_part.start for shown_part in chosen)
        if shown >= _FILLED and part.score < _SHARE * best_first[0].score:
            break
        size = part.end - part.start
        if not chosen and size > remaining:
            return _cut_sentence(text, part, words, remaining)
        if size <= remaining:
            chosen.append(part)
            remaining = min(remaining, room) - size - len(GAP)
    return _join_parts(text, sorted(chosen))


def _score_parts(text: str, words: Mapping[str, float], nearness: Sequence[float]) -> Iterator[_TextPart]:
    total = sum(words.values()) or 1.0
    starts = _find_pieces(text, len(nearness))
    pieces = list(zip(starts, [*starts[1:], len(text)], nearness, strict=False))
    title = 0 if find_title(text) else -1
    for number, (start, end) in enumerate(_find_parts(text)):
        terms = set(index_terms(text[start:end]))
        score = _WORDS * sum(weight for term, weight in words.items() if term in terms) / total
        near = [cosine for first, until, cosine in pieces if first < end and start < until]
        score += _NEARNESS * max(near, default=0.0) + (_TITLE if number == title else 0.0)
        yield _TextPart(start, end, score)


def _find_parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of lines and, of a long line, its sentences."""
    end = 0
    for line in text.splitlines(keepends=True):
        start, end = end, end + len(line)
        if len(line) > _WHOLE_LINE:
            yield from find_sentences(text, start, end)
        else:
            yield from trim_span(text, start, end)


def _find_pieces(text: str, count: int) -> list[int]:
    """Return the starts of the embedded pieces, or nothing if unclear."""
    pieces = embedded_texts(text) if count else []
    starts: list[int] = []
    for piece in pieces if len(pieces) == count else ():
        start = text.find(piece[:_PIECE_HEAD], starts[-1] + 1 if starts else 0)
        if start < 0:
            return starts if len(starts) == count - 1 and piece == find_title(text) else []
        starts.append(start)
    return starts


def _cut_sentence(text: str, part: _TextPart, words: Mapping[str, float], room: int) -> str:
    """Return the part of a long sentence that fits a question best."""
    sentence = text[part.start : part.end]
    cuts = _find_cuts(sentence, max(1, room // 2))
    terms = [set(index_terms(sentence[start:end])) for start, end in pairwise(cuts)]
    scores = [sum(words.get(term, 0.0) for term in first | second) for first, second in pairwise([*terms, set[str]()])]
    best = cuts[max(range(len(scores)), key=lambda place: (scores[place], -place))]
    end = min(best + room, len(sentence))
    if end < len(sentence):
        space = sentence.rfind(" ", best, end)
        end = space if space > best else _find_whole(sentence, end)
    before = GAP.lstrip() if part.start + best > 0 else ""
    after = GAP.rstrip() if text[part.start + end :].strip() else ""
    return f"{before}{sentence[best:end].strip()}{after}"


def _find_cuts(sentence: str, size: int) -> list[int]:
    """Return cuts of a sentence, after spaces and `size` apart."""
    cuts = [0]
    while len(sentence) - cuts[-1] > size:
        limit = cuts[-1] + size
        space = max(sentence.rfind(blank, cuts[-1] + 1, limit) for blank in " \t\u3000")
        cuts.append(space + 1 if space > 0 else _find_whole(sentence, limit))
    return [*cuts, len(sentence)]


def _find_whole(text: str, end: int) -> int:
    """Return the last place near `end` outside letters and emoji."""
    for place in range(end, max(end - _LONGEST_SIGN, 0), -1):
        if not (_continues(text[place]) or text[place - 1] == _JOINER):
            return place
    return end


def _continues(character: str) -> bool:
    """Return True for an accent, a skin tone or a joiner."""
    is_accent = unicodedata.category(character).startswith("M")
    return is_accent or character == _JOINER or "\U0001f3fb" <= character <= "\U0001f3ff"


def _join_parts(text: str, parts: Sequence[_TextPart]) -> str:
    shown, end = "", 0
    for part in parts:
        between = text[end : part.start]
        shown += GAP if between.strip() else between
        shown += text[part.start : part.end]
        end = part.end
    return (shown + (GAP if text[end:].strip() else "")).strip()
