"""Exact cosines of candidates that the vector engine finds.

The vectors stay in this process: every score is computed from them, so that an engine changes the speed of a search and
not its results. Records changed since the engine's index was built are compared here. Not thread-safe, like its parent.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from agent_memory.engines.shard_process import EngineClient, PayloadConditions, get_label
from agent_memory.index import DenseIndex, ExactCosines
from agent_memory.models import GROUP, GROUPED, ITEM

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.embeddings import EmbeddingWorker
    from agent_memory.embeddings.protocol import Vector
    from agent_memory.index import QueryCosines, SearchScope

NEAREST: Final = 256
"""Candidates asked for: four times what a ranking looks at closely, so that filters leave enough of them."""
_ENOUGH: Final = 100
"""Candidates that must be left after filters; with fewer, and more to be had, all memories are looked at."""
_SAMPLE: Final = 2048
"""Vectors from which the number of those above a floor is estimated: within 15 % where it is a tenth of all."""
_Near = tuple[list[tuple[str, float]], bool]
"""Memories with their cosines, best first, and whether these are all above the floor."""
_MILLISECOND: Final = 0.001
_SLACK: Final = 0.002
"""How far the engine's half-precision cosine may lie from ours; measured on 10,000 pairs: .0006."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Limits that decide when the engine is asked and rebuilt.

    Attributes:
        asked_from: Memories from which the engine is asked once they were moved to it, all vectors being in memory: to
            compare all of them takes .2 ms against .7 at 5,000, 1.6 against 1.9 at 20,000, 7.6 against 1.9 at 100,000.
        rebuilt_from: Changes since the build from which a new index is built, unless too few memories for the engine to
            be asked: comparing 1,000 takes 1.3 ms.
        most_changes: Changes up to which asking the engine pays: comparing 2,000 takes 4 ms, all of 40,000 as long.
        rest_seconds: From one build in the background to the next.
        look_seconds: Between two looks at the engine while nothing is written.
    """

    asked_from: int = 40_000
    rebuilt_from: int = 1000
    most_changes: int = 2000
    rest_seconds: float = 300.0
    look_seconds: float = 1.0


class AnnIndex(DenseIndex):
    """A `DenseIndex` that asks an engine for the nearest memories.

    Args:
        worker: Embeds texts and queries; its owner closes it.
        limits: When the engine is asked.

    Attributes:
        engine: Engine that finds candidates; None compares every memory.
        behind: Memories that changed since the engine's index was built; kept only while there is an engine.
    """

    def __init__(self, worker: EmbeddingWorker, limits: EngineLimits) -> None:
        super().__init__(worker)
        self._limits = limits
        self.engine: EngineClient | None = None
        self.behind: set[str] = set()

    @override
    def put(self, memory_id: str, texts: Iterable[str]) -> None:
        if self.engine is not None:
            self.behind.add(memory_id)
        super().put(memory_id, texts)

    @override
    def remove(self, memory_id: str) -> None:
        if self.engine is not None:
            self.behind.add(memory_id)
        super().remove(memory_id)

    @property
    def is_outdated(self) -> bool:
        """True if enough has changed that a new index makes searches faster."""
        return len(self.texts) >= self._limits.asked_from and len(self.behind) >= self._limits.rebuilt_from

    @override
    def cosines(self, query: Vector, scope: SearchScope | None = None) -> QueryCosines:
        self._absorb()
        few = len(self.texts) < self._limits.asked_from
        if self.engine is None or few or len(self.behind) > self._limits.most_changes:
            return ExactCosines(self, query)
        return _NearCosines(self, query, scope)

    def near(self, query: Vector, floor: float, scope: SearchScope | None = None) -> _Near | None:
        """Return the engine's results above `floor`, and whether they are all.

        Cosines are exact, best first. None if it cannot answer, or if too few results are within the scope.
        """
        if self.engine is None:
            return None
        # The engine's numbers are of half precision: one just below the floor there may be above it here.
        near = self.engine.nearest(query.tolist(), NEAREST, floor - _SLACK, _where(scope))
        if near is None:
            return None
        ids = [memory_id for memory_id, _ in near.pairs if memory_id in self.texts and memory_id not in self.behind]
        if not near.complete and not _leaves_enough(ids, scope):
            return None
        wanted = dict.fromkeys([*ids, *self.behind])
        scored = sorted(self.compute_cosines(wanted, query).items(), key=itemgetter(1), reverse=True)
        least = floor if near.complete or not near.pairs else max(floor, near.pairs[-1][1] - _SLACK)
        return [pair for pair in scored if pair[1] >= least], near.complete

    def estimate(self, query: Vector, floor: float, scope: SearchScope | None) -> int:
        """Estimate the number of memories in scope that reach `floor`."""
        step = max(1, len(self.rows.texts) // _SAMPLE)
        rows = (self.rows.cosines(query, step) >= floor).nonzero()[0] * step
        near = [memory_id for row in rows.tolist() for memory_id in self.rows.records_at(row)]
        return step * (len(near) if scope is None else sum(map(scope.admits, near)))


def _leaves_enough(ids: Iterable[str], scope: SearchScope | None) -> bool:
    return scope is None or sum(islice((1 for memory_id in ids if scope.admits(memory_id)), _ENOUGH)) == _ENOUGH


def _where(scope: SearchScope | None) -> PayloadConditions:
    """Return the conditions that the engine can check.

    They admit at least all records of the scope. Access counts are left out: they change with every search, and a shard
    is immutable. A bound in time is a millisecond wider, since numbers are less exact than dates.
    """
    if scope is None:
        return {}
    filters, between = scope.filters, scope.filters.date_range
    where: PayloadConditions = {
        "facets": list(map(get_label, filters.facets)),
        "any_facets": list(map(get_label, filters.any_facets)),
        "no_facets": [] if filters.include_items else [get_label(ITEM)],
    }
    if filters.group is not None:
        where["group"] = (get_label((GROUP, filters.group)), get_label(GROUPED))
    if between and between.start:
        where["since"] = between.start.timestamp() - _MILLISECOND
    if between and between.end:
        where["until"] = between.end.timestamp() + _MILLISECOND
    return where


class _NearCosines(ExactCosines):
    """Cosines of the nearest records.

    Of all records only if a caller asks for them.
    """

    has_scope = True

    def __init__(self, index: AnnIndex, query: Vector, scope: SearchScope | None) -> None:
        super().__init__(index, query)
        self._ann = index
        self._scope = scope
        self._near: tuple[float, _Near | None] | None = None

    @override
    def at_least(self, floor: float, count: int | None = None) -> list[tuple[str, float]]:
        near = self._above(floor)
        return super().at_least(floor, count) if near is None else near[0][:count]

    @override
    def how_many(self, floor: float) -> int:
        near = self._above(floor)
        if near is None:
            return super().how_many(floor)
        pairs, complete = near
        return len(pairs) if complete else max(len(pairs), self._ann.estimate(self._query, floor, self._scope))

    def _above(self, floor: float) -> _Near | None:
        """Ask the engine, once for each floor.

        Not if every memory was compared already.
        """
        if self._all is not None:
            return None
        if self._near is None or self._near[0] != floor:
            self._near = (floor, self._ann.near(self._query, floor, self._scope))
        return self._near[1]
