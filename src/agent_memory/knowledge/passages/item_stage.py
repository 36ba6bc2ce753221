"""Background stage that stores passages as items.

An item is a memory with a link `from` each resource or episode that says it, and in `metadata.at` the place of its
words in the first of them.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from agent_memory.errors import StorageError
from agent_memory.knowledge.intake.document_index import without_key
from agent_memory.knowledge.passages.forgotten_texts import list_forgotten_words
from agent_memory.knowledge.passages.items import (
    REPLACES,
    STAGE,
    PrecedingTurns,
    admit_item,
    drawn_from,
    is_as_drawn,
    is_passage,
    join_items,
    leave_answered,
    list_source_ids,
    with_sources,
)
from agent_memory.knowledge.passages.replaced_items import REPLACED_IN, hide_replaced, note_missing_source, shown_again
from agent_memory.knowledge.pipeline.stages import RECORD_ERRORS, Batch
from agent_memory.models import Episode, Resource, may_stand_for, sees, to_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Memory

    Prepare = Callable[[Sequence[dict[str, Any]]], Awaitable[None]]


class ItemStage:
    """Draws items from the records of one kind. See `agent_memory.knowledge.pipeline.stages.Stage`.

    Args:
        knowledge: What came in.
        service: Memories of the agent.
        source: Name of the kind: resources or episodes.
        caller: Session that gets events.
        prepare: Adds fields to the items before they are stored, or None.

    Attributes:
        name, version, source: As in `Stage`.
    """

    name = STAGE
    version = 3

    def __init__(
        self, knowledge: Knowledge, service: MemoryService, source: str, caller: Caller, prepare: Prepare | None = None
    ) -> None:
        self._knowledge, self._service, self.source, self._caller = knowledge, service, source, caller
        self._prepare = prepare

    async def gone(self) -> Collection[str]:
        """See `Stage.gone`."""
        return await self._service.writer.list_forgotten_items()

    async def do(self, batch: Batch) -> Mapping[str, str]:
        """See `Stage.do`."""
        began = time.perf_counter()
        stored, failed = await self.store(batch)
        await report_items(self._knowledge, self._service, stored, self._caller, began)
        return failed

    async def store(self, batch: Batch) -> tuple[list[Memory], dict[str, str]]:
        """Store passages without an event; return them and failures by ID.

        Raises:
            StorageError: Some may be stored; doing it again stores none twice.
        """
        failed = dict[str, str]()
        preceding = PrecedingTurns(self._knowledge, [*batch.before, *batch.records])
        texts = await self._texts(batch.records, failed)
        has_documents = any(isinstance(item, Resource) for item in batch.records)
        gone = [memory for memory, _ in await self._service.history.forgotten()] if has_documents else []
        sources = [
            (record, texts[record.id], await preceding.of(record) if isinstance(record, Episode) else [])
            for record in batch.records
            if record.id in texts
        ]
        items = await batch.run(_draw_each, sources, list_forgotten_words(gone))
        linked = await self._service.storage.linked_to_each([record.id for record, *_ in sources])
        statements = {(record_id, memory.content) for record_id, memories in linked.items() for memory in memories}
        moments = {record.id: record.timestamp.timestamp() for record, *_ in sources}
        purged = self._service.writer.get_purged_ids()
        drawn = await asyncio.to_thread(_leave_known, items, statements, batch.never, purged, moments)
        drawn = await self._replace_questions(leave_answered(drawn, _list_answered(items, statements)))
        if self._prepare is not None:
            await self._prepare(drawn)
        stamp = {"timestamp": to_text(self._knowledge.clock())}
        stored = await self._store([{**stamp, **item} for item in drawn], batch.never, moments)
        for record in batch.records:
            if isinstance(record, Resource) and record.id in texts:
                await hide_replaced(self._knowledge, self._service, record, texts[record.id], self._caller)
                await note_missing_source(self._knowledge, self._service, record, self._caller)
        return stored, failed

    async def _texts(self, records: Sequence[Any], failed: dict[str, str]) -> dict[str, str]:
        """Return the whole texts of records by ID; note failures."""
        texts: dict[str, str] = {}
        for record in records:
            try:
                texts[record.id] = await self._knowledge.text_of(record)
            except StorageError as error:
                if error.code not in RECORD_ERRORS:
                    raise
                failed[record.id] = error.code
        return texts

    async def _replace_questions(self, new: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return items whose exchanges supersede stored questions."""
        seen = set[str]()
        for item in new:
            asked = item["metadata"].get(REPLACES)
            if asked is None or asked in seen:
                continue
            seen.add(asked)
            stored = await self._service.storage.linked_to(asked)
            older = [memory for memory in stored if is_passage(memory) and REPLACES not in memory.metadata]
            if len(older) == 1 and _may_replace(item, older[0], asked):
                item["supersedes"] = older[0].id
        return new

    async def _store(
        self, drawn: Sequence[dict[str, Any]], never: Collection[str], moments: Mapping[str, float]
    ) -> list[Memory]:
        """Store new items, replacing ones after the replaced; return them."""
        stored: list[Memory] = []
        new = await self._with_more(drawn, never)
        plain = [item for item in new if "supersedes" not in item]
        if plain:
            stored += (await self._service.writer.store_items(plain, self._caller, moments)).stored
        for item in new:
            if "supersedes" in item:
                older = await self._service.storage.get(item["supersedes"])
                fields = {**item, "supersedes": older.id if older is not None else None}
                stored += (await self._service.writer.store_items([fields], self._caller, moments)).stored
        return stored

    async def _with_more(self, drawn: Sequence[dict[str, Any]], never: Collection[str]) -> list[dict[str, Any]]:
        """Add new sources to known items; return the new items."""
        new: list[dict[str, Any]] = []
        full: set[str] = set()
        waiting = join_items(drawn, never)
        while waiting:
            remaining: list[dict[str, Any]] = []
            changes: dict[str, dict[str, Any]] = {}
            stored = await self._service.storage.texts_of([item["id"] for item in waiting])
            for waiting_item in waiting:
                existing = await self._service.storage.get(waiting_item["id"]) if waiting_item["id"] in stored else None
                if existing is None:
                    new.append(waiting_item)
                elif is_as_drawn(existing):
                    more, rest = with_sources(existing, waiting_item)
                    more = _show(existing, more)
                    if more:
                        changes[existing.id] = more
                    if rest:
                        full.add(existing.id)
                        remaining += rest
            await self._service.writer.update_items(changes, self._caller)
            waiting = join_items(remaining, never, full)
        return join_items(new, never)


