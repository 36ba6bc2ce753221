"""A stretch of time between two moments, either of which may be open."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime


class Period(NamedTuple):
    """A stretch of time, aware.

    Attributes:
        start: Its first moment; None for none.
        end: The first moment behind it; None for none.
    """

    start: datetime | None
    end: datetime | None

    def is_over(self, now: datetime) -> bool:
        """Tell whether it is past."""
        return self.end is not None and self.end <= now
