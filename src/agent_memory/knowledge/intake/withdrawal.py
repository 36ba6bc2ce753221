"""Withdrawal of ingested texts with their turns and items.

Items stay forgotten, also if another source says the same since. Ingesting the file again restores them; what a person
forgot separately stays forgotten.
"""

from __future__ import annotations

import contextlib
from dataclasses import astuple, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import StorageError, UnknownIdError
from agent_memory.knowledge.intake.document_index import get_path, get_path_id, is_at
from agent_memory.knowledge.intake.drafts import is_local
from agent_memory.knowledge.pages.pages import BuiltPage, Pages, rebuild_renamed, report_page
from agent_memory.knowledge.passages.items import is_passage, list_source_ids, without_sources
from agent_memory.knowledge.passages.replaced_items import prefer_current, show_again
from agent_memory.knowledge.pipeline.stages import StageCheckpoints, with_never, without_never
from agent_memory.knowledge.records import Knowledge
from agent_memory.language.words import query_terms
from agent_memory.memory.inbox_access import has_journal, opened_inbox
from agent_memory.models import CANDIDATE, ENTITY, EPISODE, EVERYTHING, MARK, MEMORY, RESOURCE, TOPIC, SearchRequest
from agent_memory.store.record_redaction import redact_fields

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence

    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Episode, Memory, Resource
    from agent_memory.store.record_storage import RecordStorage


WITHDRAWN_IN: Final = "withdrawn_in"
"""Key of the metadata of a forgotten resource that has the numbers of the changes that forgot its items with it."""
_SAYING: Final = 50
"""Turns that are compared with a forgotten text."""


SUMMARIES: Final = ("summaries", EPISODE.name)
"""Stage that makes summaries, and its source."""


@dataclass(frozen=True, slots=True)
class UndoneIngest:
    """Counts of forgotten records, and of pinned items that stayed."""

    resources: int = 0
    episodes: int = 0
    items: int = 0
    pinned: int = 0


async def find_ingested(knowledge: Knowledge, name: str, path: str = "") -> list[Resource]:
    """Return the resources of a file, oldest first.

    Raises:
        StorageError: They cannot be read.
    """
    records = [record async for record in knowledge.resources.iter_all()]
    at_path = [record for record in records if path and is_at(record, path)]
    named = [record for record in records if name and record.source.detail == name]
    return at_path + [record for record in named if not path or not get_path(record)]


async def undo(knowledge: Knowledge, service: MemoryService, resources: Iterable[str], caller: Caller) -> UndoneIngest:
    """Forget resources with their turns and items, the resource last.

    Raises:
        UnknownIdError: A resource does not exist.
        StorageError: What was forgotten before is forgotten; doing it again does the rest.
    """
    done = UndoneIngest()
    for resource_id in resources:
        gone, counts = await withdraw(knowledge, service, resource_id, caller)
        await service.report(
            "memory:resource_deleted", caller, resource_id=resource_id, cascade=True, item_count=len(gone)
        )
        done = UndoneIngest(*map(sum, zip(astuple(done), astuple(counts), strict=True)))
    return done


async def withdraw_import(
    knowledge: Knowledge, service: MemoryService, import_id: str, caller: Caller
) -> dict[str, int]:
    """Forget the documents, turns and waiting notes of an import; return counts.

    Raises as `undo`.
    """
    waiting = {}
    if has_journal(service.agent_id, service.settings, CANDIDATE):
        async with opened_inbox(service) as inbox:  # first: forgetting a turn also drops notes that repeat it
            waiting = {"waiting": await inbox.drop_batch(import_id, caller)}
    resources, turns = await list_session(knowledge, import_id)
    documents = await count_documents(knowledge, resources)
    done = await undo(knowledge, service, resources, caller)
    single = await undo_turns(knowledge, service, turns, caller)
    counts = {"resources": done.resources, "turns": done.episodes + single.episodes, "items": done.items + single.items}
    return counts | {"documents": documents} | waiting


async def count_documents(knowledge: Knowledge, resource_ids: Sequence[str]) -> int:
    """Return the number of documents among resources; others are conversations."""
    records = await knowledge.resources.valid_among(resource_ids) if resource_ids else {}
    return sum(record.chars > 0 for record in records.values())


async def list_session(knowledge: Knowledge, session_id: str) -> tuple[list[str], list[str]]:
    """Return IDs of a session's resources, and of its other turns.

    Raises:
        StorageError: They cannot be read.
    """
    if not (knowledge.folder.path / RESOURCE.journal).exists():
        return [], []
    resources = [record.id for record in await knowledge.resources.valid() if record.created_by_session == session_id]
    turns = await knowledge.episodes.valid()
    single_turns = [
        turn.id for turn in turns if turn.created_by_session == session_id and turn.conversation not in resources
    ]
    return resources, single_turns


