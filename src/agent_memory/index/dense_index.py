"""Exact cosines over all vectors of one agent, in numpy, and the protocol behind which an engine can take over.

Owns which texts stand for which record. Must not know text forms, scores or files. Like the index that owns it, not
thread-safe; vectors arrive from the embedding thread through the worker's own queue.
"""

from __future__ import annotations

import math
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, Protocol

from typing_extensions import override

from agent_memory.embeddings import text_hash
from agent_memory.embeddings.hashes import Hashes, prefix_of
from agent_memory.index.vector_rows import GIVEN_UP, Rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.embeddings import EmbeddingWorker
    from agent_memory.embeddings.protocol import Vector
    from agent_memory.index.facets import Scope

_READY_SHARE: Final = 0.9
"""Share of texts that need a vector before cosines take part: below it, records with one would outrank the others.

Of several texts one may lack its vector, however few they are: it has just been stored."""

_SAMPLED: Final = 1_000
"""Records of several texts that are looked at for a count."""


class Cosines(Protocol):
    """Raw cosines between one query and the records."""

    def of(self, record_ids: Iterable[str]) -> dict[str, float]:
        """Return the cosines of some records, without those that have no vector yet."""

    def at_least(self, floor: float, count: int | None = None) -> list[tuple[str, float]]:
        """Return records whose cosine reaches `floor`, best first; at most `count`, or all."""

    def how_many(self, floor: float) -> int:
        """Return how many records have a cosine that reaches `floor`."""

    def below(self, floor: float, count: int) -> list[tuple[str, float]]:
        """Return the best `count` records whose cosine does not reach `floor`."""


class VectorSource(Protocol):
    """What a search index asks of embeddings; a worker embeds the questions."""

    _worker: EmbeddingWorker

    @property
    def ready(self) -> bool:
        """Whether cosines would take part in an answer now."""

    @property
    def similarity_threshold(self) -> float:
        """The embedder's own floor."""
        return self._worker.embedder.similarity_threshold

    @property
    def reads_latin_alone(self) -> bool:
        """Whether its cosines of texts in other scripts tell nothing."""
        return bool(getattr(self._worker.embedder, "reads_latin_alone", False))

    def put(self, record_id: str, texts: Iterable[str]) -> None:
        """Let these texts, one or several pieces, stand for a record."""

    def remove(self, record_id: str) -> None:
        """Forget a record; an unknown id changes nothing."""

    def prune(self) -> int:
        """Drop what is kept about texts that stand for no record; return how many."""
        return 0

    def embed_query(self, text: str) -> Vector | None:
        """Return a query's vector, None while or when there is no model."""
        return self._worker.embed_query(text)

    def cosines(self, query: Vector, scope: Scope | None = None) -> Cosines:
        """Compare a query with every record; what lies outside the scope may be missing."""


class Elsewhere(Protocol):
    """Texts whose vectors are kept, and asked for, in another place."""

    def __len__(self) -> int:
        """Return how many there are."""

    def hashes(self) -> Hashes:
        """Return their hashes."""

    def needs(self, key: bytes) -> bool:
        """Tell whether one of them has this hash and stands for a record now."""


