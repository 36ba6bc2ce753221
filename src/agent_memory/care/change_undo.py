"""Undo of listed changes; a document version as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.knowledge.intake.withdrawal import load_withdrawn, undo_version
from agent_memory.knowledge.passages.replaced_items import find_version_change, show_documents
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory.history import MemoryChange, UndoneChange
from agent_memory.models import RESOURCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from agent_memory.memory import Caller, MemoryService


class ChangeUndo:
    """Takes changes of one agent back; `service` is that of its memory."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    async def take_back(
        self, changes: Iterable[MemoryChange], caller: Caller, *, is_import: bool = False
    ) -> AsyncIterator[UndoneChange]:
        """Take changes back in their order, and yield each outcome.

        Args:
            changes: Changes to take back.
            caller: Session that asks for it.
            is_import: True to leave out document versions that were withdrawn with their import.
        """
        for change in changes:
            if not (is_import and find_version(change) and await self._service.history.is_taken_back(change)):
                yield await self._take_back(change, caller)
        await self.show_documents()

    async def show_documents(self) -> None:
        """Make withdrawn documents current whose passages were restored."""
        async with self._open_knowledge() as knowledge:
            if (knowledge.folder.path / RESOURCE.journal).exists():
                await show_documents(knowledge, self._service)

    async def name_documents(self, changes: Sequence[MemoryChange]) -> tuple[dict[int, str], dict[int, str]]:
        """Return titles of new and of withdrawn documents by numbers of changes.

        The title of a new version is empty if it was withdrawn since.
        """
        versions = {change.seq: version for change in changes if (version := find_version(change))}
        forgotten = [change.seq for change in changes if change.verb == "forgotten" and _has_document(change)]
        if not versions and not forgotten:
            return {}, {}
        async with self._open_knowledge() as knowledge:
            records = await knowledge.resources.valid_among([*versions.values()])
            withdrawn = await load_withdrawn(knowledge) if forgotten else {}
        titles = {version: record.title for version, record in records.items()}
        return (
            {seq: titles.get(version, "") for seq, version in versions.items()},
            {seq: withdrawn[seq].title or withdrawn[seq].id for seq in forgotten if seq in withdrawn},
        )

    async def _take_back(self, change: MemoryChange, caller: Caller) -> UndoneChange:
        history, version = self._service.history, find_version(change)
        is_forgotten = change.verb == "forgotten" and _has_document(change)
        if not version and not is_forgotten:
            return await history.take_back(change, caller)
        async with self._open_knowledge() as knowledge:
            if version:
                reason = await undo_version(knowledge, self._service, version, caller)
            elif change.seq in await load_withdrawn(knowledge):
                reason = "its document was taken back; ingest the file to restore it"
            else:
                return await history.take_back(change, caller)
        ids = tuple(part.record_id for part in change.parts)
        return UndoneChange(change, () if reason else ids, dict.fromkeys(ids, reason) if reason else {})

    def _open_knowledge(self) -> Knowledge:
        return Knowledge(self._service.agent_id, self._service.settings)


def find_version(change: MemoryChange) -> str:
    """Return the ID of the document version behind a change, or ""."""
    return next(filter(None, (find_version_change(part.before, part.after) for part in change.parts)), "")


def _has_document(change: MemoryChange) -> bool:
    return any(part.before is not None and part.before.is_item for part in change.parts)
