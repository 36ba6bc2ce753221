"""Numbers and sizes in words, for sentences about files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_KILO: Final = 1000
_SHOWN_IN_TENTHS: Final = 9.95
"""Limit for one decimal; larger values would round to `10.0`."""
_EXAMPLES: Final = 3


def format_size(size: int) -> str:
    """Return a size with its unit: `3.4 kB`."""
    value = float(size)
    if value < _KILO:
        return f"{size} byte{'' if size == 1 else 's'}"
    for unit in ("kB", "MB", "GB", "TB"):
        value /= _KILO
        if round(value) < _KILO or unit == "TB":
            break
    return f"{value:.1f} {unit}" if value < _SHOWN_IN_TENTHS else f"{value:,.0f} {unit}"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun: `2,000 memories`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def describe_waiting(count: int) -> str:
    """Return `1 note waits`, `3 notes wait`."""
    return f"{counted(count, 'note')} {'waits' if count == 1 else 'wait'}"


def few(items: Sequence[str]) -> tuple[str, ...]:
    """Return a few examples, and how many more there are."""
    more = [f"… and {len(items) - _EXAMPLES:,} more"] if len(items) > _EXAMPLES else []
    return (*(item[:200] for item in items[:_EXAMPLES]), *more)