async def list_acceptable(knowledge: Knowledge, service: MemoryService, resource_ids: Sequence[str]) -> list[str]:
    """Return IDs of passages of low trust that a user may accept.

    Those are of documents and of the user's turns, without pasted parts and words of other sources.
    """
    records = await knowledge.resources.valid_among(resource_ids) if resource_ids else {}
    sources = {record.id for record in records.values() if record.chars and is_local(record.resource_type)}
    for resource_id in records:
        sources |= {turn.id for turn in await knowledge.episodes.linked_to(resource_id) if turn.role == "user"}
    linked = await service.storage.linked_to_each([*sources])
    items = {item.id: item for memories in linked.values() for item in memories if is_passage(item)}
    return [
        item.id
        for item in items.values()
        if item.trust == "low" and item.origin != "pasted" and sources.issuperset(list_source_ids(item))
    ]


async def undo_turns(
    knowledge: Knowledge, service: MemoryService, turns: Sequence[str], caller: Caller
) -> UndoneIngest:
    """Forget single turns with their items.

    Raises:
        StorageError: Some may be forgotten; doing it again does the rest.
    """
    items = await drawn_from_alone(service, turns, caller)
    gone = [item.id for item in items if not item.pinned]
    await service.writer.deletion.forget_many(gone, caller)
    await forget_known(turns, knowledge)
    await _forget(knowledge.episodes, turns)
    return UndoneIngest(0, len(turns), len(gone), len(items) - len(gone))


async def withdraw(
    knowledge: Knowledge, service: MemoryService, resource_id: str, caller: Caller
) -> tuple[list[Memory], UndoneIngest]:
    """Forget a resource with turns and items; return items and counts.

    Raises as `undo`.
    """
    episodes = [turn.id for turn in await knowledge.episodes.linked_to(resource_id)]
    await _show_older(knowledge, service, resource_id, caller)
    items = await drawn_from_alone(service, [resource_id, *episodes], caller)
    gone = [item for item in items if not item.pinned]
    await service.writer.deletion.forget_many([item.id for item in gone], caller)
    await _note_withdrawn(knowledge, service, resource_id, gone)
    if not gone:  # an earlier run may have died before it rebuilt the pages
        for made in await Pages(knowledge, service).catch_up():
            await report_page(service, made, caller)
    await forget_known([resource_id, *episodes], knowledge)
    await _forget(knowledge.episodes, episodes)
    await knowledge.resources.forget_many([resource_id])
    return gone, UndoneIngest(1, len(episodes), len(gone), len(items) - len(gone))


async def undo_version(knowledge: Knowledge, service: MemoryService, version_id: str, caller: Caller) -> str:
    """Take a document version back; return the reason if refused.

    Raises:
        UnknownIdError: Another process forgot the version.
        StorageError: What was forgotten before is forgotten; doing it again does the rest.
    """
    if await knowledge.resources.get(version_id) is None:
        return "the new version was taken back since; ingest the file to have it again"
    if newer := (await knowledge.resources.replaced_by([version_id])).get(version_id):
        return f"{newer} is a newer version of its document; take that back first"
    await undo(knowledge, service, [version_id], caller)
    return ""


async def load_withdrawn(knowledge: Knowledge) -> dict[int, Resource]:
    """Return withdrawn documents by numbers of changes of their items.

    Raises:
        StorageError: The documents cannot be read.
    """
    withdrawn = [(record, record.metadata.get(WITHDRAWN_IN)) for record, _ in await knowledge.resources.forgotten()]
    return {seq: record for record, numbers in withdrawn for seq in _list_numbers(numbers)}


def _list_numbers(value: object) -> list[int]:
    return [number for number in value if isinstance(number, int)] if isinstance(value, list) else []


async def _note_withdrawn(
    knowledge: Knowledge, service: MemoryService, resource_id: str, items: Sequence[Memory]
) -> None:
    """Note on a resource which changes forgot its items with it."""
    record = await knowledge.resources.get(resource_id)
    if record is not None and items:
        last = {
            change.record_id: change.seq for change in await service.history.load_changes([item.id for item in items])
        }
        metadata = {**record.metadata, WITHDRAWN_IN: sorted(set(last.values()))}
        await knowledge.resources.update(resource_id, redact_fields(RESOURCE, {"metadata": metadata}))


