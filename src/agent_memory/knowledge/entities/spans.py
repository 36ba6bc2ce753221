"""Spans of a text that do not overlap. Pure."""

from __future__ import annotations

from bisect import bisect_left, insort


class SpanSet:
    """Pairs of start and end, exclusive. A look-up takes the logarithm of their number."""

    def __init__(self) -> None:
        self._pairs: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> bool:
        """Add a span unless it overlaps another; return True if added."""
        index = bisect_left(self._pairs, (end, end))
        if index and self._pairs[index - 1][1] > start:
            return False
        insort(self._pairs, (start, end))
        return True
