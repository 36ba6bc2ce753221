"""Meaning: exact cosines over all vectors of one agent, in numpy, and the seam behind which an engine can take over.

Owns which vectors belong to which memory. Must not know text forms, scores or files. Like the index that owns it, not
thread-safe; vectors arrive from the embedding thread through the worker's own queue.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

from typing_extensions import override

from agent_memory.embeddings.cache import text_hash

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.embeddings.protocol import Matrix, Vector
    from agent_memory.embeddings.worker import EmbeddingWorker
    from agent_memory.retrieval.facets import Scope

_READY_SHARE: Final = 0.9
"""Share of memories that need a vector before meaning takes part: below it, who has one would outrank who has none."""

_FIRST_ROWS: Final = 256

_SAMPLED: Final = 1_000
"""Memories of several rows that are looked at for a count."""

_NOBODYS: Final = -2.0
"""The cosine of a row that stands for no memory any more: below every floor."""


class Cosines(Protocol):
    """Raw cosines between one query and the memories."""

    def of(self, memory_ids: Iterable[str]) -> dict[str, float]:
        """Return the cosines of some memories, without those that have no vector yet."""

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

    def prune(self) -> int:
        """Drop what is kept about texts that stand for no memory; return how many."""

    def embed_query(self, text: str) -> Vector | None:
        """Return a query's vector, None while or when there is no model."""

    def cosines(self, query: Vector, scope: Scope | None = None) -> Cosines:
        """Compare a query with every memory; what lies outside the scope may be missing."""