@contextlib.asynccontextmanager
async def restore_items(
    knowledge: Knowledge, service: MemoryService, resource_ids: Collection[str], caller: Caller
) -> AsyncIterator[None]:
    """Restore withdrawn items of resources around the background work."""
    restored = await restore_withdrawn(knowledge, service, resource_ids, caller)
    yield
    await prefer_current(knowledge, service, restored, caller)


async def restore_withdrawn(
    knowledge: Knowledge, service: MemoryService, resource_ids: Collection[str], caller: Caller
) -> list[str]:
    """Restore items that `undo` forgot of resources ingested again.

    What a person forgot by itself stays forgotten.

    Args:
        knowledge: Documents and turns of the agent.
        service: Memories of the agent.
        resource_ids: IDs of the resources as they are now.
        caller: Session for events.

    Returns:
        IDs of the restored items.

    Raises:
        StorageError: Nothing was restored.
    """
    places = {_get_place(record) for record in (await knowledge.resources.valid_among([*resource_ids])).values()}
    withdrawn = [record for record, _ in await knowledge.resources.forgotten() if _get_place(record) in places]
    past = await knowledge.resources.load_changes(resource_ids)
    withdrawn += [change.before for change in past if change.op == "delete" and change.before is not None]
    changes = {seq for record in withdrawn for seq in _list_numbers(record.metadata.get(WITHDRAWN_IN))}
    items = await find_forgotten(knowledge, service, resource_ids) if changes else []
    last = {change.record_id: change.seq for change in await service.history.load_changes([item.id for item in items])}
    restored = [item for item in items if last.get(item.id) in changes]
    await service.history.restore_many([item.id for item in restored], caller)
    if restored:
        await _note_restored(knowledge, service, restored)
    return [item.id for item in restored]


async def _note_restored(knowledge: Knowledge, service: MemoryService, items: Sequence[Memory]) -> None:
    """Note in all marks that items and sources count again.

    A source that says what is still forgotten stays as it is.
    """
    forgotten = [memory for memory, _ in await service.history.forgotten()]
    texts = [set(query_terms(memory.content)) for memory in forgotten]
    sources = {source for item in items for source in list_source_ids(item)}
    sources -= {source for memory in forgotten for source in list_source_ids(memory)}
    turns = (await knowledge.episodes.valid_among([*sources])).values()
    sources -= {turn.id for turn in turns if says_any(turn, texts)}
    restored, marks = sources | {item.id for item in items}, StageCheckpoints(knowledge.marks)
    for mark in await knowledge.marks.valid():
        if restored.intersection(mark.never):
            await marks.keep(without_never(mark, restored))


async def find_forgotten(knowledge: Knowledge, service: MemoryService, resource_ids: Collection[str]) -> list[Memory]:
    """Return forgotten items whose words resources have.

    Raises:
        StorageError: They cannot be read.
    """
    items = [memory for memory, _ in await service.history.forgotten() if memory.is_item]
    if not items:
        return []
    records = (await knowledge.resources.valid_among([*resource_ids])).values()
    sources = {turn.id for record in records for turn in await knowledge.episodes.linked_to(record.id)}
    sources |= {record.id for record in records}
    texts = list[str]()
    for record in records:
        with contextlib.suppress(StorageError):  # its text is missing, which the background work reports
            texts += [await knowledge.text_of(record)] if record.chars else []
    return [item for item in items if sources.intersection(list_source_ids(item)) or _is_passage_in(item, texts)]


def _is_passage_in(item: Memory, texts: Iterable[str]) -> bool:
    """Return True if a text has the words of a passage."""
    words = item.content.partition("\n\n")[2] if "heading" in item.metadata else item.content
    return is_passage(item) and "speaker" not in item.metadata and any(words in text for text in texts)


def _get_place(record: Resource) -> tuple[str, str]:
    return record.group, get_path_id(record) or record.id


async def _show_older(knowledge: Knowledge, service: MemoryService, resource_id: str, caller: Caller) -> None:
    """Make the version before a resource current again."""
    record = await knowledge.resources.get(resource_id)
    if record is not None and record.supersedes:
        newer = (await knowledge.resources.replaced_by([resource_id])).get(resource_id, "")
        await show_again(service, record.supersedes, resource_id, caller, newer)
        await knowledge.resources.update(resource_id, {"supersedes": None})
        if newer and await knowledge.resources.get(record.supersedes) is not None:
            await knowledge.resources.update(newer, {"supersedes": record.supersedes})


