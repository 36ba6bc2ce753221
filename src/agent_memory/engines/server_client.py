"""Requests to a Qdrant server, each for one agent and retried.

Owns requests, their filters, retries and the translation of errors. Knows neither memories nor ranking nor the order of
changes. Imports the client library, so import it where a server is first needed and not before. Nothing here puts a
payload, a URL or a key into a message or a log.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from typing import TYPE_CHECKING, Any, Final, TypeVar

import httpx
from qdrant_client import models
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from agent_memory.errors import StorageError
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from qdrant_client import QdrantClient

    from agent_memory.embeddings.protocol import Vector

T = TypeVar("T")
Payload = dict[str, Any]
log = get_logger(__name__)

VECTOR: Final = "meaning"
HEAD: Final = "head"

_PAGE: Final = 256
"""Points a page: 256 memories of the greatest size are 5 MB, of the usual one 200 KB."""


_MAJORITY: Final = models.ReadConsistencyType.MAJORITY
_INDEXES: Final[dict[str, Any]] = {
    "agent_id": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "seq": models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=False, range=True),
    **dict.fromkeys(("kind", "nonce", "text"), models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD)),
    **dict.fromkeys(("has_vector", "gone", "item"), models.BoolIndexParams(type=models.BoolIndexType.BOOL)),
}
"""For each field that a filter names: a server in strict mode refuses others."""

_LONGEST_PAUSE: Final = 2.0
_DOWN_SECONDS: Final = 10.0
"""After a request failed for good, those of the next seconds are tried once: a dead server delays one call only."""

_PASSING: Final = frozenset({429, 500, 502, 503, 504})
_NONSENSE: Final = (json.JSONDecodeError, UnicodeDecodeError)
_REFUSED: Final = frozenset({401, 403})
_STILL_WORKS: Final = (
    "What is stored is safe on the server. Until it answers, searches use the scratchpad as last seen and nothing can "
    "be stored; check that the server runs and that qdrant_url is right."
)


class UnreachableError(StorageError):
    """The server did not answer in time, or not at all.

    Attributes:
        maybe_sent: True if the server may have got the request.
    """

    default_code = "server_down"
    default_recovery = _STILL_WORKS

    def __init__(self, message: str, *, maybe_sent: bool) -> None:
        super().__init__(message)
        self.maybe_sent = maybe_sent


class ServerRequests:
    """Requests about one agent in one collection.

    Thread-safe if the client is.

    Args:
        client: Client of the server; its owner closes it.
        collection: Collection with all agents' memories.
        tenant: Key of the agent, part of every filter and point ID.
        kind: Kind of the records, part of their points.
        pauses: Seconds between two attempts of one request.
    """

    def __init__(
        self,
        client: QdrantClient,
        collection: str,
        tenant: str,
        kind: str,
        pauses: tuple[float, ...],
    ) -> None:
        self._client = client
        self._name = collection
        self._tenant = tenant
        self._kind = kind
        self._pauses = pauses
        self._down_until = 0.0
        self._head = self.point(f"{HEAD}:")

    def point(self, name: str) -> str:
        """Return the ID of a point.

        The same name of another agent is another point.
        """
        return str(uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_OID, self._tenant), name))

    # -- collection ---------------------------------------------------------------------------------------------------

    def version(self) -> str:
        """Return the server's version, such as `1.16.3`."""
        return str(self._call(self._client.info).version)

    def collection(self) -> models.CollectionInfo | None:
        """Return the server's information about the collection, or None."""
        if not self._call(self._client.collection_exists, self._name):
            return None
        return self._call(self._client.get_collection, self._name)

    def create(self, dimension: int | None, metadata: Payload, shards: int | None, replicas: int | None) -> None:
        """Create the collection.

        Another client may do so at the same moment.

        Args:
            dimension: Number of dimensions; None for a collection that is searched by words alone.
            metadata: Kept with the collection.
            shards: Number of shards; None for the server's default.
            replicas: Number of replicas; None for the server's default.
        """
        vectors = {} if dimension is None else {VECTOR: _vector_params(dimension)}
        try:
            self._call(
                self._client.create_collection,
                self._name,
                vectors_config=vectors,
                metadata=metadata,
                shard_number=shards,
                replication_factor=replicas,
                # A read that asks a majority sees a write that a majority acknowledged.
                write_consistency_factor=None if replicas is None else replicas // 2 + 1,
                # Every search is exact and within one agent: a graph over all of them would not be used.
                hnsw_config=models.HnswConfigDiff(m=0),
            )
        except StorageError:
            if self.collection() is None:
                raise
        for field, schema in _INDEXES.items():
            self._call(self._client.create_payload_index, self._name, field, field_schema=schema)

    # -- reading ------------------------------------------------------------------------------------------------------

    def head(self, *, whole: bool = False) -> Payload | None:
        """Return the agent's head, or None if it has no records.

        Its `items` only with `whole`.
        """
        fields: Any = True if whole else models.PayloadSelectorExclude(exclude=["items"])
        return self._read([self._head], fields).get(self._head)

    def rows(self, memory_ids: Collection[str], fields: list[str]) -> dict[str, Payload]:
        """Return fields of existing memories, by memory ID.

        Raises:
            StorageError: The server does not answer, or one is not this agent's (`foreign_point`).
        """
        points = {self.point(memory_id): memory_id for memory_id in memory_ids}
        if not points:
            return {}
        return {points[point]: row for point, row in self._read(list(points), [*fields, "agent_id"]).items()}

    def changed_since(self, seq: int) -> Iterator[Payload]:
        """Yield memories and deletion marks changed after `seq`, unordered."""
        mine = self._mine(_is("kind", self._kind), _range("seq", gt=seq))
        offset: Any = None
        while True:
            points, offset = self._call(
                self._client.scroll,
                self._name,
                scroll_filter=mine,
                limit=_PAGE,
                offset=offset,
                with_payload=True,
                consistency=_MAJORITY,
            )
            yield from (point.payload or {} for point in points)
            if offset is None:
                return

    def nearest(self, vector: Vector, limit: int, *, items: bool = True) -> list[tuple[str, float]]:
        """Return the points nearest to a vector: (point ID, cosine).

        Best first, compared exactly.

        Args:
            vector: Vector to compare with.
            limit: Maximum number of points.
            items: True to include items.
        """
        mine = self._mine(_is("kind", self._kind), _is("has_vector", value=True))
        if not items:
            mine.must_not = [_is("item", value=True)]
        answer = self._call(
            self._client.query_points,
            self._name,
            query=[vector.tolist()],
            using=VECTOR,
            query_filter=mine,
            search_params=models.SearchParams(exact=True),
            limit=limit,
            with_payload=False,
            consistency=_MAJORITY,
        )
        return [(str(point.id), point.score) for point in answer.points]

    # -- writing ------------------------------------------------------------------------------------------------------

    def swap_head(self, before: tuple[int, str] | None, head: Payload) -> None:
        """Replace the head if it is still (seq, nonce) `before`.

        Inserts it if there was none. The result is known only by reading the head. May be repeated.
        """
        seq, nonce = before or (-1, "")  # no head is ever that: what exists stays
        payload = {**head, "agent_id": self._tenant, "kind": HEAD}
        self._call(
            self._client.upsert,
            self._name,
            [models.PointStruct(id=self._head, payload=payload, vector={})],
            update_filter=self._mine(_is("kind", HEAD), _range("seq", gte=seq, lte=seq), _is("nonce", nonce)),
            ordering=models.WriteOrdering.STRONG,
        )

    def apply(self, seq: int, items: Sequence[Payload]) -> None:
        """Apply the items of change `seq`, and note that.

        Repeating it, however late, changes nothing.

        Args:
            seq: Number of the change. Rows that a later change wrote stay as they are.
            items: `{"id", "op", "row"}`: `put` replaces a row and drops its vector, `set` overlays fields, `purge`
                removes the mark of a forgotten memory.
        """
        older = _range("seq", lt=seq)
        operations: list[Any] = []
        puts = [
            models.PointStruct(id=self.point(item["id"]), payload=self._row(item, seq), vector={})
            for item in items
            if item["op"] == "put"
        ]
        if puts:
            batch = models.PointsList(points=puts, update_filter=self._mine(older))
            operations.append(models.UpsertOperation(upsert=batch))
        for item in items:
            if item["op"] == "set":
                only = self._mine(models.HasIdCondition(has_id=[self.point(item["id"])]), older)
                change = models.SetPayload(payload={**item["row"], "seq": seq}, filter=only)
                operations.append(models.SetPayloadOperation(set_payload=change))
        gone = [self.point(item["id"]) for item in items if item["op"] == "purge"]
        if gone:
            only = self._mine(models.HasIdCondition(has_id=[*gone]), _is("gone", value=True), older)
            operations.append(models.DeleteOperation(delete=models.FilterSelector(filter=only)))
        this = self._mine(models.HasIdCondition(has_id=[self._head]), _range("seq", gte=seq, lte=seq))
        done = models.SetPayload(payload={"applied": seq}, filter=this)
        operations.append(models.SetPayloadOperation(set_payload=done))
        self._batch(operations)

    def write_vectors(self, vectors: Sequence[tuple[str, str, str, list[list[float]]]]) -> None:
        """Write the vectors of memories.

        Args:
            vectors: (memory ID, hash of the content, mark to set, one row a piece). If the content has changed, nothing
                is written.
        """
        operations: list[Any] = []
        for memory_id, text, mark, rows in vectors:
            point = self.point(memory_id)
            only = self._mine(models.HasIdCondition(has_id=[point]), _is("text", text))
            change = models.UpdateVectors(
                points=[models.PointVectors(id=point, vector={VECTOR: rows})], update_filter=only
            )
            note = models.SetPayload(payload={"embedded": mark, "has_vector": True}, filter=only)
            operations += [
                models.UpdateVectorsOperation(update_vectors=change),
                models.SetPayloadOperation(set_payload=note),
            ]
        self._batch(operations)

    # -- underneath ---------------------------------------------------------------------------------------------------

    def _row(self, item: Payload, seq: int) -> Payload:
        return {**item["row"], "id": item["id"], "agent_id": self._tenant, "kind": self._kind, "seq": seq}

    def _mine(self, *conditions: Any) -> models.Filter:
        return models.Filter(must=[_is("agent_id", self._tenant), *conditions])

    def _read(self, points: list[str], fields: Any) -> dict[str, Payload]:
        answer = self._call(self._client.retrieve, self._name, points, with_payload=fields, consistency=_MAJORITY)
        rows = {str(point.id): point.payload or {} for point in answer}
        if any(row.get("agent_id") != self._tenant for row in rows.values()):
            raise StorageError(
                "A point of this agent's holds what another author wrote; nothing was read or written.",
                code="foreign_point",
                recovery="Another program writes to this collection; give qdrant_collection another name.",
            )
        return rows

    def _batch(self, operations: list[Any]) -> None:
        self._call(self._client.batch_update_points, self._name, operations, ordering=models.WriteOrdering.STRONG)

    def _call(self, request: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Send a repeatable request, with pauses between attempts.

        Raises:
            StorageError: It failed for good.
        """
        pauses = () if time.monotonic() < self._down_until else self._pauses
        maybe_sent = False
        for pause in (*pauses, None):
            try:
                answer = request(*arguments, **options)
            except (ApiException, QdrantException, *_NONSENSE) as error:
                maybe_sent = maybe_sent or not _never_sent(error)
                if pause is None or not _may_pass(error):
                    raise self._translate(error, maybe_sent=maybe_sent) from None
                asked = float(getattr(error, "retry_after_s", 0) or 0)
                time.sleep(min(_LONGEST_PAUSE, max(asked, pause * random.uniform(1, 1.5))))  # noqa: S311 - spreads load
            else:
                self._down_until = 0.0
                return answer
        raise AssertionError  # the last attempt returns or raises

    def _translate(self, error: Exception, *, maybe_sent: bool) -> StorageError:
        if _may_pass(error):
            self._down_until = time.monotonic() + _DOWN_SECONDS
            return UnreachableError(f"The memory server {_complaint(error)}.", maybe_sent=maybe_sent)
        if isinstance(error, UnexpectedResponse) and error.status_code in _REFUSED:
            return StorageError(
                f"The memory server refused the key (HTTP {error.status_code}).",
                code="key_refused",
                recovery="Put a key that may read and write into the environment variable QDRANT_API_KEY.",
            )
        return StorageError(
            f"The memory server {_complaint(error)}.",
            code="bad_answer",
            recovery="Check that qdrant_url leads to Qdrant itself, and read the server's log.",
        )


def _vector_params(dimension: int) -> models.VectorParams:
    several = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    return models.VectorParams(size=dimension, distance=models.Distance.COSINE, multivector_config=several)


def _is(field: str, value: str | bool) -> models.FieldCondition:  # noqa: FBT001 - a value, not a switch
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def _range(field: str, **bounds: int) -> models.FieldCondition:
    return models.FieldCondition(key=field, range=models.Range(**bounds))


def _never_sent(error: Exception) -> bool:
    source = error.source if isinstance(error, ResponseHandlingException) else None
    return isinstance(source, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _may_pass(error: Exception) -> bool:
    if isinstance(error, ResponseHandlingException):
        return isinstance(error.source, httpx.TransportError)
    return isinstance(error, ResourceExhaustedResponse) or (
        isinstance(error, UnexpectedResponse) and error.status_code in _PASSING
    )


def _complaint(error: Exception) -> str:
    if isinstance(error, UnexpectedResponse):
        return f"answered with HTTP {error.status_code}"
    if isinstance(error, ResourceExhaustedResponse):
        return "is overloaded (HTTP 429)"
    source = error.source if isinstance(error, ResponseHandlingException) else error
    if isinstance(source, httpx.TimeoutException):
        return "did not answer in time"
    if isinstance(source, httpx.TransportError):
        return f"cannot be reached ({type(source).__name__})"
    return "answered with something that is not Qdrant's"
