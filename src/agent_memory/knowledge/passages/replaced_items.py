"""Items of older versions and missing files, hidden and shown again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.digest.agreement import find_sentence, normalize_words
from agent_memory.knowledge.intake.document_index import (
    MISSING_SINCE,
    PATH,
    get_path,
    get_real_path,
    is_placed,
    without_key,
)
from agent_memory.knowledge.passages.items import (
    get_place,
    is_as_drawn,
    is_passage,
    keep_sources,
    list_source_ids,
    with_link,
)
from agent_memory.knowledge.passages.sections import find_words
from agent_memory.models import DIGEST, EPISODE, RESOURCE, to_text
from agent_memory.models.memory import FROM, PASSAGE
from agent_memory.store.record_redaction import redact_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Memory, Resource


REPLACED_IN: Final = "replaced_in"
"""Key of the metadata of a hidden item that has the resource whose new version or withdrawal hid it."""
PROPOSED: Final = "source_changed"
"""Key of the metadata of an item that no version says any more, and that a person touched: it stays."""


async def hide_replaced(
    knowledge: Knowledge, service: MemoryService, record: Resource, text: str, caller: Caller
) -> list[str]:
    """Hide items that a new version no longer has; return IDs.

    Args:
        knowledge: Documents of the agent.
        service: Memories of the agent.
        record: New version, with its passages stored.
        text: Whole text of the new version.
        caller: Session for events.

    Raises:
        StorageError: Nothing was hidden; doing it again is safe.
    """
    older = await knowledge.resources.get(record.supersedes) if record.supersedes else None
    if older is None:
        return []
    items = [item for item in await service.storage.linked_to(older.id) if item.is_item]
    older_text = await knowledge.text_of(older)
    changes = await _find_shown_statements(knowledge, service, record, text)
    for item in items:
        place = _find_again(item, older.id, older_text, text)
        if place is not None and record.id not in list_source_ids(item):
            changes[item.id] = with_link(item, {"rel": FROM, "id": record.id}, [*place])
    return await _hide(
        knowledge, service, [item for item in items if item.id not in changes], record.id, older.id, caller, changes
    )


async def hide_missing(
    knowledge: Knowledge, service: MemoryService, resources: Sequence[Resource], caller: Caller
) -> list[str]:
    """Withdraw documents with missing files; return IDs of hidden items.

    Older versions expire first, so that none of them is current again.

    Raises:
        StorageError: Some may be withdrawn; doing it again does the rest.
    """
    hidden: list[str] = []
    for resource in resources:
        for version in reversed(await knowledge.list_versions(resource)):
            await knowledge.resources.update(version.id, {"expires_at": knowledge.clock()})
        items = [item for item in await service.storage.linked_to(resource.id) if item.is_item]
        hidden += await _hide(knowledge, service, items, resource.id, resource.id, caller)
    return hidden


async def show_documents(knowledge: Knowledge, service: MemoryService) -> list[str]:
    """Make withdrawn documents current whose passages were shown again.

    Returns:
        IDs of these documents.

    Raises:
        StorageError: Some may be current; doing it again does the rest.
    """
    records = [record async for record in knowledge.resources.iter_all() if MISSING_SINCE in record.metadata]
    withdrawn = [record for record in records if record.expires_at is not None]
    shown = [record for record in withdrawn if await _has_shown_item(knowledge, service, record.id)]
    for record in shown:
        for version in await knowledge.list_versions(record):
            await knowledge.resources.update(version.id, {"expires_at": None})
    return [record.id for record in shown]


async def prefer_current(knowledge: Knowledge, service: MemoryService, item_ids: Iterable[str], caller: Caller) -> None:
    """Remove sources that were forgotten from restored items.

    Raises:
        StorageError: Nothing was changed.
    """
    changes: dict[str, dict[str, Any]] = {}
    for item_id in item_ids:
        item = await service.storage.get(item_id)
        live = await _list_current(knowledge, item) if item is not None else []
        if item is not None and live:
            changes[item_id] = await _prefer(knowledge, item, live, "")
    await service.writer.update_items({key: change for key, change in changes.items() if change}, caller)


async def note_missing_source(knowledge: Knowledge, service: MemoryService, record: Resource, caller: Caller) -> None:
    """Note on items since when their current file is missing.

    Raises:
        StorageError: Nothing was changed.
    """
    since = record.metadata.get(MISSING_SINCE)
    changes: dict[str, dict[str, Any]] = {}
    for item in await service.storage.linked_to(record.id):
        if not item.is_item or item.metadata.get(MISSING_SINCE) == since:
            continue
        if (await _list_current(knowledge, item))[:1] == [record.id]:
            more = {} if since is None else {MISSING_SINCE: since}
            changes[item.id] = {"metadata": without_key(item.metadata, MISSING_SINCE) | more}
    await service.writer.update_items(changes, caller)


async def show_again(
    service: MemoryService, older_id: str, resource_id: str, caller: Caller, newer_id: str = ""
) -> None:
    """Show items of a version that a newer one had hidden.

    If another version follows that one, it hides them.

    Raises:
        StorageError: Nothing was changed.
    """
    items = await service.storage.linked_to(older_id)
    hidden = [item for item in items if item.metadata.get(REPLACED_IN) == resource_id]
    changes = {
        item.id: {"metadata": {**item.metadata, REPLACED_IN: newer_id}} if newer_id else shown_again(item)
        for item in hidden
    }
    await service.writer.update_items(changes, caller)


def find_version_change(before: Memory | None, after: Memory | None) -> str:
    """Return the document version that hid or restored an item, or ""."""
    if before is None or after is None:
        return ""
    hid, shown = after.metadata.get(REPLACED_IN), before.metadata.get(REPLACED_IN)
    version = str(hid or shown or "")
    return version if hid != shown and version not in list_source_ids(after) else ""


def shown_again(item: Memory) -> dict[str, Any]:
    """Return the changes that show a hidden item, or nothing."""
    if REPLACED_IN not in item.metadata:
        return {}
    return {"expires_at": None, "metadata": without_key(item.metadata, REPLACED_IN)}


def _find_again(item: Memory, older_id: str, older_text: str, text: str) -> tuple[int, int] | None:
    """Return the place of an item's quote in a text, or None.

    The sentence of a statement's quote must have the same words as before.
    """
    before = get_place(item, older_id)
    place = find_words(older_text[slice(*before)], text) if before is not None and not is_passage(item) else None
    if place is None or before is None or item.source.detail != DIGEST:
        return place
    sentences = (older_text[slice(*find_sentence(older_text, before))], text[slice(*find_sentence(text, place))])
    return place if normalize_words(sentences[0]) == normalize_words(sentences[1]) else None


async def _find_shown_statements(
    knowledge: Knowledge, service: MemoryService, record: Resource, text: str
) -> dict[str, dict[str, Any]]:
    """Return the changes that show hidden statements of passages again."""
    passages = {item.id: item for item in await service.storage.linked_to(record.id) if is_passage(item)}
    sources = {source for passage in passages.values() for source in list_source_ids(passage)} - {record.id}
    changes: dict[str, dict[str, Any]] = {}
    for source in sorted(sources):
        items = [item for item in await service.storage.linked_to(source) if item.source.detail == DIGEST]
        hidden = [item for item in items if REPLACED_IN in item.metadata and item.metadata.get(PASSAGE) in passages]
        resource = await knowledge.resources.get(source) if hidden else None
        older_text = await knowledge.text_of(resource) if resource is not None else ""
        for item in hidden:
            place = _find_again(item, source, older_text, text)
            if place is not None:
                linked = with_link(item, {"rel": FROM, "id": record.id}, [*place])
                metadata = without_key(linked["metadata"], REPLACED_IN)
                changes[item.id] = linked | {"expires_at": None, "metadata": metadata}
    return changes


async def _hide(
    knowledge: Knowledge,
    service: MemoryService,
    items: Iterable[Memory],
    resource_id: str,
    older_id: str,
    caller: Caller,
    more: dict[str, dict[str, Any]] | None = None,
) -> list[str]:
    """Hide items without a current source, as one change.

    The version before stays a source, for it may come back; older ones do not.
    """
    changes, now = dict(more or {}), knowledge.clock()
    hidden: list[str] = []
    for item in items:
        live = await _list_current(knowledge, item)
        if live:
            changes[item.id] = await _prefer(knowledge, item, live, older_id)
        elif _is_untouched(item):
            if not item.is_expired(now):
                changes[item.id] = {"expires_at": to_text(now), "metadata": {**item.metadata, REPLACED_IN: resource_id}}
                hidden.append(item.id)
        elif PROPOSED not in item.metadata:
            changes[item.id] = {"metadata": {**item.metadata, PROPOSED: to_text(now)}}
    await service.writer.update_items({key: change for key, change in changes.items() if change}, caller)
    if hidden:
        await service.monitor.withdraw(hidden, caller)  # pages quote them
    return hidden


async def _prefer(knowledge: Knowledge, item: Memory, live: Sequence[str], older_id: str) -> dict[str, Any]:
    """Return the changes by which current sources of an item precede."""
    sources = [*live, *(source for source in list_source_ids(item) if source == older_id and source not in live)]
    if sources == list_source_ids(item):
        return {}
    changes = keep_sources(item, sources)
    resource = await knowledge.resources.get(live[0]) if live[0].startswith(RESOURCE.prefix) else None
    if resource is not None and is_passage(item) and (path := get_path(resource)):
        changes["metadata"] = {**changes["metadata"], PATH: path}
    return changes


async def _has_shown_item(knowledge: Knowledge, service: MemoryService, resource_id: str) -> bool:
    """Return True if an untouched item of a withdrawn document is shown."""
    items = [item for item in await service.storage.linked_to(resource_id) if item.is_item and item.expires_at is None]
    untouched = [item for item in items if PROPOSED not in item.metadata]
    return any(
        [list_source_ids(item)[0] == resource_id and not await _list_current(knowledge, item) for item in untouched]
    )


async def _list_current(knowledge: Knowledge, item: Memory) -> list[str]:
    """Return current sources of an item, in their order."""
    return [source for source in list_source_ids(item) if await _is_current(knowledge, source)]


async def _is_current(knowledge: Knowledge, source: str) -> bool:
    kind = knowledge.episodes if source.startswith(EPISODE.prefix) else knowledge.resources
    if not source.startswith((EPISODE.prefix, RESOURCE.prefix)):
        return True
    return bool(await kind.valid_among([source]))


def _is_untouched(item: Memory) -> bool:
    """Return True if no person pinned, edited or decided about an item."""
    is_decided = item.promoted_at is not None or any(link.rel != FROM for link in item.links)
    return is_as_drawn(item) and not item.pinned and not is_decided


async def list_below(knowledge: Knowledge, folder: Path, *, is_current: bool = True) -> list[Resource]:
    """Return documents of files below a folder, oldest first.

    Args:
        knowledge: Documents of the agent.
        folder: Resolved path; the folder may be missing.
        is_current: Whether older and withdrawn versions are left out.

    Raises:
        StorageError: They cannot be read.
    """
    resources = knowledge.resources
    records = await resources.valid() if is_current else [record async for record in resources.iter_all()]
    paths = {record.id: get_real_path(record) for record in records}
    return [record for record in records if (path := paths[record.id]) is not None and folder in path.parents]


async def note_missing(knowledge: Knowledge, root: Path) -> list[Resource]:
    """Return documents of a folder without a file; note since when.

    Args:
        knowledge: Documents of the agent.
        root: Resolved path of the folder.

    Raises:
        StorageError: Some may be noted; doing it again does the rest.
    """
    missing: list[Resource] = []
    for record in await list_below(knowledge, root):
        metadata = without_key(record.metadata, MISSING_SINCE)
        if not is_placed(record):
            metadata[MISSING_SINCE] = record.metadata.get(MISSING_SINCE) or to_text(knowledge.clock())
        if metadata != record.metadata:
            changes = redact_fields(RESOURCE, {"metadata": metadata})
            record = await knowledge.resources.update(record.id, changes)  # noqa: PLW2901 - as it is now
        if MISSING_SINCE in metadata:
            missing.append(record)
    return missing