async def drawn_from_alone(service: MemoryService, sources: Sequence[str], caller: Caller) -> list[Memory]:
    """Return items of these sources alone; remove the sources from others.

    Args:
        service: Where items are.
        sources: Ids of records that are about to go.
        caller: Session that gets events.

    Raises:
        StorageError: Some may have lost a source; doing it again does the rest.
    """
    await service.monitor.recall_archived((), caller.as_person(), sources=sources)
    items = [item for source in sources for item in reversed(await service.storage.linked_to(source)) if item.is_item]
    alone: list[Memory] = []
    changed: list[str] = []
    for item in {candidate.id: candidate for candidate in items}.values():
        changes = without_sources(item, sources)
        if changes is None:
            alone.append(item)
        else:
            await service.update(item.id, changes, caller)
            changed.append(item.id)
    if changed:
        await service.monitor.withdraw(changed, caller)  # pages quote these sources
    return alone


async def withdraw_retold(forgotten: Sequence[Memory], knowledge: Knowledge) -> list[str]:
    """Forget what retells forgotten memories; return renamed conversations.

    These are titles, relations and summaries. Idempotent.

    Raises:
        StorageError: Some may be there still; doing it again does the rest.
    """
    items = [memory for memory in forgotten if memory.is_item]
    renamed = await forget_titles(items, knowledge)
    sources = dict.fromkeys(source for item in items for source in list_source_ids(item))
    if (knowledge.folder.path / EPISODE.journal).exists():
        notes = [memory.content for memory in forgotten if not memory.is_item]
        sources |= dict.fromkeys(await find_turns_saying(notes, knowledge))
    await forget_retold([*sources], knowledge)
    return renamed


async def forget_retold(sources: Sequence[str], knowledge: Knowledge) -> None:
    """Forget relations and summaries of sources with forgotten parts.

    Summaries that are made from now on leave these sources out, and of where entities are named no words are shown.

    Raises:
        StorageError: Some may be forgotten; doing it again does the rest.
    """
    if sources:
        marks = StageCheckpoints(knowledge.marks)
        await marks.keep(with_never(await marks.of_name(*SUMMARIES), sources))
        if (knowledge.folder.path / ENTITY.journal).exists():
            await _forget_retold(sources, knowledge)


async def get_forgotten_sources(knowledge: Knowledge) -> set[str]:
    """Return the IDs of turns and documents with forgotten parts.

    Raises:
        StorageError: They cannot be read.
    """
    return set((await StageCheckpoints(knowledge.marks).of_name(*SUMMARIES)).never)


async def find_turns_saying(texts: Collection[str], knowledge: Knowledge) -> list[str]:
    """Return the IDs of turns with all words of a text.

    Raises:
        StorageError: They cannot be read.
    """
    turns: dict[str, None] = {}
    for text in texts:
        request = SearchRequest(text, _SAYING, knowledge.clock(), EVERYTHING, patience=0)
        answer = await knowledge.episodes.answer(request)
        turns |= dict.fromkeys(turn.id for turn in answer.records if says_any(turn, [set(query_terms(text))]))
    return list(turns)


def says_any(turn: Episode, texts: Iterable[set[str]]) -> bool:
    """Return True if a turn has all words of a text."""
    words = set(query_terms(turn.content))
    return any(text and text <= words for text in texts)


async def forget_titles(items: Sequence[Memory], knowledge: Knowledge) -> list[str]:
    """Rename conversations with forgotten words in the title; return their IDs.

    Only those whose turns came one by one: they are called by when they began, as live ones are.

    Raises:
        StorageError: Some may have it; doing it again does the rest.
    """
    terms_by_source: dict[str, set[str]] = {}
    for item in items:
        words = item.content.removeprefix(f"{item.metadata.get('speaker') or ''}: ")
        for source in list_source_ids(item):
            terms_by_source.setdefault(source, set()).update(query_terms(words))
    turns = await knowledge.episodes.valid_among(
        [record_id for record_id in terms_by_source if record_id.startswith(EPISODE.prefix)]
    )
    forgotten: dict[str, set[str]] = {}
    for record_id, turn in turns.items():
        if turn.conversation:
            forgotten.setdefault(turn.conversation, set()).update(terms_by_source[record_id])
    renamed: list[str] = []
    for record_id, record in (await knowledge.resources.valid_among([*forgotten])).items():
        if not record.chars and forgotten[record_id].intersection(query_terms(record.title)):
            title = f"{record.moment:%Y-%m-%d %H:%M}"
            await knowledge.resources.update(record_id, redact_fields(RESOURCE, {"title": title, "content": title}))
            renamed.append(record_id)
    return renamed


