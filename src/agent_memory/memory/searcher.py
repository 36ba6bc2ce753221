"""`Searcher`: one search over memories, passages, pages, talk and waiting notes.

Memories and the items drawn from texts share one index and one ranking. Other packages add sources of other texts.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import StorageError, UnknownIdError, ValidationError
from agent_memory.index.ranker import GRADED, STRONG_COSINE
from agent_memory.memory.caller import NOBODY, Caller, check_seen, is_seen, proposal_id
from agent_memory.memory.events import describe_search
from agent_memory.memory.forget_service import ForgetCandidates, Preview, is_mostly, list_candidates
from agent_memory.memory.results import Found
from agent_memory.memory.search_sources import SearchSource, WideRequest, build_hit, is_overview_asked, make_overview
from agent_memory.memory.similarity import find_similar
from agent_memory.memory.views import shorten
from agent_memory.models import (
    CATEGORIES,
    EVERYTHING,
    NOTES,
    HitKind,
    HitOrigin,
    MemorySearchResult,
    SearchRequest,
    SearchResults,
    Surroundings,
    get_turn_id,
    is_memory_id,
    of_another_project,
)
from agent_memory.models.search import MAX_RESULTS
from agent_memory.redaction import SecretRedactor, quoted, redact_value
from agent_memory.store.lookups import find_current

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.memory.service_parts import ServiceParts
    from agent_memory.models import Match, Memory, Scratchpad, SearchFilters

MAX_CANDIDATES: Final = 8
"""Candidates of one request to forget."""
OTHER_PROJECT: Final = 0.85
"""Factor on the score of a memory of another project.

