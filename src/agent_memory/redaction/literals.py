"""Literals of a text, remembered for each of its words.

Most rules hold a literal in each match, and some hundred literals take longer to search for than all else. Texts
repeat their words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_WORDS: Final = 20_000
_PUNCTUATION: Final = ".,;:!?()'\""


class LiteralIndex:
    """Finds the literals of a text.

    Threads may share it: each replaces what it remembers as a whole.
    """

    def __init__(self) -> None:
        self._spaced: frozenset[str] = frozenset()
        self._unspaced: frozenset[str] = frozenset()
        self._letterless: frozenset[str] = frozenset()
        self._words: dict[str, frozenset[str]] = {}
        self._last: tuple[str, frozenset[str]] = ("", frozenset())

    def add(self, literals: Iterable[str]) -> None:
        """Search for more literals from now on."""
        more = frozenset(literals)
        spaced = {literal for literal in more if literal.split() != [literal]}
        self._spaced |= spaced
        self._unspaced |= more - spaced
        self._letterless = frozenset(literal for literal in self._unspaced if literal.upper() == literal.lower())
        self._words, self._last = {}, ("", frozenset())

    def find(self, text: str) -> frozenset[str]:
        """Return the literals that a text holds."""
        last_text, present = self._last
        if last_text == text:  # one detector after another reads the same text
            return present
        words, read = set(text.split()), self._words  # a literal without white space is within a word
        new = {word: self._read(word) for word in words if word not in read}
        present = frozenset().union(*new.values(), *[read[word] for word in words if word not in new])
        present = present.union([literal for literal in self._spaced if literal in text])
        # A password has more than letters: it is not kept here.
        plain = {word: literals for word, literals in new.items() if word.strip(_PUNCTUATION).isalpha()}
        if plain:
            self._words = plain if len(read) > _MOST_WORDS else read
            self._words.update(plain)
        self._last = text, present
        return present

    def _read(self, word: str) -> frozenset[str]:
        literals = self._letterless if word.strip(_PUNCTUATION).isdigit() else self._unspaced
        return frozenset(filter(word.__contains__, literals))


LITERALS: Final = LiteralIndex()
"""Of texts as they are."""
LOWERED_LITERALS: Final = LiteralIndex()
"""Of texts in lower case, letter by letter."""
