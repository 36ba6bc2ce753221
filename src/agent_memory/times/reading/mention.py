"""A time that a text names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import date, time

    from agent_memory.times.days import Days


class TimeMention(NamedTuple):
    """A stretch of whole days that a text names, in the zone of the moment it was said.

    Attributes:
        start, end: Where it stands in the text, half-open.
        first: Its first day; None where it has no beginning ("until Friday").
        behind: The first day behind it; None where it has no end ("since 2024").
        rule: Which rule found it, such as `month day`.
        bound: What the words make of what they name: "at" the stretch itself, "range" from one stretch to another,
            "since" or "after" it, "before", "until" or "by" it.
        named: The stretches that are named: two for a range, else one.
        clock: The time of day told with it, and for a range of times the later one; empty for none.
    """

    start: int
    end: int
    first: date | None
    behind: date | None
    rule: str
    bound: str = "at"
    named: tuple[Days, ...] = ()
    clock: tuple[time, ...] = ()
