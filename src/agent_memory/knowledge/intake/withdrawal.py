"""Withdrawal of ingested texts: the items drawn from them, their turns, and the records themselves.

Items stay forgotten, also if another source says the same since. Ingesting the file again restores them; what a person
forgot separately stays forgotten.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import StorageError, UnknownIdError
from agent_memory.knowledge.intake.document_index import get_path, get_path_id, is_at
from agent_memory.knowledge.pages.page_stage import tell
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.passages.items import is_passage, list_source_ids, without_sources
from agent_memory.knowledge.passages.replaced_items import show_again
from agent_memory.knowledge.pipeline.stages import Marks, with_never, without_never
from agent_memory.knowledge.records import Knowledge
from agent_memory.language.words import query_terms
from agent_memory.models import ENTITY, EPISODE, EVERYTHING, MARK, RESOURCE, TOPIC, SearchRequest
from agent_memory.store.record_redaction import redact_fields

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

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
    """How much was forgotten, and how many items stayed since somebody had pinned them."""

    resources: int = 0
    episodes: int = 0
    items: int = 0
    pinned: int = 0


async def taken_from(knowledge: Knowledge, name: str, path: str = "") -> list[Resource]:
    """Return the resources of a file, oldest first.

    Raises:
        StorageError: They cannot be read.
    """
    records = [record async for record in knowledge.resources.iter_all()]
    at_path = [record for record in records if path and is_at(record, path)]
    named = [record for record in records if name and record.source.detail == name]
    return at_path + [record for record in named if not path or not get_path(record)]


async def undo(knowledge: Knowledge, service: MemoryService, resources: Iterable[str], caller: Caller) -> UndoneIngest:
    """Forget resources with their turns and the items drawn from them; the resource goes last, so that it can go on.

    Raises:
        UnknownIdError: There is no such resource.
        StorageError: What was forgotten before is forgotten; doing it again does the rest.
    """
    done = UndoneIngest()
    for resource_id in resources:
        episodes = [each.id for each in await knowledge.episodes.linked_to(resource_id)]
        await _show_older(knowledge, service, resource_id, caller)
        items = await drawn_from_alone(service, [resource_id, *episodes], caller)
        gone = [item for item in items if not item.pinned]
        await service.writer.deletion.forget_many([item.id for item in gone], caller)
        await _note_withdrawn(knowledge, service, resource_id, gone)
        if not gone:  # who forgot them may have died before their pages were made anew
            for made in await Pages(knowledge, service).catch_up():
                await tell(service, made, caller)
        await forget_known([resource_id, *episodes], knowledge)
        await _forget(knowledge.episodes, episodes)
        await knowledge.resources.forget_many([resource_id])
        await service.report(
            "memory:resource_deleted", caller, resource_id=resource_id, cascade=True, item_count=len(gone)
        )
        done = UndoneIngest(
            done.resources + 1,
            done.episodes + len(episodes),
            done.items + len(gone),
            done.pinned + len(items) - len(gone),
        )
    return done


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


async def is_withdrawal(knowledge: Knowledge, seq: int) -> bool:
    """Return True if a change forgot items with their document.

    Raises:
        StorageError: The documents cannot be read.
    """
    withdrawn = [record.metadata.get(WITHDRAWN_IN) for record, _ in await knowledge.resources.forgotten()]
    return any(seq in numbers for numbers in withdrawn if isinstance(numbers, list))


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
    noted = [record.metadata.get(WITHDRAWN_IN) for record in withdrawn]
    changes = {seq for seqs in noted if isinstance(seqs, list) for seq in seqs}
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
    restored, marks = sources | {item.id for item in items}, Marks(knowledge.marks)
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
    """Return True if a text has the words of a passage of a document."""
    words = item.content.partition("\n\n")[2] if "heading" in item.metadata else item.content
    return is_passage(item) and "speaker" not in item.metadata and any(words in text for text in texts)


def _get_place(record: Resource) -> tuple[str, str]:
    return record.group, get_path_id(record) or record.id


async def _show_older(knowledge: Knowledge, service: MemoryService, resource_id: str, caller: Caller) -> None:
    """Make the version before a resource current again, or the one that a newer version replaces."""
    record = await knowledge.resources.get(resource_id)
    if record is not None and record.supersedes:
        newer = (await knowledge.resources.replaced_by([resource_id])).get(resource_id, "")
        await show_again(service, record.supersedes, resource_id, caller, newer)
        await knowledge.resources.update(resource_id, {"supersedes": None})
        if newer and await knowledge.resources.get(record.supersedes) is not None:
            await knowledge.resources.update(newer, {"supersedes": record.supersedes})


async def drawn_from_alone(service: MemoryService, sources: Sequence[str], caller: Caller) -> list[Memory]:
    """Return the items that some sources alone say; from those that others say, too, these sources are taken.

    Args:
        service: Where items are.
        sources: Ids of records that are about to go.
        caller: For events.

    Raises:
        StorageError: Some may have lost a source; doing it again does the rest.
    """
    found = [item for source in sources for item in reversed(await service.storage.linked_to(source)) if item.is_item]
    alone: list[Memory] = []
    others: list[str] = []
    for item in {one.id: one for one in found}.values():
        changes = without_sources(item, sources)
        if changes is None:
            alone.append(item)
        else:
            await service.update(item.id, changes, caller)
            others.append(item.id)
    if others:
        await service.monitor.notify_watchers(others, caller)  # pages quote these sources
    return alone


async def forget_retold(sources: Sequence[str], knowledge: Knowledge) -> None:
    """Forget what repeats words of sources of which something was forgotten: relations and summaries.

    Summaries that are made from now on leave these sources out, and of where entities are named no words are shown.

    Raises:
        StorageError: Some may be forgotten; doing it again does the rest.
    """
    if sources:
        marks = Marks(knowledge.marks)
        await marks.keep(with_never(await marks.of_name(*SUMMARIES), sources))
        if (knowledge.folder.path / ENTITY.journal).exists():
            await _forget_retold(sources, knowledge)


async def get_forgotten_sources(knowledge: Knowledge) -> set[str]:
    """Return the IDs of turns and documents of which something was forgotten.

    Raises:
        StorageError: They cannot be read.
    """
    return set((await Marks(knowledge.marks).of_name(*SUMMARIES)).never)


async def find_turns_saying(texts: Collection[str], knowledge: Knowledge) -> list[str]:
    """Return the IDs of turns that have all words of one of these texts.

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
    """Return True if a turn has all words of one of the texts."""
    words = set(query_terms(turn.content))
    return any(text and text <= words for text in texts)


