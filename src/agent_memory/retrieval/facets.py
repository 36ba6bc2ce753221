"""Which documents have a category, a tag or a time: so that a narrow filter looks at what passes it, and at no more.

A shortcut, not the filter: what it names is asked again, one by one. Must not know scores.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from agent_memory.retrieval.scores import numpy_if_there

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.engine import Where
    from agent_memory.models import Memory


class Facets:
    """Documents by category and tag, ascending, and the time of each."""

    def __init__(self) -> None:
        self._with: dict[tuple[str, str], array[int]] = {}
        self._times: array[float] = array("d")

    def add(self, document: int, memory: Memory) -> None:
        """File a document; its number is one more than that of the last."""
        self._times.append(memory.timestamp.timestamp())
        for facet in _facets(memory):
            self._with.setdefault(facet, array("I")).append(document)

    def remove(self, document: int, memory: Memory) -> None:
        """Take a document out; `memory` is what it was filed with."""
        self._times[document] = math.nan
        for facet in _facets(memory):
            documents = self._with[facet]
            del documents[bisect_left(documents, document)]
            if not documents:
                del self._with[facet]

    def meeting(self, where: Where) -> Sequence[int] | NDArray[np.integer] | None:
        """Return all documents that can meet these conditions, ascending; None when nothing is known about them."""
        category = [("category", where.category)] if where.category is not None else []
        facets = [*category, *(("tag", tag) for tag in where.tags)]
        lists = [self._with.get(facet, array("I")) for facet in facets]
        if where.any_tags:
            lists.append(self._with_any(where.any_tags))
        lists.sort(key=len)
        bounded = where.since is not None or where.until is not None
        np = numpy_if_there()
        if np is None or not (lists or bounded):
            return list(lists[0]) if lists else None
        found: Any = np.flatnonzero(self._between(np, where)) if bounded else None
        for documents in lists:
            one = np.frombuffer(documents, dtype=np.uintc).astype(np.intp)  # a copy: what lies behind it may grow
            found = one if found is None else np.intersect1d(found, one, assume_unique=True)
        return found  # type: ignore[no-any-return]

    def _with_any(self, tags: tuple[str, ...]) -> array[int]:
        """Return the documents that have at least one of these tags, ascending."""
        lists = [self._with.get(("tag", tag), array("I")) for tag in tags]
        return lists[0] if len(lists) == 1 else array("I", sorted(set().union(*lists)))

    def _between(self, np: Any, where: Where) -> Any:
        times = np.frombuffer(self._times)
        since = -math.inf if where.since is None else where.since
        return (times >= since) & (times <= (math.inf if where.until is None else where.until))


def _facets(memory: Memory) -> list[tuple[str, str]]:
    return [("category", memory.category), *(("tag", tag) for tag in dict.fromkeys(memory.tags))]
