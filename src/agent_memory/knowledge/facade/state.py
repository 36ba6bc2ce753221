"""State of knowledge: counts, health and unwritten pages. Changes nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agent_memory.errors import StorageError
from agent_memory.knowledge.facade.shapes import MemoryStats, category_of
from agent_memory.knowledge.pages.pages import drafted
from agent_memory.knowledge.passages.item_stage import ItemStage
from agent_memory.knowledge.topics.markdown import render
from agent_memory.knowledge.working import runner_of
from agent_memory.models import Listing, SearchFilters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agent_memory.knowledge.pages.visible_topics import SeenTopics
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import MemoryService
    from agent_memory.models import RecordCounts, Topic


@dataclass(frozen=True, slots=True)
class Standing:
    """State of the last look; healthy before the first."""

    stats: MemoryStats = field(default_factory=MemoryStats)
    is_healthy: bool = True


async def look(service: MemoryService, knowledge: Knowledge, seen: SeenTopics) -> Standing:
    """Count and check each storage; unreadable ones are not healthy."""
    try:
        stats = await counted(service, knowledge, seen, await asyncio.to_thread(_bytes_in, knowledge.folder.path))
        reports = [await service.storage.health(), *[await each.health() for each in knowledge.storages]]
    except StorageError:
        return Standing(is_healthy=False)
    works = all(report.get("status") == "ok" for report in reports)
    return Standing(stats, works and service.storage.embedding_status().get("status") != "failing")


async def counted(service: MemoryService, knowledge: Knowledge, seen: SeenTopics, size: int) -> MemoryStats:
    """Return counts; fast after the first call.

    Args:
        service: Where items are.
        knowledge: Where resources and topics are.
        seen: The topics that are there for who asks.
        size: Bytes of the files.

    Raises:
        StorageError: Something cannot be read.
    """
    resources, memories, group = await knowledge.resources.tally(), await service.storage.tally(), seen.group
    topics, pending = await seen.topics(), service.storage.embedding_status()
    total, items = memories.count_records(group) + memories.count_items(group), memories.count_items(group)
    waiting = int(pending.get("pending", 0))
    return MemoryStats(
        total_resources=resources.count_records(group),
        total_items=items,
        total_categories=len(topics),
        vector_index_size=max(0, total - waiting) if pending.get("status") == "ready" else 0,
        storage_bytes=size,
        resources_by_type=await _by_type(knowledge, resources, group),
        items_by_category=_by_topic(topics, memories) if group is None else await seen.how_many(topics),
        last_extraction_at=memories.last_item if items else None,
        last_consolidation_at=max((each.consolidated_at for each in topics if each.consolidated_at), default=None),
    )


def _by_topic(topics: Sequence[Topic], tally: RecordCounts) -> dict[str, int]:
    """Return the number of items on or filed for each page."""
    filed = tally.every_by_facet.get("topic", Counter[str]())
    return {topic.name: max(filed[topic.name], len(topic.item_ids)) for topic in topics}


async def _by_type(knowledge: Knowledge, tally: RecordCounts, group: str | None) -> dict[str, int]:
    if group is None:
        return dict(tally.by_facet.get("resource_type", {}))
    seen = (await knowledge.resources.browse(Listing(filters=SearchFilters(group=group)))).records
    return dict(Counter(each.resource_type for each in seen))


def _bytes_in(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


async def unmade(knowledge: Knowledge, service: MemoryService, seen: SeenTopics, topic: Topic) -> str:
    """Return the page of a topic that has none, unwritten.

    Args:
        knowledge: What came in.
        service: Where items are.
        seen: The topics as who asks sees them: a session of a group is told no number, which others would be in.
        topic: It.

    Raises:
        StorageError: It cannot be read.
    """
    if members := await seen.members_of(topic):
        return render(replace(await drafted(knowledge, topic, members), consolidated_at=None))
    page = category_of(topic).markdown_content
    backlog = await runner_of(knowledge, service).backlog()
    unread = sum(each.due for each in backlog if each.stage == ItemStage.name)
    unfiled = sum(each.due for each in backlog if each.stage != ItemStage.name)
    if not unread and not unfiled:
        return page
    if seen.group is not None:
        return f"{page}\n\n*What came in last may not be filed yet; the background work does that.*"
    said = [f"{unread:,} turns or documents to be read"] if unread else []
    said += [f"{unfiled:,} items to be filed under topics"] if unfiled else []
    return f"{page}\n\n*Waiting for the background work: {', '.join(said)}.*"
