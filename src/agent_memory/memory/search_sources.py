"""`SearchSources`: one search over memories, passages, pages, talk and waiting notes.

Memories and the items drawn from texts share one index and one ranking. Packages above the service add a source for
what is stored elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import StorageError
from agent_memory.index.match_grades import GRADED, STRONG_COSINE
from agent_memory.memory.preferring import looked_at, prefer
from agent_memory.models import (
    EPISODE,
    HIT_KINDS,
    NOTES,
    HitKind,
    HitOrigin,
    MemorySearchResult,
    SearchRequest,
    SearchResults,
)
from agent_memory.models.search import MAX_RESULTS
from agent_memory.store.memory_storage import build_result

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_memory.index import Hit
    from agent_memory.memory.caller import Caller
    from agent_memory.models import Match, Memory, SearchFilters
    from agent_memory.store.memory_storage import MemoryStorage

_ITEM_KINDS: Final = frozenset[HitKind]({"passage", "talk"})
_MARKS: Final = ".,;:!\"'()[]“”。"
"""Marks at the end of a word that do not change it."""
_GRADES: Final[tuple[Match, ...]] = ("none", "weak", "strong")


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


class SearchSources:
    """Sources of one agent's memory and their common search.

    Args:
        storage: Storage of the memories and items.
    """

    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage
        self._sources: list[SearchSource] = []

    def add(self, source: SearchSource) -> None:
        """Search this source, too."""
        self._sources.append(source)

    async def search(self, asked: WideRequest) -> SearchResults:
        """Return the best matches of the kinds asked for.

        Filters whose memories share nothing with the query list the newest of these as weak matches: "open tasks" with
        a category means all of the category.

        Raises:
            StorageError: The memories cannot be read.
        """
        if asked.kinds == NOTES and not asked.has_waiting:
            return await self._search_notes(asked)
        results = await self._join(await self._search_memories(asked), asked)
        if results.match == "none" and asked.request.filters.is_narrow:
            listing = replace(asked, request=replace(asked.request, text=""), has_waiting=False)
            listed = await self._join(await self._search_memories(listing), listing)
            results[:] = [hit.model_copy(update={"match": "weak", "answer_confidence": 0.0}) for hit in listed]
            results.total_found, results.match = listed.total_found, "weak" if listed else "none"
        return results

    async def get(self, record_id: str, caller: Caller) -> MemorySearchResult | None:
        """Return the text with this ID as a hit, or None."""
        for source in self._sources:
            hit = await source.get(record_id, caller)
            if hit is not None:
                return hit
        return None

    async def add_origin(self, hit: MemorySearchResult, asked: WideRequest) -> MemorySearchResult:
        """Return a hit found by its ID, with its origin and expiry."""
        described = await self._describe([hit], replace(asked, kinds=_ITEM_KINDS))
        hit = described[0] if described else hit
        origin = replace(hit.origin, is_expired=hit.memory.is_expired(asked.request.now))
        return hit.model_copy(update={"origin": origin})

    async def count(self, asked: WideRequest) -> dict[str, Any]:
        """Return the facts of all sources for an overview, by name."""
        counts: dict[str, Any] = {}
        for source in self._sources:
            counts |= await source.count(asked) or {}
        return counts

    async def close(self) -> None:
        """Close the open files of all sources."""
        for source in self._sources:
            await source.close()

    async def _search_notes(self, asked: WideRequest) -> SearchResults:
        """Return the best memories, those of the caller's project first."""
        request = asked.request
        results = await self._query(request, request.filters, looked_at(request.limit, request.filters, asked.caller))
        prefer(results, request.limit, request.filters, asked.caller)
        return results

    async def _query(self, request: SearchRequest, filters: SearchFilters, limit: int) -> SearchResults:
        return await self._storage.search(
            request.text,
            limit,
            filters,
            include_superseded=request.include_superseded,
            explain=request.explain,
            min_answer_confidence=request.min_answer_confidence,
            patience=request.patience,
        )

    async def _search_memories(self, asked: WideRequest) -> SearchResults:
        """Return the best memories and items, these with their origin."""
        request, kinds = asked.request, asked.kinds
        if not kinds & {"note", *_ITEM_KINDS}:
            return SearchResults(match=None if asked.is_listing else "none")
        filters = get_memory_filters(request.filters, kinds)
        limit = looked_at(max(request.limit, GRADED), filters, asked.caller)
        while True:
            results = await self._query(request, filters, limit)
            is_all = len(results) < limit or limit == MAX_RESULTS
            prefer(results, limit, filters, asked.caller)
            described = {hit.memory.id: hit for hit in await self._describe(results, asked)}
            notes = [hit.memory.content for hit in results if not hit.memory.is_item]
            shown = [described.get(hit.memory.id, hit) for hit in results if not _is_left_out(hit, described, notes)]
            if is_all or len(shown) >= request.limit:
                break
            limit = min(MAX_RESULTS, 4 * limit)  # items of other kinds take their places
        results.total_found -= len(results) - len(shown)
        results[:] = shown
        return results

    async def _join(self, results: SearchResults, asked: WideRequest) -> SearchResults:
        """Add hits of other sources and apply the limit."""
        for source in self._sources:
            try:
                found = await source.find(asked)
            except StorageError as error:
                results.degraded = results.degraded or f"Documents and talk were not searched: {error.message}"
                continue
            count = len(results)
            results.degraded = results.degraded or found.degraded
            results.words = results.words or found.words
            _insert(results, found, asked)
            added = len(results) - count
            results.total_found += found.total_found if added == len(found) else added  # the others are items, too
        if asked.request.explain:
            cut = results[asked.request.limit :]
            late = [{"id": hit.memory.id, "reason": "beyond_limit", "parts": hit.parts} for hit in cut]
            results.rejected = late + results.rejected
        del results[asked.request.limit :]
        if not asked.is_listing:
            results.match = max((hit.match or "none" for hit in results), key=_GRADES.index, default="none")
        results.answer_confidence = max((hit.answer_confidence or 0.0 for hit in results), default=None)
        return results

    async def _describe(self, hits: Iterable[MemorySearchResult], asked: WideRequest) -> list[MemorySearchResult]:
        """Return the visible items among hits, with their origin."""
        items = [hit for hit in hits if hit.memory.is_item]
        if not items:
            return []
        described = [hit.model_copy(update={"origin": HitOrigin(_get_item_kind(hit))}) for hit in items]
        for source in self._sources:
            described = await source.describe(described, asked)
        return [hit for hit in described if hit.origin.kind in asked.kinds]


