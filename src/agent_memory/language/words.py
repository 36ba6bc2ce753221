"""Turn text into index terms: the one tokeniser that documents, queries and the benchmark's reference share.

Owns word splitting, folding, stop words and stemming. Must not know what a document is, nor keep anything per agent.

Stemming is PyStemmer (the Snowball project's own C code; MIT and BSD, wheels for every platform we name): over a
cold vocabulary it costs 0.6 µs a word against 20 µs for the pure Python `snowballstemmer`, which alone would spend
the 300 ms that the first search after a start may take.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from Stemmer import Stemmer

_STOP_WORDS: Final = """
    a about am an and any are as at be been being but by can could did do does doing for from had has have having he
    her here hers him his how i if in into is it its itself just me mine my myself of on or our ours she should so some
    such than that the their theirs them then there these they this those to too us very was we were what when where
    which who whom whose why will with would you your yours
"""
STOP_WORDS: Final[frozenset[str]] = frozenset(_STOP_WORDS.split())
"""Function words only. Negations, numbers and words such as "last" or "before" stay: they count in a fact."""

_MAX_TERM_CHARS: Final = 64
"""Longer runs (hashes, base64) are cut: a person never types more of them into a query."""

_MAX_CACHED_WORDS: Final = 100_000
"""Bounds the word cache at about 20 MB; English conversation of 100,000 memories has some 60,000 distinct words."""

_JOINERS: Final = r"'\u2019./\\:@&+#_-"
_ASCII_WORD: Final = re.compile(rf"[A-Za-z0-9_]+(?:[{_JOINERS}]+[A-Za-z0-9_]+)*(?:\+\+|#)?")
_PART: Final = re.compile(r"[^\W_]+")
_CAMEL: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_ORDINAL: Final = re.compile(r"(\d+)(?:st|nd|rd|th)")
_APOSTROPHE: Final = re.compile(r"['\u2019]")
_CONTRACTED: Final = frozenset({"s", "t", "re", "ve", "ll", "d", "m"})

# Scripts written without spaces between words, plus Hangul, whose particles follow the noun without one.
_UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED_RUN: Final = re.compile(f"([{_UNSPACED}]+)")  # a group, so that `split` keeps the runs

_LATIN_END: Final = "\u0250"


def index_terms(text: str) -> list[str]:
    """Return the terms under which `text` is indexed, in order and with repeats."""
    return _terms(text, single_characters=True)


def query_terms(text: str) -> list[str]:
    """Return the terms a query looks for; empty when it holds nothing but stop words and punctuation."""
    return _terms(text, single_characters=False)


def stem(word: str) -> str:
    """Return the Snowball (English) stem of a folded word."""
    stemmed: str = _stemmer().stemWord(word)
    return stemmed


def _terms(text: str, *, single_characters: bool) -> list[str]:
    found: list[str] = []
    if text.isascii():
        for word in _ASCII_WORD.findall(text):
            found += _TERMS_OF[word]
        return found
    for word in _unicode_word().findall(unicodedata.normalize("NFKC", text)):
        if _UNSPACED_RUN.search(word):
            found += _mixed(word, single_characters=single_characters)
        else:
            found += _TERMS_OF[word]
    return found


def _mixed(word: str, *, single_characters: bool) -> Iterator[str]:
    """Split a run that holds unspaced script into overlapping pairs of that script and ordinary words."""
    for at, part in enumerate(_UNSPACED_RUN.split(word)):
        if at % 2:
            yield from _pairs(part.casefold(), single_characters=single_characters)
        else:
            for each in _unicode_word().findall(part):
                yield from _TERMS_OF[each]


def _pairs(run: str, *, single_characters: bool) -> Iterator[str]:
    # Documents keep single characters as well, so that a one-character query finds them inside longer runs.
    if single_characters or len(run) == 1:
        yield from run
    for index in range(len(run) - 1):
        yield run[index : index + 2]


class _WordTerms(dict[str, tuple[str, ...]]):
    """Terms of each raw word, remembered: a vocabulary is small and its words come thousands of times."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        if len(self) >= _MAX_CACHED_WORDS:
            self.clear()
        terms = self[word] = tuple(sys.intern(term) for term in _expand(word))
        return terms


