"""Stretches of a text that do not overlap, and whether others meet them. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Stretches:
    """Pairs of start and end, exclusive. Looking one up takes the logarithm of how many there are."""

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        self._pairs: list[tuple[int, int]] = []
        for start, end in sorted(pairs):
            if not self.meet(start, end):
                self._pairs.append((start, end))

    def meet(self, start: int, end: int) -> bool:
        """Whether a stretch has a character with one of these in common."""
        at = bisect_left(self._pairs, (end, end))
        return at > 0 and self._pairs[at - 1][1] > start

    def take(self, start: int, end: int) -> bool:
        """Add a stretch if it meets none; return whether it was added."""
        if self.meet(start, end):
            return False
        insort(self._pairs, (start, end))
        return True

    def within(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return those that lie in a stretch."""
        first, last = bisect_left(self._pairs, (start, start)), bisect_right(self._pairs, (end, end))
        return [pair for pair in self._pairs[first:last] if pair[1] <= end]
