"""`Publishing`: the step of background work that files items under topics and makes the pages that are due.

What belongs to a page is told from all items, so this looks at all there is: after one in a hundred is new. A page at a
time is made; what of a page is made already is known by the record of its topic, so a run that was stopped goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.errors import BusyError, StorageError
from agent_memory.knowledge.pages.filing import ENTITY, file_all, is_entity
from agent_memory.knowledge.pages.paging import unsaid
from agent_memory.logs import get_logger
from agent_memory.models import TOPIC, Source, Topic, derived_id, sees
from agent_memory.tasks.marks import Marks, moved
from agent_memory.tasks.stage import Backlog

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from agent_memory.knowledge.pages.pages import Made, Pages
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Memory
    from agent_memory.service import Caller, MemoryService

log = get_logger(__name__)

_RARELY: Final = 100
"""One new item in so many has all of them filed anew: filing looks at every one."""


class Publishing:
    """Makes pages. See `agent_memory.tasks.stage.Whole`.

    Args:
        knowledge: Where topics and marks are.
        service: Where items are, and for events.
        pages: Makes the pages.
        caller: For events.
        at_once: Make every page of which something is new, however little: a person waits for it.

    Attributes:
        name, version, source: As in `Stage`.
    """

    name = "pages"
    version = 1
    source = "item"

    def __init__(
        self,
        knowledge: Knowledge,
        service: MemoryService,
        pages: Pages,
        caller: Caller,
        *,
        at_once: bool = False,
    ) -> None:
        self._knowledge, self._service, self._pages = knowledge, service, pages
        self._caller, self._at_once, self._marks = caller, at_once, Marks(knowledge.marks)

    async def backlog(self) -> Backlog:
        """See `Whole.backlog`."""
        waiting, _ = await self._waiting()
        oldest = min((each.timestamp for each in waiting), default=None)
        return Backlog(self.name, self.source, len(waiting), oldest=oldest)

    async def portions(self) -> AsyncGenerator[tuple[int, int], None]:
        """See `Whole.portions`."""
        waiting, last = await self._waiting()
        mark = await self._marks.of(self)
        if last == mark.through and not self._at_once:  # else some may wait for more
            return
        is_soon = bool(waiting) and not self._at_once and _RARELY * len(waiting) < await self._service.admin.count()
        for made in await self._without_gone(mark.through, waiting, is_soon=is_soon):
            await tell(self._service, made, self._caller)
            yield 1, 0
        if is_soon:
            return
        failed = 0
        if waiting or self._at_once or not mark.through:
            async for is_made in self._every():
                failed += not is_made
                yield int(is_made), int(not is_made)
        if not failed:
            await self._marks.keep(moved(mark, last, {}, (), self._knowledge.clock()))

    async def _without_gone(self, through: int, waiting: Sequence[Memory], *, is_soon: bool) -> list[Made]:
        """Make the pages anew on which something stands that is gone: all are looked at when all items are."""
        if not is_soon:
            return await self._pages.catch_up()
        gone = await self._service.admin.gone_after(through) | {each.supersedes for each in waiting if each.supersedes}
        filed = {one for topic in await self._pages.topics() for one in topic.item_ids}
        return await self._pages.withdraw(gone & filed) if gone & filed else []

    async def _waiting(self) -> tuple[list[Memory], int]:
        """Return the items that came or changed since all were filed, and the number of the last change."""
        mark = await self._marks.of(self)
        changed = await self._service.admin.changed_after(mark.through)
        if mark.through > changed.last:  # an older copy of the journal
            changed = await self._service.admin.changed_after(0)
        found = await self._service.admin.valid_among([one for _, one in changed.records])
        return [each for each in found.values() if each.is_item], changed.last

    async def _every(self) -> AsyncGenerator[bool, None]:
        """File everything and make what is due; yield for each page whether it was made."""
        topics = {topic.name: topic for topic in await self._pages.topics()}
        filed = await file_all(self._service, list(topics.values()))
        for name in sorted({*filed.members, *topics}):
            members, topic = filed.members.get(name, ()), topics.get(name)
            if topic is None:
                topic = await self._begin(name, filed.titles[name])
            if not members and is_entity(topic):
                await self._pages.remove(topic)
            elif self._pages.is_due(topic, [each.id for each in members]):
                yield await self._make(topic, members)
        await self._pages.write_index()

    async def _begin(self, name: str, title: str) -> Topic:
        """Begin the topic of an entity; its id is made of its name."""
        topic = Topic(
            agent_id=self._knowledge.agent_id,
            id=derived_id(TOPIC.prefix, ENTITY, name),
            name=name,
            description=unsaid(title)[:500],
            timestamp=self._knowledge.clock(),
            source=Source(kind="assistant", detail=ENTITY),
            metadata={"title": title},
        )
        await self._knowledge.topics.store(topic)
        return topic

    async def _make(self, topic: Topic, members: Sequence[Memory]) -> bool:
        try:
            made = await self._pages.make(topic, members)
            await tell(self._service, made, self._caller)
        except StorageError as error:
            if not isinstance(error, BusyError) and error.code != "too_long":
                raise
            log.warning("page_not_made", topic=topic.id, code=error.code)
            return False
        return True


async def told_of(service: MemoryService, made: Made, caller: Caller) -> tuple[int, int] | None:
    """Return of how many items a page is made and how long it is, as far as a session may know.

    The length is 0 where not all of it is there for the session; None if none of it is.

    Raises:
        StorageError: The items cannot be read.
    """
    if caller.may_hear is None:
        return made.items, len(made.body)
    members = (await service.admin.valid_among(made.topic.item_ids)).values()
    own = sum(sees(caller.may_hear, each.facets) for each in members)
    if not own and made.topic.group != caller.may_hear:
        return None
    return own, len(made.body) if own == len(members) else 0


async def tell(service: MemoryService, made: Made, caller: Caller) -> None:
    """Report that a page was made, if the session may know of it."""
    told = await told_of(service, made, caller)
    if told is None:
        return
    await service.report(
        "memory:category_consolidated",
        caller,
        category_id=made.topic.id,
        name=made.topic.name,
        item_count=told[0],
        content_length=told[1],
        consolidation_time_ms=round(made.milliseconds, 3),
        by_model=0,
    )
