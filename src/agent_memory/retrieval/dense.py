"""Meaning: exact cosines over all vectors of one agent, in numpy, and the seam behind which an engine can take over.

Owns which vectors belong to which memory. Must not know text forms, scores or files. Like the index that owns it, not
thread-safe; vectors arrive from the embedding thread through the worker's own queue.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_memory.embeddings.cache import text_hash

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.embeddings.protocol import Matrix, Vector
    from agent_memory.embeddings.worker import EmbeddingWorker

_READY_SHARE: Final = 0.9
"""Share of memories that need a vector before meaning takes part: below it, who has one would outrank who has none."""

_FIRST_ROWS: Final = 256


class Cosines(Protocol):
    """Raw cosines between one query and the memories."""

    def get(self, memory_id: str) -> float | None:
        """Return the cosine of a memory, None while it has no vector."""

    def at_least(self, floor: float, count: int | None = None) -> list[tuple[str, float]]:
        """Return memories whose cosine reaches `floor`, best first; at most `count`, or all."""

    def how_many(self, floor: float) -> int:
        """Return how many memories have a cosine that reaches `floor`."""

    def below(self, floor: float, count: int) -> list[tuple[str, float]]:
        """Return the best `count` memories whose cosine does not reach `floor`."""


class VectorSource(Protocol):
    """What a search index asks of meaning."""

    @property
    def ready(self) -> bool:
        """Whether a query would be answered by meaning now."""

    @property
    def similarity_threshold(self) -> float:
        """The embedder's own floor."""

    def put(self, memory_id: str, texts: Iterable[str]) -> None:
        """Let these texts, one or several pieces, stand for a memory."""

    def remove(self, memory_id: str) -> None:
        """Forget a memory; an unknown id changes nothing."""

    def clear(self) -> None:
        """Forget all memories."""

    def prune(self) -> int:
        """Drop what is kept about texts that stand for no memory; return how many."""

    def embed_query(self, text: str) -> Vector | None:
        """Return a query's vector, None while or when there is no model."""

    def cosines(self, query: Vector) -> Cosines:
        """Compare a query with every memory."""


class DenseIndex:
    """Exact cosines over vectors that a worker provides.

    Args:
        worker: Embeds texts and queries; its owner closes it.
    """

    def __init__(self, worker: EmbeddingWorker) -> None:
        self._worker = worker
        self._keys: dict[str, tuple[bytes, ...]] = {}  # memory -> texts that stand for it
        self._users: dict[bytes, set[str]] = {}  # text -> memories
        self._row: dict[bytes, int] = {}
        self._free: list[int] = []
        self._used = 0  # rows of the matrix that were ever in use
        self._matrix: Matrix | None = None
        self._table: _Table | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no memory needs a vector."""
        return not self._users

    @property
    def ready(self) -> bool:
        """Whether the model is loaded and nine memories in ten have their vector."""
        self._absorb()
        return self._worker.ready and len(self._row) >= _READY_SHARE * len(self._users)

    @property
    def similarity_threshold(self) -> float:
        """The embedder's own floor."""
        return self._worker.similarity_threshold

    def put(self, memory_id: str, texts: Iterable[str]) -> None:
        """Let texts stand for a memory; their vectors come from the cache or the model in the background."""
        by_hash = {text_hash(text): text for text in texts}
        if self._keys.get(memory_id) == tuple(by_hash):
            return
        old = self._keys.get(memory_id, ())
        self._keys[memory_id] = tuple(by_hash)
        missing = {key: text for key, text in by_hash.items() if key not in self._users}
        for key in by_hash:
            self._users.setdefault(key, set()).add(memory_id)
        self._release(memory_id, [key for key in old if key not in by_hash])
        self._table = None
        if missing:
            self._worker.submit(missing)

    def remove(self, memory_id: str) -> None:
        """Forget a memory; an unknown id changes nothing."""
        self._release(memory_id, self._keys.pop(memory_id, ()))
        self._table = None

    def clear(self) -> None:
        """Forget all memories."""
        for memory_id in list(self._keys):
            self.remove(memory_id)
        self._matrix = None
        self._free.clear()
        self._used = 0

    def embed_query(self, text: str) -> Vector | None:
        """Return a query's vector, None while or when there is no model."""
        return self._worker.embed_query(text)

    def cosines(self, query: Vector) -> Cosines:
        """Compare a query, shape (dimension,), with every memory that has a vector."""
        import numpy as np  # noqa: PLC0415  nothing slow at import

        self._absorb()
        if self._table is None:
            self._table = _Table(self._keys, self._row)
        if self._matrix is None or not self._table.ids or self._matrix.shape[1] != len(query):
            return _Cosines(_Table({}, {}), np.empty(0, dtype=np.float32))
        with _one_thread():
            values: NDArray[np.float32] = self._matrix[: self._used] @ query
        return _Cosines(self._table, self._table.best(values))

    def prune(self) -> int:
        """Drop every cached vector whose text stands for no memory; return how many went."""
        return self._worker.prune(self.hashes())

    def hashes(self) -> set[bytes]:
        """Return the hashes of all texts that stand for a memory now: what a cache must keep."""
        return set(self._users)

    def _release(self, memory_id: str, keys: Iterable[bytes]) -> None:
        for key in keys:
            users = self._users[key]
            users.discard(memory_id)
            if users:
                continue
            del self._users[key]
            row = self._row.pop(key, None)
            if row is None:
                self._worker.withdraw(key)
            else:
                self._free.append(row)

    def _absorb(self) -> None:
        arrived = [(key, vector) for key, vector in self._worker.collect() if key in self._users]
        for key, vector in arrived:
            row = self._row.get(key)
            if row is None:
                row = self._row[key] = self._new_row(len(vector))
            assert self._matrix is not None
            self._matrix[row] = vector
        if arrived:
            self._table = None

    def _new_row(self, dimension: int) -> int:
        import numpy as np  # noqa: PLC0415

        if self._free:
            return self._free.pop()
        if self._matrix is None:
            self._matrix = np.zeros((_FIRST_ROWS, dimension), dtype=np.float32)
        if self._used == len(self._matrix):
            self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
        self._used += 1
        return self._used - 1


