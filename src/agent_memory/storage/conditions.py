"""A search's filters as an index can check them: never more than they ask, sometimes less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.engine import Where

if TYPE_CHECKING:
    from agent_memory.models import SearchFilters

_MILLISECOND: Final = 0.001


def where_of(conditions: SearchFilters) -> Where:
    """Return what can be checked before each memory is looked at.

    Access counts are left out: they change with every search, and an engine is not told each time. A bound in time is
    a millisecond wider, since numbers are less exact than dates.
    """
    between = conditions.date_range
    return Where(
        category=conditions.category,
        tags=tuple(conditions.tags),
        since=between.start.timestamp() - _MILLISECOND if between and between.start else None,
        until=between.end.timestamp() + _MILLISECOND if between and between.end else None,
    )
