"""Searching within a topic: of what names it, and of what is filed under it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agent_memory.models import SearchFilters, SearchResults

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_memory.models import MemorySearchResult
    from agent_memory.service import Caller, Found, MemoryService

MOST: Final = 100
"""The best of all that are looked through for what is filed under a topic."""


async def search_within(
    service: MemoryService, query: str, k: int, category: str, filed: Collection[str], caller: Caller
) -> Found:
    """Return what answers a query of what names a topic, and of what is filed there if it is among the best of all.

    Args:
        service: Where memories are.
        query: What is asked.
        k: How many at most.
        category: The name of the topic.
        filed: Ids of the items that are filed there.
        caller: The session that asks.

    Raises:
        StorageError: Nothing can be read.
    """
    named = await service.search(query, k, SearchFilters(topic=category, include_items=True), caller=caller)
    if not filed:
        return named
    every = await service.search(query, MOST, SearchFilters(include_items=True), caller=caller)
    hits = {hit.memory.id: hit for hit in (*named.results, *every.results) if _belongs(hit, category, filed)}
    best = sorted(hits.values(), key=lambda hit: hit.relevance_score, reverse=True)[:k]
    results = SearchResults(
        best,
        total_found=max(len(hits), named.results.total_found),
        mode=every.results.mode,
        degraded=every.results.degraded,
        match="strong" if any(hit.match == "strong" for hit in best) else "weak" if best else "none",
        answer_confidence=max((hit.answer_confidence or 0.0 for hit in best), default=0.0),
    )
    return replace(named, results=results, latency_ms=named.latency_ms + every.latency_ms)


def _belongs(hit: MemorySearchResult, category: str, filed: Collection[str]) -> bool:
    return hit.memory.topic == category or hit.memory.id in filed