class _Table:
    """Memories that have a vector, in a fixed order, and the rows of the matrix that stand for each."""

    def __init__(self, keys: dict[str, tuple[bytes, ...]], row: dict[bytes, int]) -> None:
        import numpy as np  # noqa: PLC0415

        self.ids: list[str] = []
        first: list[int] = []
        self._several: list[tuple[int, list[int]]] = []
        for memory_id, of in keys.items():
            rows = [row[key] for key in of if key in row]
            if not rows:
                continue
            if len(rows) > 1:
                self._several.append((len(self.ids), rows))
            self.ids.append(memory_id)
            first.append(rows[0])
        self._first = np.array(first, dtype=np.intp)
        self.position = {memory_id: at for at, memory_id in enumerate(self.ids)}

    def best(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return one value a memory: the best of its pieces."""
        chosen = values[self._first]
        for at, rows in self._several:
            chosen[at] = values[rows].max()
        return chosen


class _Cosines:
    def __init__(self, table: _Table, values: NDArray[np.float32]) -> None:
        self._table = table
        self._values = values

    def get(self, memory_id: str) -> float | None:
        at = self._table.position.get(memory_id)
        return None if at is None else float(self._values[at])

    def at_least(self, floor: float, count: int | None = None) -> list[tuple[str, float]]:
        import numpy as np  # noqa: PLC0415

        chosen = np.flatnonzero(self._values >= floor)
        if count is not None and count < len(chosen):
            # A few equals at the cut may fall either way; sorting all would cost more than the rest of a search.
            chosen = np.sort(chosen[np.argpartition(-self._values[chosen], count - 1)[:count]])
        return self._sorted(chosen)

    def how_many(self, floor: float) -> int:
        return int((self._values >= floor).sum())

    def below(self, floor: float, count: int) -> list[tuple[str, float]]:
        import numpy as np  # noqa: PLC0415

        return self._sorted(np.flatnonzero(self._values < floor))[:count]

    def _sorted(self, chosen: NDArray[np.intp]) -> list[tuple[str, float]]:
        import numpy as np  # noqa: PLC0415

        chosen = chosen[np.argsort(-self._values[chosen], kind="stable")]
        ids = self._table.ids
        return [(ids[at], value) for at, value in zip(chosen.tolist(), self._values[chosen].tolist(), strict=True)]


def _one_thread() -> Any:
    """Return a context in which BLAS keeps to this thread: a second one only disturbs the other processes."""
    return _controller().limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415

    return ThreadpoolController()
