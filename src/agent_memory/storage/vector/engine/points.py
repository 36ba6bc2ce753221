"""What lies in the engine: a point for each piece of a record, and conditions on its payload. No text, ever.

Deleted text would stay readable in the engine's log and pages; ids, kinds and numbers tell nothing.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

if TYPE_CHECKING:
    from agent_memory.models import Document

_AGENTS: Final = uuid.uuid5(uuid.NAMESPACE_URL, "agent-memory:agent")


def namespace_of(agent_id: str) -> uuid.UUID:
    """Return the namespace of an agent's points."""
    return uuid.uuid5(_AGENTS, agent_id)


def point_id(namespace: uuid.UUID, record_id: str, piece: int = 0) -> str:
    """Return the id of a record's point; a long record has several, numbered from 0."""
    return str(uuid.uuid5(namespace, record_id if piece == 0 else f"{record_id}#{piece}"))


class Point(NamedTuple):
    """One piece of a record as a shard holds it, apart from its vector.

    Attributes:
        record_id: Whose piece this is.
        piece: Its number, from 0.
        payload: What the engine keeps with the vector, as `payload_of` returns it.
    """

    record_id: str
    piece: int
    payload: dict[str, Any]


def payload_of(document: Document, kind: str) -> dict[str, Any]:
    """Return what the engine keeps of a record of this kind, with each vector."""
    return {
        "id": document.id,
        "kind": kind,
        "category": next((value for name, value in document.facets if name == "category"), ""),
        "tags": [value for name, value in document.facets if name == "tag"],
        "timestamp": document.timestamp.timestamp(),
        "access_count": document.access_count,
        "group": document.session,
    }


class Where(TypedDict, total=False):
    """Conditions on payloads, all of which must hold; what is left out asks nothing.

    Attributes:
        category: Its category.
        tags: Tags it has, every one.
        any_tags: Tags of which it has at least one.
        since: Stored then or later, seconds since 1970.
        until: Stored then or earlier.
    """

    category: str
    tags: list[str]
    any_tags: list[str]
    since: float
    until: float
