"""The third layer of knowledge by the names of its contract: categories, which are topics with their pages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agent_memory.errors import CategoryExistsError, UnknownIdError
from agent_memory.knowledge.facade.shapes import category_of
from agent_memory.knowledge.pages.visible_topics import SeenTopics, check_own, described_for, is_described_by, left_by
from agent_memory.knowledge.topics.page_files import TopicFiles
from agent_memory.models import TOPIC, to_text
from agent_memory.store.record_redaction import make_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_memory.knowledge.facade.shapes import MemoryCategory
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Topic


class CategoryLayer:
    """Layer 3: topics, each with a page in Markdown.

    Args:
        knowledge: Where they are.
        seen: Those that are there for who asks.
    """

    def __init__(self, knowledge: Knowledge, seen: SeenTopics) -> None:
        self._knowledge, self._seen = knowledge, seen
        self._creating = asyncio.Lock()

    async def create(self, name: str, description: str) -> MemoryCategory:
        """Declare a topic.

        Raises:
            ValidationError: The name is not in snake_case with 1 to 64 characters, or the description not of 10 to 500.
            CategoryExistsError: There is one of that name.
            StorageError: Nothing was stored.
        """
        async with self._creating:
            if await self.topic(name) is not None:
                raise CategoryExistsError(name)
            if (others := await self._seen.of_others(name)) is not None:
                changes = described_for(others, self._seen.group or "", description)
                others = await self._knowledge.topics.update(others.id, changes) if changes else others
                return category_of(self._seen.view(others, []))
            fields = {"name": name, "description": description, "group": self._seen.group or ""}
            values = {**fields, "timestamp": to_text(self._knowledge.clock()), "trust": self._seen.trust}
            topic = await asyncio.to_thread(make_record, TOPIC, values, self._knowledge.agent_id)
            declared = await self._seen.pages.declare(topic)
        return category_of(declared)

    async def topic(self, name: str) -> Topic | None:
        """Return the record of a topic by its name."""
        return await self._seen.topic(name)

    async def topics(self) -> list[Topic]:
        """Return the records of all, by name."""
        return await self._seen.topics()

    async def get(self, category_id: str) -> MemoryCategory | None:
        """Return one by its id, None if there is none."""
        topic = next((one for one in await self.topics() if one.id == category_id), None)
        return None if topic is None else category_of(topic)

    async def get_by_name(self, name: str) -> MemoryCategory | None:
        """Return one by its name, None if there is none."""
        topic = await self.topic(name)
        return None if topic is None else category_of(topic)

    async def list_all(self) -> list[MemoryCategory]:
        """Return all, by name."""
        return [category_of(topic) for topic in await self.topics()]

    async def count_items(self) -> dict[str, int]:
        """Return how many items are filed under each, by its name."""
        return await self._seen.how_many(await self._seen.topics())

    async def of_strangers(self) -> set[str]:
        """Return the names of topics that strangers named, and of which they alone speak."""
        return await self._seen.of_strangers(await self._seen.topics())

    async def update_content(
        self, category_id: str, content: str, item_ids: Iterable[str] | None = None
    ) -> MemoryCategory:
        """Give a topic another page.

        Args:
            category_id: Which.
            content: The page, Markdown.
            item_ids: What it is made of; unchanged when omitted.

        Raises:
            UnknownIdError: There is no such topic.
            ValidationError: The group of the session did not declare it.
            StorageError: Nothing was changed.
        """
        changes: dict[str, Any] = {"body": content, "consolidated_at": self._knowledge.clock()}
        if item_ids is not None:
            changes["item_ids"] = list(item_ids)
        return await self._changed(category_id, changes)

    async def add_items(self, category_id: str, item_ids: Sequence[str]) -> MemoryCategory:
        """Add items to what a topic is made of; its page changes when it is consolidated.

        Raises:
            UnknownIdError: There is no such topic.
            ValidationError: The group of the session did not declare it.
            StorageError: Nothing was changed.
        """
        topic = await self._knowledge.topics.get(category_id)
        every = list(dict.fromkeys([*(topic.item_ids if topic is not None else ()), *item_ids]))
        return await self._changed(category_id, {"item_ids": every})

    async def _changed(self, category_id: str, changes: dict[str, Any]) -> MemoryCategory:
        record = await self._record(category_id)
        if record is None:
            raise UnknownIdError(f"There is no topic {category_id}; nothing was changed.")
        check_own(self._seen.group, record)
        topic = await self._knowledge.topics.update(category_id, changes)
        return category_of(self._seen.view(topic, await self._seen.members_of(topic)))

    async def delete(self, category_id: str) -> bool:
        """Delete a topic and its page, not its items; tell whether there was one.

        One that other groups have, too, stays theirs. A page that a person changed stays as a file.

        Raises:
            ValidationError: The group of the session neither declared nor described it.
            StorageError: It is as it was, or gone with its file left; doing it again does the rest.
        """
        record = await self._record(category_id)
        if record is None:
            return False
        group, pages = self._seen.group, self._seen.pages
        if not is_described_by(group, record):
            check_own(group, record)
        try:
            if changes := left_by(group, record, await pages.members_of(record)):
                await self._knowledge.topics.update(category_id, changes)
                return True
            await self._knowledge.topics.delete(category_id)
        except UnknownIdError:
            return False
        await asyncio.to_thread(TopicFiles(self._knowledge.folder.topics).remove, record.name)
        await pages.write_index()
        return True

    async def _record(self, category_id: str) -> Topic | None:
        """Return the record of a topic that is there for who asks."""
        return await self._knowledge.topics.get(category_id) if await self.get(category_id) is not None else None
