"""Exact cosines over all vectors of one agent, in numpy.

Also the protocol of other sources of cosines, such as an engine. Owns which texts belong to which record. Knows neither
text forms nor scores nor files. Not thread-safe, like the index that owns it; vectors arrive from the embedding thread
through the worker's own queue.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, Protocol

from typing_extensions import override

from agent_memory.embeddings import EmbeddingWorker, text_hash
from agent_memory.embeddings.cache import HashSet, get_hash_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.embeddings.protocol import Matrix, Vector
    from agent_memory.index.facets import SearchScope

_READY_SHARE: Final = 0.9
"""Share of texts that need a vector before cosines take part: below it, records with one would outrank the others.

One of several texts may lack its vector, however few they are: the one that was just stored."""
_SAMPLED: Final = 1_000
"""Records of several texts that are sampled for a count."""
GIVEN_UP: Final = -2.0
"""The cosine of a row without a record: below every floor."""
_FIRST_ROWS: Final = 256


class QueryCosines(Protocol):
    """Raw cosines between one query and the records.

    Attributes:
        has_scope: True if records outside the scope of the search may be missing.
    """

    has_scope: bool

    def of(self, record_ids: Iterable[str]) -> dict[str, float]:
        """Return the cosines of records that have a vector."""

    def at_least(self, floor: float, count: int | None = None) -> list[tuple[str, float]]:
        """Return records whose cosine reaches `floor`, best first.

        At most `count`, or all.
        """

    def how_many(self, floor: float) -> int:
        """Return the number of records whose cosine reaches `floor`."""

    def below(self, floor: float, count: int) -> list[tuple[str, float]]:
        """Return the best `count` records whose cosine does not reach `floor`."""


class VectorSource(Protocol):
    """Source of cosines for a search index; a worker embeds the questions."""

    _worker: EmbeddingWorker

    @property
    def ready(self) -> bool:
        """True if cosines take part in an answer now."""

    @property
    def similarity_threshold(self) -> float:
        """The embedder's own floor."""
        return self._worker.embedder.similarity_threshold

    def reads_latin_alone(self, text: str) -> bool:
        """Return True if a text's cosines are meaningless unless it is Latin."""
        embedder = self._worker.embedder
        reads_script = getattr(embedder, "reads_script", None)
        return bool(getattr(embedder, "reads_latin_alone", False)) or not (reads_script is None or reads_script(text))

    @property
    def cosine_scale(self) -> float:
        """Factor that makes cosines comparable with those of MiniLM."""
        return float(getattr(self._worker.embedder, "cosine_scale", 1.0))

    def put(self, record_id: str, texts: Iterable[str]) -> None:
        """Set the texts, one or several pieces, of a record."""

    def remove(self, record_id: str) -> None:
        """Forget a record; an unknown id changes nothing."""

    def prune(self) -> int:
        """Delete vectors of texts without a record; return their number."""
        return 0

    def embed_query(self, text: str) -> Vector | None:
        """Return a query's vector, or None if the model is missing."""
        return self._worker.embed_query(text)

    def cosines(self, query: Vector, scope: SearchScope | None = None) -> QueryCosines:
        """Compare a query with every record.

        Those outside the scope may be missing.
        """


class OtherTexts(Protocol):
    """Texts whose vectors are stored in segments."""

    def __len__(self) -> int:
        """Return the number of the texts."""

    def hashes(self) -> HashSet:
        """Return their hashes."""

    def needs(self, key: bytes) -> bool:
        """Return True if a record has a text of this hash."""


