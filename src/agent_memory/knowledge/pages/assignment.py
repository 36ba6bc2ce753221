"""Topics of items, and the stage that files items and makes pages.

Filing reads all items, so it runs after one in a hundred is new. Pages are built one by one, and the record of a topic
has the state of its page, so an interrupted run continues.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import BusyError, StorageError
from agent_memory.files.wording import counted
from agent_memory.knowledge.intake.withdrawal import withdraw_retold
from agent_memory.knowledge.pages.pages import BuiltPage, Pages, rebuild_renamed, report_page
from agent_memory.knowledge.pages.subjects import (
    ENTITY,
    FILE,
    HIDDEN,
    KEY,
    build_name,
    find_subjects,
    is_derived,
    is_legacy,
    load_sources,
)
from agent_memory.knowledge.pipeline.stages import Backlog, StageCheckpoints, move_checkpoint
from agent_memory.language.words import index_terms
from agent_memory.logs import get_logger
from agent_memory.memory.trust import lowest
from agent_memory.models import EVERYTHING, TOPIC, Listing, SearchFilters, Source, Topic, derived_id, visible
from agent_memory.redaction import SecretRedactor, redact_label

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_memory.embeddings.protocol import Matrix

    Embed = Callable[[list[str]], Matrix]
    from collections.abc import AsyncGenerator, Mapping

    from agent_memory.knowledge.pages.subjects import ItemSources, PageSubject
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Memory, StageCheckpoint

FLOOR: Final = 0.2
"""Least mean of two cosines, to the whole description and to the nearest phrase of it."""
LEAST_WORDS: Final = 0.5
"""Least sum of the weights of shared words, used without vectors; a word of fewer topics weighs more."""
_PHRASE: Final = re.compile(r"[,;.:\n]|\band\b")
_MOST_TITLE: Final = 300
_REDACTOR: Final = SecretRedactor()


@dataclass(frozen=True, slots=True)
class DeclaredTopic:
    """A topic that a person or a program declared."""

    name: str
    description: str

    @property
    def phrases(self) -> list[str]:
        """The whole description, then the name and each phrase of it."""
        name = self.name.replace("_", " ")
        parts = (" ".join(part.split()) for part in _PHRASE.split(self.description))
        return [f"{name}: {self.description}", name, *(part for part in parts if part)]


def nearest(texts: Sequence[str], declared: Sequence[DeclaredTopic], embed: Embed | None = None) -> list[str]:
    """Return the nearest declared topic of each text, or ""."""
    if not texts or not declared:
        return [""] * len(texts)
    if embed is None:
        scores, least = _by_words(texts, declared), LEAST_WORDS
    else:
        scores, least = _by_meaning(texts, declared, embed), FLOOR
    names = []
    for row in scores:
        best = max(range(len(row)), key=row.__getitem__)
        is_tie = row.count(row[best]) > 1
        names.append(declared[best].name if row[best] >= least and not is_tie else "")
    return names


def _by_meaning(texts: Sequence[str], declared: Sequence[DeclaredTopic], embed: Embed) -> list[list[float]]:
    phrases = [topic.phrases for topic in declared]
    vectors = embed([phrase for topic_phrases in phrases for phrase in topic_phrases])
    cosines = (embed(list(texts)) @ vectors.T).tolist()
    starts = [sum(map(len, phrases[:count])) for count in range(len(phrases))]
    return [
        [
            (row[start] + max(row[start + 1 : start + len(topic_phrases)])) / 2
            for start, topic_phrases in zip(starts, phrases, strict=True)
        ]
        for row in cosines
    ]


def _by_words(texts: Sequence[str], declared: Sequence[DeclaredTopic]) -> list[list[float]]:
    terms = [frozenset(index_terms(topic.phrases[0])) for topic in declared]
    holders = Counter(term for topic_terms in terms for term in topic_terms)
    return [
        [sum(1 / holders[term] for term in topic_terms & set(index_terms(text))) for topic_terms in terms]
        for text in texts
    ]


@dataclass(frozen=True, slots=True)
class FiledItems:
    """Items by topic.

    Attributes:
        members: Memories of each topic by its ID, oldest first.
        derived: Topics of documents, conversations and people as they should be; some are new.
    """

    members: Mapping[str, Sequence[Memory]]
    derived: Sequence[Topic]


async def file_all(knowledge: Knowledge, service: MemoryService, topics: Sequence[Topic]) -> FiledItems:
    """File all memories.

    Args:
        knowledge: Documents and conversations of the agent.
        service: Memories of the agent.
        topics: All topics of the agent, hidden ones included.

    Raises:
        StorageError: They cannot be read.
    """
    memories = (await service.storage.browse(Listing("oldest", EVERYTHING))).records
    by_name = {topic.name: topic.id for topic in topics if topic.source.detail != HIDDEN}
    named = {memory.id: by_name[memory.topic] for memory in memories if memory.topic in by_name}
    free = [memory for memory in memories if memory.is_item and memory.id not in named]
    for memory, name in zip(free, await _guess_all(service, free, topics), strict=True):
        if name:
            named[memory.id] = by_name[name]
    sources = await load_sources(knowledge, memories)
    return await asyncio.to_thread(_build_filing, knowledge, memories, topics, named, sources)


def _build_filing(
    knowledge: Knowledge,
    memories: Sequence[Memory],
    topics: Sequence[Topic],
    named: Mapping[str, str],
    sources: ItemSources,
) -> FiledItems:
    """Return the items of all topics."""
    members: dict[str, dict[str, Memory]] = {}
    for memory in memories:
        if memory.id in named:
            members.setdefault(named[memory.id], {})[memory.id] = memory
    topics_by_key = {(topic.source.detail or "", str(topic.metadata.get(KEY, ""))): topic for topic in topics}
    names, derived = _TopicNames(topics), list[Topic]()
    for subject in find_subjects(sources):
        topic = _build_topic(knowledge, subject, topics_by_key.get((subject.kind, subject.key)), names)
        derived.append(topic)
        members.setdefault(topic.id, {}).update({memory.id: memory for memory in subject.members})
    places = {memory.id: place for place, memory in enumerate(memories)}
    ordered = {
        name: sorted(topic_members.values(), key=lambda memory: places[memory.id])
        for name, topic_members in members.items()
    }
    return FiledItems(ordered, derived)


async def count_unfiled(service: MemoryService, topics: Sequence[Topic]) -> int:
    """Return the number of items on no page of the topics.

    Raises:
        StorageError: They cannot be read.
    """
    filed = {item_id for topic in topics for item_id in topic.item_ids}
    live = await service.storage.valid_among(filed)
    total = (await service.storage.browse(Listing(filters=EVERYTHING, limit=0))).total
    notes = (await service.storage.browse(Listing(limit=0))).total
    return max(0, total - notes - sum(memory.is_item for memory in live.values()))


async def count_passages(service: MemoryService, name: str, group: str | None = None) -> int:
    """Return the number of passages with a name."""
    words = r"[\W_]+".join(re.findall(r"[^\W_]+", name))
    if not words:
        return 0
    pattern = re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)
    filters = SearchFilters(include_items=True, group=group)
    memories = (await service.storage.browse(Listing(filters=filters))).records
    return sum(memory.is_item and pattern.search(memory.content) is not None for memory in memories)


def describe_missing_page(name: str, passages: int) -> str:
    """Return a sentence about a name without a page."""
    return f'No page "{visible(name)}". {describe_passages(passages)}'


def describe_passages(passages: int) -> str:
    """Return a sentence about how many passages mention a name."""
    return f"{counted(passages, 'passage mentions', 'passages mention') if passages else 'No passage mentions'} it."


def list_declared(topics: Sequence[Topic]) -> list[DeclaredTopic]:
    """Return the declared ones of some topics."""
    return [DeclaredTopic(topic.name, topic.description) for topic in topics if not is_derived(topic)]


async def guess_topics(service: MemoryService, texts: Sequence[str], topics: Sequence[Topic]) -> list[str]:
    """Return the declared topic of each text, or an empty text."""
    declared = list_declared(topics)
    if not declared or not texts:
        return [""] * len(texts)
    embed = await build_embed(service, texts, declared)
    return await asyncio.to_thread(nearest, texts, declared, embed)


async def build_embed(service: MemoryService, texts: Sequence[str], declared: Sequence[DeclaredTopic]) -> Embed | None:
    """Return a function for vectors of these texts, or None."""
    all_texts = list(dict.fromkeys([*texts, *(phrase for topic in declared for phrase in topic.phrases)]))
    matrix = await service.storage.vectors_of(all_texts)
    if matrix is None:
        return None
    rows = {text: row for row, text in enumerate(all_texts)}

    def look_up(wanted: list[str]) -> Matrix:
        return matrix[[rows[text] for text in wanted]]

    return look_up


def open_to(group: str, topics: Sequence[Topic]) -> list[Topic]:
    """Return the topics that may have items of a group."""
    return [topic for topic in topics if topic.group in {"", group}]


async def _guess_all(service: MemoryService, items: Sequence[Memory], topics: Sequence[Topic]) -> list[str]:
    """Return the declared topic of each item, or an empty text."""
    groups = {topic.group for topic in topics if topic.group and not is_derived(topic)}
    names = dict.fromkeys((item.id for item in items), "")
    for group in ("", *sorted(groups)):
        group_items = [item for item in items if (item.belongs_to if item.belongs_to in groups else "") == group]
        guesses = await guess_topics(service, [item.content for item in group_items], open_to(group, topics))
        names |= dict(zip((item.id for item in group_items), guesses, strict=True))
    return [names[item.id] for item in items]


class _TopicNames:
    """Names of all topics.

    Args:
        topics: All topics of the agent, hidden ones included.
    """

    def __init__(self, topics: Sequence[Topic]) -> None:
        self._topics = {topic.name: topic for topic in topics}
        self._taken, self._numbers = set(self._topics), Counter[str]()

    def pop_legacy(self, name: str) -> Topic | None:
        """Remove and return the legacy topic with this name, or None."""
        topic = self._topics.pop(name, None)
        return topic if topic is not None and is_legacy(topic) else None

    def take(self, name: str) -> str:
        """Return a free name: this one, or with a number."""
        free = name
        while free in self._taken or _is_secret(free):
            self._numbers[name] += 1
            free = f"{name}_{self._numbers[name] + 1}"
        self._taken.add(free)
        return free


def _build_topic(knowledge: Knowledge, subject: PageSubject, stored: Topic | None, names: _TopicNames) -> Topic:
    """Return the updated topic of a subject, or a new one.

    Args:
        knowledge: Records of the agent.
        subject: Subject of the topic.
        stored: Stored topic of the subject.
        names: Names of all topics.
    """
    fields: dict[str, Any] = {
        "description": subject.description,
        "source": Source(kind="assistant", detail=subject.kind),
        "group": subject.group,
        "metadata": {"title": subject.title[:_MOST_TITLE], KEY: subject.key, FILE: subject.file},
    }
    name = "" if stored is not None else build_name(subject.name)
    stored = stored or names.pop_legacy(name)
    if stored is not None:
        return stored.model_copy(update=fields)
    new_id, now = derived_id(TOPIC.prefix, subject.kind, subject.key), knowledge.clock()
    trust = lowest(*(memory.trust for memory in subject.members))
    name = names.take(subject.kind if not name or _is_secret(name) else name)
    return Topic(agent_id=knowledge.agent_id, id=new_id, name=name, timestamp=now, trust=trust, **fields)


def _is_secret(name: str) -> bool:
    """Return True if the redactor takes a name for a secret."""
    return bool(redact_label(name, _REDACTOR)[1])


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
