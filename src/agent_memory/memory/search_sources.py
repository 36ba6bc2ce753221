"""`SearchSource`: searchable texts next to memories, such as pages and talk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent_memory.models import HIT_KINDS, HitKind, HitOrigin, MemorySearchResult, SearchRequest, SearchResults
from agent_memory.store.memory_storage import build_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.index import Hit
    from agent_memory.memory.caller import Caller
    from agent_memory.models import Memory


@dataclass(frozen=True, slots=True)
class WideRequest:
    """A search over several kinds of hits.

    Attributes:
        request: Question with its limit and filters.
        caller: Session that asks.
        kinds: Kinds of hits to find.
        has_waiting: True if notes that wait for a person's yes are found, too.
    """

    request: SearchRequest
    caller: Caller
    kinds: frozenset[HitKind] = HIT_KINDS
    has_waiting: bool = False

    @property
    def is_listing(self) -> bool:
        """Return True if the query is empty: a listing."""
        return not self.request.text.strip()

    def elsewhere(self) -> SearchRequest:
        """Return the request for records of another storage."""
        filters = self.request.filters.model_copy(update={"include_items": True, "only_items": False})
        return replace(self.request, filters=filters, explain=False)


def build_hit(memory: Memory, origin: HitOrigin, hit: Hit | None = None) -> MemorySearchResult:
    """Return a text as a hit of a search.

    Args:
        memory: Text in the form of a memory.
        origin: Where it comes from.
        hit: Its place in the ranking of an index; None if it was asked for by its ID.
    """
    if hit is None:
        return MemorySearchResult(
            memory=memory, relevance_score=1, match_type="keyword", match="strong", answer_confidence=1, origin=origin
        )
    return build_result(memory, hit, origin=origin)


class SearchSource:
    """Base class of searchable texts next to memories."""

    async def find(self, asked: WideRequest) -> SearchResults:
        """Return the best matches, best first."""
        return SearchResults(match=None if asked.is_listing else "none")

    async def describe(self, hits: Sequence[MemorySearchResult], asked: WideRequest) -> list[MemorySearchResult]:
        """Add the origin to items; drop those not to be shown."""
        return [hit for hit in hits if hit.origin.kind in asked.kinds]

    async def get(self, record_id: str, caller: Caller) -> MemorySearchResult | None:
        """Return the text with this ID as a hit, or None."""

    async def count(self, asked: WideRequest) -> dict[str, Any] | None:
        """Return this source's facts for an overview, by name."""

    async def close(self) -> None:
        """Close open files."""
