"""Three comparisons that find captures which repeat a known statement.

1. *Exact*. The storage asks under its lock: `get_duplicate_key` of every text that is to be stored once, and
   `content_hash`, which also folds case and width, of what was forgotten.
2. *Near*, `is_near_duplicate`: the same telling words in the same order, except harmless ones. Asked of what the
   session has captured, and by the write path of the nearest memories.
3. *Restated*, `is_restated`: half of the telling words (`_RESTATED`). Asked at the end of a turn, of what the model
   itself stored in it: it rewords a fact, so less has to agree.

The loosest comes first, since what it compares with is least: restated, near in the session, exact among what was
forgotten, near among the nearest memories, exact under the lock. A memory of low trust never covers another's.

In doubt two statements are different: a repetition that is stored costs a line, a correction that is dropped leaves
the memory wrong. So nothing that differs in a negation, a number, a version, a name of code or one of a pair of
opposites is the same, nor anything in which a telling word is replaced, missing, or at another place.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Final

from agent_memory.capture.cues import strip_cue
from agent_memory.capture.rules import any_of, read_patterns
from agent_memory.index import query_terms

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

_WORD: Final = re.compile(r"[^\W_]+(?:[._:/@+-]?[^\W_]+|_)*")
_CODE_NAME: Final = re.compile(r"\d|[^\W_]_|[a-z][A-Z]|[^\W\d][./:@][^\W\d]")
_NEGATED_VERB: Final = re.compile(r"n['\u2019]t\b", re.IGNORECASE)


def telling_words(text: str) -> list[str]:
    """Return the telling words of `text` in their order, stemmed; pairs of characters where a script has no spaces."""
    return [term for term in query_terms(text) if term not in _ASKING]


def word_set(text: str) -> frozenset[str]:
    """Return the telling words of `text`, each once."""
    return frozenset(telling_words(text))


def is_near_duplicate(one: str, other: str) -> bool:
    """Return True if both have the same telling words in order."""
    if differ_in_meaning(one, other):
        return False
    first = _sequence(one)
    return first == _sequence(other) if first else one.strip() == other.strip()


def _sequence(text: str) -> list[str]:
    """Return the telling words of `text` in their order, and the words that give a direction."""
    ends = any_of("opposites", "harmless_ends", r"(?-i:(?:%s)+\W*$)")
    pieces = _DIRECTION.split(ends.sub("", strip_cue(text.strip())))
    terms = (
        term for piece in pieces for term in ([piece.lower()] if _DIRECTION.fullmatch(piece) else query_terms(piece))
    )
    return [term for term in terms if term not in _harmless()]


@functools.cache
def get_harmless_words() -> frozenset[str]:
    """Return words that change no meaning, such as "now"."""
    return frozenset(" ".join(read_patterns("opposites")["harmless"]).split())


@functools.cache
def _harmless() -> frozenset[str]:
    """Return the words that a repetition may have more or less than what it repeats."""
    return _ASKING.union(query_terms(" ".join(get_harmless_words())))


def is_restated(content: str, stored: Sequence[str]) -> bool:
    """Return True if memories stored in this turn say `content`."""
    words = word_set(content)
    others = [(text, other) for text in stored if (other := word_set(text))]
    if not words:
        return False
    if any(
        len(words & other) >= _RESTATED * min(len(words), len(other)) and _keeps_meaning(content, text)
        for text, other in others
    ):
        return True
    together = frozenset[str]().union(*(other for _, other in others))
    return len(words & together) >= _RESTATED * len(words) and _keeps_meaning(
        content, " ".join(text for text, _ in others)
    )


def differ_in_meaning(one: str, other: str) -> bool:
    """Return True if two texts differ in a word that changes meaning.

    Such words are negations, numbers, versions, names of code, and opposites.
    """
    return _turning(one) != _turning(other)


def _keeps_meaning(content: str, stored: str) -> bool:
    """Return True if `stored` keeps numbers, names and negation of `content`.

    Other than a repetition it may say more, and say "never" where the user said "do not".
    """
    mine, theirs = _turning(content), _turning(stored)
    if mine.keys().isdisjoint(_opposites()[2]) != theirs.keys().isdisjoint(_opposites()[2]):
        return False
    return all(word in theirs for word in mine if _CODE_NAME.search(word))


def _turning(text: str) -> Counter[str]:
    """Return what in `text` its meaning hangs on: negations, opposites, numbers, names of code, each counted."""
    words, parts, _ = _opposites()
    text = unicodedata.normalize("NFKC", text)
    found = Counter({"not": len(_NEGATED_VERB.findall(text))})
    for word in _WORD.findall(text):
        folded = word.casefold()
        if _CODE_NAME.search(word):
            found[word] += 1
        elif folded in words:
            found[folded] += 1
    if not text.isascii():
        found.update(parts.findall(text))
    return +found


@functools.cache
def _opposites() -> tuple[frozenset[str], re.Pattern[str], frozenset[str]]:
    """Return the words, the parts of words in scripts without spaces, and which of both negate."""
    data = read_patterns("opposites")
    parts = sorted(data["negating_parts"] + data["turning_parts"], key=len, reverse=True)
    negating = {word for group in data["negating"] for word in group}
    turning = {word for group in data["turning"] for word in group}
    return (
        frozenset(negating | turning),
        re.compile("|".join(map(re.escape, parts))),
        frozenset(negating | set(data["negating_parts"])),
    )