async def report_items(
    knowledge: Knowledge,
    service: MemoryService,
    items: Sequence[Memory],
    caller: Caller,
    began: float,
    *,
    is_by_model: bool = False,
) -> None:
    """Report stored items, conversation by conversation.

    Args:
        knowledge: Documents and conversations of the agent.
        service: Service of its memory, which reports.
        items: Items that were stored.
        caller: Who hears of items that it may see.
        began: Value of `time.perf_counter` before the work.
        is_by_model: True for statements of a language model, False for passages.
    """
    turns, _ = await knowledge.load_sources(list_source_ids(item)[0] for item in items)
    groups: dict[str, list[Memory]] = {}
    for item in items:
        source = list_source_ids(item)[0]
        home = turns[source].conversation if source in turns else None
        groups.setdefault(home or source, []).append(item)
    spent = round((time.perf_counter() - began) * 1000, 3)
    for resource_id, members in groups.items():
        if all(sees(caller.may_hear, item.facets) for item in members):
            await service.report(
                "memory:items_extracted",
                caller,
                resource_id=resource_id,
                item_ids=[item.id for item in members],
                item_count=len(members),
                categories=sorted({item.topic for item in members if item.topic}),
                extraction_time_ms=spent,
                by_model=is_by_model * len(members),
            )


def _show(existing: Memory, changes: dict[str, Any]) -> dict[str, Any]:
    """Return changes that also show an item that was hidden."""
    shown = shown_again(existing)
    if not shown:
        return changes
    metadata = without_key(changes.get("metadata", existing.metadata), REPLACED_IN)
    return changes | shown | {"metadata": metadata}


def _may_replace(item: dict[str, Any], older: Memory, source_id: str) -> bool:
    """Return True if an item may supersede an untouched passage."""
    is_untouched = is_as_drawn(older) and not older.pinned and list_source_ids(older) == [source_id]
    return is_untouched and may_stand_for(item["trust"], older.trust)


def _draw_each(
    sources: Sequence[tuple[Resource | Episode, str, Sequence[Episode]]], forgotten: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the items of records with their texts and preceding turns."""
    return [item for record, text, before in sources for item in drawn_from(record, text, before, forgotten)]


def _get_statement(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return the ID of an item's own source, and its text."""
    return item["links"][0]["id"], item["content"]


def _list_answered(items: Sequence[dict[str, Any]], statements: Collection[tuple[str, str]]) -> set[str]:
    """Return the turns whose questions are in stored exchanges."""
    return {
        item["metadata"][REPLACES]
        for item in items
        if REPLACES in item["metadata"] and _get_statement(item) in statements
    }


def _leave_known(
    items: Sequence[dict[str, Any]],
    statements: Collection[tuple[str, str]],
    never: Collection[str],
    purged: Mapping[str, float],
    moments: Mapping[str, float],
) -> list[dict[str, Any]]:
    """Return items that are neither stored for their source nor forgotten."""
    new = [item for item in items if _get_statement(item) not in statements]
    admitted = [admit_item(item, never, purged, moments[_get_statement(item)[0]]) for item in new]
    return [item for item in admitted if item is not None]
