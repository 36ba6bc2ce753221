"""What lies in the engine: a point for each piece of a memory, and conditions on its payload. No text, ever.

Deleted text would stay readable in the engine's log and pages; ids, kinds and numbers tell nothing.
"""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_AGENTS: Final = uuid.uuid5(uuid.NAMESPACE_URL, "agent-memory:agent")


def namespace_of(agent_id: str) -> uuid.UUID:
    """Return the namespace of an agent's points."""
    return uuid.uuid5(_AGENTS, agent_id)


def point_id(namespace: uuid.UUID, memory_id: str, piece: int = 0) -> str:
    """Return the id of a memory's point; a long memory has several, numbered from 0."""
    return str(uuid.uuid5(namespace, memory_id if piece == 0 else f"{memory_id}#{piece}"))


@dataclass(frozen=True, slots=True)
class Point:
    """One piece of a memory as a shard holds it, apart from its vector.

    Attributes:
        memory_id: Whose piece this is.
        piece: Its number, from 0.
        category: The memory's category.
        tags: Its tags.
        timestamp: When it was stored, seconds since 1970, UTC.
        access_count: How often it had been used when the point was written; it only grows.
        group: What belongs together, such as the session of a talk; empty for none.
        kind: The journal's record kind.
    """

    memory_id: str
    piece: int
    category: str
    tags: tuple[str, ...]
    timestamp: float
    access_count: int = 0
    group: str = ""
    kind: str = ""

    def payload(self) -> dict[str, Any]:
        """Return what the engine keeps beside the vector."""
        return {
            "id": self.memory_id,
            "kind": self.kind,
            "category": self.category,
            "tags": list(self.tags),
            "timestamp": self.timestamp,
            "access_count": self.access_count,
            "group": self.group,
        }


@dataclass(frozen=True, slots=True)
class Where:
    """Conditions on payloads, all of which must hold; None and empty ask nothing.

    Attributes:
        category: Its category.
        tags: Tags it has, every one.
        any_tags: Tags of which it has at least one.
        since: Stored then or later, seconds since 1970.
        until: Stored then or earlier.
    """

    category: str | None = None
    tags: tuple[str, ...] = ()
    any_tags: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the conditions that ask something, for another process."""
        return {key: value for key, value in asdict(self).items() if value not in (None, ())}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Where:
        """Return the conditions that `as_json` described."""
        return cls(**{**value, **{key: tuple(value.get(key, ())) for key in ("tags", "any_tags")}})
