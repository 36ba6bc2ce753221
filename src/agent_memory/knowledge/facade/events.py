"""Events of `MemoryManager`: their types, what each carries, and the envelope that an event store gets.

The host gets the same as `memory:resource_stored` and so on, by the service. No payload has content or a query.
"""

from __future__ import annotations

import hashlib
import inspect
import uuid
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Clock


class MemoryEventType(StrEnum):
    """Types of events."""

    RESOURCE_STORED = "memory.resource_stored"
    ITEMS_EXTRACTED = "memory.items_extracted"
    CATEGORY_CREATED = "memory.category_created"
    CATEGORY_CONSOLIDATED = "memory.category_consolidated"
    RETRIEVAL_PERFORMED = "memory.retrieval_performed"
    RESOURCE_DELETED = "memory.resource_deleted"
    ITEM_DELETED = "memory.item_deleted"


@dataclass(frozen=True, slots=True)
class ResourceStoredPayload:
    """Of RESOURCE_STORED; `content_length` in characters."""

    resource_id: str
    resource_type: str
    content_length: int
    metadata_keys: list[str]


@dataclass(frozen=True, slots=True)
class ItemsExtractedPayload:
    """Of ITEMS_EXTRACTED; `by_model` of them are statements of a language model."""

    resource_id: str
    item_ids: list[str]
    item_count: int
    categories: list[str]
    extraction_time_ms: float
    by_model: int = 0


@dataclass(frozen=True, slots=True)
class CategoryCreatedPayload:
    """Of CATEGORY_CREATED."""

    category_id: str
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class CategoryConsolidatedPayload:
    """Of CATEGORY_CONSOLIDATED; `content_length` in characters, `by_model` is 0."""

    category_id: str
    name: str
    item_count: int
    content_length: int
    consolidation_time_ms: float
    by_model: int = 0


@dataclass(frozen=True, slots=True)
class RetrievalPerformedPayload:
    """Of RETRIEVAL_PERFORMED, which is for debugging; the query by its SHA-256, and that to the event store alone."""

    query_hash: str
    mode: str
    result_count: int
    search_time_ms: float
    escalated: bool


@dataclass(frozen=True, slots=True)
class ResourceDeletedPayload:
    """Of RESOURCE_DELETED; `cascade` tells whether its items went with it."""

    resource_id: str
    cascade: bool
    item_count: int


@dataclass(frozen=True, slots=True)
class ItemDeletedPayload:
    """Of ITEM_DELETED."""

    item_id: str


Payload = (
    ResourceStoredPayload
    | ItemsExtractedPayload
    | CategoryCreatedPayload
    | CategoryConsolidatedPayload
    | RetrievalPerformedPayload
    | ResourceDeletedPayload
    | ItemDeletedPayload
)


@dataclass(frozen=True, slots=True)
class MemoryEvent:
    """One event as an event store gets it."""

    event_id: str
    event_type: MemoryEventType
    timestamp: datetime
    session_id: str
    correlation_id: str | None
    payload: dict[str, Any]


class EventStore(Protocol):
    """Where events go besides the host; what `append` returns is awaited if it can be."""

    def append(self, event: MemoryEvent) -> object:
        """Keep an event."""


def query_hash(query: str) -> str:
    """Return the SHA-256 of a query, hexadecimal."""
    return hashlib.sha256(query.encode("utf-8", "replace")).hexdigest()


class Events:
    """Sends events to a store, and to the session of the caller.

    Args:
        service: Reports to the session.
        store: None for none.
        clock: Source of the present.
    """

    def __init__(self, service: MemoryService, store: EventStore | None, clock: Clock) -> None:
        self._service, self._store, self._clock = service, store, clock

    async def send(self, kind: MemoryEventType, payload: Payload, caller: Caller) -> None:
        """Send one event; `correlation_id` joins those of one resource or category."""
        values = asdict(payload)
        joined = next((values[name] for name in ("resource_id", "category_id") if name in values), None)
        if self._store is not None:
            event = MemoryEvent(str(uuid.uuid4()), kind, self._clock(), caller.session_id, joined, values)
            done = self._store.append(event)
            if inspect.isawaitable(done):
                await done
        told = {name: value for name, value in values.items() if name not in {"description", "query_hash"}}
        await self._service.report(kind.value.replace(".", ":"), caller, **told)
