"""Index terms of a text, and its fold. Pure.

Documents, queries and the benchmark's reference share one tokenizer. It splits and folds words, drops stop words and
stems. The stemmer is PyStemmer (Snowball's C code): 0.6 µs for a new word, the pure Python `snowballstemmer` takes 20.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

from agent_memory.late import compile_late

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
"""Longer runs (hashes, base64) are cut, since a person never types more of them into a query."""

_MAX_CACHED_WORDS: Final = 100_000
"""Bound of the word cache, about 20 MB; 100,000 English memories have some 60,000 distinct words."""

_JOINERS: Final = r"'\u2019./\\:@&+#_-"
_ASCII_WORD: Final = compile_late(rf"[A-Za-z0-9_]+(?:[{_JOINERS}]+[A-Za-z0-9_]+)*(?:\+\+|#)?")
_PART: Final = compile_late(r"[^\W_]+")
_CAMEL: Final = compile_late(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_ORDINAL: Final = compile_late(r"(\d+)(?:st|nd|rd|th)")
_APOSTROPHE: Final = compile_late(r"['\u2019]")
_CONTRACTED: Final = frozenset({"s", "t", "re", "ve", "ll", "d", "m"})

# Scripts written without spaces between words, plus Hangul, whose particles follow the noun without one.
_UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED_RUN: Final = compile_late(f"([{_UNSPACED}]+)")  # a group, so that `split` keeps the runs

LATIN_END: Final = "\u0250"
"""First character after the Latin letters with their accents."""


def index_terms(text: str) -> list[str]:
    """Return the terms of a document, in order and with repeats."""
    return _list_terms(text, single_characters=True)


def query_terms(text: str) -> list[str]:
    """Return the terms of a query, without stop words and punctuation."""
    return _list_terms(text, single_characters=False)


def stem(word: str) -> str:
    """Return the Snowball (English) stem of a folded word."""
    stemmed: str = _stemmer().stemWord(word)
    return stemmed


def _list_terms(text: str, *, single_characters: bool) -> list[str]:
    terms: list[str] = []
    if text.isascii():
        for word in _ASCII_WORD.findall(text):
            terms += _WORD_TERMS[word]
        return terms
    for word in _compile_unicode()[0].findall(unicodedata.normalize("NFKC", text)):
        if _UNSPACED_RUN.search(word):
            terms += _split_mixed(word, single_characters=single_characters)
        else:
            terms += _WORD_TERMS[word]
    return terms


def _split_mixed(run: str, *, single_characters: bool) -> Iterator[str]:
    """Yield pairs of characters of unspaced scripts, and terms of other words.

    Documents keep single characters as well, so that a query of one character finds them inside longer runs.
    """
    for number, part in enumerate(_UNSPACED_RUN.split(run)):
        if number % 2:
            characters = part.casefold()
            if single_characters or len(characters) == 1:
                yield from characters
            yield from map("".join, pairwise(characters))
        else:
            for word in _compile_unicode()[0].findall(part):
                yield from _WORD_TERMS[word]


class _WordTerms(dict[str, tuple[str, ...]]):
    """Cache of the terms of each raw word."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        if len(self) >= _MAX_CACHED_WORDS:
            self.clear()
        terms = self[word] = tuple(sys.intern(term) for term in _expand(word))
        return terms


_WORD_TERMS: Final = _WordTerms()


def _expand(word: str) -> Iterator[str]:
    """Yield the terms of a raw word: parts and whole."""
    if word.isascii() and word.isalnum() and (word.islower() or word.isdigit()):  # one part, as most have
        if word not in STOP_WORDS:
            yield _stem_part(word)
        return
    if unicodedata.category(word[0]) == "So":
        yield word
        return
    if _APOSTROPHE.search(word):
        word = _strip_contraction(word)
    pattern = _PART if word.isascii() else _compile_unicode()[1]
    parts = [piece for part in pattern.findall(word) for piece in _split_camel_case(part)]
    folded = [_normalize_word(part) for part in parts]
    if len(folded) > 1:
        normalized = _normalize_word(word)
        if normalized not in STOP_WORDS:
            yield _stem_part(normalized)
    for part in folded:
        if part and part not in STOP_WORDS:
            yield _stem_part(part)
    if word.endswith(("++", "#")):
        yield _normalize_word(word)[:_MAX_TERM_CHARS]


def _strip_contraction(word: str) -> str:
    head, _, tail = _APOSTROPHE.sub("'", word).rpartition("'")
    if tail.lower() not in _CONTRACTED:
        return word
    if tail in {"t", "T"} and head[-1:] in {"n", "N"} and head.lower() != "can":
        return head[:-1]
    return head


def _split_camel_case(part: str) -> list[str]:
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
    return bare if all(char < LATIN_END for char in bare) else folded


def _stem_part(part: str) -> str:
    ordinal = _ORDINAL.fullmatch(part)
    if ordinal:
        return ordinal.group(1)
    part = part[:_MAX_TERM_CHARS]
    return stem(part) if part.isalpha() and part < LATIN_END else part


@lru_cache(maxsize=1)
def _stemmer() -> Stemmer:
    from Stemmer import Stemmer as SnowballStemmer  # nothing slow at import

    return SnowballStemmer("english", 0)


@lru_cache(maxsize=1)
def _compile_unicode() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a word and of its parts.

    Combining marks belong to words (Devanagari needs them), variation selectors do not. Emoji and pictures are words.
    """
    marks = _list_characters("M", range(0x300, 0xFE00), range(0xFE10, 0xFFFF))
    signs = _list_characters(
        "So", range(0x2300, 0x2400), range(0x2600, 0x27C0), range(0x2B00, 0x2C00), range(0x1F000, 0x1FB00)
    )
    word = rf"[\w{marks}]+(?:[{_JOINERS}]+[\w{marks}]+)*(?:\+\+|#)?|[{signs}]"
    return re.compile(word), re.compile(rf"(?:(?!_)[\w{marks}])+")


def _list_characters(category: str, *ranges: range) -> str:
    codes = map(chr, chain(*ranges))
    return "".join(character for character in codes if unicodedata.category(character).startswith(category))


def fold(text: str) -> str:
    """Return a text without case, compatibility forms and extra spaces.

    It stays as it is, since the content hashes of journals are made of it. Index terms, names of entities and purge
    lists have folds of their own, which also drop accents or quotes.
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
