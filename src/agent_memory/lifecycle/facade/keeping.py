"""`Kept`: where the entries of one agent are: memories in its service, turns and documents in its knowledge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings.registry import embedder_of
from agent_memory.errors import ValidationError
from agent_memory.knowledge.intake.undoing import drawn_from_alone, forget_known
from agent_memory.knowledge.records import Knowledge
from agent_memory.lifecycle.archive import Archive, archive_exists
from agent_memory.lifecycle.entry_types import MemoryEntryType
from agent_memory.lifecycle.facade.asking import AskedOnce
from agent_memory.lifecycle.facade.entries import fields_of, is_record_id, record_id_of, said_besides
from agent_memory.lifecycle.facade.naming import Names
from agent_memory.lifecycle.facade.taking import Taking
from agent_memory.models import EPISODE, MEMORY, RESOURCE, SUMMARY, Episode, Listing, Resource, SearchFilters, sees

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from agent_memory.embeddings import Embedder
    from agent_memory.lifecycle.facade.entries import MemoryEntry
    from agent_memory.models import Archived, Clock, Kind, Record
    from agent_memory.service import Caller, MemoryService
    from agent_memory.storage.record_storage import RecordStorage

_PAGE: Final = 500
_CONVERSATION: Final = "conversation"


class Kept:
    """Looks up, stores and forgets the records of entries.

    Args:
        service: Where memories are.
        clock: Source of the present.
        caller: Returns the session that asks.
        embedder: One of the program's own.

    Attributes:
        service: As given.
    """

    def __init__(
        self, service: MemoryService, clock: Clock, caller: Callable[[], Caller], embedder: Embedder | None
    ) -> None:
        self.service = service
        self._clock, self._caller, self._embedder = clock, caller, embedder
        self._opened: Knowledge | None = None
        self._taking: Taking | None = None
        self._names = Names()
        self._archive: Archive | None = None

    @property
    def knowledge(self) -> Knowledge:
        """Turns, documents and summaries.

        Raises:
            ConfigurationError: The memory is on a server, which keeps memories alone.
        """
        if self._opened is None:
            settings = self.service.settings
            known = self._embedder or embedder_of(settings)
            asked = None if known is None else AskedOnce(known)
            self._opened = Knowledge(self.service.agent_id, settings, clock=self._clock, embedder=asked)
        return self._opened

    @property
    def taking(self) -> Taking:
        """The way in for turns and documents."""
        if self._taking is None:
            self._taking = Taking(self.knowledge, self.service.report, self._caller)
        return self._taking

    @property
    def archive(self) -> Archive:
        """What was put away.

        Raises:
            ConfigurationError: The memory is on a server, which has no archive.
        """
        if self._archive is None:
            self._archive = Archive(self.service, clock=self._clock)
        return self._archive

    async def archived(self, entry_id: str) -> Archived | None:
        """Return the memory of an entry in the archive."""
        if not archive_exists(self.service.agent_id, self.service.settings):
            return None
        away = await self.archive.get(record_id_of(entry_id, self._caller().group or ""))
        return away if away is not None and sees(self._caller().group, away.facets) else None

    def storages(self) -> list[RecordStorage[Any]]:
        """Return where turns, documents and summaries are, as far as there are any."""
        if self.service.settings.backend == "server":
            return []
        known = self.knowledge
        storages: list[RecordStorage[Any]] = [known.episodes, known.resources, known.summaries]
        return [each for each in storages if (known.folder.path / each.kind.journal).exists()]

    async def store(self, entry: MemoryEntry) -> Record:
        """Keep an entry: an interaction as a turn, a context as a document, all others as memories.

        Raises:
            ValidationError: A field is wrong, or it is nothing but a secret; nothing was stored.
            StorageError: Nothing was stored.
        """
        if entry.entry_type not in (MemoryEntryType.INTERACTION, MemoryEntryType.CONTEXT):
            caller = self._caller()
            return (await self.service.store(fields_of(entry, self._clock(), caller.group or ""), caller)).memory
        taking = self.taking
        is_turn = entry.entry_type == MemoryEntryType.INTERACTION
        record = await (taking.turn(entry) if is_turn else taking.document(entry))
        besides = said_besides(entry, record)
        return await self.update(record, besides) if besides else record

    async def get(self, entry_id: str) -> Record | None:
        """Return the record of an entry, by its own id or by the one that a program gave it."""
        kind = next((each for each in (EPISODE, RESOURCE, SUMMARY) if entry_id.startswith(each.prefix)), None)
        if is_record_id(entry_id) and kind is not None:
            return self._seen(await self.knowledge.of(kind.name).get(entry_id))
        memory = await self.service.admin.get(record_id_of(entry_id, self._caller().group or ""))
        if memory is not None or is_record_id(entry_id):
            return self._seen(memory)
        return self._seen(await self._names.find(entry_id, self.storages()))

    async def update(self, record: Record, changes: dict[str, Any]) -> Record:
        """Change fields of a record.

        Raises:
            ValidationError: A value is wrong; nothing was changed.
            StorageError: Nothing was changed.
        """
        if record.id.startswith(MEMORY.prefix):
            return (await self.service.update(record.id, changes, self._caller())).memory
        if "content" in changes:
            raise ValidationError(
                "What was said, and what a document says, stays as it was; nothing was changed.",
                code="not_changeable",
                recovery="Store a correction.",
            )
        changed: Record = await self.knowledge.of(_kind_of(record).name).update(record.id, changes)
        return changed

    async def delete(self, record: Record) -> None:
        """Forget a record; what was drawn from a turn or a document alone goes with it, unless it is pinned.

        Raises:
            UnknownIdError: It is gone already.
            ValidationError: The caller may not forget it.
            StorageError: What was forgotten before stays forgotten.
        """
        caller = self._caller()
        if record.id.startswith(MEMORY.prefix):
            await self.service.forget(record.id, caller)
            return
        items = await drawn_from_alone(self.service, [record.id], caller)
        await self.service.requests.many([item.id for item in items if not item.pinned], caller)
        await forget_known([record.id], self.knowledge)
        await self.knowledge.of(_kind_of(record).name).delete(record.id)

    async def memories(self, filters: SearchFilters | None = None) -> list[Record]:
        """Return the valid memories that meet the filters, the newest first; items, too."""
        wanted = (filters or SearchFilters()).with_items.within(self._caller().group)
        return [*(await self.service.admin.browse(Listing(filters=wanted))).records]

    async def others(self, kind: Kind[Any] | None = None) -> AsyncIterator[Record]:
        """Yield turns, documents and summaries, or one kind of these, the newest of each first; no conversation."""
        for storage in self.storages():
            if kind is not None and kind is not storage.kind:
                continue
            offset = 0
            while True:
                filters = SearchFilters(include_items=True, group=self._caller().group)
                part = (await storage.browse(Listing(filters=filters, offset=offset, limit=_PAGE))).records
                for record in part:
                    if is_entry(record):
                        yield record
                offset += len(part)
                if len(part) < _PAGE:
                    break

    async def text_of(self, record: Record) -> str:
        """Return all words of a record."""
        if isinstance(record, Resource | Episode):
            return await self.knowledge.text_of(record)
        return str(getattr(record, "content", ""))

    async def close(self) -> None:
        """Close turns, documents and the archive."""
        if self._archive is not None:
            await self._archive.close()
        if self._opened is not None:
            await self._opened.close()

    def _seen(self, record: Record | None) -> Record | None:
        """Return a record that the caller may see."""
        return record if record is not None and sees(self._caller().group, record.facets) else None


def is_entry(record: Record) -> bool:
    """Tell whether a record is an entry: a conversation itself is none, its turns are."""
    return getattr(record, "resource_type", "") != _CONVERSATION


def _kind_of(record: Record) -> Kind[Any]:
    return next(kind for kind in (EPISODE, RESOURCE, SUMMARY) if record.id.startswith(kind.prefix))
