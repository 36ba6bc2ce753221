"""Groups of whole lines, for patterns that match no line break.

One search of a long text would keep all other threads waiting. Groups that cannot hold a match are skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIZE: Final = 2_000
"""Characters of a group at least: a search of so many takes half a millisecond."""


def iter_line_groups(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each group; together they are the text."""
    start = 0
    while start < len(text):
        stop = text.find("\n", start + _SIZE)
        stop = len(text) if stop < 0 else stop
        yield start, stop
        start = stop
