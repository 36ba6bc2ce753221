"""Which documents have a facet or a time: so that a narrow filter looks at what passes it, and at no more.

A shortcut, not the filter: what it names is asked again, one by one. Must not know scores.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_memory.retrieval.scores import numpy_if_there

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.models import DateRange, Document, Facet, SearchFilters


@dataclass(frozen=True, slots=True)
class Scope:
    """What a search is limited to.

    Attributes:
        filters: Conditions that all results meet.
        admits: Tells of an id whether that document meets them and may be shown.
        meeting: The numbers among which those of all such documents are; None when they may be any.
    """

    filters: SearchFilters
    admits: Callable[[str], bool]
    meeting: Sequence[int] | NDArray[np.integer] | None = None


class Facets:
    """Numbers of documents by facet, ascending, and the time of each."""

    def __init__(self) -> None:
        self._with: dict[Facet, array[int]] = {}
        self._times: array[float] = array("d")

    def add(self, number: int, document: Document) -> None:
        """Index a document; its number is one more than that of the last."""
        self._times.append(document.timestamp.timestamp())
        for facet in document.facets:
            self._with.setdefault(facet, array("I")).append(number)

    def remove(self, number: int, document: Document) -> None:
        """Take a document out; `document` is what was added."""
        self._times[number] = math.nan
        for facet in document.facets:
            numbers = self._with[facet]
            del numbers[bisect_left(numbers, number)]
            if not numbers:
                del self._with[facet]

    def meeting(self, filters: SearchFilters) -> Sequence[int] | NDArray[np.integer] | None:
        """Return all documents that can meet these filters, ascending; None when nothing is known about them."""
        lists = [self._with.get(facet, array("I")) for facet in filters.facets]
        if filters.any_facets:
            some = [self._with.get(facet, array("I")) for facet in filters.any_facets]
            lists.append(some[0] if len(some) == 1 else array("I", sorted(set().union(*some))))
        lists.sort(key=len)
        bounds = filters.date_range
        np = numpy_if_there()
        if np is None or not (lists or bounds):
            return list(lists[0]) if lists else None
        found: Any = np.flatnonzero(self._between(np, bounds)) if bounds is not None else None
        for each in lists:
            one = np.frombuffer(each, dtype=np.uintc).astype(np.intp)  # a copy: what lies behind it may grow
            found = one if found is None else np.intersect1d(found, one, assume_unique=True)
        numbers: Sequence[int] = found
        return numbers

    def _between(self, np: Any, bounds: DateRange) -> Any:
        times = np.frombuffer(self._times)
        since = -math.inf if bounds.start is None else bounds.start.timestamp()
        until = math.inf if bounds.end is None else bounds.end.timestamp()
        return (times >= since) & (times <= until)
