"""`Shortening`: takes items that are gone off the pages of topics without making these anew."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_memory.knowledge.pages.paging import topic_item
from agent_memory.knowledge.pages.rereading import OnlyNew
from agent_memory.knowledge.topics.alike import alike
from agent_memory.knowledge.topics.consolidation import MAX_NOTES
from agent_memory.knowledge.topics.cutting import Standing, Words, standing, without
from agent_memory.models import TOPIC
from agent_memory.storage.cleaning import redact_fields

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.knowledge.topics.items import TopicItem
    from agent_memory.models import Topic
    from agent_memory.service import MemoryService


class Shortening:
    """Takes items off pages, as far as what is left can stand as it is.

    Args:
        knowledge: Where topics are.
        service: Where items are.
        gone: Ids of the items.

    Attributes:
        words: What claims say that have lost a footnote, by the item whose words they get: after `look`.
    """

    def __init__(self, knowledge: Knowledge, service: MemoryService, gone: Collection[str]) -> None:
        self._knowledge, self._service, self._gone = knowledge, service, frozenset(gone)
        self._standing: dict[str, Standing] = {}
        self._through = 0
        self.words: dict[str, Words] = {}

    async def begin(self) -> None:
        """Note what was written last, before the topics are read.

        Raises:
            StorageError: The records cannot be read.
        """
        self._through = (await self._knowledge.topics.changed_after(0)).last

    async def look(self, topics: Sequence[Topic]) -> None:
        """Look at the pages that name the items.

        Raises:
            StorageError: The records cannot be read.
        """
        live = await self._service.admin.valid_among(self._gone)
        for topic in topics:
            named = self._gone.intersection(topic.item_ids)
            # What has other words now, or is all that there was, is for whoever makes the page anew.
            if topic.body and named and not named.intersection(live) and not self._gone.issuperset(topic.item_ids):
                found = await asyncio.to_thread(standing, topic.body, self._gone, MAX_NOTES)
                self._standing[topic.id] = found
                heirs = await self._items(found.heirs)
                self.words |= {each.id: words_of(each) for each in heirs}

    async def cut(self, topic: Topic) -> Topic | None:
        """Write the record of a topic without the items and return it; None where the page is to be made anew.

        Raises:
            StorageError: It is as it was.
        """
        there = self._standing.get(topic.id)
        left = [one for one in topic.item_ids if one not in self._gone]
        if there is None or not await self._stands(topic, [one for one in left if one not in there.items], there):
            return None
        body = await asyncio.to_thread(without, topic.body, self._gone, self.words)
        if body is None:
            return None
        clean = await asyncio.to_thread(redact_fields, TOPIC, {"item_ids": left, "body": body}, OnlyNew(topic.body))
        changed = await self._knowledge.topics.update(topic.id, clean)
        self._through += 1
        # Who wrote the same page meanwhile took other words off it, which this one has put back.
        is_alone = (await self._knowledge.topics.changed_after(self._through)).last == self._through
        return changed if is_alone else None

    async def _stands(self, topic: Topic, off: Sequence[str], there: Standing) -> bool:
        """Tell whether all items that are not on the page are still said there by a claim that has enough others."""
        waiting = await self._items([one for one in off if one not in topic.body])
        if not waiting:
            return True
        return await asyncio.to_thread(_are_said, waiting, await self._items(there.full))

    async def _items(self, ids: Collection[str]) -> list[TopicItem]:
        found = await self._service.admin.valid_among(ids) if ids else {}
        return [topic_item(found[one], {}, 0) for one in sorted(found)]


def words_of(item: TopicItem) -> Words:
    """Return what a claim says that has the words of an item."""
    return Words(item.line, item.said_at and item.said_at.date(), item.trust == "low")


def _are_said(waiting: Sequence[TopicItem], full: Sequence[TopicItem]) -> bool:
    """Tell whether of each item another one says the same that is trusted alike."""
    for trust in {each.trust for each in waiting}:
        said, own = ([each for each in some if each.trust == trust] for some in (full, waiting))
        firsts = alike([f"{each.speaker} {each.line}" for each in [*said, *own]])
        if any(first >= len(said) for first in firsts[len(said) :]):
            return False
    return True
