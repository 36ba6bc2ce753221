"""Find existing memories to compare with a new text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.errors import StorageError
from agent_memory.models import filters_of, may_stand_for, of_another_project

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.index import Hit
    from agent_memory.memory.caller import Caller
    from agent_memory.models import Memory, MemorySearchResult
    from agent_memory.store.lookups import RecencyRule
    from agent_memory.store.memory_storage import MemoryStorage

MAX_SIMILAR: Final = 3
"""Similar memories of one text."""
_BY_MEANING: Final = 2
"""Of these, the nearest by meaning; the last one is the best by words. `python -m benchmarks.similar` compares the
shares."""
_CANDIDATES: Final = 99
"""Results among which they are chosen: the nearest by meaning may share few words and rank low."""
_MIN_COSINE: Final = 0.35
"""Cosine of a similar memory: of 28 replaced facts of a coding agent the farthest has 0.36."""
_MIN_SHARE: Final = 0.3
"""Share of the text's words that a memory similar by words alone holds."""


async def find_similar(
    storage: MemoryStorage, memory: Memory, caller: Caller, hits: Sequence[MemorySearchResult] | None = None
) -> list[Memory]:
    """Return up to three memories similar to a stored one, best first.

    By words always, by meaning if the model is loaded. Memories of other projects and groups, replaced ones and
    untrusted ones (unless the stored memory is untrusted, too) are left out.

    Args:
        storage: Where the memories are.
        memory: Memory that was stored.
        caller: Session that stored it.
        hits: Hits of `load_recent_and_hits`; searched for when omitted.
    """
    if memory.is_item:
        return []
    hits = await _search(storage, memory.content, caller) if hits is None else hits
    hits = [hit for hit in hits if hit.memory.id not in {memory.id, memory.supersedes}]
    hits = [hit for hit in hits if may_stand_for(hit.memory.trust, memory.trust)]
    return choose_similar([hit for hit in hits if not of_another_project(hit.memory, memory.project)])


async def load_recent_and_hits(
    storage: MemoryStorage, memory: Memory, caller: Caller, order: RecencyRule
) -> tuple[list[Memory], Sequence[MemorySearchResult] | None]:
    """Return scratchpad candidates and the hits for `find_similar`."""
    filters = filters_of(None).within(caller.group)
    return await storage.load_recent_and_hits(order, memory.content, _CANDIDATES, filters, _may_be_similar)


async def is_near(storage: MemoryStorage, text: str, memory: Memory, caller: Caller) -> bool:
    """Return True if a memory is near a text by meaning.

    False unless the model is loaded.
    """
    hits = await _search(storage, text, caller)
    return any(hit.memory.id == memory.id and hit.parts.get("cosine", 0.0) >= _MIN_COSINE for hit in hits)


async def _search(storage: MemoryStorage, text: str, caller: Caller) -> Sequence[MemorySearchResult]:
    """Return the hits that may be similar, or none if storage fails."""
    try:
        return await storage.find_hits(text, _CANDIDATES, filters_of(None).within(caller.group), _may_be_similar)
    except StorageError:
        return []


def _may_be_similar(hit: Hit) -> bool:
    """Return True if a hit is near by meaning or by words."""
    return hit.parts.get("cosine", 0.0) >= _MIN_COSINE or hit.parts.get("share", 0.0) >= _MIN_SHARE


def choose_similar(hits: Sequence[MemorySearchResult]) -> list[Memory]:
    """Return the memories to compare among search results."""
    near = [hit for hit in hits if hit.parts.get("cosine", 0.0) >= _MIN_COSINE]
    near.sort(key=lambda hit: -hit.parts["cosine"])
    worded = [hit for hit in hits if hit.parts.get("share", 0.0) >= _MIN_SHARE]
    worded.sort(key=lambda hit: -hit.parts.get("bm25", 0.0))
    ranked = {hit.memory.id: hit.memory for hit in (*near[:_BY_MEANING], *worded[:1], *near, *worded)}
    return list(ranked.values())[:MAX_SIMILAR]