_TERMS_OF: Final = _WordTerms()


def _expand(word: str) -> Iterator[str]:
    """Yield the terms of one raw word: its parts and, if it has several, the whole as well."""
    if word.isascii() and word.isalnum() and (word.islower() or word.isdigit()):  # one part, as most have
        if word not in STOP_WORDS:
            yield _normal(word)
        return
    if unicodedata.category(word[0]) == "So":
        yield word
        return
    if _APOSTROPHE.search(word):
        word = _without_contraction(word)
    pattern = _PART if word.isascii() else _unicode_part()
    parts = [piece for part in pattern.findall(word) for piece in _camel_pieces(part)]
    folded = [_normalize_word(part) for part in parts]
    if len(folded) > 1:
        normalized = _normalize_word(word)
        if normalized not in STOP_WORDS:
            yield _normal(normalized)
    for part in folded:
        if part and part not in STOP_WORDS:
            yield _normal(part)
    if word.endswith(("++", "#")):
        yield _normalize_word(word)[:_MAX_TERM_CHARS]


def _without_contraction(word: str) -> str:
    head, _, tail = _APOSTROPHE.sub("'", word).rpartition("'")
    if tail.lower() not in _CONTRACTED:
        return word
    if tail in {"t", "T"} and head[-1:] in {"n", "N"} and head.lower() != "can":
        return head[:-1]
    return head


def _camel_pieces(part: str) -> list[str]:
    if not part.isascii() or part.islower() or part.isupper():
        return [part]
    pieces: list[str] = _CAMEL.findall(part)
    # A plural acronym or a brand ("iOS", "PhDs") has no piece that is a word of its own.
    return pieces if any(piece[1:].islower() for piece in pieces) else [part]


def _normalize_word(word: str) -> str:
    folded = word.casefold()
    if folded.isascii():
        return folded
    decomposed = unicodedata.normalize("NFD", folded)
    bare = "".join(char for char in decomposed if not unicodedata.combining(char))
    # Only Latin words lose their accents: elsewhere a combining mark is a letter.
    return bare if all(char < _LATIN_END for char in bare) else folded


def _normal(part: str) -> str:
    ordinal = _ORDINAL.fullmatch(part)
    if ordinal:
        return ordinal.group(1)
    part = part[:_MAX_TERM_CHARS]
    return stem(part) if part.isalpha() and part < _LATIN_END else part


@lru_cache(maxsize=1)
def _stemmer() -> Stemmer:
    from Stemmer import Stemmer as SnowballStemmer  # nothing slow at import

    return SnowballStemmer("english", 0)


@lru_cache(maxsize=1)
def _marks() -> str:
    """Return the combining marks of the basic plane, without variation selectors: Devanagari needs them in a word."""
    codes = (*range(0x300, 0xFE00), *range(0xFE10, 0xFFFF))
    return "".join(chr(code) for code in codes if unicodedata.category(chr(code))[0] == "M")


@lru_cache(maxsize=1)
def _signs() -> str:
    """Return emoji and other pictures, without their skin tones and variants."""
    codes = (*range(0x2300, 0x2400), *range(0x2600, 0x27C0), *range(0x2B00, 0x2C00), *range(0x1F000, 0x1FB00))
    return "".join(chr(code) for code in codes if unicodedata.category(chr(code)) == "So")


@lru_cache(maxsize=1)
def _unicode_word() -> re.Pattern[str]:
    return re.compile(rf"[\w{_marks()}]+(?:[{_JOINERS}]+[\w{_marks()}]+)*(?:\+\+|#)?|[{_signs()}]")


@lru_cache(maxsize=1)
def _unicode_part() -> re.Pattern[str]:
    return re.compile(rf"(?:(?!_)[\w{_marks()}])+")


def fold(text: str) -> str:
    """Return a text without case, compatibility forms and extra spaces.

    The content hashes of journals are made of it, so it has to stay the same.
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
