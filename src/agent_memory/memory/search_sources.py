"""Searches over several kinds of hits: request, sources and overview."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agent_memory.language.questions import is_without_topic
from agent_memory.memory.views import shorten_line
from agent_memory.models import (
    HIT_KINDS,
    PROJECT,
    HitKind,
    HitOrigin,
    Listing,
    MemorySearchResult,
    SearchFilters,
    SearchRequest,
    SearchResults,
    visible,
)
from agent_memory.store.memory_storage import MemoryStorage, build_result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.index import Hit
    from agent_memory.memory.caller import Caller
    from agent_memory.models import Memory, RecordCounts

# An overview has at most 300 tokens.
_PINNED, _TASKS, _NEWEST = 1, 1, 4
_RESULTS: Final = 4
_LINE_CHARS: Final = 30
_CATEGORIES, _PROJECTS = 5, 2
NAME_CHARS: Final = 24
"""Characters of the name of a project or person."""


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


def is_overview_asked(asked: WideRequest, agent_id: str) -> bool:
    """Return True if an unfiltered query has no topic.

    The agent and its user are not a topic.
    """
    if asked.is_listing or asked.request.filters.is_narrow or asked.kinds != HIT_KINDS:
        return False
    return is_without_topic(asked.request.text, (agent_id, "user"))


async def make_overview(
    storage: MemoryStorage, source_counts: Mapping[str, Any], asked: WideRequest
) -> tuple[dict[str, Any], SearchResults]:
    """Return counts, and the pinned, open and newest memories.

    Args:
        storage: Storage of the memories.
        source_counts: Facts of other sources, by name.
        asked: Request that has no topic.

    Raises:
        StorageError: The memories cannot be read.
    """
    group = asked.caller.group
    filters = SearchFilters().within(group)
    pinned = await storage.browse(Listing("newest", filters, pinned=True, limit=_PINNED))
    tasks = await storage.browse(Listing("newest", SearchFilters(category="task").within(group), limit=_TASKS))
    newest = await storage.browse(Listing("newest", filters, limit=_NEWEST))
    tally = await storage.tally()
    items = tally.count_items(group)
    categories = await _count_each(storage, tally, group, "category", _CATEGORIES)
    projects = await _count_each(storage, tally, group, PROJECT, _PROJECTS)
    counts = {
        "memories": newest.total,
        "by_category": categories,
        "by_project": {shorten_line(visible(name), NAME_CHARS): count for name, count in projects.items()},
        "pinned": pinned.total,
        "open_tasks": tasks.total,
        "passages": items,
        **source_counts,
    }
    memories = {memory.id: memory for memory in (*pinned.records, *tasks.records, *newest.records)}
    results = SearchResults([_show(memory) for memory in islice(memories.values(), _RESULTS)], total_found=newest.total)
    return {name: value for name, value in counts.items() if value or name == "memories"}, results


async def _count_each(
    storage: MemoryStorage, tally: RecordCounts, group: str | None, field: str, most: int
) -> dict[str, int]:
    """Count the current memories of the most frequent values of a field.

    The tally alone has those of other groups and what was replaced, too.
    """
    counts = Counter[str]()
    for value, _ in tally.by_facet.get(field, Counter[str]()).most_common(2 * most):
        filters = SearchFilters.model_validate({field: value}).within(group)
        counts[value] = (await storage.browse(Listing("newest", filters, limit=1))).total
    return dict((+counts).most_common(most))


def _show(memory: Memory) -> MemorySearchResult:
    line = shorten_line(memory.content, _LINE_CHARS)
    excerpt = None if line == memory.content else line
    return MemorySearchResult(memory=memory, relevance_score=0, match_type="keyword", excerpt=excerpt)
