"""The words of time of a language."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from agent_memory.times.reading.grammar import Item

if TYPE_CHECKING:
    from collections.abc import Mapping

_DAYS: Final = 31
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
                self._phrases.setdefault(form.split()[0].split(".")[0], []).append((form, {"HOLIDAY": name}))
        for word in self._phrases:
            for form in (word, word.capitalize()):
                if form in self._words or form == word:
                    self._words[form] = {**self._words.get(form, {}), "PHRASE": 0}
        for rows in self._phrases.values():
            rows.sort(key=lambda row: -len(row[0]))
        self.day_first = day_first
        self.is_unspaced = is_unspaced

    def tags(self, word: str) -> Mapping[str, Any]:
        """Return the tags of a word; none for one that has nothing to do with time."""
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
            frozenset({"HOLIDAY"}),
        }

    def merged(self, items: list[Item], text: str) -> list[Item]:
        """Return the items with each number in words as one: "twenty" "-" "first"."""
        made: list[Item] = []
        low = text.lower() if self._phrases else ""
        for item in items:
            before = made[-1] if made else None
            if before is not None and item.start < before.end:
                continue  # within a phrase
            phrase = self._phrase(low, item) if "PHRASE" in item.tags else None
            if phrase is not None:
                made.append(phrase)
                continue
            if "UNIT_WORD" in item.tags and before is not None:
                dash = "DASH" in before.tags and len(made) > 1
                tens = made[-2] if dash else before
                if "TENS" in tens.tags and (not dash or item.start == before.end):
                    value = tens.tags["NUM"] + item.tags["UNIT_WORD"]
                    del made[-2 if dash else -1 :]
                    item = Item(tens.start, item.end, _number(value, is_nth="ORDINAL" in item.tags))  # noqa: PLW2901
            made.append(item)
        return made

    def _phrase(self, low: str, item: Item) -> Item | None:
        """Return the longest phrase that begins with an item."""
        for form, tags in self._phrases.get(low[item.start : item.end].partition(".")[0], ()):
            end = item.start + len(form)
            if low.startswith(form, item.start) and not low[end : end + 1].isalnum():
                return Item(item.start, end, tags)
        return None

    def parted(self, run: str, start: int) -> list[Item]:
        """Return the words of a run of letters without spaces, the longest at each place."""
        found = []
        at = 0
        while at < len(run):
            size = next((size for size in range(_LONGEST, 0, -1) if run[at : at + size] in self._words), 0)
            word = run[at : at + (size or 1)]
            found.append(Item(start + at, start + at + len(word), self._words.get(word, {})))
            at += len(word)
        return found


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
