"""Forgetting records that are no memories, as the first step of a purge: what was given, and what is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.knowledge.intake.undoing import drawn_from_alone, forget_retold
from agent_memory.knowledge.pages.page_stage import tell
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.records import Knowledge
from agent_memory.models import EPISODE, MARK, RESOURCE, TOPIC

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_memory.memory import Caller, MemoryService
    from agent_memory.store.record_storage import RecordStorage


async def withdraw_given(service: MemoryService, record_ids: Collection[str], caller: Caller) -> None:
    """Forget those of some records that are no memories, and take them from the items that others say, too.

    Pages are made anew on which something stands that is gone. Doing it again does what is left.

    Args:
        service: Of the agent; memories among these are forgotten already.
        record_ids: Of all that go.
        caller: For events.

    Raises:
        StorageError: Some may be forgotten.
    """
    knowledge = Knowledge(service.agent_id, service.settings)
    if not (knowledge.folder.path / TOPIC.journal).exists():
        return
    try:
        sources = [one for one in record_ids if one.startswith((EPISODE.prefix, RESOURCE.prefix))]
        await drawn_from_alone(service, sources, caller)
        await forget_retold(sources, knowledge)
        for storage in knowledge.storages:
            if (knowledge.folder.path / storage.kind.journal).exists() and storage.kind not in {MARK, TOPIC}:
                await _forget(storage, record_ids)
        pages = Pages(knowledge, service)
        for made in await pages.catch_up():
            await tell(service, made, caller)
        named = [one for one in record_ids if one.startswith(TOPIC.prefix)]
        for topic in (await knowledge.topics.valid_among(named)).values():
            await pages.remove(topic)
        await _forget(knowledge.topics, record_ids)
        if knowledge.folder.topics.is_dir():
            await pages.write_index()
    finally:
        await knowledge.close()


async def _forget(storage: RecordStorage[Any], record_ids: Collection[str]) -> None:
    live = await storage.valid_among([one for one in record_ids if one.startswith(storage.kind.prefix)])
    if live:
        await storage.forget_many([*live])
