"""Similarity of two statements. Pure.

*Near* duplicates have the same telling words in the same order, except harmless ones. A *restated* one has half of
them: a model rewords a fact. Exact duplicates are found by `get_duplicate_key`, under the lock of a store.

In doubt two statements differ: a repetition that is stored costs a line, a correction that is dropped leaves a memory
wrong. So a negation, number, version, name of code or opposite in one of them makes them different.
`patterns/similarity.yaml` has the words.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from agent_memory.language.words import query_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

_RESTATED: Final = 0.5
"""Share of the telling words that has to be in what the model stored in this turn."""
_ASKING: Final = frozenset(
    query_terms("please remember keep mind note always user prefer prefers want wants use uses used")
)
"""Words of asking, and of the third person that models put facts into; they say nothing about the fact."""

_DIRECTION: Final = re.compile(r"\b(from|by|into|onto|against)\b", re.IGNORECASE)
"""No telling words; but "from A to B" is not "to A from B"."""

_SEPARATORS: Final = " ,:;-\u2014\u2013\uff0c\uff1a\u3001"
_WORD: Final = re.compile(r"[^\W_]+(?:[._:/@+-]?[^\W_]+|_)*")
_CODE_NAME: Final = re.compile(r"\d|[^\W_]_|[a-z][A-Z]|[^\W\d][./:@][^\W\d]")
_NEGATED_VERB: Final = re.compile(r"n['\u2019]t\b", re.IGNORECASE)


@functools.cache
def _load_words() -> dict[str, Any]:
    from agent_memory.language.pattern_files import load_patterns  # 15 ms that few sessions pay

    return load_patterns("agent_memory.language", "similarity")


def list_telling_terms(text: str) -> list[str]:
    """List the terms of a text in order, without words of asking."""
    return [term for term in query_terms(text) if term not in _ASKING]


@functools.cache
def _compile_asking() -> re.Pattern[str]:
    return re.compile(rf"\W*(?:{'|'.join(_load_words()['asking'])})", re.IGNORECASE)


def strip_cue(text: str) -> str:
    """Remove words at the beginning that only ask to remember."""
    match = _compile_asking().match(text)
    rest = text[match.end() :].lstrip(_SEPARATORS) if match else ""
    if not rest:
        return text
    return rest[0].upper() + rest[1:] if text[:1].isupper() and rest[:2].islower() else rest


def is_near_duplicate(text: str, other_text: str) -> bool:
    """Return True if both have the same telling words in order."""
    if differ_in_meaning(text, other_text):
        return False
    terms = _list_compared_terms(text)
    return terms == _list_compared_terms(other_text) if terms else text.strip() == other_text.strip()


def _list_compared_terms(text: str) -> list[str]:
    """List the telling terms of a text and its words of direction, in order."""
    pieces = _DIRECTION.split(_compile_ends().sub("", strip_cue(text.strip())))
    terms = (
        term for piece in pieces for term in ([piece.lower()] if _DIRECTION.fullmatch(piece) else query_terms(piece))
    )
    return [term for term in terms if term not in _list_harmless_terms()]


@functools.cache
def _compile_ends() -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(_load_words()['harmless_ends'])})+\W*$")


@functools.cache
def get_harmless_words() -> frozenset[str]:
    """Return words that change no meaning, such as "now"."""
    return frozenset(" ".join(_load_words()["harmless"]).split())


@functools.cache
def _list_harmless_terms() -> frozenset[str]:
    """Return the terms that a repetition may add or lack."""
    return _ASKING.union(query_terms(" ".join(get_harmless_words())))


def is_restated(content: str, stored: Sequence[str]) -> bool:
    """Return True if memories stored in this turn say `content`."""
    terms = frozenset(list_telling_terms(content))
    terms_of = {text: words for text in stored if (words := frozenset(list_telling_terms(text)))}
    if not terms:
        return False
    if any(
        len(terms & words) >= _RESTATED * min(len(terms), len(words)) and _has_meaning(text, content)
        for text, words in terms_of.items()
    ):
        return True
    together = frozenset[str]().union(*terms_of.values())
    return len(terms & together) >= _RESTATED * len(terms) and _has_meaning(" ".join(terms_of), content)


def differ_in_meaning(text: str, other_text: str) -> bool:
    """Return True if two texts differ in a word that changes meaning.

    Such words are negations, numbers, versions, names of code, and opposites.
    """
    return _count_turning_words(text) != _count_turning_words(other_text)


def _has_meaning(stored: str, content: str) -> bool:
    """Return True if `stored` has numbers, names and negation of `content`.

    Other than a repetition it may say more, and say "never" where the user said "do not".
    """
    words, stored_words = _count_turning_words(content), _count_turning_words(stored)
    if words.keys().isdisjoint(_load_opposites()[2]) != stored_words.keys().isdisjoint(_load_opposites()[2]):
        return False
    return all(word in stored_words for word in words if _CODE_NAME.search(word))


def _count_turning_words(text: str) -> Counter[str]:
    """Count negations, opposites, numbers and names of code."""
    words, parts, _ = _load_opposites()
    text = unicodedata.normalize("NFKC", text)
    counts = Counter({"not": len(_NEGATED_VERB.findall(text))})
    for word in _WORD.findall(text):
        folded = word.casefold()
        if _CODE_NAME.search(word):
            counts[word] += 1
        elif folded in words:
            counts[folded] += 1
    if not text.isascii():
        counts.update(parts.findall(text))
    return +counts


@functools.cache
def _load_opposites() -> tuple[frozenset[str], re.Pattern[str], frozenset[str]]:
    """Return words, parts of words in scripts without spaces, and negations."""
    data = _load_words()
    parts = sorted(data["negating_parts"] + data["turning_parts"], key=len, reverse=True)
    negating = {word for group in data["negating"] for word in group}
    turning = {word for group in data["turning"] for word in group}
    return (
        frozenset(negating | turning),
        re.compile("|".join(map(re.escape, parts))),
        frozenset(negating | set(data["negating_parts"])),
    )
