"""`Consolidation`: makes the page of a topic anew from its items, when that is due."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from typing import TYPE_CHECKING

from agent_memory.errors import CategoryNotFoundError, ConsolidationError, StorageError
from agent_memory.knowledge.events import CategoryConsolidatedPayload, MemoryEventType
from agent_memory.knowledge.paging import page_of
from agent_memory.knowledge.shapes import source_of
from agent_memory.knowledge.topics.rendering import render
from agent_memory.logs import get_logger
from agent_memory.models import utc_now

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.knowledge.events import Events
    from agent_memory.knowledge.layers import CategoryLayer, ItemLayer, ResourceLayer
    from agent_memory.models import Clock, Topic

log = get_logger(__name__)


class Consolidation:
    """Makes pages.

    Args:
        resources, items, categories: The layers.
        events: Gets what was done.
        interval: New items of a topic after which its page is due.
        clock: Source of the present.
    """

    def __init__(
        self,
        resources: ResourceLayer,
        items: ItemLayer,
        categories: CategoryLayer,
        events: Events,
        interval: int,
        clock: Clock = utc_now,
    ) -> None:
        self._resources, self._items, self._categories = resources, items, categories
        self._events, self._interval, self._clock = events, interval, clock

    async def topic(self, name: str) -> Topic:
        """Return a topic by its name.

        Raises:
            CategoryNotFoundError: There is none of that name; names those that there are.
        """
        topic = await self._categories.topic(name)
        if topic is None:
            raise CategoryNotFoundError(name, [each.name for each in await self._categories.topics()])
        return topic

    async def make(self, name: str, *, force: bool) -> str:
        """Make a page anew and return it; one that a person edited, or of which no item came or went, stays.

        Raises:
            CategoryNotFoundError: There is none of that name.
            ConsolidationError: The page is as it was.
        """
        began, topic = time.perf_counter(), await self.topic(name)
        try:
            items = await self._items.of_topic(name)
            ids = [item.id for item in items]
            is_current = topic.consolidated_at is not None and ids == topic.item_ids
            if topic.edited_by or (is_current and not force):
                return topic.body
            names = dict.fromkeys(map(source_of, items))
            sources = {one: await self._resources.passage(one) if one else None for one in names}
            made = page_of(topic, items, sources, self._clock())
            body = render(made.page)
            if made.dropped:
                log.info("page_consolidated", topic=topic.id, dropped=dict(Counter(one.reason for one in made.dropped)))
            await self._categories.update_content(topic.id, body, ids)
        except StorageError as error:
            raise ConsolidationError(f"{error.message} The page of {name} is as it was.") from error
        spent = 1000 * (time.perf_counter() - began)
        payload = CategoryConsolidatedPayload(topic.id, name, len(ids), len(body), spent)
        await self._events.send(MemoryEventType.CATEGORY_CONSOLIDATED, payload, self._items.caller)
        return body

    async def make_due(self, names: Iterable[str]) -> None:
        """Make the pages of those topics anew that have so many new items; one that cannot be made stays."""
        for name in sorted(set(names)):
            with contextlib.suppress(CategoryNotFoundError, ConsolidationError):
                known = set((await self.topic(name)).item_ids)
                if sum(one.id not in known for one in await self._items.of_topic(name)) >= self._interval:
                    await self.make(name, force=False)

    async def make_again(self, names: Iterable[str]) -> None:
        """Make the pages of topics anew from which items have gone."""
        for name in sorted(set(names)):
            with contextlib.suppress(CategoryNotFoundError):  # a topic that was never declared has no page
                await self.make(name, force=True)
