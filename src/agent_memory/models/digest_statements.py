"""Statements that an agent made of passages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.models.identifiers import derived_id
from agent_memory.models.memory import MEMORY
from agent_memory.models.text import get_duplicate_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.models.memory import Memory
    from agent_memory.models.record import Trust

DIGEST: Final = "digest"
"""`source.detail` of a statement that a session's agent made of a passage."""
PASSAGE: Final = "passage"
"""`source.detail` of a passage, and key of the metadata of a statement that has the ID of its passage."""
SECTION: Final = "section"
"""Key of the metadata of a statement that has the heading path of its passage."""
FROM: Final = "from"
"""Link of an item to its document or turn."""
ALSO: Final = "also_at"
"""Key of the metadata that has the places of an item in further sources, by their IDs."""


class PlacedItem(NamedTuple):
    """An item with its places in documents and turns.

    Attributes:
        id: ID of the item.
        detail: `source.detail` of the item.
        sources: IDs of the documents and turns, the first one first.
        metadata: Metadata of the item.
    """

    id: str
    detail: str
    sources: Sequence[str]
    metadata: Mapping[str, Any]

    @classmethod
    def of(cls, memory: Memory) -> PlacedItem:
        """Return a memory as a placed item."""
        detail = memory.source.detail if memory.is_item else ""
        return cls(memory.id, detail or "", [link.id for link in memory.links if link.rel == FROM], memory.metadata)

    def get_place(self, source_id: str) -> tuple[int, int] | None:
        """Return the place of the item's words in a source, or None."""
        places = self.metadata.get(ALSO)
        place = places.get(source_id) if isinstance(places, dict) else None
        if place is None and self.sources[:1] == [source_id]:
            place = self.metadata.get("at")
        match place:
            case [int(begin), int(end)]:
                return begin, end
        return None

    def follows(self, passage: PlacedItem) -> bool:
        """Return True if this statement names a passage, or quotes it."""
        if self.detail != DIGEST or passage.detail != PASSAGE:
            return False
        return self.metadata.get(PASSAGE) == passage.id or any(
            (quote := self.get_place(source)) is not None
            and (place := passage.get_place(source)) is not None
            and place[0] <= quote[0] <= quote[1] <= place[1]
            for source in self.sources
        )


def get_statement_id(group: str, trust: Trust, origin_id: str, text: str) -> str:
    """Return the ID of a statement.

    Args:
        group: Group of the passage, empty for none.
        trust: Trust of the statement.
        origin_id: ID of the passage; in statements of earlier versions that of the document or turn.
        text: Words of the statement.
    """
    return derived_id(MEMORY.prefix, DIGEST, group, trust, origin_id, get_duplicate_key(text))


def is_as_stated(memory: Memory) -> bool:
    """Return True if a statement has its first words and trust."""
    origins = (str(memory.metadata.get(PASSAGE, "")), *PlacedItem.of(memory).sources)
    group, trust = memory.belongs_to, memory.trust
    return any(memory.id == get_statement_id(group, trust, origin, memory.content) for origin in origins)


def is_untouched_statement(memory: Memory) -> bool:
    """Return True if no person pinned, edited or decided about a statement."""
    is_decided = memory.promoted_at is not None or any(link.rel != FROM for link in memory.links)
    return memory.source.detail == DIGEST and is_as_stated(memory) and not memory.pinned and not is_decided
