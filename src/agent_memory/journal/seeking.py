"""Find where in a journal the changes after a number begin, without reading what is before them."""

from __future__ import annotations

import re
from typing import Final

from agent_memory.files.atomic import read_at

_NUMBERED: Final = re.compile(rb'\n--- \{"seq": (\d+),')
_AT_ONCE: Final = 1 << 16


def offset_behind(descriptor: int, size: int, seq: int) -> int:
    """Return where the first line begins whose number is above `seq`; the file's end if there is none.

    Numbers ascend in every journal that programs of ours wrote. Damaged lines are passed over.

    Args:
        descriptor: The open file.
        size: Bytes of it that count; they end with a whole line.
        seq: Number of the last change that is known.
    """
    low, high = 0, size  # a line at or before `low` is known, one at or behind `high` is not
    while high - low > _AT_ONCE:
        middle = (low + high) // 2
        found = _first_numbered(descriptor, middle, high)
        if found is None or found[1] > seq:
            high = middle if found is None else min(found[0], middle)
        else:
            low = found[0]
    position = low
    while (found := _first_numbered(descriptor, position, size)) is not None:
        if found[1] > seq:
            return found[0]
        position = found[0]
    return size


def _first_numbered(descriptor: int, begin: int, end: int) -> tuple[int, int] | None:
    """Return where the first line begins whose newline before it lies in a stretch, and its number."""
    position = begin
    while position < end:
        content = read_at(descriptor, position, min(end, position + _AT_ONCE) + 32)
        match = _NUMBERED.search(content)
        if match is not None:
            line = position + match.start() + 1
            return (line, int(match[1])) if line < end else None
        position += _AT_ONCE
    return None
