"""Filters over the rows of one part, and scopes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from agent_memory.models import GROUP, GROUPED, ITEM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.models import Facet, SearchFilters


@dataclass(frozen=True, slots=True)
class SearchScope:
    """Limits of a search.

    Attributes:
        filters: Conditions that all results meet.
        admits: Returns True if the document of an ID meets them and may be shown.
    """

    filters: SearchFilters
    admits: Callable[[str], bool]


class FilteredRows(Protocol):
    """Rows with the columns `moment` and `access_count`."""

    columns: Any

    def __len__(self) -> int:
        """Return the number of rows."""

    def rows_with(self, facet: Facet) -> NDArray[np.uint32]:
        """Return the rows that have a facet, ascending."""


def meeting(part: FilteredRows, filters: SearchFilters) -> NDArray[np.bool_]:
    """Return a mask of the rows that meet filters, dead rows included."""
    import numpy as np  # nothing slow at import

    mask = np.ones(len(part), bool)
    if not filters.include_items:
        mask &= ~_having(part, [ITEM])
    if filters.group is not None:
        mask &= ~_having(part, [GROUPED]) | _having(part, [(GROUP, filters.group)])
    for facet in filters.facets:
        mask &= _having(part, [facet])
    if filters.any_facets:
        mask &= _having(part, filters.any_facets)
    if filters.date_range is not None:
        times, bounds = np.asarray(part.columns["moment"]), filters.date_range
        if bounds.start is not None:
            mask &= times >= bounds.start.timestamp()
        if bounds.end is not None:
            mask &= times <= bounds.end.timestamp()
    if filters.min_access_count is not None:
        mask &= np.asarray(part.columns["access_count"]) >= filters.min_access_count
    return mask


def _having(part: FilteredRows, facets: Iterable[Facet]) -> NDArray[np.bool_]:
    import numpy as np

    mask = np.zeros(len(part), bool)
    for facet in facets:
        mask[part.rows_with(facet)] = True
    return mask


@lru_cache(maxsize=1)
def numpy_if_there() -> Any:
    """Return numpy, or None if no extra that needs it is installed."""
    try:
        import numpy as np
    except ImportError:
        return None
    return np
