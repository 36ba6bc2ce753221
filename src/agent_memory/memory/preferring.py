"""What belongs to the project that a session works on goes before what belongs to another one. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.models import of_another_project
from agent_memory.models.search import MAX_RESULTS

if TYPE_CHECKING:
    from agent_memory.memory.caller import Caller
    from agent_memory.models import MemorySearchResult, SearchFilters, SearchResults

OTHER_PROJECT: Final = 0.85
"""What a score keeps of what belongs to another project.

Chosen, not fitted: of two notes that answer alike the own project's is first, and another project's that answers by far
better still is (a similarity of .7 stays ahead of one of .59)."""
_MORE: Final = 20
"""Hits beyond those asked for that are looked at: among them may be the own project's."""


def looked_at(limit: int, filters: SearchFilters, caller: Caller) -> int:
    """Return how many hits are to be found so that `prefer` can choose `limit` of them."""
    return min(MAX_RESULTS, limit + _MORE) if _prefers(filters, caller) else limit


def prefer(results: SearchResults, limit: int, filters: SearchFilters, caller: Caller) -> None:
    """Put the hits of other projects behind those as good of the caller's, and keep the best `limit`.

    Nothing changes where the caller has no project, or a project was asked for.
    """
    if not _prefers(filters, caller):
        return
    weighed = [_lowered(hit) if of_another_project(hit.memory, caller.project) else hit for hit in results]
    results[:] = sorted(weighed, key=lambda hit: -hit.relevance_score)[:limit]


def _lowered(hit: MemorySearchResult) -> MemorySearchResult:
    parts = {**hit.parts, "project": OTHER_PROJECT}
    return hit.model_copy(update={"relevance_score": hit.relevance_score * OTHER_PROJECT, "parts": parts})


def _prefers(filters: SearchFilters, caller: Caller) -> bool:
    return bool(caller.project) and filters.project is None
