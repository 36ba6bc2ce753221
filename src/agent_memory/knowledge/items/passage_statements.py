"""Statements that an agent made of passages, before their passages are forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.models import PlacedItem, is_untouched_statement
from agent_memory.models.memory import PASSAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.models import Memory
    from agent_memory.store.memory_storage import MemoryStorage


async def find_statements(storage: MemoryStorage, memories: Sequence[Memory]) -> tuple[Memory, ...]:
    """Return statements made of passages among memories, except those that a person changed.

    Raises:
        StorageError: The memories cannot be read.
    """
    passages = [item for item in map(PlacedItem.of, memories) if item.detail == PASSAGE]
    statements: dict[str, Memory] = {}
    for source in dict.fromkeys(source for passage in passages for source in passage.sources):
        for memory in await storage.linked_to(source):
            if is_untouched_statement(memory) and any(PlacedItem.of(memory).follows(passage) for passage in passages):
                statements[memory.id] = memory
    named = {memory.id for memory in memories}
    return tuple(memory for memory in statements.values() if memory.id not in named)