def get_memory_filters(filters: SearchFilters, kinds: frozenset[HitKind]) -> SearchFilters:
    """Return the filters that find the memories and items of some kinds."""
    if not kinds & _ITEM_KINDS:
        return filters
    return filters.model_copy(update={"include_items": True, "only_items": "note" not in kinds})


def _get_item_kind(hit: MemorySearchResult) -> HitKind:
    is_said = any(link.id.startswith(EPISODE.prefix) for link in hit.memory.links)
    return "talk" if is_said else "passage"


def _is_left_out(hit: MemorySearchResult, described: dict[str, MemorySearchResult], notes: list[str]) -> bool:
    """Return True for an item of a kind not asked for, and for talk most of which a found note repeats."""
    if not hit.memory.is_item:
        return False
    item = described.get(hit.memory.id)
    if item is None:
        return True
    return item.origin.kind == "talk" and is_mostly(hit.memory.content, notes)


def is_mostly(text: str, notes: Iterable[str]) -> bool:
    """Return True if a note is at least half of a text.

    The words of the note are in the text in their order, with nothing between.
    """
    said = _join_words(text)
    return any(note in said and 2 * len(note) >= len(said) for note in map(_join_words, notes))


def _join_words(text: str) -> str:
    """Return the words of a text, without case and outer marks."""
    return f" {' '.join(word.strip(_MARKS) for word in text.casefold().split())} "


def _insert(results: SearchResults, found: Iterable[MemorySearchResult], asked: WideRequest) -> None:
    """Insert hits of a source without reordering existing ones.

    Strong matches come before the first result of little strength, weak matches and waiting notes last. A text from
    which a hit was drawn is left out. docs/search.md compares this order with others.
    """
    sources = {link.id for hit in results if hit.memory.is_item for link in hit.memory.links}
    new = [hit for hit in found if hit.memory.id not in sources]
    if asked.is_listing:
        results[:] = sorted(
            [*results, *new], key=lambda hit: (hit.origin.is_confirmed, hit.memory.timestamp), reverse=True
        )
        return
    confirmed = [hit for hit in results if hit.origin.is_confirmed]
    near = [(hit.answer_confidence or 0.0) >= STRONG_COSINE for hit in confirmed]
    weak_at = next((rank for rank, is_near in enumerate(near) if not is_near), len(confirmed))
    strong = [hit for hit in new if hit.match == "strong" and hit.origin.is_confirmed]
    weak = [hit for hit in new if hit.match != "strong" and hit.origin.is_confirmed]
    waiting = [hit for hit in [*results, *new] if not hit.origin.is_confirmed]
    merged = [*confirmed[:weak_at], *strong, *confirmed[weak_at:], *weak, *waiting]
    best = 1.0
    for rank, hit in enumerate(merged):  # scores stay in order, so that they can order the hits of one answer
        best = min(best, hit.relevance_score)
        merged[rank] = hit.model_copy(update={"relevance_score": best}) if hit.relevance_score > best else hit
    results[:] = merged
