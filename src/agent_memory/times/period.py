"""A span of time between two moments, either of which may be open."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime


class Period(NamedTuple):
    """A span of time.

    Attributes:
        start: First aware moment; None for an open start.
        end: Aware moment of the end, exclusive; None for an open end.
    """

    start: datetime | None
    end: datetime | None

    def is_over(self, now: datetime) -> bool:
        """Return True if the period has ended."""
        return self.end is not None and self.end <= now
