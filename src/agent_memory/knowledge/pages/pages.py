"""`Pages`: the pages of an agent's topics, made of what is filed there: in the records, and as files for people.

The record of a topic says of which items its page is made and how it was rendered last. A file is that page to read;
what a person changes in it is theirs, and what is made then lies beside it. What is shown is the newer of both.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import BusyError
from agent_memory.knowledge.pages.filing import is_entity
from agent_memory.knowledge.pages.paging import page_of, rendered_of, shortened, title_of
from agent_memory.knowledge.pages.rereading import OnlyNew
from agent_memory.knowledge.pages.shortening import Shortening
from agent_memory.knowledge.pages.sources import sources_of
from agent_memory.knowledge.topics.consolidation import INTERVAL
from agent_memory.knowledge.topics.escaping import escaped
from agent_memory.knowledge.topics.parsing import parse
from agent_memory.knowledge.topics.rendering import render
from agent_memory.knowledge.topics.saves import TopicFiles
from agent_memory.logs import get_logger
from agent_memory.models import MAX_TEXT_CHARS, TOPIC, Listing, SearchFilters
from agent_memory.service.trust import lowest
from agent_memory.storage.cleaning import redact_fields

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.knowledge.topics.consolidation import Consolidation
    from agent_memory.knowledge.topics.page import Page
    from agent_memory.knowledge.topics.saves import Kept
    from agent_memory.models import Memory, Topic
    from agent_memory.service import MemoryService

log = get_logger(__name__)

_TRIES: Final = 5
_SHARE: Final = 10
"""A long page is made anew after a tenth of it is new: each time all of it is written."""


@dataclass(frozen=True, slots=True)
class Made:
    """A page that was made anew.

    Attributes:
        topic: As it is now.
        body: The page as Markdown, whole.
        items: How many it is made of.
        milliseconds: Time taken.
    """

    topic: Topic
    body: str
    items: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class _Saved:
    """What was made, as a text and as its record has it, whether the file is there.

    A long page takes tens of milliseconds to render: all is a text before it comes to the event loop.
    """

    made: Consolidation
    text: str
    body: str
    done: bool


class Pages:
    """Makes pages and shows them.

    Args:
        knowledge: Where topics and sources are.
        service: Where items are.
        interval: New items of a topic after which its page is due; of a long page a tenth of it, unless this is 1.

    Attributes:
        service: As given.
    """

    def __init__(self, knowledge: Knowledge, service: MemoryService, interval: int = INTERVAL) -> None:
        self._knowledge, self.service, self._interval = knowledge, service, interval
        self._files = TopicFiles(knowledge.folder.topics)
        self._making = asyncio.Lock()
        self._checked: set[str] = set()

    # -- which there are ----------------------------------------------------------------------------------------------

    async def topics(self) -> list[Topic]:
        """Return all topics, by name."""
        return sorted((await self._knowledge.topics.browse(Listing())).records, key=lambda topic: topic.name)

    async def topic(self, name: str) -> Topic | None:
        """Return a topic by its name."""
        return next((one for one in await self.topics() if one.name == name), None)

    async def members_of(self, topic: Topic) -> list[Memory]:
        """Return what a topic's page would be made of now: what it was made of and lives, and what names the topic."""
        live = await self.service.admin.valid_among(topic.item_ids)
        filters = SearchFilters(topic=topic.name, include_items=True)
        named = (await self.service.admin.browse(Listing("oldest", filters))).records
        found = live | {each.id: each for each in named}
        return sorted(found.values(), key=lambda each: each.timestamp)

    def is_due(self, topic: Topic, members: Collection[str]) -> bool:
        """Tell whether the page of these items is to be made: it never was, one of it is gone, or enough are new."""
        if topic.edited_by:
            return False
        known = set(topic.item_ids)
        if topic.consolidated_at is None or known.difference(members):
            return bool(members) or bool(known)
        return self.has_enough(topic, members)

    def has_enough(self, topic: Topic, members: Collection[str]) -> bool:
        """Tell whether enough of these are new."""
        known = set(topic.item_ids)
        enough = self._interval if self._interval <= 1 else max(self._interval, len(known) // _SHARE)
        return len(set(members) - known) >= enough

    # -- making -------------------------------------------------------------------------------------------------------

    async def make(self, topic: Topic, members: Sequence[Memory]) -> Made:
        """Make a page of these, the oldest first, and write it; one that a person edited is proposed anew.

        Args:
            topic: Whose page.
            members: What it is made of.

        Raises:
            StorageError: It is as it was, or will be made again.
        """
        began = time.perf_counter()
        async with self._making:
            for _ in range(_TRIES):
                topic, body, saved = await self._written(topic, members)
                live = await self.service.admin.valid_among([each.id for each in members])
                if saved.done and len(live) == len(members):
                    break
                # Somebody saved the file meanwhile, or forgot something that stands on the page now.
                members = [each for each in members if each.id in live]
            else:
                raise BusyError(f"The page of {topic.name} is being changed all the time. It will be made again.")
        return Made(topic, body, len(members), 1000 * (time.perf_counter() - began))

    async def _written(self, topic: Topic, members: Sequence[Memory]) -> tuple[Topic, str, _Saved]:
        sources = await sources_of(self._knowledge, members)
        saved = await asyncio.to_thread(self._saved, topic, members, sources)
        made = saved.made
        if made.dropped:
            log.info("page_consolidated", topic=topic.id, dropped=dict(Counter(one.reason for one in made.dropped)))
        if not saved.done:
            return topic, topic.body, saved
        changes: dict[str, Any] = {"item_ids": [each.id for each in members], "body": saved.body}
        if members and is_entity(topic):
            changes["trust"] = lowest(*(each.trust for each in members))
        if not made.is_proposal:
            changes["consolidated_at"] = made.page.consolidated_at
        changes = {name: value for name, value in changes.items() if getattr(topic, name) != value}
        if changes:
            redactor = OnlyNew(topic.body, checked=self._checked)
            clean = await asyncio.to_thread(redact_fields, TOPIC, changes, redactor)
            topic = await self._knowledge.topics.update(topic.id, clean)
        return topic, saved.text, saved

    def _saved(self, topic: Topic, members: Sequence[Memory], sources: Mapping[str, Any]) -> _Saved:
        """Write the file of a page."""
        read = self._files.read(topic.name)
        made = page_of(topic, members, sources, self._knowledge.clock(), read)
        if made.is_proposal:  # it has what a person wrote, and nobody looked through that yet
            text = OnlyNew(topic.body).redact(render(made.page)).text
            made = replace(made, page=parse(text))
        done = self._files.write(topic.name, made, topic.description, read)
        text = render(made.page)
        body = render(shortened(topic, members, sources)) if made.is_proposal else text
        return _Saved(made, text, body if len(body) <= MAX_TEXT_CHARS else "", done)

    async def catch_up(self) -> list[Made]:
        """Make all pages anew on which something stands that is gone, whoever forgot it; return these.

        Raises:
            StorageError: As for `withdraw`.
        """
        filed = {one for topic in await self.topics() for one in topic.item_ids}
        gone = filed.difference(await self.service.admin.valid_among(filed))
        return await self.withdraw(gone) if gone else []

    async def withdraw(self, gone: Collection[str]) -> list[Made]:
        """Take items that are gone or have another text off all pages; return the pages that have changed.

        Of a page that nobody changed the lines go that name them; else it is made anew.

        Raises:
            StorageError: Some were not made; the next background work makes them.
        """
        gone, made, short = set(gone), list[Made](), Shortening(self._knowledge, self.service, gone)
        await short.begin()
        topics = [topic for topic in await self.topics() if not topic.edited_by]
        await short.look(topics)
        touched = await asyncio.to_thread(self._files.withdraw, gone, partial(_claims_of, topics), short.words)
        for topic in topics:
            if gone.intersection(topic.item_ids) or topic.name in touched:
                made += await _without(self, topic, short if touched.get(topic.name, True) else None)
        if made or touched:
            await self.write_index()
        return made

    async def remove(self, topic: Topic) -> None:
        """Remove a topic of an entity that nothing speaks of any more, with its page.

        Of one whose file a person edited the file stays, and the topic without the page as it was rendered.
        """
        if await asyncio.to_thread(self._files.remove, topic.name):
            await self._knowledge.topics.delete(topic.id)
        elif topic.item_ids or topic.body:
            clean = await asyncio.to_thread(redact_fields, TOPIC, {"item_ids": [], "body": ""})
            await self._knowledge.topics.update(topic.id, clean)

    async def write_index(self) -> None:
        """Write the page that lists the topics."""
        rows = [
            (topic.name, title_of(topic), topic.description, len(topic.item_ids))
            for topic in await self.topics()
            if topic.consolidated_at is not None
        ]
        await asyncio.to_thread(self._files.write_index, rows)

    # -- showing ------------------------------------------------------------------------------------------------------

    async def kept(self, topic: Topic) -> Kept:
        """Return where a topic's page lies.

        Raises:
            StorageError: It cannot be read.
        """
        return await asyncio.to_thread(self._files.kept, topic.name)

    async def shown(self, topic: Topic) -> str:
        """Return the page of a topic as Markdown: as a person made it, or as it was rendered last.

        Raises:
            StorageError: It cannot be read.
        """
        saved = None if topic.edited_by else await asyncio.to_thread(self._files.read, topic.name)
        if saved is None:
            return topic.body
        if saved.is_edited:
            return saved.text
        at, made = saved.page.consolidated_at, topic.consolidated_at
        is_newer = at is not None and (made is None or at >= made.replace(microsecond=0))
        return await asyncio.to_thread(render, saved.page) if is_newer or not topic.body else topic.body


async def _without(pages: Pages, topic: Topic, short: Shortening | None) -> list[Made]:
    """Shorten a page, or make it anew; one of an entity that nothing speaks of any more is removed."""
    began = time.perf_counter()
    if short is not None and (changed := await short.cut(topic)) is not None:
        return [Made(changed, changed.body, len(changed.item_ids), 1000 * (time.perf_counter() - began))]
    members = await pages.members_of(topic)
    if members or not is_entity(topic):
        return [await pages.make(topic, members)]
    await pages.remove(topic)
    return []


async def requoted(pages: Pages, resources: Collection[str]) -> list[Made]:
    """Make the pages anew whose footnotes name resources that have another title now; return these.

    Raises:
        StorageError: As for `Pages.withdraw`.
    """
    topics = await pages.topics() if resources else []
    named = [one for one in topics if not one.edited_by and any(each in one.body for each in resources)]
    return [await pages.make(topic, await pages.members_of(topic)) for topic in named]


async def page_for(knowledge: Knowledge, topic: Topic, members: Sequence[Memory]) -> str:
    """Return a page of a topic made of these alone, which is written nowhere: for whom not everything is meant."""
    return await asyncio.to_thread(render, await drafted(knowledge, topic, members))


async def drafted(knowledge: Knowledge, topic: Topic, members: Sequence[Memory]) -> Page:
    """Return the page that rules make of these, whatever there was before, and write nothing."""
    sources = await sources_of(knowledge, members)
    own = topic.model_copy(update={"body": "", "item_ids": []})
    return (await asyncio.to_thread(page_of, own, members, sources, knowledge.clock())).page


def _claims_of(topics: Sequence[Topic]) -> set[str]:
    """Return all claims as they were rendered last, in Markdown."""
    return {escaped(claim.text) for topic in topics if topic.body for claim in rendered_of(topic).claims}
