"""`PageStage`: stage that files items and makes pages.

Filing reads all items, so it runs after one in a hundred is new. Pages are built one by one, and the record of a topic
has the state of its page, so an interrupted run continues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.errors import BusyError, StorageError
from agent_memory.knowledge.intake.withdrawal import withdraw_retold
from agent_memory.knowledge.pages.assignment import file_all
from agent_memory.knowledge.pages.pages import BuiltPage, Pages, rebuild_renamed, report_page
from agent_memory.knowledge.pages.subjects import ENTITY, is_derived, is_legacy
from agent_memory.knowledge.pipeline.stages import Backlog, StageCheckpoints, move_checkpoint
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Memory, StageCheckpoint, Topic

log = get_logger(__name__)

_WITHDRAWAL: Final = "withdrawal"
"""Name of the mark of what was withdrawn."""
_RARELY: Final = 100
"""One new item in so many has all of them filed anew: filing looks at every one."""


class PageStage:
    """Makes pages. See `agent_memory.knowledge.pipeline.stages.WholeStage`.

    Args:
        knowledge: Where topics and marks are.
        service: Where items are, and for events.
        pages: Makes the pages.
        caller: Session that gets events.
        at_once: Rebuild every changed page, since a person waits for it.

    Attributes:
        name, version, source: As in `Stage`.
    """

    name = "pages"
    version = 2
    source = "item"

    def __init__(
        self, knowledge: Knowledge, service: MemoryService, pages: Pages, caller: Caller, *, at_once: bool = False
    ) -> None:
        self._knowledge, self._service, self._pages = knowledge, service, pages
        self._caller, self._at_once, self._marks = caller, at_once, StageCheckpoints(knowledge.marks)

    async def backlog(self) -> Backlog:
        """See `WholeStage.backlog`."""
        waiting, _ = await self._waiting()
        oldest = min((item.timestamp for item in waiting), default=None)
        return Backlog(self.name, self.source, len(waiting), oldest=oldest)

    async def run_batches(self) -> AsyncGenerator[tuple[int, int], None]:
        """See `WholeStage.run_batches`."""
        waiting, last = await self._waiting()
        mark, is_older = await self._mark(), (await self._marks.of(self)).version < self.version
        if last == mark.through and not self._at_once:  # else some may wait for more
            return
        is_soon = bool(waiting) and not self._at_once and _RARELY * len(waiting) < await self._service.storage.count()
        renamed = await self._withdraw_retold(last)
        for made in [*renamed, *await self._without_gone(mark.through, waiting, is_soon=is_soon)]:
            await report_page(self._service, made, self._caller)
            yield 1, 0
        if is_soon:
            return
        failed = 0
        if waiting or self._at_once or not mark.through:
            async for is_made in self._every(is_older=is_older):
                failed += not is_made
                yield int(is_made), int(not is_made)
        if not failed:
            await self._marks.keep(move_checkpoint(mark, last, {}, (), self._knowledge.clock()))

    async def _mark(self) -> StageCheckpoint:
        """Return the mark; that of an earlier version begins again."""
        mark = await self._marks.of(self)
        is_older = mark.version < self.version
        return mark.model_copy(update={"version": self.version, "through": 0}) if is_older else mark

    async def finish_withdrawals(self) -> None:
        """Withdraw what retells memories that a killed session forgot.

        Raises:
            StorageError: Some may be there still; doing it again does the rest.
        """
        for made in await self._withdraw_retold((await self._waiting())[1]):
            await report_page(self._service, made, self._caller)

    async def _withdraw_retold(self, last: int) -> list[BuiltPage]:
        """Withdraw what retells forgotten memories; return changed pages.

        A session does so when it forgets. This ends what a killed one left, each change once.

        Args:
            last: Number of the last change of a memory.
        """
        mark = await self._marks.of_name(_WITHDRAWAL, self.source)
        gone = await self._service.storage.gone_after(mark.through if mark.through <= last else 0)
        if not gone:
            return []
        forgotten = [memory for memory, _ in await self._service.history.forgotten() if memory.id in gone]
        made = await rebuild_renamed(self._pages, await withdraw_retold(forgotten, self._knowledge))
        await self._marks.keep(mark.model_copy(update={"through": last}))
        return made

    async def _without_gone(self, through: int, waiting: Sequence[Memory], *, is_soon: bool) -> list[BuiltPage]:
        """Rebuild pages with forgotten items."""
        if not is_soon:
            return await self._pages.catch_up()
        gone = await self._service.storage.gone_after(through) | {
            item.supersedes for item in waiting if item.supersedes
        }
        filed = {item_id for topic in await self._pages.list_all() for item_id in topic.item_ids}
        return await self._pages.withdraw(gone & filed) if gone & filed else []

    async def _waiting(self) -> tuple[list[Memory], int]:
        """Return items changed since the last filing, and the last change."""
        mark = await self._mark()
        changed = await self._service.storage.changed_after(mark.through)
        if mark.through > changed.last:  # an older copy of the journal
            changed = await self._service.storage.changed_after(0)
        changed_items = await self._service.storage.valid_among([record_id for _, record_id in changed.records])
        return [item for item in changed_items.values() if item.is_item], changed.last

    async def _every(self, *, is_older: bool) -> AsyncGenerator[bool, None]:
        """File everything and make due pages; yield for each whether made.

        Args:
            is_older: An earlier version made the pages: make all again.
        """
        stored = {topic.id: topic for topic in await self._pages.list_all()}
        filing = await file_all(self._knowledge, self._service, list(stored.values()))
        topics = stored | {topic.id: await self._store(stored.get(topic.id), topic) for topic in filing.derived}
        for topic in sorted(topics.values(), key=lambda topic: topic.name):
            members = filing.members.get(topic.id, ())
            if topic.source.detail == ENTITY:
                await self._pages.hide_legacy(topic)
            elif is_legacy(topic) and not members:
                continue
            elif not members and is_derived(topic):
                await self._pages.remove(topic)
            elif self._pages.is_due(topic, [memory.id for memory in members]) or (is_older and not topic.edited_by):
                yield await self._make(topic, members)
        await self._pages.write_index()

    async def _store(self, stored: Topic | None, topic: Topic) -> Topic:
        """Store a derived topic if it is new or changed."""
        if stored is None:
            await self._knowledge.topics.store(topic)
            return topic
        names = ("description", "source", "group", "metadata")
        changes = {name: getattr(topic, name) for name in names if getattr(topic, name) != getattr(stored, name)}
        return await self._knowledge.topics.update(topic.id, changes) if changes else stored

    async def _make(self, topic: Topic, members: Sequence[Memory]) -> bool:
        try:
            made = await self._pages.make(topic, members)
            await report_page(self._service, made, self._caller)
        except StorageError as error:
            if not isinstance(error, BusyError) and error.code != "too_long":
                raise
            log.warning("page_not_made", topic=topic.id, code=error.code)
            return False
        return True
