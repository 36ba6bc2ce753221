"""One folder of the embedded engine.

The only file that imports `qdrant_edge` and uses its names. Runs in child processes only: each call holds the
interpreter lock, up to minutes (`optimize` of 100,000 points), and a file cut short under the engine's memory map ends
the process. Holds points and payloads, not memories.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Final

import qdrant_edge as edge

from agent_memory.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


_GRAPH_FROM: Final = 10_000
"""Points from which a graph is built. Scanning fewer takes as long as asking the graph (1 ms), and building it half a
second for each thousand."""
_GRAPH_LINKS: Final = 16
_GRAPH_EFFORT: Final = 128
"""The engine's defaults are 16 and 100; recall@10 at 100,000 clustered vectors is 1.0 with these."""
_PAGE: Final = 1000
_FIELDS: Final = (
    ("facets", edge.PayloadSchemaType.Keyword),
    ("timestamp", edge.PayloadSchemaType.Float),
)
_RECOVERY: Final = "Nothing to do: the index is derived and will be rebuilt; searches continue without it."


class Shard:
    """An open shard. The engine's lock admits one process at a time.

    Args:
        raw: Handle of the engine.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    @classmethod
    def create(cls, path: Path, dimension: int) -> Shard:
        """Create an empty shard in an existing, empty folder.

        Raises:
            StorageError: The engine refuses, for want of room for instance.
        """
        config = edge.EdgeConfig(
            vectors=edge.EdgeVectorParams(dimension, edge.Distance.Dot, datatype=edge.VectorStorageDatatype.Float16),
            hnsw_config=edge.HnswIndexConfig(
                m=_GRAPH_LINKS,
                ef_construct=_GRAPH_EFFORT,
                full_scan_threshold=_kilobytes(_GRAPH_FROM, dimension),
                max_indexing_threads=max(1, (os.cpu_count() or 2) - 1),  # the agent needs one, too
            ),
            optimizers=edge.EdgeOptimizersConfig(
                default_segment_number=1, indexing_threshold=_kilobytes(_GRAPH_FROM, dimension)
            ),
            max_search_threads=1,
            wal_enabled=True,  # without it the shard has no lock, and what was not flushed vanishes in silence
        )
        with _translate_errors("create"):
            return cls(edge.EdgeShard.create(str(path), config))

    @classmethod
    def open(cls, path: Path) -> Shard:
        """Open the shard in the folder `path`.

        Raises:
            StorageError: It is missing, damaged, of another version, or held by another process.
        """
        with _translate_errors("open"):
            return cls(edge.EdgeShard.load(str(path)))

    def upsert(self, first: int, payloads: Sequence[dict[str, Any]], vectors: Sequence[Sequence[float]]) -> None:
        """Write points numbered from `first`; existing ones are replaced.

        Args:
            first: Number of the first point.
            payloads: Payload of each vector.
            vectors: One unit vector for each payload.

        Raises:
            StorageError: Nothing of this call may be relied upon.
        """
        numbered = enumerate(zip(payloads, vectors, strict=True), first)
        raw = [edge.Point(number, list(vector), payload) for number, (payload, vector) in numbered]
        with _translate_errors("write to"):
            self._raw.update(edge.UpdateOperation.upsert_points(raw))

    def nearest(
        self,
        vector: Sequence[float],
        limit: int,
        *,
        floor: float | None = None,
        where: Mapping[str, Any] | None = None,
        exact: bool = False,
    ) -> list[tuple[int, float]]:
        """Return the points nearest to a unit vector, as (number, cosine).

        Best first.

        Args:
            vector: Unit vector to compare with.
            limit: Maximum number of points.
            floor: Least cosine, if any.
            where: Conditions on payloads, see `shard_process.PayloadConditions`.
            exact: Compare every point instead of asking the graph.

        Raises:
            StorageError: The engine cannot answer.
        """
        request = edge.QueryRequest(
            query=edge.Query.Nearest(list(vector)),
            limit=limit,
            filter=_filter(where or {}),
            score_threshold=floor,
            params=edge.SearchParams(exact=True) if exact else None,
            with_payload=False,
            with_vector=False,
        )
        with _translate_errors("search"):
            return [(int(point.id), float(point.score)) for point in self._raw.query(request)]

    def vectors(self, numbers: Sequence[int]) -> dict[int, list[float]]:
        """Return the vectors of existing points, by number.

        Raises:
            StorageError: The engine cannot answer.
        """
        with _translate_errors("read"):
            return {
                int(point.id): list(point.vector)
                for point in self._raw.retrieve(list(numbers), with_payload=False, with_vector=True)
            }

    def owners(self) -> Iterator[tuple[int, str]]:
        """Yield every point as (number, record id).

        Raises:
            StorageError: The engine cannot answer.
        """
        offset = None
        while True:
            request = edge.ScrollRequest(limit=_PAGE, offset=offset, with_payload=["id"], with_vector=False)
            with _translate_errors("read"):
                records, offset = self._raw.scroll(request)
            for record in records:
                yield int(record.id), str(record.payload["id"])
            if offset is None:
                return

    def count(self) -> int:
        """Return the number of points.

        Raises:
            StorageError: The engine cannot answer.
        """
        with _translate_errors("read"):
            return int(self._raw.count(edge.CountRequest(exact=True)))

    def optimize(self) -> None:
        """Index the payload fields and build the graph.

        Takes minutes for 100,000 points. Comes after the load: with payload indexes from the beginning it takes eight
        times as long.

        Raises:
            StorageError: No room, for instance; the shard is to be thrown away.
        """
        with _translate_errors("optimize"):
            for field, schema in _FIELDS:
                self._raw.update(edge.UpdateOperation.create_field_index(field, schema))
            self._raw.optimize()

    def flush(self) -> None:
        """Write everything to the disk.

        Raises:
            StorageError: No room, for instance.
        """
        with _translate_errors("flush"):
            self._raw.flush()

    def close(self) -> None:
        """Flush and close the files.

        Raises:
            StorageError: What was written since the last flush may be lost.
        """
        with _translate_errors("close"):
            self._raw.close()


def _kilobytes(points: int, dimension: int) -> int:
    """Return the size of vectors in KB, the engine's unit of thresholds."""
    return max(1, points * dimension * 4 // 1024)


def _filter(where: Mapping[str, Any]) -> Any:
    conditions = list(_conditions(where))
    none: list[Any] = [_having(facet) for facet in where.get("no_facets", ())]
    return edge.Filter(must=conditions, must_not=none) if conditions or none else None


def _having(facet: str) -> Any:
    return edge.FieldCondition(key="facets", match=edge.MatchValue(facet))


def _conditions(where: Mapping[str, Any]) -> Iterable[Any]:
    yield from map(_having, where.get("facets", ()))
    if any_facets := where.get("any_facets"):
        yield edge.FieldCondition(key="facets", match=edge.MatchAny(any_facets))
    if "group" in where:
        own_group, any_group = where["group"]
        yield edge.Filter(should=[_having(own_group), edge.Filter(must_not=[_having(any_group)])])
    if "since" in where or "until" in where:
        between = edge.RangeFloat(gte=where.get("since"), lte=where.get("until"))
        yield edge.FieldCondition(key="timestamp", range=between)


@contextlib.contextmanager
def _translate_errors(doing: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the engine raises the bare class for all that goes wrong
        raise _failure(doing, error) from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # its own, and not an Exception
            raise _failure(doing, error) from error
        raise


def _failure(doing: str, error: BaseException) -> StorageError:
    reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    return StorageError(f"The vector engine could not {doing} its index: {reason}.", code="engine", recovery=_RECOVERY)
