"""Find existing memories to compare with a new text."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from agent_memory.errors import StorageError
from agent_memory.models import filters_of, may_stand_for, of_another_project

if TYPE_CHECKING:
    from agent_memory.memory.caller import Caller
    from agent_memory.models import Memory
    from agent_memory.store.memory_storage import MemoryStorage
    from agent_memory.store.store import RecordNeighbors

MAX_SIMILAR: Final = 3
"""Similar memories of one text."""
_BY_MEANING: Final = 2
"""Of these, the nearest by meaning; the last one is the best by words. `python -m benchmarks.similar` compares the
shares."""
MIN_COSINE: Final = 0.35
"""Cosine of a similar memory: of 28 replaced facts of a coding agent the farthest has 0.36."""
_MIN_SHARE: Final = 0.3
"""Share of the text's words that a memory similar by words alone holds."""


async def find_similar(storage: MemoryStorage, memory: Memory, caller: Caller) -> list[Memory]:
    """Return up to three memories similar to a stored one, best first.

    By words always, by meaning if the model is loaded. Memories of other projects and groups, replaced ones and
    untrusted ones (unless the stored memory is untrusted, too) are left out; all if storage fails.

    Args:
        storage: Where the memories are.
        memory: Memory that was stored.
        caller: Session that stored it.
    """
    if memory.is_item:
        return []
    filters, choose = filters_of(None).within(caller.group), partial(choose_similar, memory)
    try:
        similar = await storage.compare_neighbors(memory.content, filters, choose, floor=MIN_COSINE, reads_all=True)
    except StorageError:
        return []
    return similar or []


async def is_near(storage: MemoryStorage, text: str, memory: Memory, caller: Caller) -> bool:
    """Return True if a memory is near a text by meaning.

    False unless the model is loaded.
    """
    try:
        near = await storage.list_near(text, [filters_of(None).within(caller.group)], MIN_COSINE)
    except StorageError:
        return False
    return any(neighbor.id == memory.id for neighbor, _ in near)


def choose_similar(memory: Memory, neighbors: RecordNeighbors[Memory]) -> list[Memory]:
    """Return the memories to compare with a memory among its neighbors."""

    def may_be_similar(neighbor: Memory) -> bool:
        is_named = neighbor.id in {memory.id, memory.supersedes}
        return (
            not is_named
            and may_stand_for(neighbor.trust, memory.trust)
            and not of_another_project(neighbor, memory.project)
        )

    worded = (neighbor for neighbor, share in neighbors.worded if share >= _MIN_SHARE and may_be_similar(neighbor))
    ranked: dict[str, Memory] = {}
    near = (neighbor for neighbor, _ in neighbors.near if may_be_similar(neighbor))
    for source, count in ((near, _BY_MEANING), (worded, 1), (near, MAX_SIMILAR), (worded, MAX_SIMILAR)):
        ranked |= {neighbor.id: neighbor for neighbor in islice(source, count)}
    return list(ranked.values())[:MAX_SIMILAR]
