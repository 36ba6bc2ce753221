"""Taking back what was taken in: the items drawn from it, its turns, and itself. Taking it in again brings it back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Resource
    from agent_memory.service import Caller, MemoryService


@dataclass(frozen=True, slots=True)
class Undone:
    """How much was forgotten, and how many items stayed since somebody had pinned them."""

    resources: int = 0
    episodes: int = 0
    items: int = 0
    pinned: int = 0


async def taken_from(knowledge: Knowledge, name: str) -> list[Resource]:
    """Return the resources that were read from a file of this name, the first first.

    Raises:
        StorageError: They cannot be read.
    """
    return [each async for each in knowledge.resources.iter_all() if name and each.source.detail == name]


async def undo(knowledge: Knowledge, service: MemoryService, resources: Iterable[str], caller: Caller) -> Undone:
    """Forget resources with their turns and the items drawn from them; the resource goes last, so that it can go on.

    Raises:
        UnknownIdError: There is no such resource.
        StorageError: What was forgotten before is forgotten; doing it again does the rest.
    """
    done = Undone()
    for resource_id in resources:
        episodes = [each.id for each in await knowledge.episodes.linked_to(resource_id)]
        drawn = [item for source in (resource_id, *episodes) for item in await service.admin.linked_to(source)]
        items = {item.id: item for item in drawn if item.is_item}
        gone = [item for item in items.values() if not item.pinned]
        await service.requests.many([item.id for item in gone], caller)
        if episodes:
            await knowledge.episodes.forget_many(episodes)
        await knowledge.resources.forget_many([resource_id])
        await service.report(
            "memory:resource_deleted", caller, resource_id=resource_id, cascade=True, item_count=len(gone)
        )
        done = Undone(
            done.resources + 1,
            done.episodes + len(episodes),
            done.items + len(gone),
            done.pinned + len(items) - len(gone),
        )
    return done
