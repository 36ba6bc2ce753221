"""Scores of the documents that hold a word of a query, and which of them are best.

Two forms with the same numbers: a dict while there are few, an array over all documents once there are many. Must
not know how a score is computed; `postings` does.
"""

from __future__ import annotations

import heapq
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


class FewScores(dict[int, float]):
    """Positive scores by document; every document without one has 0."""

    def __missing__(self, document: int) -> float:
        return 0.0

    def best(self, count: int) -> list[int]:
        """Return the best `count` documents, best first, the newer first among equals."""
        return [document for _, document in heapq.nlargest(count, zip(self.values(), self, strict=True))]

    def within(self, documents: Sequence[int] | NDArray[np.integer]) -> FewScores:
        """Return the scores of some documents alone."""
        wanted = self.keys() & {int(document) for document in documents}
        return FewScores({document: self[document] for document in wanted})

    def sample(self, count: int) -> list[int]:
        """Return all documents that have a score, or at most twice `count` of them, evenly chosen."""
        return list(islice(self, None, None, _step(len(self), count)))


class ManyScores:
    """What `FewScores` are, in an array.

    Args:
        values: One for each document, shape (documents,); 0 for those without.
    """

    def __init__(self, values: NDArray[np.float64]) -> None:
        self._values = values
        self._documents = (values > 0).nonzero()[0]  # of truth values: three times as fast as of numbers

    def __len__(self) -> int:
        return len(self._documents)

    def __getitem__(self, document: int) -> float:
        return float(self._values[document])

    def best(self, count: int) -> list[int]:
        """See `FewScores.best`."""
        import numpy as np  # nothing slow at import

        documents = self._documents
        if count < 1:
            return []
        if count < len(documents):
            scores = self._values[documents]
            cut = np.partition(scores, len(scores) - count)[len(scores) - count]
            above, equal = documents[scores > cut], documents[scores == cut]
            documents = np.concatenate([above, equal[len(equal) - (count - len(above)) :]])
        order = np.lexsort((-documents, -self._values[documents]))
        best: list[int] = documents[order].tolist()
        return best

    def within(self, documents: Sequence[int] | NDArray[np.integer]) -> ManyScores:
        """See `FewScores.within`."""
        import numpy as np

        wanted = np.asarray(documents, dtype=np.intp)
        values = np.zeros_like(self._values)
        values[wanted] = self._values[wanted]
        return ManyScores(values)

    def sample(self, count: int) -> list[int]:
        """See `FewScores.sample`."""
        chosen: list[int] = self._documents[:: _step(len(self._documents), count)].tolist()
        return chosen


Scores = FewScores | ManyScores


def _step(total: int, count: int) -> int:
    return max(1, total // count)


@lru_cache(maxsize=1)
def numpy_if_there() -> Any:
    """Return numpy, or None where no extra that needs it is installed: search by words does without."""
    try:
        import numpy as np
    except ImportError:
        return None
    return np
