"""`Consolidation`: rebuilds pages of topics that are due, for `MemoryManager`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, ClassVar

from agent_memory.errors import CategoryNotFoundError, ConsolidationError, StorageError
from agent_memory.knowledge.facade.events import CategoryConsolidatedPayload, MemoryEventType
from agent_memory.knowledge.pages.page_stage import told_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from agent_memory.knowledge.facade.events import Events
    from agent_memory.knowledge.pages.pages import Made, Pages
    from agent_memory.memory import Caller
    from agent_memory.models import Topic


class PageText(str):
    """A page as text. The attributes are of earlier versions, which asked a language model for its words.

    Attributes:
        warnings: Empty.
        degraded: None.
        by_model: 0.
    """

    __slots__ = ()
    warnings: ClassVar[list[str]] = []
    degraded: ClassVar[None] = None
    by_model: ClassVar[int] = 0


class Consolidation:
    """Makes pages.

    Args:
        pages: Makes and shows them.
        events: Gets what was done.
        caller: Returns the session that asks.
    """

    def __init__(self, pages: Pages, events: Events, caller: Callable[[], Caller]) -> None:
        self._pages, self._events, self._caller = pages, events, caller

    async def topic(self, name: str) -> Topic:
        """Return a topic by its name.

        Raises:
            CategoryNotFoundError: There is none of that name; names those that there are.
        """
        topics = await self._pages.list_shown()
        found = next((each for each in topics if each.name == name), None)
        if found is None:
            raise CategoryNotFoundError(name, [each.name for each in topics])
        return found

    async def make(self, name: str, *, force: bool) -> PageText:
        """Rebuild a page, unless a person edited it or no item changed; return it.

        Raises:
            CategoryNotFoundError: There is none of that name.
            ConsolidationError: The page is as it was.
        """
        topic = await self.topic(name)
        try:
            members = await self._pages.members_of(topic)
            is_current = topic.consolidated_at is not None and {each.id for each in members} == {*topic.item_ids}
            if not topic.edited_by and (force or not is_current):
                made = await self._pages.make(topic, members)
                await self._pages.write_index()
                await self.tell([made])
                topic = made.topic
            return PageText(await self._pages.shown(topic))
        except StorageError as error:
            raise ConsolidationError(f"{error.message} The page of {name} is as it was.") from error

    async def make_due(self, names: Iterable[str]) -> None:
        """Rebuild pages with enough new items; one that fails stays."""
        for name in sorted(set(names)):
            with contextlib.suppress(CategoryNotFoundError, ConsolidationError):
                topic = await self.topic(name)
                if self._pages.has_enough(topic, [each.id for each in await self._pages.members_of(topic)]):
                    await self.make(name, force=False)

    async def make_again(self, names: Iterable[str]) -> None:
        """Rebuild pages of topics whose sources were deleted."""
        for name in sorted(set(names)):
            with contextlib.suppress(CategoryNotFoundError):  # a topic that was never declared has no page
                await self.make(name, force=True)

    async def withdraw(self, memory_ids: Collection[str], _: Caller) -> None:
        """Rebuild all pages with these memories; watches a service."""
        await self.tell(await self._pages.withdraw(memory_ids))

    async def tell(self, every: Iterable[Made]) -> None:
        """Send an event of each page that was made."""
        for made in every:
            told = await told_of(self._pages.service, made, self._caller())
            if told is None:
                continue
            payload = CategoryConsolidatedPayload(made.topic.id, made.topic.name, *told, made.milliseconds)
            await self._events.send(MemoryEventType.CATEGORY_CONSOLIDATED, payload, self._caller())