class DenseIndex(VectorSource):
    """Exact cosines over vectors that a worker provides.

    Args:
        worker: Embeds texts and queries; its owner closes it.

    Attributes:
        texts: Hashes of the texts of each record.
        rows: Their vectors, if these have arrived.
        elsewhere: Texts whose vectors are in segments; None without segments.
    """

    def __init__(self, worker: EmbeddingWorker) -> None:
        self._worker = worker
        self.texts: dict[str, tuple[bytes, ...]] = {}
        self.rows = VectorRows()
        self.elsewhere: OtherTexts | None = None
        self._several: dict[str, None] = {}  # records of several texts

    @property
    def is_empty(self) -> bool:
        """True if no record needs a vector."""
        return not self.rows.records and not self.elsewhere

    @property
    def ready(self) -> bool:
        """True if the model is loaded and most texts have their vector.

        Most are nine in ten, or all but one of several.
        """
        self._absorb()
        texts = len(self.rows.records)
        return self._worker.ready and len(self.rows.of) >= min(_READY_SHARE * texts, max(1, texts - 1))

    def put(self, record_id: str, texts: Iterable[str]) -> None:
        """Set the texts of a record.

        Their vectors come from the cache or the model in the background.
        """
        by_hash = {text_hash(text): text for text in texts}
        old = self.texts.get(record_id, ())
        if old == tuple(by_hash):
            return
        self.texts[record_id] = tuple(by_hash)
        missing = {key: text for key, text in by_hash.items() if key not in self.rows.records}
        for key in by_hash:
            self.rows.add(key, record_id)
        self._several.pop(record_id, None)
        if len(by_hash) > 1:
            self._several[record_id] = None
        self._release(record_id, [key for key in old if key not in by_hash])
        if missing:
            self._worker.submit(missing)

    def remove(self, record_id: str) -> None:
        """Forget a record; an unknown id changes nothing."""
        self._release(record_id, self.texts.pop(record_id, ()))
        self._several.pop(record_id, None)

    @override
    def cosines(self, query: Vector, scope: SearchScope | None = None) -> QueryCosines:
        """Compare a query, shape (dimension,), with every record that has a vector."""
        self._absorb()
        return ExactCosines(self, query)

    def compute_cosines(self, record_ids: Iterable[str], query: Vector) -> dict[str, float]:
        """Return the cosines of some records."""
        owners, rows = self.find_rows(record_ids)
        return _keep_best(owners, self.rows.compute_cosines(rows, query))

    def find_rows(self, record_ids: Iterable[str]) -> tuple[list[str], list[int]]:
        """Return the rows of records, and the record of each."""
        owners: list[str] = []
        rows: list[int] = []
        texts_of, row_of = self.texts.get, self.rows.of.get
        for record_id in record_ids:
            for key in texts_of(record_id, ()):
                row = row_of(key)
                if row is not None:
                    owners.append(record_id)
                    rows.append(row)
        return owners, rows

    def how_many(self, chosen: NDArray[np.bool_]) -> int:
        """Return the number of records of the chosen rows.

        Estimated if thousands have several rows.

        Args:
            chosen: One truth value for each row.
        """
        step = max(1, len(self._several) // _SAMPLED)
        sample = islice(self._several, None, None, step)
        repeats = sum(max(0, int(chosen[self.find_rows([record_id])[1]].sum()) - 1) for record_id in sample)
        return self.rows.how_many(chosen) - step * repeats

    def prune(self) -> int:
        """Delete cached vectors of texts without a record; return their number."""
        return self._worker.cache.prune(self.hashes())

    def hashes(self) -> HashSet:
        """Return the hashes of all texts that a cache must keep."""
        return HashSet(
            chain(map(get_hash_prefix, self.rows.records), self.elsewhere.hashes() if self.elsewhere else ())
        )

    def needs(self, key: bytes) -> bool:
        """Return True if a record has a text of this hash."""
        return key in self.rows.records or (self.elsewhere is not None and self.elsewhere.needs(key))

    def _release(self, record_id: str, keys: Iterable[bytes]) -> None:
        for key in keys:
            if self.rows.release(key, record_id):
                self._worker.withdraw(key)

    def _absorb(self) -> None:
        for key, vector in self._worker.collect():
            if key in self.rows.records:
                self.rows.put(key, vector)


class ExactCosines:
    """Cosines of all rows, computed when all are asked for.

    A record with several rows counts by its best.
    """

    has_scope = False

    def __init__(self, index: DenseIndex, query: Vector) -> None:
        self._index = index
        self._query = query
        self._all: NDArray[np.float32] | None = None

    @property
    def _values(self) -> NDArray[np.float32]:
        if self._all is None:
            self._all = self._index.rows.cosines(self._query)
        return self._all

    def of(self, record_ids: Iterable[str]) -> dict[str, float]:
        """See `QueryCosines`."""
        if self._all is None:
            return self._index.compute_cosines(record_ids, self._query)
        owners, rows = self._index.find_rows(record_ids) if len(self._all) else ([], [])
        return _keep_best(owners, self._all[rows].tolist() if rows else [])

    def get_pieces(self, record_id: str) -> list[float]:
        """Return the cosine of each text of a record, in order.

        Nothing for a single one, or while one has no vector.
        """
        keys, row_of = self._index.texts.get(record_id, ()), self._index.rows.of
        if len(keys) == 1:  # as with most
            return []
        rows = [row_of[key] for key in keys if key in row_of]
        return self._index.rows.compute_cosines(rows, self._query) if len(rows) == len(keys) else []

    def at_least(self, floor: float, count: int | None = None) -> list[tuple[str, float]]:
        """See `QueryCosines`."""
        chosen = (self._values >= floor).nonzero()[0]
        wanted = len(chosen) if count is None else count
        while wanted < len(chosen):  # sorting all would cost more than the rest of a search
            owners = self._owners(_best(chosen, self._values, wanted))
            if len(owners) >= (count or 0):
                return owners[:count]
            wanted *= 2  # several rows were of one record
        return self._owners(chosen)[:count]

    def how_many(self, floor: float) -> int:
        """See `QueryCosines`."""
        return self._index.how_many(self._values >= floor) if len(self._values) else 0

    def below(self, floor: float, count: int) -> list[tuple[str, float]]:
        """See `QueryCosines`."""
        owners = self._owners(((self._values < floor) & (self._values > GIVEN_UP)).nonzero()[0])
        return [pair for pair in owners if self.of([pair[0]])[pair[0]] < floor][:count]

    def _owners(self, rows: NDArray[np.intp]) -> list[tuple[str, float]]:
        """Return the records of rows, best first, each once."""
        rows = rows[(-self._values[rows]).argsort(kind="stable")]
        best: dict[str, float] = {}
        for row, value in zip(rows.tolist(), self._values[rows].tolist(), strict=True):
            for record_id in self._index.rows.records_at(row):
                best.setdefault(record_id, value)
        return list(best.items())


def _keep_best(owners: Iterable[str], values: Iterable[float]) -> dict[str, float]:
    """Return the highest value of each owner."""
    best: dict[str, float] = {}
    for record_id, value in zip(owners, values, strict=False):
        if value > best.get(record_id, -math.inf):
            best[record_id] = value
    return best


def _best(rows: NDArray[np.intp], values: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """Return the `count` rows of the highest values, ascending.

    The earlier ones among equals at the cut.
    """
    import numpy as np  # nothing slow at import

    within = values[rows]
    cut = np.partition(within, len(rows) - count)[len(rows) - count]
    above, equal = rows[within > cut], rows[within == cut]
    return np.sort(np.concatenate([above, equal[: count - len(above)]]))


class VectorRows:
    """Vectors by the hash of their text, a row each.

    Rows of deleted texts are reused.

    Attributes:
        records: Records of each text.
        of: Row of each text that has its vector.
        texts: Text of each row; of a deleted row, its last.
    """

    def __init__(self) -> None:
        self.records: dict[bytes, dict[str, None]] = {}
        self.of: dict[bytes, int] = {}
        self.texts: list[bytes] = []
        self._free: list[int] = []
        self._matrix: Matrix | None = None
        self._shared: NDArray[np.int32] | None = None  # row -> number of its records

    def add(self, text: bytes, record_id: str) -> None:
        """Add a record to a text."""
        self.records.setdefault(text, {})[record_id] = None
        self._count(text)

    def release(self, text: bytes, record_id: str) -> bool:
        """Remove a record from a text.

        Return True if a vector was awaited that no other record needs.
        """
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
        """Store the vector, shape (dimension,), of a text."""
        row = self.of.get(text)
        if row is None:
            row = self.of[text] = self._free.pop() if self._free else self._new_row(len(vector))
        assert self._matrix is not None
        self._matrix[row] = vector
        self.texts[row] = text
        self._count(text)

    def cosines(self, query: Vector, step: int = 1) -> NDArray[np.float32]:
        """Return the cosine of each row, or of every `step`-th.

        None for a query of another dimension.
        """
        import numpy as np  # nothing slow at import

        if self._matrix is None or self._shared is None or self._matrix.shape[1] != len(query):
            return np.empty(0, dtype=np.float32)
        values = products(self._matrix[: len(self.texts) : step], query)
        if self._free:
            values[self._shared[: len(self.texts) : step] == 0] = GIVEN_UP
        return values

    def compute_cosines(self, rows: list[int], query: Vector) -> list[float]:
        """Return the cosines of some rows.

        None for a query of another dimension.
        """
        if self._matrix is None or self._matrix.shape[1] != len(query) or not rows:
            return []
        values: list[float] = products(self._matrix[rows], query).tolist()
        return values

    def records_at(self, row: int) -> Iterable[str]:
        """Return the records of a row.

        A free row may still have those of its last text.
        """
        return self.records.get(self.texts[row], ())

    def how_many(self, chosen: NDArray[np.bool_]) -> int:
        """Return the number of records of the chosen rows.

        One with several rows counts for each.

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
