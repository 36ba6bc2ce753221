"""What a search comes to beside its results: the answer without a storage, and what the event says. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.models import MemorySearchResult, SearchResults
from agent_memory.service.events import fingerprint

if TYPE_CHECKING:
    from agent_memory.models import Scratchpad, SearchFilters


def search_pad(pad: Scratchpad, query: str, limit: int, conditions: SearchFilters) -> SearchResults:
    """Return what a scratchpad has on a query, for when the memories cannot be read."""
    hits = [memory for memory in pad.search_keywords(query) if conditions.admits(memory)]
    shown = [
        MemorySearchResult(memory=memory, relevance_score=1 / rank, match_type="scratchpad")
        for rank, memory in enumerate(hits[:limit], start=1)
    ]
    return SearchResults(shown, total_found=len(hits))


def searched(query: str, results: SearchResults) -> dict[str, Any]:
    """Return what the event says of a query and of what it found; never the query itself."""
    return {
        "query_chars": len(query),
        "query_sha8": fingerprint(query),
        "results_count": len(results),
        "total_found": results.total_found,
        "mode": results.mode,
    }
