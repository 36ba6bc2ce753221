"""How knowledge stands: how much there is, and whether all of it works. Looks, and changes nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agent_memory.errors import StorageError
from agent_memory.knowledge.shapes import MemoryStats
from agent_memory.models import EVERYTHING, Listing

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.service import MemoryService

_LATEST: Final = 50


@dataclass(frozen=True, slots=True)
class Standing:
    """What was so at the last look; before the first, nothing is known to be wrong."""

    stats: MemoryStats = field(default_factory=MemoryStats)
    is_healthy: bool = True


async def look(service: MemoryService, knowledge: Knowledge) -> Standing:
    """Count, and ask each storage how it is; what cannot be read is no error here, but no health either."""
    try:
        stats = await _counted(service, knowledge)
        reports = [await service.admin.health(), *[await each.health() for each in knowledge.storages]]
    except StorageError:
        return Standing(is_healthy=False)
    works = all(report.get("status") == "ok" for report in reports)
    return Standing(stats, works and service.admin.embedding_status().get("status") != "failing")


async def _counted(service: MemoryService, knowledge: Knowledge) -> MemoryStats:
    resources, memories = await knowledge.resources.tally(), await service.admin.tally()
    by_topic = memories.every_by_facet.get("topic", Counter())
    topics = (await knowledge.topics.browse(Listing())).records
    latest = (await service.admin.browse(Listing(filters=EVERYTHING, limit=_LATEST))).records
    pending = service.admin.embedding_status()
    total = memories.records + memories.items
    return MemoryStats(
        total_resources=resources.records,
        total_items=memories.items,
        total_categories=len(topics),
        vector_index_size=total - int(pending.get("pending", 0)) if pending.get("status") == "ready" else 0,
        storage_bytes=await asyncio.to_thread(_bytes_in, knowledge.folder.path),
        resources_by_type=dict(resources.by_facet.get("resource_type", {})),
        # On its page, or filed there by whoever stored it and not on the page yet.
        items_by_category={topic.name: max(by_topic[topic.name], len(topic.item_ids)) for topic in topics},
        last_extraction_at=max((one.timestamp for one in latest if one.is_item), default=None),
        last_consolidation_at=max((each.consolidated_at for each in topics if each.consolidated_at), default=None),
    )


def _bytes_in(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