async def _forget_retold(sources: Sequence[str], knowledge: Knowledge) -> None:
    await _forget_linked(knowledge.relations, sources)
    gone = await _forget_linked(knowledge.summaries, sources)
    while gone:  # summaries of these
        gone = await _forget_linked(knowledge.summaries, gone)


async def forget_known(sources: Sequence[str], knowledge: Knowledge) -> None:
    """Forget what rests on sources: summaries, relations, mentions, entities.

    Raises:
        StorageError: Some may be forgotten; doing it again does the rest.
    """
    if not (knowledge.folder.path / ENTITY.journal).exists():
        return
    await _forget_retold(sources, knowledge)
    mentions = {record.id: record for source in sources for record in await knowledge.mentions.linked_to(source)}
    entities = await knowledge.entities.valid_among(
        sorted({entity_id for record in mentions.values() for entity_id in record.entities})
    )
    theirs = [entity_id for entity_id, record in entities.items() if record.is_item]
    alone = [
        entity_id
        for entity_id in theirs
        if all(record.id in mentions for record in await knowledge.mentions.linked_to(entity_id))
    ]
    # Entities first: who died in between would find none without what names them.
    await _forget(knowledge.entities, alone)
    await _forget(knowledge.mentions, [*mentions])


async def _forget_linked(storage: RecordStorage[Any], sources: Sequence[str]) -> list[str]:
    gone = {record.id: None for source in sources for record in await storage.linked_to(source)}
    await _forget(storage, [*gone])
    return [*gone]


async def _forget(storage: RecordStorage[Any], ids: Sequence[str]) -> None:
    """Forget records, also if another process forgot some."""
    if ids:
        with contextlib.suppress(UnknownIdError):
            await storage.forget_many(ids)
            return
        if remaining := [record_id for record_id in ids if await storage.get(record_id) is not None]:
            await storage.forget_many(remaining)


class KnowledgeWithdrawal:
    """Removes leaving records from pages and from what retells them.

    Open until the service closes.

    Args:
        service: Service of the agent's memory.
        report: Reports a rebuilt page to a session; as `report_page` when omitted.
    """

    def __init__(
        self, service: MemoryService, report: Callable[[BuiltPage, Caller], Awaitable[object]] | None = None
    ) -> None:
        self._service, self._report = service, report or partial(report_page, service)
        self._opened: Knowledge | None = None

    async def withdraw(self, record_ids: Collection[str], caller: Caller) -> None:
        """Take items off the pages, and forget knowledge among the records.

        Idempotent. Memories among the records are forgotten already.

        Raises:
            StorageError: Some may be forgotten.
        """
        self._opened = knowledge = self._opened or Knowledge(self._service.agent_id, self._service.settings)
        if not (knowledge.folder.path / TOPIC.journal).exists():
            return
        pages = Pages(knowledge, self._service)
        memory_ids = [record_id for record_id in record_ids if record_id.startswith(MEMORY.prefix)]
        forgotten = await self._service.storage.forgotten_of(memory_ids)
        renamed = await withdraw_retold([*forgotten.values()], knowledge)
        for made in [*await pages.withdraw(memory_ids), *await rebuild_renamed(pages, renamed)]:
            await self._report(made, caller)
        if len(memory_ids) < len(record_ids):
            await self._withdraw_knowledge(knowledge, pages, record_ids, caller)

    async def _withdraw_knowledge(
        self, knowledge: Knowledge, pages: Pages, record_ids: Collection[str], caller: Caller
    ) -> None:
        sources = [record_id for record_id in record_ids if record_id.startswith((EPISODE.prefix, RESOURCE.prefix))]
        await drawn_from_alone(self._service, sources, caller)
        await forget_retold(sources, knowledge)
        for storage in knowledge.storages:
            if (knowledge.folder.path / storage.kind.journal).exists() and storage.kind not in {MARK, TOPIC}:
                await _forget_among(storage, record_ids)
        for made in await pages.catch_up():
            await self._report(made, caller)
        named = [record_id for record_id in record_ids if record_id.startswith(TOPIC.prefix)]
        for topic in (await knowledge.topics.valid_among(named)).values():
            await pages.remove(topic)
        await _forget_among(knowledge.topics, record_ids)
        if knowledge.folder.topics.is_dir():
            await pages.write_index()

    async def close(self) -> None:
        """Close what is open."""
        if self._opened is not None:
            await self._opened.close()


async def _forget_among(storage: RecordStorage[Any], record_ids: Collection[str]) -> None:
    await _forget(storage, [record_id for record_id in record_ids if record_id.startswith(storage.kind.prefix)])
