"""Rolling sums that find candidate texts for purged spans, many at once.

Each character has a number under the key, by its place in a word. 24 bits of the sum of these for a span are stored
with its signature. All words of the span are needed to compute it, as for the signature, so that it reveals no more.
"""

from __future__ import annotations

import hashlib
import re
import struct
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

SUM: Final = (1 << 24) - 1
_MOST_WORDS: Final = 1 << 18
_PLACES: Final = 16
"""In a word; the numbers of further characters are those of the first ones."""
_LOW: Final = 1 << 16
_AT_ONCE: Final = 1_000
"""Texts: what is computed of so many stays in the cache of a processor."""
_LOWER: Final = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")
_LEFT_OUT: Final = b"'\"`\\"
"""ASCII characters that are left out where texts are compared."""
_IN_WORDS: Final = b"abcdefghijklmnopqrstuvwxyz0123456789_"
_BEYOND: Final = re.compile(rb"[^\n -~]|\\[^nrt\"\\]|\\\\[uxULNP_]|&(?:#|amp;|lt;|gt;|quot;|apos;|nbsp;)")
"""What is compared in other ways than as ASCII words."""
_SPACES: Final = (b"\\n", b"\\r", b"\\t")


class WordNumbers(dict[str, int]):
    """Keyed sum of character numbers per word."""

    def __init__(self, key: bytes) -> None:
        super().__init__()
        self._table = _build_table(key)

    def __missing__(self, word: str) -> int:
        if len(self) >= _MOST_WORDS:
            self.clear()
        content = word.encode("utf-8", "surrogatepass")
        self[word] = number = sum(self._table[index % _PLACES << 8 | byte] for index, byte in enumerate(content))
        return number


class StretchSums:
    """Finds texts that may have a span.

    Args:
        key: Under which characters have their numbers.
        sums: Of all spans, by their number of words.
    """

    def __init__(self, key: bytes, sums: Mapping[int, Collection[int]]) -> None:
        self._key, self._sums = key, sums
        self._tables: list[tuple[int, Any, Any]] = []
        self._numbers: Any = None
        self._is_word: Any = None

    def find(self, texts: Sequence[bytes]) -> set[int]:
        """Return the indexes of texts that may have a span.

        Args:
            texts: JSON without line breaks.

        Returns:
            All indexes if numpy is not installed.
        """
        try:
            import numpy as np
        except ImportError:
            return set(range(len(texts)))
        if self._numbers is None:
            self._prepare(np)
        places = {place for place, text in enumerate(texts) if _is_beyond(text)}
        for first in range(0, len(texts), _AT_ONCE):
            places.update(first + place for place in self._find(np, texts[first : first + _AT_ONCE]))
        return places

    def _prepare(self, np: Any) -> None:
        self._is_word = np.zeros(256, bool)
        self._is_word[list(_IN_WORDS)] = True
        numbers = np.array(_build_table(self._key), np.uint32).reshape(_PLACES, 256)
        self._numbers = (numbers * self._is_word).ravel()
        for count, span_sums in self._sums.items():
            sums = np.fromiter(span_sums, np.uint32, len(span_sums))
            table = np.zeros(_LOW, bool)
            table[sums.astype(np.uint16)] = True
            self._tables.append((count, table, sums))

    def _find(self, np: Any, texts: Sequence[bytes]) -> list[int]:
        joined = b"\n".join(texts) + b"\n"
        for space in _SPACES if b"\\" in joined else ():
            joined = joined.replace(space, b"  ")
        data = np.frombuffer(joined.translate(_LOWER, _LEFT_OUT), np.uint8)
        is_word, index = self._is_word[data], np.arange(len(data), dtype=np.int32)
        begins = np.maximum.accumulate(np.where(is_word, 0, index + 1))
        totals = np.cumsum(self._numbers[(index - begins) % _PLACES << 8 | data], dtype=np.uint32)
        ends = np.flatnonzero(is_word[:-1] & ~is_word[1:])
        totals = np.concatenate([np.zeros(1, np.uint32), totals[ends]])
        words = np.concatenate([self._begin(np, totals, *table) for table in self._tables])
        if not len(words):
            return []
        lines = np.flatnonzero(data == ord("\n"))
        indexes: list[int] = np.unique(lines.searchsorted(ends[words])).tolist()
        return indexes

    @staticmethod
    def _begin(np: Any, totals: Any, count: int, table: Any, sums: Any) -> Any:
        """Return with which words a span of so many may begin."""
        if count >= len(totals):
            return np.zeros(0, np.int64)
        differences = totals[count:] - totals[:-count]
        words = np.flatnonzero(table[differences.astype(np.uint16)])
        return words[np.isin(differences[words] & SUM, sums)]


def compute_sums(key: bytes, stretches: Iterable[Sequence[str]]) -> dict[int, list[int]]:
    """Return the sums of spans by their number of words."""
    numbers, sums = WordNumbers(key), dict[int, set[int]]()
    for words in stretches:
        sums.setdefault(len(words), set()).add(sum(map(numbers.__getitem__, words)) & SUM)
    return {count: sorted(span_sums) for count, span_sums in sorted(sums.items())}


def _build_table(key: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{_PLACES * 256}I", hashlib.shake_256(b"stretch sums" + key).digest(_PLACES * 256 * 4))


def _is_beyond(text: bytes) -> bool:
    if text.isascii() and b"\\" not in text and b"&" not in text and b"\x7f" not in text:
        return False
    return _BEYOND.search(text) is not None
