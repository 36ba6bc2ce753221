"""`Rows`: texts, the records they stand for, and their vectors in one matrix. Must not know questions or scores."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.embeddings.protocol import Matrix, Vector

GIVEN_UP: Final = -2.0
"""The cosine of a row that stands for no record any more: below every floor."""

_FIRST_ROWS: Final = 256


class Rows:
    """Vectors by the hash of their text, a row each; a row that was given up is used again.

    Attributes:
        records: The records that each text stands for.
        of: The row of each text that has its vector.
        texts: The text of each row; of one given up, its last.
    """

    def __init__(self) -> None:
        self.records: dict[bytes, dict[str, None]] = {}
        self.of: dict[bytes, int] = {}
        self.texts: list[bytes] = []
        self._free: list[int] = []
        self._matrix: Matrix | None = None
        self._shared: NDArray[np.int32] | None = None  # row -> how many records it stands for

    def add(self, text: bytes, record_id: str) -> None:
        """Let a text stand for a record, too."""
        self.records.setdefault(text, {})[record_id] = None
        self._count(text)

    def release(self, text: bytes, record_id: str) -> bool:
        """Let a text stand for a record no more; tell whether a vector was awaited that no other record needs."""
        del self.records[text][record_id]
        self._count(text)
        if self.records[text]:
            return False
        del self.records[text]
        row = self.of.pop(text, None)
        if row is not None:
            self._free.append(row)
        return row is None

    def put(self, text: bytes, vector: Vector) -> None:
        """Keep the vector, shape (dimension,), of a text that stands for a record."""
        row = self.of.get(text)
        if row is None:
            row = self.of[text] = self._free.pop() if self._free else self._new_row(len(vector))
        assert self._matrix is not None
        self._matrix[row] = vector
        self.texts[row] = text
        self._count(text)

    def cosines(self, query: Vector, step: int = 1) -> NDArray[np.float32]:
        """Return the cosine of each row, or of every `step`-th; none for a query of another dimension."""
        import numpy as np  # nothing slow at import

        if self._matrix is None or self._shared is None or self._matrix.shape[1] != len(query):
            return np.empty(0, dtype=np.float32)
        values = products(self._matrix[: len(self.texts) : step], query)
        if self._free:
            values[self._shared[: len(self.texts) : step] == 0] = GIVEN_UP
        return values

    def cosines_of(self, rows: list[int], query: Vector) -> list[float]:
        """Return the cosines of some rows, without looking at the others; none for a query of another dimension."""
        if self._matrix is None or self._matrix.shape[1] != len(query) or not rows:
            return []
        values: list[float] = products(self._matrix[rows], query).tolist()
        return values

    def records_at(self, row: int) -> Iterable[str]:
        """Return the records that a row stands for; one given up may still name those of its last text."""
        return self.records.get(self.texts[row], ())

    def how_many(self, chosen: NDArray[np.bool_]) -> int:
        """Return for how many records the chosen rows stand, one of several rows counted for each.

        Args:
            chosen: One truth value for each row.
        """
        return 0 if self._shared is None else int(self._shared[: len(self.texts)][chosen].sum())

    def _count(self, text: bytes) -> None:
        row = self.of.get(text)
        if row is not None and self._shared is not None:
            self._shared[row] = len(self.records[text])

    def _new_row(self, dimension: int) -> int:
        import numpy as np

        used = len(self.texts)
        if self._matrix is None or self._shared is None or used == len(self._matrix):
            # Room for all that is awaited, at once: growing by doubling would hold one and a half times as much.
            room = max(_FIRST_ROWS, len(self.records), used + used // 4)
            matrix, shared = np.zeros((room, dimension), dtype=np.float32), np.zeros(room, dtype=np.int32)
            if self._matrix is not None and self._shared is not None:
                matrix[:used], shared[:used] = self._matrix, self._shared
            self._matrix, self._shared = matrix, shared
        self.texts.append(b"")
        return used


def products(rows: Matrix, query: Vector) -> NDArray[np.float32]:
    """Return the product of each row with a query."""
    with _controller().limit(limits=1, user_api="blas"):  # a second thread only disturbs the other processes
        products: NDArray[np.float32] = rows @ query
    return products


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
