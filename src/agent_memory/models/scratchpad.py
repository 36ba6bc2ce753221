"""`Scratchpad`: the short list of memories an agent sees at the start of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from agent_memory.models.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


class Scratchpad(BaseModel):
    """Memories in order of importance: pinned first, then the most recent."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    agent_id: str
    entries: list[Memory] = Field(default_factory=list)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, memory_id: object) -> bool:
        return any(entry.id == memory_id for entry in self.entries)

    def ids(self) -> Iterator[str]:
        """Yield the ids in order."""
        return (entry.id for entry in self.entries)

    def without(self, gone: Collection[str]) -> Scratchpad:
        """Return what is left when these ids are taken out."""
        return self.model_copy(update={"entries": [entry for entry in self.entries if entry.id not in gone]})

    def search_keywords(self, query: str) -> list[Memory]:
        """Return entries that hold any word of `query`, most words first: the last resort when storage fails."""
        words = {word for word in query.casefold().split() if word}
        scored = [(sum(word in entry.content.casefold() for word in words), entry) for entry in self.entries]
        return [entry for hits, entry in sorted(scored, key=lambda pair: -pair[0]) if hits]