class DenseIndex(VectorSource):
    """Exact cosines over vectors that a worker provides.

    Args:
        worker: Embeds texts and queries; its owner closes it.

    Attributes:
        texts: Hashes of the texts that stand for each record.
        rows: Their vectors, as far as these have arrived.
        elsewhere: Texts whose vectors a search asks for in another place; None for none.
    """

    def __init__(self, worker: EmbeddingWorker) -> None:
        self._worker = worker
        self.texts: dict[str, tuple[bytes, ...]] = {}
        self.rows = Rows()
        self.elsewhere: Elsewhere | None = None
        self._several: dict[str, None] = {}  # records of several texts

    @property
    def is_empty(self) -> bool:
        """Whether no record needs a vector."""
        return not self.rows.records and not self.elsewhere

    @property
    def ready(self) -> bool:
        """Whether the model is loaded and nine texts in ten, or all but one of several, have their vector."""
        self._absorb()
        texts = len(self.rows.records)
        return self._worker.ready and len(self.rows.of) >= min(_READY_SHARE * texts, max(1, texts - 1))

    def put(self, record_id: str, texts: Iterable[str]) -> None:
        """Let texts stand for a record; their vectors come from the cache or the model in the background."""
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
    def cosines(self, query: Vector, scope: Scope | None = None) -> Cosines:
        """Compare a query, shape (dimension,), with every record that has a vector."""
        self._absorb()
        return ExactCosines(self, query)

    def scored(self, record_ids: Iterable[str], query: Vector) -> dict[str, float]:
        """Return the cosines of some records, without looking at the others."""
        owners, rows = self.pairs_of(record_ids)
        return _best_of(owners, self.rows.cosines_of(rows, query))

    def pairs_of(self, record_ids: Iterable[str]) -> tuple[list[str], list[int]]:
        """Return the rows that some records have by now, and the record of each."""
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
        """Return how many records the chosen rows stand for; with thousands of several rows each, about how many.

        Args:
            chosen: One truth value for each row.
        """
        step = max(1, len(self._several) // _SAMPLED)
        sample = islice(self._several, None, None, step)
        again = sum(max(0, int(chosen[self.pairs_of([record_id])[1]].sum()) - 1) for record_id in sample)
        return self.rows.how_many(chosen) - step * again

    def prune(self) -> int:
        """Drop every cached vector whose text stands for no record; return how many went."""
        return self._worker.cache.prune(self.hashes())

    def hashes(self) -> Hashes:
        """Return the hashes of all texts that stand for a record now: what a cache must keep."""
        return Hashes(chain(map(prefix_of, self.rows.records), self.elsewhere.hashes() if self.elsewhere else ()))

    def needs(self, key: bytes) -> bool:
        """Tell whether a text of this hash stands for a record now."""
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
    """One value a row, computed when all are asked for; a record of several rows counts by its best."""

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
        """See `Cosines`."""
        if self._all is None:
            return self._index.scored(record_ids, self._query)
        owners, rows = self._index.pairs_of(record_ids) if len(self._all) else ([], [])
        return _best_of(owners, self._all[rows].tolist() if rows else [])

    def pieces_of(self, record_id: str) -> list[float]:
        """Return the cosine of each text that stands for a record, in their order.

        Nothing for a single one, or while one has no vector.
        """
        keys, row_of = self._index.texts.get(record_id, ()), self._index.rows.of
        if len(keys) == 1:  # as with most
            return []
        rows = [row_of[key] for key in keys if key in row_of]
        return self._index.rows.cosines_of(rows, self._query) if len(rows) == len(keys) else []

    def at_least(self, floor: float, count: int | None = None) -> list[tuple[str, float]]:
        """See `Cosines`."""
        chosen = (self._values >= floor).nonzero()[0]
        wanted = len(chosen) if count is None else count
        while wanted < len(chosen):  # sorting all would cost more than the rest of a search
            found = self._owners(_best(chosen, self._values, wanted))
            if len(found) >= (count or 0):
                return found[:count]
            wanted *= 2  # several rows were of one record
        return self._owners(chosen)[:count]

    def how_many(self, floor: float) -> int:
        """See `Cosines`."""
        return self._index.how_many(self._values >= floor) if len(self._values) else 0

    def below(self, floor: float, count: int) -> list[tuple[str, float]]:
        """See `Cosines`."""
        found = self._owners(((self._values < floor) & (self._values > GIVEN_UP)).nonzero()[0])
        return [pair for pair in found if self.of([pair[0]])[pair[0]] < floor][:count]

    def _owners(self, rows: NDArray[np.intp]) -> list[tuple[str, float]]:
        """Return the records that some rows stand for, best first, each once."""
        rows = rows[(-self._values[rows]).argsort(kind="stable")]
        best: dict[str, float] = {}
        for row, value in zip(rows.tolist(), self._values[rows].tolist(), strict=True):
            for record_id in self._index.rows.records_at(row):
                best.setdefault(record_id, value)
        return list(best.items())


def _best_of(owners: Iterable[str], values: Iterable[float]) -> dict[str, float]:
    """Return the highest value of each owner; nothing when there are no values."""
    best: dict[str, float] = {}
    for record_id, value in zip(owners, values, strict=False):
        if value > best.get(record_id, -math.inf):
            best[record_id] = value
    return best


def _best(rows: NDArray[np.intp], values: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """Return the `count` rows of the highest values, ascending; the earlier ones among equals at the cut."""
    import numpy as np  # nothing slow at import

    within = values[rows]
    cut = np.partition(within, len(rows) - count)[len(rows) - count]
    above, equal = rows[within > cut], rows[within == cut]
    return np.sort(np.concatenate([above, equal[: count - len(above)]]))
