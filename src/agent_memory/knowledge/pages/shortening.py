"""Removal of items from the pages of topics without building these again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_memory.knowledge.pages.rereading import OnlyNew
from agent_memory.knowledge.topics.item_removal import cut_rendered, list_items
from agent_memory.models import TOPIC
from agent_memory.store.record_redaction import redact_fields

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Topic


class PageShortener:
    """Removes items from rendered pages.

    Args:
        knowledge: Topics of the agent.
        gone: IDs of the items.
        reworded: Those of them that have other words now.
    """

    def __init__(self, knowledge: Knowledge, gone: Collection[str], reworded: Collection[str]) -> None:
        self._knowledge, self._gone, self._reworded = knowledge, frozenset(gone), frozenset(reworded)
        self._through = 0

    async def begin(self) -> None:
        """Note the last change, before the topics are read.

        Raises:
            StorageError: The records cannot be read.
        """
        self._through = (await self._knowledge.topics.changed_after(0)).last

    async def cut(self, topic: Topic) -> Topic | None:
        """Write a topic without the items; None if it must be rebuilt.

        Raises:
            StorageError: The record is as it was.
        """
        left = [item_id for item_id in topic.item_ids if item_id not in self._gone]
        if not topic.body or not left or self._reworded.intersection(topic.item_ids):
            return None
        body = await asyncio.to_thread(cut_rendered, topic.body, self._gone)
        if body is None or not list_items(body).issuperset(left):
            return None
        clean = await asyncio.to_thread(redact_fields, TOPIC, {"item_ids": left, "body": body}, OnlyNew(topic.body))
        changed = await self._knowledge.topics.update(topic.id, clean)
        self._through += 1
        # Another process that wrote the page meanwhile removed other words, which this one has put back.
        is_alone = (await self._knowledge.topics.changed_after(self._through)).last == self._through
        return changed if is_alone else None
