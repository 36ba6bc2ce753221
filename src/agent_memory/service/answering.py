"""The answer of a search without a storage, and what its event says. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.models import MemorySearchResult, SearchResults
from agent_memory.service.events import fingerprint

if TYPE_CHECKING:
    from agent_memory.models import Scratchpad, SearchFilters


_MAX_QUERY_CHARS: Final = 10_000


def check_query(query: str) -> None:
    """Refuse a query that is longer than any memory can be.

    Raises:
        ValidationError: It is.
    """
    if not isinstance(query, str):
        raise ValidationError(f"The query must be text, got {type(query).__name__}; '' asks for the latest.")
    if len(query) > _MAX_QUERY_CHARS:
        raise ValidationError(f"A query has at most {_MAX_QUERY_CHARS} characters, got {len(query)}.")


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
