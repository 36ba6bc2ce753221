"""Which documents have a facet or a time: so that a narrow filter looks at what passes it, and at no more.

A shortcut, not the filter: what it names is asked again, one by one. Must not know scores.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_memory.index.scores import numpy_if_there
from agent_memory.models import GROUP, GROUPED, ITEM

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


_Lacking = tuple["array[int]", "array[int]"]


class Facets:
    """Numbers of documents by facet, ascending, and the time of each."""

    def __init__(self) -> None:
        self._with: dict[Facet, array[int]] = {}
        self._times: array[float] = array("d")

    def add(self, number: int, document: Document) -> None:
        """Index a document; its number is one more than that of the last."""
        self._times.append(document.moment.timestamp())
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
        left_out = self._left_out(filters)
        lists = [self._with.get(facet, array("I")) for facet in filters.facets]
        if filters.any_facets:
            some = [self._with.get(facet, array("I")) for facet in filters.any_facets]
            lists.append(some[0] if len(some) == 1 else array("I", sorted(set().union(*some))))
        lists.sort(key=len)
        bounds = filters.date_range
        np = numpy_if_there()
        if np is None:
            return self._few(lists, left_out)
        if not (lists or bounds or left_out):
            return None
        found: Any = np.flatnonzero(self._among(np, bounds, left_out)) if bounds or left_out else None
        for each in lists:
            one = np.frombuffer(each, dtype=np.uintc).astype(np.intp)  # a copy: what lies behind it may grow
            found = one if found is None else np.intersect1d(found, one, assume_unique=True)
        numbers: Sequence[int] = found
        return numbers

    def _left_out(self, filters: SearchFilters) -> list[_Lacking]:
        """Return the documents that do not meet filters: those of each list but for those of the one beside it."""
        none, found = array("I"), list[_Lacking]()
        if filters.group is not None and (grouped := self._with.get(GROUPED)):
            found.append((grouped, self._with.get((GROUP, filters.group), none)))
        if not filters.include_items and (items := self._with.get(ITEM)):
            found.append((items, none))
        return found

    def _few(self, lists: list[array[int]], left_out: list[_Lacking]) -> list[int] | None:
        if not left_out:
            return list(lists[0]) if lists else None
        hidden = set().union(*(set(some).difference(but) for some, but in left_out))
        every = lists[0] if lists else (number for number, time in enumerate(self._times) if not math.isnan(time))
        return [number for number in every if number not in hidden]

    def _among(self, np: Any, bounds: DateRange | None, left_out: list[_Lacking]) -> Any:
        times = np.frombuffer(self._times)
        since = -math.inf if bounds is None or bounds.start is None else bounds.start.timestamp()
        until = math.inf if bounds is None or bounds.end is None else bounds.end.timestamp()
        found = (times >= since) & (times <= until)  # of none that was removed: its time is no number
        for some, but in left_out:
            kept = found[own := np.frombuffer(but, dtype=np.uintc)]
            found[np.frombuffer(some, dtype=np.uintc)] = False
            found[own] = kept
        return found
