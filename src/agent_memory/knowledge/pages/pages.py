"""Pages of topics: built from items, stored as records and files.

The record of a topic has the items of its page and the last rendering. A file is that page to read; a person's changes
in it stay, and the next rendering is written next to it as a proposal. The newer of both is shown.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import BusyError
from agent_memory.knowledge.pages.page import escape, parse, render
from agent_memory.knowledge.pages.page_files import PageFiles, TopicFiles, cut_rendered
from agent_memory.knowledge.pages.page_items import (
    INTERVAL,
    TopicConsolidation,
    build_page,
    get_title,
    load_texts,
    parse_rendered,
    shorten_page,
)
from agent_memory.knowledge.pages.subjects import (
    DOCUMENT,
    FILE,
    HIDDEN,
    KEPT,
    KEY,
    build_name,
    describe,
    is_derived,
    is_hidden,
    list_names,
)
from agent_memory.knowledge.passages.items import get_source_id
from agent_memory.logs import get_logger
from agent_memory.memory.trust import lowest
from agent_memory.models import MAX_TEXT_CHARS, TOPIC, Listing, SearchFilters, sees, to_text
from agent_memory.redaction import Redaction, Redactor, SecretRedactor
from agent_memory.store.record_redaction import make_record, redact_fields

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agent_memory.knowledge.pages.page import Page
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Memory, Topic

_NUMBER: Final = re.compile(r"\[\^\d+\]")
log = get_logger(__name__)
_TRIES: Final = 5
_SHARE: Final = 10
"""A long page is rebuilt after a tenth of it is new: each time all of it is written."""


class OnlyNew:
    """A redactor for a page that is made again.

    What was stored has been checked, and a long page is mostly that.

    Args:
        before: Text with the checked lines; lines that differ only in the numbers of footnotes are the same.
        redactor: Checks all other lines, those that follow each other as one text.
    """

    def __init__(self, before: str, redactor: Redactor | None = None) -> None:
        self._known = frozenset(map(_key, before.split("\n")))
        self._redactor = redactor or SecretRedactor()

    def redact(self, text: str) -> Redaction:
        """See `Redactor.redact`."""
        kinds: dict[str, None] = {}
        parts: list[str] = []
        for is_known, lines in groupby(text.split("\n"), lambda line: _key(line) in self._known):
            part = "\n".join(lines)
            if not is_known:
                clean = self._redactor.redact(part)
                part = clean.text
                kinds |= dict.fromkeys(clean.kinds)
            parts.append(part)
        return Redaction("\n".join(parts), tuple(kinds))


def _key(line: str) -> str:
    return _NUMBER.sub("[^]", line)


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
        remaining = [item_id for item_id in topic.item_ids if item_id not in self._gone]
        if not topic.body or not remaining or self._reworded.intersection(topic.item_ids):
            return None
        page = await asyncio.to_thread(cut_rendered, topic.body, self._gone)
        if page is None or not set(page.items).issuperset(remaining):
            return None
        body = await asyncio.to_thread(render, page)
        clean = await asyncio.to_thread(
            redact_fields, TOPIC, {"item_ids": remaining, "body": body}, OnlyNew(topic.body)
        )
        changed = await self._knowledge.topics.update(topic.id, clean)
        self._through += 1
        # Another process may have removed other words in between, which this write restored.
        is_alone = (await self._knowledge.topics.changed_after(self._through)).last == self._through
        return changed if is_alone else None


@dataclass(frozen=True, slots=True)
class BuiltPage:
    """A rebuilt page.

    Attributes:
        topic: As it is now.
        body: The page as Markdown, whole.
        items: How many it is made of.
        milliseconds: Time taken to build it.
    """

    topic: Topic
    body: str
    items: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class _RenderedPage:
    """Consolidated page as text and as record body.

    A long page takes tens of milliseconds to render: all is a text before it comes to the event loop.
    """

    made: TopicConsolidation
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
        service: Memories of the agent.
    """

    def __init__(self, knowledge: Knowledge, service: MemoryService, interval: int = INTERVAL) -> None:
        self._knowledge, self.service, self._interval = knowledge, service, interval
        self._files = TopicFiles(knowledge.folder.topics)
        self._making = asyncio.Lock()

    # -- which there are ----------------------------------------------------------------------------------------------

    async def list_shown(self) -> list[Topic]:
        """Return the topics that are shown, declared ones first, by name."""
        topics = await self.list_all()
        return await asyncio.to_thread(lambda: [topic for topic in topics if not is_hidden(topic, self._files)])

    async def list_all(self) -> list[Topic]:
        """Return all topics, declared ones first, by name, hidden ones included."""
        topics = (await self._knowledge.topics.browse(Listing())).records
        return sorted(topics, key=lambda topic: (is_derived(topic), topic.name))

    async def get_by_name(self, name: str) -> Topic | None:
        """Return a topic by its name."""
        return next((topic for topic in await self.list_shown() if topic.name == name), None)

    async def find(self, name: str) -> list[Topic]:
        """Return topics by name, else by title, else by file name."""
        topics, wanted = await self.list_shown(), name.strip().casefold()
        named = [topic for topic in topics if topic.name in {name, build_name(name)}]
        titled = [topic for topic in topics if get_title(topic).casefold() == wanted]
        return named[:1] or titled or [topic for topic in topics if PurePath(wanted).name in list_names(topic)]

    async def declare(self, name: str, description: str, **fields: str) -> Topic:
        """Store a declared topic, in place of a hidden one.

        Args:
            name: Name of the topic.
            description: Description in 10 to 500 characters.
            fields: Further fields of the record, such as `group` and `trust`.

        Raises:
            ValidationError: A value is wrong; nothing was stored.
            StorageError: Nothing was stored.
        """
        values = {"name": name, "description": description, "timestamp": to_text(self._knowledge.clock()), **fields}
        declared = await asyncio.to_thread(make_record, TOPIC, values, self._knowledge.agent_id)
        topic = declared.value
        hidden = next((existing for existing in await self.list_all() if existing.name == topic.name), None)
        if hidden is None:
            await self._knowledge.topics.store(declared)
            return topic
        names = ("description", "source", "group", "trust", "metadata")
        return await self._knowledge.topics.update(hidden.id, {name: getattr(topic, name) for name in names})

    async def hide_legacy(self, topic: Topic) -> None:
        """Hide a topic of an earlier version, unless edited or pinned.

        Raises:
            StorageError: It is as it was.
        """
        live = await self.service.storage.valid_among(topic.item_ids)
        is_kept = (
            topic.edited_by or (await self.get_files(topic)).is_edited or any(item.pinned for item in live.values())
        )
        source = topic.source.model_copy(update={"detail": KEPT if is_kept else HIDDEN})
        await self._knowledge.topics.update(topic.id, {"source": source})

    async def list_members(self, topic: Topic) -> list[Memory]:
        """Return the present items of a topic."""
        live = await self.service.storage.valid_among(topic.item_ids)
        filters = SearchFilters(topic=topic.name, include_items=True)
        named = (await self.service.storage.browse(Listing("oldest", filters))).records
        members = live | {member.id: member for member in named}
        return sorted(members.values(), key=lambda member: member.timestamp)

    def is_due(self, topic: Topic, members: Collection[str]) -> bool:
        """Return True if a page must be rebuilt with these items."""
        if topic.edited_by:
            return False
        on_page = set(topic.item_ids)
        if topic.consolidated_at is None or on_page.difference(members):
            return bool(members) or bool(on_page)
        return self.has_enough(topic, members)

    def has_enough(self, topic: Topic, members: Collection[str]) -> bool:
        """Return True if enough items are new."""
        on_page = set(topic.item_ids)
        enough = self._interval if self._interval <= 1 else max(self._interval, len(on_page) // _SHARE)
        return len(set(members) - on_page) >= enough

    async def update_description(self, topic: Topic, members: Sequence[Memory]) -> Topic:
        """Describe a document by its present items, and return its topic."""
        file = str(topic.metadata.get(FILE, ""))
        description = describe(topic.source.detail or "", get_title(topic), members, file=file)
        if description == topic.description:
            return topic
        return await self._knowledge.topics.update(topic.id, {"description": description})

    # -- making -------------------------------------------------------------------------------------------------------

    async def make(self, topic: Topic, members: Sequence[Memory]) -> BuiltPage:
        """Build and write a page; propose it next to an edited one.

        Args:
            topic: Topic of the page.
            members: What it is made of.

        Raises:
            StorageError: It is as it was, or will be made again.
        """
        began = time.perf_counter()
        async with self._making:
            for _ in range(_TRIES):
                topic, body, saved = await self._write(topic, members)
                live = await self.service.storage.valid_among([member.id for member in members])
                if saved.done and len(live) == len(members):
                    break
                # A person saved the file in between, or an item of the page was forgotten.
                members = [member for member in members if member.id in live]
            else:
                raise BusyError(f"The page of {topic.name} is being changed all the time. It will be made again.")
        return BuiltPage(topic, body, len(members), 1000 * (time.perf_counter() - began))

    async def rebuild(self, topic: Topic, *, force: bool = False) -> BuiltPage | None:
        """Build and write a page unless edited or, without `force`, unchanged.

        Raises:
            StorageError: As for `make`.
        """
        members = await self.list_members(topic)
        is_current = topic.consolidated_at is not None and {member.id for member in members} == {*topic.item_ids}
        if topic.edited_by or (is_current and not force):
            return None
        made = await self.make(topic, members)
        await self.write_index()
        return made

    async def _write(self, topic: Topic, members: Sequence[Memory]) -> tuple[Topic, str, _RenderedPage]:
        sources = await load_texts(self._knowledge, map(get_source_id, members))
        saved = await asyncio.to_thread(self._save_file, topic, members, sources)
        made = saved.made
        if made.dropped:
            log.info("page_consolidated", topic=topic.id, dropped=dict(Counter(line.reason for line in made.dropped)))
        if not saved.done:
            return topic, topic.body, saved
        changes: dict[str, Any] = {"item_ids": [member.id for member in members], "body": saved.body}
        if members and is_derived(topic):
            changes["trust"] = lowest(*(member.trust for member in members))
        if not made.is_proposal:
            changes["consolidated_at"] = made.page.consolidated_at
        changes = {name: value for name, value in changes.items() if getattr(topic, name) != value}
        if changes:
            redactor = OnlyNew(saved.body)  # made of records, which were redacted when they were stored
            clean = await asyncio.to_thread(redact_fields, TOPIC, changes, redactor)
            topic = await self._knowledge.topics.update(topic.id, clean)
        return topic, saved.text, saved

    def _save_file(self, topic: Topic, members: Sequence[Memory], sources: Mapping[str, Any]) -> _RenderedPage:
        """Write the file of a page."""
        read = self._files.read(topic.name)
        made = build_page(topic, members, sources, self._knowledge.clock(), read)
        if made.is_proposal:  # it has a person's words, which were not checked for secrets yet
            text = OnlyNew(topic.body).redact(render(made.page)).text
            made = replace(made, page=parse(text))
            self._files.propose(topic.name, made.page, topic.description)
            is_done = True
        else:
            is_done = self._files.write(topic.name, made.page, topic.description, read)
        text = render(made.page)
        body = render(shorten_page(topic, members, sources)) if made.is_proposal else text
        return _RenderedPage(made, text, body if len(body) <= MAX_TEXT_CHARS else "", is_done)

    async def catch_up(self) -> list[BuiltPage]:
        """Rebuild all pages with forgotten items; return them.

        Raises:
            StorageError: As for `withdraw`.
        """
        filed = {item_id for topic in await self.list_all() for item_id in topic.item_ids}
        gone = filed.difference(await self.service.storage.valid_among(filed))
        return await self.withdraw(gone) if gone else []

    async def withdraw(self, gone: Collection[str]) -> list[BuiltPage]:
        """Remove deleted or reworded items from all pages; return changed pages.

        An unedited page loses the lines of these items; any other is rebuilt.

        Raises:
            StorageError: Some were not made; the next background work makes them.
        """
        gone, made = set(gone), list[BuiltPage]()
        short = PageShortener(self._knowledge, gone, await self.service.storage.valid_among(gone))
        await short.begin()
        topics = [topic for topic in await self.list_all() if not topic.edited_by]
        touched = await asyncio.to_thread(self._files.withdraw, gone, partial(_list_claims, topics))
        for topic in topics:
            if gone.intersection(topic.item_ids) or topic.name in touched:
                made += await _without(self, topic, short if touched.get(topic.name, True) else None)
        if made or touched:
            await self.write_index()
        return made

    async def remove(self, topic: Topic) -> None:
        """Remove a derived topic without items, with its page.

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
            (topic.name, get_title(topic), topic.description, len(topic.item_ids))
            for topic in await self.list_shown()
            if topic.consolidated_at is not None
        ]
        await asyncio.to_thread(self._files.write_index, rows)

    # -- showing ------------------------------------------------------------------------------------------------------

    async def get_files(self, topic: Topic) -> PageFiles:
        """Return the files of a topic's page.

        Raises:
            StorageError: It cannot be read.
        """
        return await asyncio.to_thread(self._files.get_files, topic.name)

    async def get_text(self, topic: Topic) -> str:
        """Return the page as edited, or as rendered last.

        Raises:
            StorageError: It cannot be read.
        """
        saved = None if topic.edited_by else await asyncio.to_thread(self._files.read, topic.name)
        if saved is None:
            return topic.body
        if saved.is_edited:
            return saved.text
        written_at, made = saved.page.consolidated_at, topic.consolidated_at
        is_newer = written_at is not None and (made is None or written_at >= made.replace(microsecond=0))
        return await asyncio.to_thread(render, saved.page) if is_newer or not topic.body else topic.body


async def _without(pages: Pages, topic: Topic, short: PageShortener | None) -> list[BuiltPage]:
    """Shorten, rebuild or remove a page that has lost items."""
    began, is_document = time.perf_counter(), topic.source.detail == DOCUMENT
    if short is not None and not is_document and (changed := await short.cut(topic)) is not None:
        return [BuiltPage(changed, changed.body, len(changed.item_ids), 1000 * (time.perf_counter() - began))]
    members = await pages.list_members(topic)
    if not members and is_derived(topic):
        await pages.remove(topic)
        return []
    if is_document:
        topic = await pages.update_description(topic, members)
    return [await pages.make(topic, members)]


async def rebuild_renamed(pages: Pages, resources: Collection[str]) -> list[BuiltPage]:
    """Rebuild the pages that name resources with another title now.

    The page of such a conversation is removed. The next background work builds it with the new title.

    Raises:
        StorageError: As for `Pages.withdraw`.
    """
    made = list[BuiltPage]()
    for topic in await pages.list_all() if resources else []:
        if topic.metadata.get(KEY) in resources:
            await pages.remove(topic)
        elif not topic.edited_by and any(resource in topic.body for resource in resources):
            made.append(await pages.make(topic, await pages.list_members(topic)))
    return made


async def count_visible(service: MemoryService, made: BuiltPage, caller: Caller) -> tuple[int, int] | None:
    """Return the number of items and characters that a session may know.

    The length is 0 where not all of it is there for the session; None if none of it is.

    Raises:
        StorageError: The items cannot be read.
    """
    if caller.may_hear is None:
        return made.items, len(made.body)
    members = (await service.storage.valid_among(made.topic.item_ids)).values()
    visible_count = sum(sees(caller.may_hear, member.facets) for member in members)
    if not visible_count and made.topic.group != caller.may_hear:
        return None
    return visible_count, len(made.body) if visible_count == len(members) else 0


async def report_page(service: MemoryService, made: BuiltPage, caller: Caller) -> None:
    """Report a new page if the session may know it."""
    counts = await count_visible(service, made, caller)
    if counts is None:
        return
    await service.report(
        "memory:category_consolidated",
        caller,
        category_id=made.topic.id,
        name=made.topic.name,
        item_count=counts[0],
        content_length=counts[1],
        consolidation_time_ms=round(made.milliseconds, 3),
        by_model=0,
    )


async def page_for(knowledge: Knowledge, topic: Topic, members: Sequence[Memory]) -> str:
    """Return a page of these items alone, without storing it."""
    return await asyncio.to_thread(render, await draft_page(knowledge, topic, members))


async def draft_page(knowledge: Knowledge, topic: Topic, members: Sequence[Memory]) -> Page:
    """Return the page of these items by rules, without storing it."""
    sources = await load_texts(knowledge, map(get_source_id, members))
    empty = topic.model_copy(update={"body": "", "item_ids": []})
    return (await asyncio.to_thread(build_page, empty, members, sources, knowledge.clock())).page


def _list_claims(topics: Sequence[Topic]) -> set[str]:
    """Return all claims as they were rendered last, in Markdown."""
    return {escape(claim.text) for topic in topics if topic.body for claim in parse_rendered(topic).claims}
