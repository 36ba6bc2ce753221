"""A Qdrant server for tests whose engine is Qdrant's own (`qdrant-edge-py`): conditions, filters and vectors are real.

Stands in for the client's local mode in `LocalServer`. What is missing is the server around the engine: its network,
its collections, its consensus.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import qdrant_edge as edge
from httpx import Headers
from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class EngineClient:
    """The part of a client's interface that a storage uses, upon one shard.

    Args:
        folder: An empty folder for the shard.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shard: Any = None
        self._metadata: dict[str, Any] = {}
        self._has_vectors = False

    def close(self) -> None:
        """Close the shard."""
        if self._shard is not None:
            self._shard.close()

    def info(self) -> Any:
        return SimpleNamespace(version="1.16.0")

    def collection_exists(self, name: str) -> bool:
        return self._shard is not None

    def get_collection(self, name: str) -> Any:
        return SimpleNamespace(config=SimpleNamespace(metadata=self._metadata))

    def create_collection(self, name: str, *, vectors_config: dict[str, Any], metadata: Any, **_: Any) -> bool:
        if self._shard is not None:
            raise UnexpectedResponse(409, "Conflict", b"", Headers())
        several = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
        vectors = {
            key: edge.EdgeVectorParams(params.size, edge.Distance.Cosine, multivector_config=several)
            for key, params in vectors_config.items()
        }
        self._shard = edge.EdgeShard.create(str(self._folder), edge.EdgeConfig(vectors=vectors or None))
        self._metadata, self._has_vectors = metadata, bool(vectors)
        return True

    def create_payload_index(self, name: str, field: str, *, field_schema: Any) -> None:
        kinds = {
            models.KeywordIndexParams: edge.PayloadSchemaType.Keyword,
            models.IntegerIndexParams: edge.PayloadSchemaType.Integer,
            models.BoolIndexParams: edge.PayloadSchemaType.Bool,
        }
        self._shard.update(edge.UpdateOperation.create_field_index(field, kinds[type(field_schema)]))

    def retrieve(self, name: str, points: Sequence[str], *, with_payload: Any, **_: Any) -> list[Any]:
        return self._shard.retrieve(list(points), _fields(with_payload), False) if points else []

    def scroll(self, name: str, scroll_filter: Any, *, limit: int, offset: Any = None, **_: Any) -> Any:
        condition = _filter(scroll_filter)
        ask = edge.ScrollRequest(offset=offset, limit=limit, filter=condition, with_payload=True, with_vector=False)
        return self._shard.scroll(ask)

    def query_points(self, name: str, query: Any, *, using: str, query_filter: Any, limit: int, **_: Any) -> Any:
        ask = edge.QueryRequest(
            limit=limit,
            query=edge.Query.Nearest(query, using=using),
            filter=_filter(query_filter),
            params=edge.SearchParams(exact=True),
            with_payload=False,
            with_vector=False,
        )
        return SimpleNamespace(points=self._shard.query(ask))

    def upsert(self, name: str, points: Sequence[Any], *, update_filter: Any, **_: Any) -> None:
        batch = models.PointsList(points=list(points), update_filter=update_filter)
        self.batch_update_points(name, [models.UpsertOperation(upsert=batch)])

    def batch_update_points(self, name: str, operations: Sequence[Any], **_: Any) -> None:
        for operation in operations:
            self._shard.update(_operation(operation))


def _operation(given: Any) -> Any:
    make = edge.UpdateOperation
    if isinstance(given, models.UpsertOperation):
        points = [edge.Point(str(point.id), point.vector, point.payload) for point in given.upsert.points]
        return make.upsert_points(points, condition=_filter(given.upsert.update_filter))
    if isinstance(given, models.SetPayloadOperation):
        return make.set_payload_by_filter(_filter(given.set_payload.filter), given.set_payload.payload)
    if isinstance(given, models.UpdateVectorsOperation):
        change = given.update_vectors
        vectors = [edge.PointVectors(str(point.id), point.vector) for point in change.points]
        return make.update_vectors(vectors, condition=_filter(change.update_filter))
    assert isinstance(given, models.DeleteOperation), given
    return make.delete_points_by_filter(_filter(given.delete.filter))


def _filter(given: models.Filter) -> Any:
    return edge.Filter(must=[_condition(one) for one in given.must])


def _condition(given: Any) -> Any:
    if isinstance(given, models.HasIdCondition):
        return edge.HasIdCondition({str(point) for point in given.has_id})
    if given.range is not None:
        bounds = given.range.model_dump(exclude_none=True)
        return edge.FieldCondition(given.key, range=edge.RangeFloat(**bounds))
    return edge.FieldCondition(given.key, match=edge.MatchValue(given.match.value))


def _fields(given: Any) -> Any:
    return edge.PayloadSelector.Exclude(given.exclude) if isinstance(given, models.PayloadSelectorExclude) else given