Chosen, not fitted: of two notes that answer alike the own project's is first, and another project's that answers by far
better still is (a similarity of .7 stays ahead of one of .59)."""
_MORE_HITS: Final = 20
"""Hits beyond the limit to rank by project: some may be of the own project."""
_MAX_REQUEST_CHARS: Final = 2_000
"""Characters of a request to forget."""
_ITEM_KINDS: Final = frozenset[HitKind]({"passage", "talk"})
_GRADES: Final[tuple[Match, ...]] = ("none", "weak", "strong")


class Searcher:
    """Searches and lists the memories of one agent; `parts` are those of its service."""

    def __init__(self, parts: ServiceParts) -> None:
        self._storage, self._scratchpad = parts.storage, parts.scratchpad
        self._monitor, self._limits = parts.monitor, parts.limits
        self._sources = parts.sources

    # -- sources ------------------------------------------------------------------------------------------------------

    def add_source(self, source: SearchSource) -> None:
        """Search this source, too."""
        self._sources.append(source)

    # -- answers ------------------------------------------------------------------------------------------------------

    async def search(self, asked: WideRequest, *, has_filters: bool, wants_overview: bool) -> Found:
        """Answer a search; see `MemoryService.search`.

        Args:
            asked: Request to answer.
            has_filters: True if the caller named filters: the query is not an ID then.
            wants_overview: True to answer with the overview.

        Raises:
            StorageError: The memories cannot be read and there is no scratchpad to search.
        """
        request, caller = asked.request, asked.caller
        await self._scratchpad.notice(caller)
        started, degraded, named, overview = time.perf_counter(), None, None, None
        replaced = dict[str, str]()
        try:
            named = None if has_filters else await self._find_named(asked)
            if wants_overview or (named is None and is_overview_asked(asked, self._storage.agent_id)):
                counts = await self._count_sources(asked)
                overview, results = await make_overview(self._storage, counts, asked)
            else:
                results = named or await self._search_kinds(asked)
            replaced = await self._find_replaced(results, asked, is_named=named is not None)
        except StorageError as error:
            if self._scratchpad.last is None:
                raise
            results = search_scratchpad(self._scratchpad.last, request)
            degraded = f"{error.message} These come from the scratchpad alone."
        latency = round((time.perf_counter() - started) * 1000, 3)
        self._monitor.note_duration("searches", latency, caller)
        fields = describe_search(request.text, results, latency, self._storage.backend)
        await self._monitor.report("memory:searched", caller, **fields)
        if not (named or overview):
            shorten(results, explain=request.explain)
        if degraded:
            await self._monitor.report_failure("storage", "storage", degraded, caller)
        else:
            if results:
                self._monitor.check_size(caller)
            degraded = await self._monitor.check_search(results, caller)
        return Found(results, latency, degraded, replaced, overview)

    async def open(self, memory_id: str, caller: Caller) -> Memory:
        """Return a memory by its ID; count an access after the answer.

        Raises:
            UnknownIdError: No such memory.
        """
        await check_seen(self._storage, caller, [memory_id])
        memory = await self.get(memory_id)
        self._monitor.background.run(self._scratchpad.count_access([memory], caller))
        return memory

    async def get(self, memory_id: str) -> Memory:
        """Return one memory.

        Raises:
            UnknownIdError: No such memory.
        """
        memory = await self._storage.get(memory_id)
        if memory is None:
            raise UnknownIdError(f"No memory {quoted(memory_id)}.")
        return memory

    async def list_all(self) -> list[Memory]:
        """Return all memories in the order of storing, also superseded ones."""
        return [memory async for memory in self._storage.iter_all()]

    async def find_category(self, name: str) -> str:
        """Return a built-in or used category in lower case.

        Import and the library may add others. A mistyped word should not.

        Raises:
            ValidationError: No such category.
            StorageError: The memories cannot be read.
        """
        folded = name.strip().lower()
        if folded in CATEGORIES:
            return folded
        own = sorted(set((await self._storage.tally()).by_facet.get("category", ())) - set(CATEGORIES))
        if folded in own:
            return folded
        near = get_close_matches(folded, [*CATEGORIES, *own], 1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise ValidationError(
            f"No category {quoted(name)}.{meant}",
            code="unknown_category",
            recovery=f"There are: {', '.join([*CATEGORIES, *own])}.",
        )

    async def find_similar(self, memory: Memory, caller: Caller) -> list[Memory]:
        """Return memories to compare with a memory; see `memory.similarity`."""
        return await find_similar(self._storage, memory, caller)

    # -- before forgetting --------------------------------------------------------------------------------------------

    async def find_candidates(self, query: str, caller: Caller = NOBODY) -> ForgetCandidates:
        """Return the memories that a description may mean, best first.

        Raises:
            ValidationError: The description is not a text, empty or too long.
            StorageError: The memories cannot be read.
        """
        if not isinstance(query, str) or not query.strip() or len(query) > _MAX_REQUEST_CHARS:
            raise ValidationError(
                f"Describe what to forget in 1 to {_MAX_REQUEST_CHARS} characters; nothing was forgotten.",
                recovery="Describe it in a few words, such as: my address.",
            )
        await self._scratchpad.notice(caller)
        words, _ = await asyncio.to_thread(redact_value, query, SecretRedactor())  # memories have no secrets either
        filters = EVERYTHING.within(caller.group)
        patience = self._limits.search_patience
        hits = await self._storage.search(str(words), MAX_CANDIDATES, filters, patience=patience)
        return list_candidates(query, hits)

    async def preview(self, query: str, caller: Caller = NOBODY) -> Preview:
        """Return the memory that `forget WORDS --yes` forgets, until 1.0.

        Raises:
            ValidationError: The description is not a text, empty or too long.
            StorageError: The memories cannot be read.
        """
        memory = (await self.find_candidates(query, caller)).get_only_match()
        return Preview(() if memory is None else (memory,))

    async def preview_all(self, caller: Caller = NOBODY) -> Preview:
        """Return a preview of all memories that the caller sees.

        Superseded and expired ones are included. `confirm` does not depend on the memories: who agrees to all agrees
        to one more.

        Raises:
            StorageError: The memories cannot be read.
        """
        await self._scratchpad.notice(caller)
        memories = tuple([memory async for memory in self._storage.iter_all() if is_seen(memory, caller)])
        confirm = proposal_id("forget all", self._storage.agent_id, caller.group) if memories else ""
        return Preview(memories, confirm)

    # -- steps of a search --------------------------------------------------------------------------------------------

    async def _find_named(self, asked: WideRequest) -> SearchResults | None:
        """Return the record whose ID a query is, or None."""
        record_id, hit = asked.request.text.strip(), None
        if is_memory_id(record_id):
            hit = await self._open_hit(record_id, asked)
        else:
            for source in self._sources:
                hit = hit or await source.get(record_id, asked.caller)
        return None if hit is None else SearchResults([hit], total_found=1, match="strong", answer_confidence=1.0)

    async def _open_hit(self, memory_id: str, asked: WideRequest) -> MemorySearchResult | None:
        """Return a memory with its origin and expiry, or None."""
        try:
            memory = await self.open(memory_id, asked.caller)
        except UnknownIdError:
            return None
        surroundings = await self._storage.surroundings([memory_id], asked.caller.group)
        hit = build_hit(memory, HitOrigin())
        hit = hit.model_copy(update={"surroundings": surroundings.get(memory_id, Surroundings())})
        described = await self._describe([hit], replace(asked, kinds=_ITEM_KINDS))
        hit = described[0] if described else hit
        origin = replace(hit.origin, is_expired=memory.is_expired(asked.request.now))
        return hit.model_copy(update={"origin": origin})

    async def _count_sources(self, asked: WideRequest) -> dict[str, Any]:
        """Return the facts of all sources for an overview, by name."""
        counts: dict[str, Any] = {}
        for source in self._sources:
            counts |= await source.count(asked) or {}
        return counts

    async def _find_replaced(self, results: SearchResults, asked: WideRequest, *, is_named: bool) -> dict[str, str]:
        """Return the replacements of superseded memories in an answer, by ID."""
        if not (asked.request.include_superseded or asked.request.explain or is_named or results.looks_back):
            return {}
        ids = [hit.memory.id for hit in results] + [rejected["id"] for rejected in results.rejected]
        return await find_current(self._storage.replaced_by, ids)

    async def _search_kinds(self, asked: WideRequest) -> SearchResults:
        """Return the best matches of the kinds asked for.

        Filters whose memories share nothing with the query list the newest of these as weak matches: "open tasks" with
        a category means all of the category.

        Raises:
            StorageError: The memories cannot be read.
        """
        request = asked.request
        if asked.kinds == NOTES and not asked.has_waiting:
            limit = get_pool_size(request.limit, request.filters, asked.caller)
            results = await self._query(request, request.filters, limit)
            rank_by_project(results, request.limit, request.filters, asked.caller)
            return results
        results = await self._add_sources(await self._search_memories(asked), asked)
        if results.match == "none" and request.filters.is_narrow:
            listing = replace(asked, request=replace(request, text=""), has_waiting=False)
            listed = await self._add_sources(await self._search_memories(listing), listing)
            results[:] = [hit.model_copy(update={"match": "weak", "answer_confidence": 0.0}) for hit in listed]
            results.total_found, results.match = listed.total_found, "weak" if listed else "none"
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
        limit = get_pool_size(max(request.limit, GRADED), filters, asked.caller)
        while True:
            results = await self._query(request, filters, limit)
            is_all = len(results) < limit or limit == MAX_RESULTS
            rank_by_project(results, limit, filters, asked.caller)
            described = {hit.memory.id: hit for hit in await self._describe(results, asked)}
            notes = [hit.memory.content for hit in results if not hit.memory.is_item]
            shown = [described.get(hit.memory.id, hit) for hit in results if not _is_left_out(hit, described, notes)]
            if is_all or len(shown) >= request.limit:
                break
            limit = min(MAX_RESULTS, 4 * limit)  # items of other kinds take their places
        results.total_found -= len(results) - len(shown)
        results[:] = shown
        return results

    async def _add_sources(self, results: SearchResults, asked: WideRequest) -> SearchResults:
        """Add hits of other sources and apply the limit."""
        for source in self._sources:
            try:
                hits = await source.find(asked)
            except StorageError as error:
                results.degraded = results.degraded or f"Documents and talk were not searched: {error.message}"
                continue
            count = len(results)
            results.degraded = results.degraded or hits.degraded
            results.words = results.words or hits.words
            _insert(results, hits, asked)
            added = len(results) - count
            results.total_found += hits.total_found if added == len(hits) else added  # the others are items, too
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


def get_pool_size(limit: int, filters: SearchFilters, caller: Caller) -> int:
    """Return how many hits `rank_by_project` needs to choose `limit` of them."""
    return min(MAX_RESULTS, limit + _MORE_HITS) if _has_project(filters, caller) else limit


def rank_by_project(results: SearchResults, limit: int, filters: SearchFilters, caller: Caller) -> None:
    """Lower the scores of other projects; keep the best `limit` hits.

    Nothing changes without a project of the caller, or if a project was asked for.
    """
    if not _has_project(filters, caller):
        return
    weighed = [_lower_score(hit) if of_another_project(hit.memory, caller.project) else hit for hit in results]
    results[:] = sorted(weighed, key=lambda hit: -hit.relevance_score)[:limit]


def search_scratchpad(pad: Scratchpad, request: SearchRequest) -> SearchResults:
    """Return the matching entries of a scratchpad."""
    entries = [memory for memory in pad.search_keywords(request.text) if request.filters.admits(memory)]
    hits = [
        MemorySearchResult(memory=memory, relevance_score=1 / rank, match_type="scratchpad")
        for rank, memory in enumerate(entries[: request.limit], start=1)
    ]
    return SearchResults(hits, total_found=len(entries))


def _lower_score(hit: MemorySearchResult) -> MemorySearchResult:
    parts = {key: value for key, value in hit.parts.items() if key != "instruction"}  # it instructs elsewhere
    parts["project"] = OTHER_PROJECT
    return hit.model_copy(update={"relevance_score": hit.relevance_score * OTHER_PROJECT, "parts": parts})


def _has_project(filters: SearchFilters, caller: Caller) -> bool:
    return bool(caller.project) and filters.project is None


def _get_item_kind(hit: MemorySearchResult) -> HitKind:
    return "talk" if get_turn_id(hit.memory) else "passage"


def _is_left_out(hit: MemorySearchResult, described: dict[str, MemorySearchResult], notes: list[str]) -> bool:
    """Return True for other kinds, and for talk that a note repeats."""
    if not hit.memory.is_item:
        return False
    item = described.get(hit.memory.id)
    if item is None:
        return True
    return item.origin.kind == "talk" and is_mostly(hit.memory.content, notes)


def _insert(results: SearchResults, hits: Iterable[MemorySearchResult], asked: WideRequest) -> None:
    """Insert hits of a source without reordering existing ones.

    Strong matches come before the first result of little strength, weak matches and waiting notes last. A text from
    which a hit was drawn is left out. docs/benchmarks.md compares this order with others.
    """
    sources = {link.id for hit in results if hit.memory.is_item for link in hit.memory.links}
    new = [hit for hit in hits if hit.memory.id not in sources]
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