class DenseIndex(VectorSource):
    """Exact cosines over vectors that a worker provides.

    Args:
        worker: Embeds texts and queries; its owner closes it.
    """

    def __init__(self, worker: EmbeddingWorker) -> None:
        self._worker = worker
        self._keys: dict[str, tuple[bytes, ...]] = {}  # memory -> texts that stand for it
        self._users: dict[bytes, dict[str, None]] = {}  # text -> memories
        self._several: dict[str, None] = {}  # memories of several texts
        self._row: dict[bytes, int] = {}
        self._at: list[bytes] = []  # row -> text
        self._free: list[int] = []
        self._used = 0  # rows of the matrix that were ever in use
        self._matrix: Matrix | None = None
        self._shared: NDArray[np.int32] | None = None  # row -> how many memories it stands for

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
            self._users.setdefault(key, {})[memory_id] = None
            self._count(key)
        self._several.pop(memory_id, None)
        if len(by_hash) > 1:
            self._several[memory_id] = None
        self._release(memory_id, [key for key in old if key not in by_hash])
        if missing:
            self._worker.submit(missing)

    def remove(self, memory_id: str) -> None:
        """Forget a memory; an unknown id changes nothing."""
        self._release(memory_id, self._keys.pop(memory_id, ()))
        self._several.pop(memory_id, None)

    def embed_query(self, text: str) -> Vector | None:
        """Return a query's vector, None while or when there is no model."""
        return self._worker.embed_query(text)

    @override
    def cosines(self, query: Vector, scope: Scope | None = None) -> Cosines:
        """Compare a query, shape (dimension,), with every memory that has a vector."""
        self._absorb()
        return _Cosines(self, query)

    def products(self, query: Vector) -> NDArray[np.float32]:
        """Return the cosine of each row in use; none for a query of another dimension."""
        import numpy as np  # nothing slow at import

        if self._matrix is None or self._matrix.shape[1] != len(query):
            return np.empty(0, dtype=np.float32)
        with _one_thread():
            values: NDArray[np.float32] = self._matrix[: self._used] @ query
        if self._free:
            values[self._free] = _NOBODYS
        return values

    def scored(self, memory_ids: Iterable[str], query: Vector) -> dict[str, float]:
        """Return the cosines of some memories, without looking at the others."""
        if self._matrix is None or self._matrix.shape[1] != len(query):
            return {}
        owners, rows = self.pairs_of(memory_ids)
        return _best_of(owners, (self._matrix[rows] @ query).tolist() if rows else [])

    def rows_of(self, memory_id: str) -> list[int]:
        """Return the rows of the vectors that a memory has by now."""
        return [self._row[key] for key in self._keys.get(memory_id, ()) if key in self._row]

    def pairs_of(self, memory_ids: Iterable[str]) -> tuple[list[str], list[int]]:
        """Return the rows of some memories, and whose each is: `rows_of` for hundreds, in a third of the time."""
        owners: list[str] = []
        rows: list[int] = []
        keys_of, row_of = self._keys.get, self._row.get
        for memory_id in memory_ids:
            for key in keys_of(memory_id, ()):
                row = row_of(key)
                if row is not None:
                    owners.append(memory_id)
                    rows.append(row)
        return owners, rows

    def memories_at(self, row: int) -> Iterable[str]:
        """Return the memories that a row stands for; one given up may still name those of its last text."""
        return self._users.get(self._at[row], ())

    def how_many_within(self, chosen: NDArray[np.bool_]) -> int:
        """Return how many memories the chosen rows stand for; with thousands of several rows each, about how many.

        Args:
            chosen: One truth value for each row in use.
        """
        assert self._shared is not None
        step = max(1, len(self._several) // _SAMPLED)
        sample = islice(self._several, None, None, step)
        again = sum(max(0, int(chosen[self.rows_of(memory_id)].sum()) - 1) for memory_id in sample)
        return int(self._shared[: self._used][chosen].sum()) - step * again

    def prune(self) -> int:
        """Drop every cached vector whose text stands for no memory; return how many went."""
        return self._worker.prune(self.hashes())

    def hashes(self) -> set[bytes]:
        """Return the hashes of all texts that stand for a memory now: what a cache must keep."""
        return set(self._users)

    def _release(self, memory_id: str, keys: Iterable[bytes]) -> None:
        for key in keys:
            users = self._users[key]
            del users[memory_id]
            self._count(key)
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
            self._at[row] = key
            self._count(key)

    def _count(self, key: bytes) -> None:
        """Note how many memories a text stands for, once it has a row."""
        row = self._row.get(key)
        if row is not None and self._shared is not None:
            self._shared[row] = len(self._users[key])

    def _new_row(self, dimension: int) -> int:
        import numpy as np

        if self._free:
            return self._free.pop()
        if self._matrix is None or self._shared is None or self._used == len(self._matrix):
            # Room for all that is awaited, at once: growing by doubling would hold one and a half times as much.
            room = max(_FIRST_ROWS, len(self._users), self._used + self._used // 4)
            matrix, shared = np.zeros((room, dimension), dtype=np.float32), np.zeros(room, dtype=np.int32)
            if self._matrix is not None and self._shared is not None:
                matrix[: self._used], shared[: self._used] = self._matrix, self._shared
            self._matrix, self._shared = matrix, shared
        self._used += 1
        self._at.append(b"")
        return self._used - 1


class _Cosines:
    """One value a row, computed once somebody asks for all; a memory of several rows counts by its best."""

    def __init__(self, index: DenseIndex, query: Vector) -> None:
        self._index = index
        self._query = query
        self._products: NDArray[np.float32] | None = None

    @property
    def _values(self) -> NDArray[np.float32]:
        if self._products is None:
            self._products = self._index.products(self._query)
        return self._products

    def of(self, memory_ids: Iterable[str]) -> dict[str, float]:
        if self._products is None:
            return self._index.scored(memory_ids, self._query)
        owners, rows = self._index.pairs_of(memory_ids) if len(self._products) else ([], [])
        return _best_of(owners, self._products[rows].tolist() if rows else [])

    def at_least(self, floor: float, count: int | None = None) -> list[tuple[str, float]]:
        import numpy as np

        chosen = np.flatnonzero(self._values >= floor)
        wanted = len(chosen) if count is None else count
        while wanted < len(chosen):  # sorting all would cost more than the rest of a search
            found = self._owners(_best(chosen, self._values, wanted))
            if len(found) >= (count or 0):
                return found[:count]
            wanted *= 2  # several rows were of one memory
        return self._owners(chosen)[:count]

    def how_many(self, floor: float) -> int:
        return self._index.how_many_within(self._values >= floor) if len(self._values) else 0

    def below(self, floor: float, count: int) -> list[tuple[str, float]]:
        import numpy as np

        found = self._owners(np.flatnonzero((self._values < floor) & (self._values > _NOBODYS)))
        return [pair for pair in found if self.of([pair[0]])[pair[0]] < floor][:count]

    def _owners(self, rows: NDArray[np.intp]) -> list[tuple[str, float]]:
        """Return the memories that some rows stand for, best first, each once."""
        import numpy as np

        rows = rows[np.argsort(-self._values[rows], kind="stable")]
        best: dict[str, float] = {}
        for row, value in zip(rows.tolist(), self._values[rows].tolist(), strict=True):
            for memory_id in self._index.memories_at(row):
                best.setdefault(memory_id, value)
        return list(best.items())


def _best_of(owners: Iterable[str], values: Iterable[float]) -> dict[str, float]:
    """Return the highest value of each owner."""
    best: dict[str, float] = {}
    for memory_id, value in zip(owners, values, strict=True):
        if value > best.get(memory_id, -math.inf):
            best[memory_id] = value
    return best


def _best(rows: NDArray[np.intp], values: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """Return the `count` rows of the highest values, ascending; the earlier ones among equals at the cut."""
    import numpy as np

    within = values[rows]
    cut = np.partition(within, len(rows) - count)[len(rows) - count]
    above, equal = rows[within > cut], rows[within == cut]
    return np.sort(np.concatenate([above, equal[: count - len(above)]]))


def _one_thread() -> Any:
    """Return a context in which BLAS keeps to this thread: a second one only disturbs the other processes."""
    return _controller().limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
