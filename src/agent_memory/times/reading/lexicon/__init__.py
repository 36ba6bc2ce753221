"""The words of time of a language."""

from __future__ import annotations

import re
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from agent_memory.times.reading.grammar import Item
from agent_memory.times.reading.marks import NONE
from agent_memory.times.reading.pieces import Pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_DAYS: Final = 31
_KEPT: Final = 8_192
_TEN: Final = 10
_TWO_DIGITS: Final = 99
_LONGEST: Final = 8
"""Characters of a word where no spaces part them."""


class Lexicon:
    """Words and their tags.

    Args:
        words: By the word in lower case.
        day_first: Whether 3/4 is of April.
        is_unspaced: Whether no spaces part words.

    Attributes:
        day_first, is_unspaced: As given.
        tags: Of a word; none for one that has nothing to do with time.
        pieces: What pieces of a text have to do with time, where spaces part words.
    """

    def __init__(
        self,
        words: Mapping[str, Mapping[str, Any]],
        *,
        day_first: bool = True,
        is_unspaced: bool = False,
        phrases: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        self._words = {**words}
        self._phrases: dict[str, list[tuple[str, dict[str, str]]]] = {}
        for name, forms in phrases.items():
            for form in forms:
                self._phrases.setdefault(re.split(r"[ .']", form)[0], []).append((form, {"HOLIDAY": name}))
        for word in self._phrases:
            for form in (word, word.capitalize()):
                if form in self._words or form == word:
                    self._words[form] = {**self._words.get(form, {}), "PHRASE": 0}
        for rows in self._phrases.values():
            rows.sort(key=lambda row: -len(row[0]))
        self.day_first = day_first
        self.is_unspaced = is_unspaced

        self.tags = lru_cache(maxsize=_KEPT)(self._tags)
        self.pieces = Pieces(self._tags)
        self._unspaced = _any_word(word for word in self._words if is_unspaced and len(word) <= _LONGEST)

    def _tags(self, word: str) -> Mapping[str, Any]:
        found = self._words.get(word)
        if found is None:
            low = word.lower()
            found = self._words.get(low)
            if found is None and low[-2:] in ("'s", "\u2019s"):
                found = self._words.get(low[:-2])
        return {} if found is None else found

    def sets(self) -> set[frozenset[str]]:
        """Return each set of tags that a token of this language may have."""
        return {frozenset(tags) for tags in self._words.values()} | {
            frozenset({"NUM", "DAY"}),
            frozenset({"NUM", "DAY", "ORDINAL"}),
            frozenset({"NUM"}),
            frozenset({"NUM", "YEAR"}),
            frozenset({"NUM", "YEAR", "TENS"}),
            frozenset({"HOLIDAY"}),
        }

    def merged(self, items: list[Item], text: str) -> list[Item]:
        """Return the items with each phrase and each number in words as one: "boxing day", "twenty" "-" "first"."""
        made: list[Item] = []
        behind = 0
        for item in items:
            if item.start < behind:
                continue  # within a phrase
            found, tags = item, item.tags
            if "PHRASE" in tags:
                found = self._phrase(text, item) or item
                behind = found.end
            elif "UNIT_WORD" in tags or "THOUSANDTH" in tags or "TWO_DIGITS" in tags:
                found = _joined(made, item)
            made.append(found)
        return made

    def _phrase(self, text: str, item: Item) -> Item | None:
        """Return the longest phrase that begins with an item."""
        for form, tags in self._phrases.get(text[item.start : item.end].lower().partition("'s")[0], ()):
            end = item.start + len(form)
            if text[item.start : end].lower() == form and not text[end : end + 1].isalnum():
                return Item(item.start, end, tags)
        return None

    def parted(self, run: str, start: int) -> list[Item]:
        """Return the words of a run of letters without spaces, the longest at each place, and what is between them."""
        found = []
        done = 0
        for word in self._unspaced.finditer(run):
            at, end = word.span()
            if done < at:
                found.append(Item(start + done, start + at, NONE))
            found.append(Item(start + at, start + end, self._words[word[0]]))
            done = end
        if done < len(run):
            found.append(Item(start + done, start + len(run), NONE))
        return found


def _any_word(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds, at each place, the longest of some words; those of one first letter together."""
    by_letter: dict[str, list[str]] = {}
    for word in sorted(words, key=lambda each: (-len(each), each)):
        by_letter.setdefault(word[0], []).append(re.escape(word[1:]))
    return re.compile("|".join(f"{re.escape(letter)}(?:{'|'.join(ends)})" for letter, ends in by_letter.items()))


def _joined(made: list[Item], item: Item) -> Item:
    """Return an item with the words of a number before it, which are taken off: "nineteen" "ninety" "six"."""
    value = item.tags["NUM"] if "NUM" in item.tags else item.tags["UNIT_WORD"]
    start, is_nth = item.start, "ORDINAL" in item.tags
    size = 0
    if "UNIT_WORD" in item.tags:
        size = 2 if len(made) > 1 and "DASH" in made[-1].tags and made[-1].end == start else 1
        if len(made) >= size and "TENS" in made[-size].tags:
            tens = made[-size]
            start, value = tens.start, tens.tags["NUM"] + value
            del made[-size:]
            if "YEAR" in tens.tags:
                return Item(start, item.end, {"NUM": value, "YEAR": value})
        else:
            size = 0
    century = None if is_nth else _century(made)
    if century is not None and 1 <= value <= _TWO_DIGITS:
        count, base = century
        start = made[-count].start
        del made[-count:]
        tags = {"NUM": base + value, "YEAR": base + value}
        return Item(start, item.end, tags | ({"TENS": 0} if value % 10 == 0 and value > _TEN else {}))
    return Item(start, item.end, _number(value, is_nth=is_nth)) if size else item


def _century(made: list[Item]) -> tuple[int, int] | None:
    """Return how many items before are the first part of a year in words, and its value: "two thousand and"."""
    count = 1 if made and "AND" in made[-1].tags else 0
    if len(made) > count + 1 and "THOUSAND" in made[-count - 1].tags and made[-count - 2].tags.get("NUM") in (1, 2):
        return count + 2, 1000 * made[-count - 2].tags["NUM"]
    if not count and made and "TEEN" in made[-1].tags:
        return 1, 100 * made[-1].tags["TEEN"]
    return None


def _number(value: int, *, is_nth: bool) -> dict[str, Any]:
    tags: dict[str, Any] = {"NUM": value}
    if 1 <= value <= _DAYS:
        tags["DAY"] = value
        if is_nth:
            tags["ORDINAL"] = value
    return tags


def table(**tags: str) -> dict[str, dict[str, Any]]:
    """Return words by their tags.

    Args:
        tags: For each tag, lines or pieces parted by `;`, each a value, "=", and words parted by ","; without a value
            the words have the value 0.
    """
    words: dict[str, dict[str, Any]] = {}
    for tag, rows in tags.items():
        for row in rows.replace("\n", ";").split(";"):
            value, _, names = row.rpartition("=")
            for name in names.split(","):
                if name.strip():
                    words.setdefault(name.strip(), {})[tag] = _value(value.strip())
    return words


def _value(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else (text or 0)
