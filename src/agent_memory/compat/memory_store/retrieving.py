"""Finding entries: memories, turns, documents and summaries in one order, that of the profile `weighted`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.care.importance import CATEGORY_OF, ENTRY_TYPES, MemoryEntryType, importance_of, type_of
from agent_memory.compat.memory_store.entries import entry_of
from agent_memory.compat.memory_store.keeping import is_entry
from agent_memory.errors import ValidationError
from agent_memory.index.fusion import trusted
from agent_memory.index.weighted import Asked
from agent_memory.models import EPISODE, RESOURCE, DateRange, SearchFilters, SearchRequest
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from agent_memory.compat.memory_store.entries import MemoryEntry
    from agent_memory.compat.memory_store.keeping import Kept
    from agent_memory.memory import Caller
    from agent_memory.models import Clock, Record
    from agent_memory.store.record_storage import RecordStorage

MOST: Final = 100
_NO_MEMORY: Final = frozenset({MemoryEntryType.INTERACTION})
_ONE_CATEGORY: Final = frozenset(
    {MemoryEntryType.INSIGHT, MemoryEntryType.PATTERN, MemoryEntryType.PREFERENCE, MemoryEntryType.LEARNING}
)
"""Types whose memories all have one category; of others, some category may have few, and candidates are all."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for.

    Attributes:
        query: The question.
        count: How many entries at most.
        least: Their least relevance.
        entry_types: Their types; None for any.
        period: From when to when what they say was so, both included; None for any time.
        candidates: How many of each kind are weighed at least.
    """

    query: str
    count: int
    least: float
    entry_types: frozenset[str] | None
    period: DateRange | None
    candidates: int


class Relevant(NamedTuple):
    """A record that answers, and how well, 0..1."""

    record: Record
    relevance: float


def wanted(
    query: str,
    count: int,
    least: float,
    entry_types: Collection[str] | None,
    time_range: tuple[datetime, datetime] | None,
    candidates: int,
) -> Wanted:
    """Return checked arguments.

    Raises:
        ValidationError: Names the argument and what it may be.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST:
        raise ValidationError(f"max_results is a whole number from 1 to {MOST}, got {count!r}.")
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
        raise ValidationError(f"relevance_threshold must lie between 0 and 1, got {least!r}.")
    return Wanted(query, count, float(least), checked_types(entry_types), period_of(time_range), candidates)


def checked_types(entry_types: Collection[str] | None) -> frozenset[str] | None:
    """Return known entry types; None for any.

    Raises:
        ValidationError: One is unknown.
    """
    if not entry_types:
        return None
    given = [entry_types] if isinstance(entry_types, str) else [*entry_types]
    if unknown := [each for each in given if each not in ENTRY_TYPES]:
        raise ValidationError(
            f"There is no entry type {quoted(str(unknown[0]))}.",
            code="unknown_entry_type",
            recovery=f"There are: {', '.join(ENTRY_TYPES)}.",
        )
    return frozenset(given)


def period_of(time_range: tuple[datetime, datetime] | None) -> DateRange | None:
    """Return the stretch of time between two moments, both included; naive ones are local time.

    Raises:
        ValidationError: They are no two moments in order.
    """
    if time_range is None:
        return None
    try:
        start, end = time_range
        return DateRange(start=start, end=end)
    except (TypeError, ValueError):
        raise ValidationError("time_range is two moments, the earlier one first.") from None


async def relevant(kept: Kept, asked: Wanted, clock: Clock, caller: Caller) -> list[Relevant]:
    """Return what answers, best first; what is equally relevant the newest first.

    Raises:
        ValidationError: The query is wrong.
        StorageError: The memories cannot be read.
    """
    now, depth = clock(), min(MOST, max(asked.candidates, 2 * asked.count))
    found: dict[str, Relevant] = {}
    # Each kind has a thread of its own, and what is compared there leaves the others the processor.
    both = await asyncio.gather(_memories(kept, asked, depth, caller), _others(kept, asked, depth, clock, caller))
    for records, words in chain(*both):
        question = Asked(asked.query, words, now)
        for record, parts in records:
            moment = record.moment
            if not _meets(record, moment, asked):
                continue
            text = str(getattr(record, "content", ""))
            weighed = question.weigh(text, parts, moment, importance_of(record, now))
            relevance = weighed.relevance * trusted(record.trust)
            if relevance >= asked.least and (weighed.semantic or weighed.keyword or question.periods):
                found[record.id] = Relevant(record, relevance)
    best = sorted(found.values(), key=lambda each: (each.relevance, each.record.timestamp), reverse=True)
    return best[: asked.count]


_Answer = tuple[list[tuple[Any, "Mapping[str, float]"]], "Mapping[str, float]"]
"""An answer: its records with the parts of their scores, and the words of the question."""
_Found = list[_Answer]


async def _memories(kept: Kept, asked: Wanted, depth: int, caller: Caller) -> _Found:
    if asked.entry_types is not None and asked.entry_types <= _NO_MEMORY:
        return []
    answers: _Found = []
    for filters in _filters(asked):
        says_all = asked.entry_types is None or filters.category is not None
        says_all = says_all and (asked.period is None or filters.date_range is not None)
        results = await kept.service.search(asked.query, depth if says_all else MOST, filters, caller=caller)
        answers.append(([(hit.memory, hit.parts) for hit in results.results], results.results.words))
    return answers


def _filters(asked: Wanted) -> Sequence[SearchFilters]:
    """Return the conditions of the searches for memories: one for each category, if all types have one, and for a time.

    What was observed at another time than it was stored is found by the search without a time, too.
    """
    types, every = asked.entry_types, SearchFilters(include_items=True)
    if types is not None and types <= _ONE_CATEGORY:
        return [every.model_copy(update={"category": CATEGORY_OF[each]}) for each in sorted(types)]
    if asked.period is not None:
        return [every, every.model_copy(update={"date_range": asked.period})]
    return [every]


async def _others(kept: Kept, asked: Wanted, depth: int, clock: Clock, caller: Caller) -> _Found:
    filters = SearchFilters(include_items=True, group=caller.group)

    async def found(storage: RecordStorage[Any]) -> _Answer:
        says_all = asked.period is None and storage.kind.name != RESOURCE.name
        answer = await storage.answer(SearchRequest(asked.query, depth if says_all else MOST, clock(), filters))
        pairs = zip(answer.records, answer.ranking.hits, strict=True)
        return [(each, hit.parts) for each, hit in pairs if is_entry(each)], answer.ranking.words

    types = asked.entry_types
    wished = [each for each in kept.storages() if types is None or types & _types_of(each.kind.name)]
    return list(await asyncio.gather(*[found(storage) for storage in wished]))


def _types_of(kind: str) -> frozenset[str]:
    return frozenset({MemoryEntryType.INTERACTION if kind == EPISODE.name else MemoryEntryType.CONTEXT})


def _meets(record: Record, moment: datetime, asked: Wanted) -> bool:
    if asked.entry_types is not None and type_of(record) not in asked.entry_types:
        return False
    return asked.period is None or asked.period.covers(moment)


async def entries_of(kept: Kept, found: Sequence[Relevant], now: datetime) -> list[MemoryEntry]:
    """Return the entries of what was found, with all their words."""
    return [
        entry_of(each.record, now, text=await kept.text_of(each.record), relevance=round(each.relevance, 6))
        for each in found
    ]
