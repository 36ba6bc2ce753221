"""`Consolidation`: makes the page of a topic anew from its items, when that is due, for `MemoryManager`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Self

from agent_memory.errors import CategoryNotFoundError, ConsolidationError, StorageError
from agent_memory.knowledge.facade.events import CategoryConsolidatedPayload, MemoryEventType
from agent_memory.knowledge.pages.by_model import Plan, plan_of
from agent_memory.knowledge.pages.pages import drafted
from agent_memory.knowledge.pages.stage import told_of
from agent_memory.models import sees

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from agent_memory.knowledge.facade.events import Events
    from agent_memory.knowledge.llm.port import Asking
    from agent_memory.knowledge.pages.pages import Made, Pages
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Topic
    from agent_memory.service import Caller


class PageText(str):
    """A page, and what is to be told of it.

    Attributes:
        warnings: What of a language model's words was left out, and why, in a sentence each.
        degraded: Why rules made what a language model was to word, in a sentence; None where it did, or was not wanted.
        by_model: How many claims have its words.
    """

    __slots__ = ("by_model", "degraded", "warnings")
    warnings: list[str]
    degraded: str | None
    by_model: int

    def __new__(cls, body: str, plan: Plan | None = None, by_model: int = 0) -> Self:
        """Return a text with what is told of it."""
        made, plan = super().__new__(cls, body), plan or Plan()
        made.warnings, made.degraded, made.by_model = plan.warnings, plan.problem, by_model
        return made

    def shown_as(self, body: str) -> PageText:
        """Return another text of which the same is told."""
        return PageText(body, Plan(warnings=self.warnings, problem=self.degraded), self.by_model)


class Consolidation:
    """Makes pages.

    Args:
        pages: Makes and shows them.
        events: Gets what was done.
        caller: Returns the session that asks.
        knowledge: Where the sources are.
        asking: How a language model is asked, by whom it is wanted.
    """

    def __init__(
        self, pages: Pages, events: Events, caller: Callable[[], Caller], knowledge: Knowledge, asking: Asking
    ) -> None:
        self._pages, self._events, self._caller = pages, events, caller
        self._knowledge, self._asking = knowledge, asking

    async def topic(self, name: str) -> Topic:
        """Return a topic by its name.

        Raises:
            CategoryNotFoundError: There is none of that name; names those that there are.
        """
        topics = await self._pages.topics()
        found = next((each for each in topics if each.name == name), None)
        if found is None:
            raise CategoryNotFoundError(name, [each.name for each in topics])
        return found

    async def shown(self, name: str) -> str:
        """Return the page of a topic; an empty text where it has none yet.

        Raises:
            CategoryNotFoundError: There is none of that name.
            StorageError: It cannot be read.
        """
        return await self._pages.shown(await self.topic(name))

    async def make(self, name: str, *, force: bool, with_model: bool = False) -> PageText:
        """Make a page anew and return it; one that a person edited, or of which no item came or went, stays.

        Raises:
            CategoryNotFoundError: There is none of that name.
            ConsolidationError: The page is as it was.
        """
        topic, plan, by_model = await self.topic(name), Plan(), 0
        try:
            members = await self._pages.members_of(topic)
            is_current = topic.consolidated_at is not None and {each.id for each in members} == {*topic.item_ids}
            if not topic.edited_by and (force or not is_current):
                if with_model:
                    plan = await self._planned(topic)
                    topic = await self.topic(name)  # a model takes its time
                    members = await self._pages.members_of(topic)
                made = await self._pages.make(topic, members, plan.rewordings)
                await self._pages.write_index()
                await self.tell([made])
                topic, by_model = made.topic, made.by_model
            return PageText(await self._pages.shown(topic), plan, by_model)
        except StorageError as error:
            raise ConsolidationError(f"{error.message} The page of {name} is as it was.") from error

    async def _planned(self, topic: Topic) -> Plan:
        """Have a model word the claims of a page, of the items that who asks may see."""
        caller = self._caller()
        members = await self._pages.members_of(topic)
        seen = {each.id: each for each in members if sees(caller.group, each.facets)}
        plan = await plan_of(self._asking, await drafted(self._knowledge, topic, members), seen)
        if self._asking.model is not None:
            await self._events.model_did(self._asking.budget, plan.problem, caller)
        return plan

    async def make_due(self, names: Iterable[str]) -> None:
        """Make the pages of those topics anew that have so many new items; one that cannot be made stays."""
        for name in sorted(set(names)):
            with contextlib.suppress(CategoryNotFoundError, ConsolidationError):
                topic = await self.topic(name)
                if self._pages.has_enough(topic, [each.id for each in await self._pages.members_of(topic)]):
                    await self.make(name, force=False)

    async def make_again(self, names: Iterable[str]) -> None:
        """Make the pages of topics anew whose sources have gone."""
        for name in sorted(set(names)):
            with contextlib.suppress(CategoryNotFoundError):  # a topic that was never declared has no page
                await self.make(name, force=True)

    async def withdraw(self, memory_ids: Collection[str], _: Caller) -> None:
        """Make all pages anew on which these stand; what a service tells of what is forgotten."""
        await self.tell(await self._pages.withdraw(memory_ids))

    async def tell(self, every: Iterable[Made]) -> None:
        """Send an event of each page that was made."""
        for made in every:
            told = await told_of(self._pages.service, made, self._caller())
            if told is None:
                continue
            payload = CategoryConsolidatedPayload(
                made.topic.id, made.topic.name, *told, made.milliseconds, made.by_model
            )
            await self._events.send(MemoryEventType.CATEGORY_CONSOLIDATED, payload, self._caller())
