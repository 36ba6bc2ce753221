"""`ScratchpadManager`: load, extend and show one agent's scratchpad. A view over storage; keeps no state of its own."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.journal.files import (
    make_private_folder,
    read_file,
    replace_file,
    sync_file,
    sync_folder,
    translated,
)
from agent_memory.models import Clock, Scratchpad, utc_now
from agent_memory.scratchpad.file import PadEdits, read_edits, render_file
from agent_memory.scratchpad.render import render
from agent_memory.scratchpad.select import may_be_shown, select
from agent_memory.settings import ScratchpadSettings
from agent_memory.storage import MemoryStorage, detect_storage, folder_of
from agent_memory.storage.recency import recency

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.models import Memory

MAX_ENTRIES: Final = 100
"""Of a scratchpad; what does not fit into a prompt is better searched for."""


class ScratchpadManager:
    """The hot list of one agent.

    Args:
        agent_id: Whose scratchpad.
        max_size: Entries at most; 1 to 100.
        storage: Where the memories are; opened by agent and root when omitted.
        storage_root: Folder of all agents; the default one when omitted.
        promotion_threshold: From this many accesses on, an access counts as a promotion.
        clock: Source of the present.

    Raises:
        ValidationError: `agent_id` cannot name a folder, or `max_size` is out of range.
    """

    def __init__(
        self,
        agent_id: str,
        max_size: int = 50,
        *,
        storage: MemoryStorage | None = None,
        storage_root: str | Path | None = None,
        promotion_threshold: int = 3,
        clock: Clock = utc_now,
    ) -> None:
        if isinstance(max_size, bool) or not isinstance(max_size, int) or not 1 <= max_size <= MAX_ENTRIES:
            raise ValidationError(f"max_size must be a whole number from 1 to {MAX_ENTRIES}, got {max_size!r}.")
        self.storage = storage or detect_storage(agent_id, storage_root, clock=clock)
        self.agent_id = self.storage.agent_id
        self.max_size = max_size
        self.promotion_threshold = promotion_threshold
        self._clock = clock
        self._folder = getattr(self.storage, "folder", None) or folder_of(
            agent_id, storage_root or "~/.amplifier/memory"
        )

    @property
    def file(self) -> Path:
        """Where the scratchpad is rendered to, for people."""
        return self._folder.scratchpad

    async def load(self) -> Scratchpad:
        """Return the scratchpad as the journal has it now.

        Raises:
            StorageError: The memories cannot be read.
        """
        threshold = self.promotion_threshold
        known = await self.storage.recent(
            self.max_size, threshold, lambda memory: may_be_shown(memory, recency(memory, threshold))
        )
        chosen = select(known, max_entries=self.max_size, promotion_threshold=threshold)
        return Scratchpad(agent_id=self.agent_id, entries=chosen)

    async def save(self, scratchpad: Scratchpad) -> None:
        """Render `scratchpad` to scratchpad.yaml, whole and atomically. It is a view: losing it loses nothing.

        Raises:
            StorageError: The file cannot be written.
        """
        text = render_file(scratchpad.entries, self.agent_id)
        await asyncio.to_thread(self._write, self._folder.scratchpad, text)

    async def add_memory(self, memory: Memory) -> str | None:
        """Put `memory` into the scratchpad, storing it first if it is new; return the id that had to leave, if any."""
        before = await self.load()
        if await self.storage.get(memory.id) is None:
            await self.storage.store(memory)
        await self.storage.update(memory.id, {"promoted_at": self._clock(), "evicted_at": None})
        return await self._left_since(before)

    async def promote(self, memory_id: str) -> bool:
        """Bring a memory into the scratchpad; False if it was there already.

        Raises:
            UnknownIdError: There is no such memory.
            StorageError: Nothing was written.
        """
        if await self.storage.get(memory_id) is None:
            raise UnknownIdError(f"There is no memory {str(memory_id)[:40]!r}; nothing was promoted.")
        present = memory_id in await self.load()
        await self.storage.update(memory_id, {"promoted_at": self._clock(), "evicted_at": None})
        return not present

    async def format_for_context(self, token_budget: int = 2000) -> str:
        """Return the block a model is shown, at most `token_budget` estimated tokens; empty if there is nothing."""
        pad = await self.load()
        return render(pad.entries, self.agent_id, ScratchpadSettings(token_budget=token_budget)).text

    async def read_edits(self) -> PadEdits:
        """Return what a person changed in scratchpad.yaml since it was rendered.

        Raises:
            ValidationError: The file is no scratchpad any more.
            StorageError: The file is there but cannot be read.
        """
        text = await asyncio.to_thread(self._read, self._folder.scratchpad)
        return read_edits(text) if text else PadEdits()

    async def keep_broken(self) -> str:
        """Move an unreadable scratchpad.yaml aside and return its new name."""
        path = self._folder.scratchpad
        stem = f"scratchpad.broken-{self._clock():%Y%m%dT%H%M%S}"
        with translated(path, "set aside"):
            return await asyncio.to_thread(self._set_aside, path, stem)

    async def _left_since(self, before: Scratchpad) -> str | None:
        after = await self.load()
        return next((memory_id for memory_id in before.ids() if memory_id not in after), None)

    @staticmethod
    def _set_aside(path: Path, stem: str) -> str:
        aside, number = path.with_name(f"{stem}.yaml"), 1
        while aside.exists():
            number += 1
            aside = path.with_name(f"{stem}-{number}.yaml")
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync_file(descriptor)  # its writer may not have, and these words are nowhere else
        finally:
            os.close(descriptor)
        name = path.rename(aside).name
        sync_folder(path.parent)
        return name

    @staticmethod
    def _write(path: Path, text: str) -> None:
        make_private_folder(path.parent)
        with translated(path, "write"):
            if not path.exists() or read_file(path) != text.encode():
                replace_file(path, text.encode(), durable=False)

    @staticmethod
    def _read(path: Path) -> str:
        with translated(path, "read"):
            try:
                text = read_file(path).decode("utf-8", "surrogateescape")
            except FileNotFoundError:
                return ""
        return text.replace("\r\n", "\n").replace("\r", "\n")  # as Windows and old Macs end lines