async def forget_titles(items: Sequence[Memory], knowledge: Knowledge) -> list[str]:
    """Give conversations a title without words of items that were forgotten; return the ids of those that had some.

    Only those whose turns came one by one: they are called by when they began, as live ones are.

    Raises:
        StorageError: Some may have it; doing it again does the rest.
    """
    said: dict[str, set[str]] = {}
    for item in items:
        words = item.content.removeprefix(f"{item.metadata.get('speaker') or ''}: ")
        for source in list_source_ids(item):
            said.setdefault(source, set()).update(query_terms(words))
    turns = await knowledge.episodes.valid_among([one for one in said if one.startswith(EPISODE.prefix)])
    forgotten: dict[str, set[str]] = {}
    for one, turn in turns.items():
        if turn.conversation:
            forgotten.setdefault(turn.conversation, set()).update(said[one])
    renamed: list[str] = []
    for one, record in (await knowledge.resources.valid_among([*forgotten])).items():
        if not record.chars and forgotten[one].intersection(query_terms(record.title)):
            title = f"{record.moment:%Y-%m-%d %H:%M}"
            await knowledge.resources.update(one, redact_fields(RESOURCE, {"title": title, "content": title}))
            renamed.append(one)
    return renamed


async def _forget_retold(sources: Sequence[str], knowledge: Knowledge) -> None:
    await _forget_linked(knowledge.relations, sources)
    gone = await _forget_linked(knowledge.summaries, sources)
    while gone:  # summaries of these
        gone = await _forget_linked(knowledge.summaries, gone)


async def forget_known(sources: Sequence[str], knowledge: Knowledge) -> None:
    """Forget summaries, relations and mentions that rest on sources, and entities that nothing else names.

    Raises:
        StorageError: Some may be forgotten; doing it again does the rest.
    """
    if not (knowledge.folder.path / ENTITY.journal).exists():
        return
    await _forget_retold(sources, knowledge)
    mentions = {each.id: each for source in sources for each in await knowledge.mentions.linked_to(source)}
    known = await knowledge.entities.valid_among(sorted({one for each in mentions.values() for one in each.entities}))
    theirs = [one for one, each in known.items() if each.is_item]
    alone = [one for one in theirs if all(each.id in mentions for each in await knowledge.mentions.linked_to(one))]
    # Entities first: who died in between would find none without what names them.
    await _forget(knowledge.entities, alone)
    await _forget(knowledge.mentions, [*mentions])


async def _forget_linked(storage: RecordStorage[Any], sources: Sequence[str]) -> list[str]:
    gone = {each.id: None for source in sources for each in await storage.linked_to(source)}
    await _forget(storage, [*gone])
    return [*gone]


async def _forget(storage: RecordStorage[Any], ids: Sequence[str]) -> None:
    """Forget records; those that somebody else forgot meanwhile are forgotten."""
    if ids:
        with contextlib.suppress(UnknownIdError):
            await storage.forget_many(ids)
            return
        if left := [one for one in ids if await storage.get(one) is not None]:
            await storage.forget_many(left)


async def withdraw_given(service: MemoryService, record_ids: Collection[str], caller: Caller) -> None:
    """Forget those of some records that are no memories, and take them from the items that others say, too.

    Pages are made anew on which something stands that is gone. Doing it again does what is left.

    Args:
        service: Of the agent; memories among these are forgotten already.
        record_ids: Of all that go.
        caller: For events.

    Raises:
        StorageError: Some may be forgotten.
    """
    knowledge = Knowledge(service.agent_id, service.settings)
    if not (knowledge.folder.path / TOPIC.journal).exists():
        return
    try:
        sources = [one for one in record_ids if one.startswith((EPISODE.prefix, RESOURCE.prefix))]
        await drawn_from_alone(service, sources, caller)
        await forget_retold(sources, knowledge)
        for storage in knowledge.storages:
            if (knowledge.folder.path / storage.kind.journal).exists() and storage.kind not in {MARK, TOPIC}:
                await _forget_live(storage, record_ids)
        pages = Pages(knowledge, service)
        for made in await pages.catch_up():
            await tell(service, made, caller)
        named = [one for one in record_ids if one.startswith(TOPIC.prefix)]
        for topic in (await knowledge.topics.valid_among(named)).values():
            await pages.remove(topic)
        await _forget_live(knowledge.topics, record_ids)
        if knowledge.folder.topics.is_dir():
            await pages.write_index()
    finally:
        await knowledge.close()


async def _forget_live(storage: RecordStorage[Any], record_ids: Collection[str]) -> None:
    live = await storage.valid_among([one for one in record_ids if one.startswith(storage.kind.prefix)])
    if live:
        await storage.forget_many([*live])
