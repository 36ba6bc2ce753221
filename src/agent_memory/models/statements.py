"""Statements that an agent made of passages: they are hidden, forgotten and purged with their passage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.models.knowledge import derived_id
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
FROM: Final = "from"
"""Link of an item to the document or turn that it was drawn from."""
ALSO: Final = "also_at"
"""Key of the metadata that has the places of an item in further sources, by their IDs."""


class PlacedItem(NamedTuple):
    """An item with its places in the documents and turns that say it.

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
        """Return the place of the item's words in a source, or None if unknown."""
        also = self.metadata.get(ALSO)
        at = also.get(source_id) if isinstance(also, dict) else None
        if at is None and self.sources[:1] == [source_id]:
            at = self.metadata.get("at")
        match at:
            case [int(begin), int(end)]:
                return begin, end
        return None

    def is_made_of(self, passage: PlacedItem) -> bool:
        """Return True if this is a statement of a passage: it names the passage, or its quote is in there."""
        if self.detail != DIGEST or passage.detail != PASSAGE:
            return False
        return self.metadata.get(PASSAGE) == passage.id or any(
            (own := self.get_place(source)) is not None
            and (whole := passage.get_place(source)) is not None
            and whole[0] <= own[0] <= own[1] <= whole[1]
            for source in self.sources
        )


def get_statement_id(group: str, trust: Trust, origin_id: str, text: str) -> str:
    """Return the ID of a statement.

    Args:
        group: Group of the passage, empty for none.
        trust: Trust of the statement.
        origin_id: ID of the passage; in statements of earlier versions that of the document or turn.
        text: The statement.
    """
    return derived_id(MEMORY.prefix, DIGEST, group, trust, origin_id, get_duplicate_key(text))


def is_as_stated(memory: Memory) -> bool:
    """Return True if a statement still has the words and the trust with which an agent made it."""
    origins = (str(memory.metadata.get(PASSAGE, "")), *PlacedItem.of(memory).sources)
    own = (memory.belongs_to, memory.trust)
    return any(memory.id == get_statement_id(*own, origin, memory.content) for origin in origins)


def is_untouched_statement(memory: Memory) -> bool:
    """Return True if no person pinned, edited or decided about a statement."""
    is_decided = memory.promoted_at is not None or any(link.rel != FROM for link in memory.links)
    return memory.source.detail == DIGEST and is_as_stated(memory) and not memory.pinned and not is_decided
