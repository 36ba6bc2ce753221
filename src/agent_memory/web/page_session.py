"""One run of the page: opened memory, secrets and notices."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.privacy.unfinished_purges import go_on_with_purges
from agent_memory.encryption import is_encrypted
from agent_memory.errors import ConfigurationError, StorageError, UnsupportedError
from agent_memory.files.layout import folder_of, resolve_root
from agent_memory.files.names import CONSENT
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory.caller import Caller
from agent_memory.memory.features import attach_features
from agent_memory.memory.service import MemoryService, open_service
from agent_memory.registry import KINDS
from agent_memory.web.temporary_files import UploadFolder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

    from agent_memory.models import Candidate
    from agent_memory.settings import ServiceSettings

SESSION_ID: Final = "page"
"""Session of events and memories that come from the page."""
_WATCHED: Final = ("memory", "candidate", "archived", "resource")
"""Kinds of records whose journals a view depends on."""
KEY_CODES: Final = frozenset({"encrypted", "wrong_key"})
"""Codes of errors that the right key repairs."""
_MAX_NOTICES: Final = 50


@dataclass(frozen=True, slots=True)
class PageNotice:
    """Outcome of an act, for the view after it.

    Attributes:
        text: Sentence for the person.
        undo: Numbers of the changes that an undo takes back.
        candidate_id: Rejected note or proposal that an undo returns to the inbox.
        import_id: Session of an import that an undo takes back.
        undo_name: Name of the button.
        hints: Further sentences, such as similar memories that stayed.
    """

    text: str
    undo: tuple[int, ...] = ()
    hints: tuple[str, ...] = ()
    candidate_id: str = ""
    import_id: str = ""
    undo_name: str = "Undo"

    @property
    def can_undo(self) -> bool:
        """True if the act can be taken back."""
        return bool(self.undo or self.candidate_id or self.import_id)

    @property
    def undo_address(self) -> str:
        """Address of the form that takes the act back."""
        return "/undo" if self.undo else "/import/undo" if self.import_id else "/decisions/undo"


@dataclass
class PageSession:
    """State of one run of the page.

    Attributes:
        agent_id: Agent whose memory is shown.
        settings: Settings of its memory.
        is_read_only: True if the page refuses every act.
        is_demo: True if the memory is the invented one.
        token: Secret of the first address; None once it was used.
        cookie: Secret that the browser sends.
        csrf: Secret of each form.
        last_act: Notice of the last act that can be taken back.
        uploads: Files to import.
        rejected: Rejected notes and proposals by ID; they are in no file.
    """

    agent_id: str
    settings: ServiceSettings
    is_read_only: bool = False
    is_demo: bool = False
    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(32))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    caller: Caller = field(default_factory=lambda: Caller(SESSION_ID, origin="typed"))
    last_act: PageNotice | None = None
    rejected: dict[str, Candidate] = field(default_factory=dict)
    uploads: UploadFolder = field(default_factory=UploadFolder)
    _service: MemoryService | None = None
    _notices: dict[str, PageNotice] = field(default_factory=dict)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def root(self) -> Path:
        """Folder of all agents."""
        return resolve_root(self.settings.storage_root)

    @property
    def folder(self) -> Path:
        """Folder of the agent."""
        return folder_of(self.agent_id, self.root).path

    @property
    def is_encrypted(self) -> bool:
        """True if the agent's files are encrypted."""
        try:
            return is_encrypted(self.folder)
        except StorageError:  # the file with the key cannot be used
            return True

    async def open(self) -> MemoryService:
        """Return the opened memory.

        Raises:
            StorageError: The key of an encrypted memory is missing or wrong, or a file cannot be read.
        """
        async with self._opening:
            if self._service is None:
                service = attach_features(open_service(self.agent_id, self.settings))
                await go_on_with_purges(service)
                self._service = service
            service = self._service
        await service.pad.notice(self.caller)
        return service

    @asynccontextmanager
    async def open_knowledge(self) -> AsyncIterator[Knowledge]:
        """Open documents, conversations, pages and entities for the block.

        Raises:
            ConfigurationError: The memory is on a server, which has none.
        """
        if self.settings.backend == "server":
            raise ConfigurationError("A server has no documents, pages or entities.", code="needs_files")
        knowledge = Knowledge(self.agent_id, self.settings)
        try:
            yield knowledge
        finally:
            await knowledge.close()

    async def warm(self) -> None:
        """Load what the first views and the first search need."""
        service = await self.open()
        await service.status(self.caller)
        await service.searcher.find_candidates(self.agent_id, self.caller)
        with suppress(UnsupportedError):  # a server keeps no versions
            await service.history.list_changes(1)

    async def take_key(self, key: str) -> None:
        """Open an encrypted memory with a key, kept in this process.

        Raises:
            StorageError: It is not the key.
        """
        variable = self.settings.encryption.key_variable
        before = os.environ.get(variable)
        os.environ[variable] = key
        try:
            await self.open()
        except StorageError:
            os.environ.pop(variable)
            if before is not None:
                os.environ[variable] = before
            raise

    async def close(self) -> None:
        """Close the memory; the next view opens it again."""
        service, self._service = self._service, None
        if service is not None:
            await service.close()

    def read_stamp(self) -> str:
        """Return a text that changes with the agent's journals; reads no content."""
        names = [KINDS[name].file for name in _WATCHED]
        paths = [*(self.folder / name for name in (*names, CONSENT)), self.root / CONSENT]
        return hashlib.blake2b(repr([*map(_get_state, paths)]).encode(), digest_size=8).hexdigest()

    def add_notice(self, notice: PageNotice) -> str:
        """Add a notice; return its name for the next address."""
        name = secrets.token_urlsafe(6)
        self._notices[name] = notice
        self.last_act = notice if notice.can_undo else None
        for entries in (self._notices, self.rejected):
            while len(entries) > _MAX_NOTICES:
                del entries[next(iter(entries))]
        return name

    def get_notice(self, name: str | None) -> PageNotice | None:
        """Return the notice with a name, or None."""
        return self._notices.get(name or "")

    async def find_undo(self, record_ids: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of the last changes of memories, newest first."""
        changes = await (await self.open()).history.find_last_changes(set(record_ids))
        return tuple(change.seq for change in changes)


def _get_state(path: Path) -> Any:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns, state.st_ino


def format_minute(moment: str) -> str:
    """Return a stored moment as local day and time."""
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"
