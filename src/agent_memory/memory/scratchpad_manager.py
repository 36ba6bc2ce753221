"""`ScratchpadManager`: one agent's scratchpad, a view of its storage."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, Final

from agent_memory.errors import BusyError, StorageError, UnknownIdError, ValidationError
from agent_memory.files.atomic import hold_folder, unlock_and_close
from agent_memory.files.layout import folder_of
from agent_memory.memory.scratchpad_entries import Selection, render
from agent_memory.memory.scratchpad_file import PadFile, RenderedEntry, render_file
from agent_memory.models import Clock, Scratchpad, utc_now
from agent_memory.redaction import Redactor, quoted
from agent_memory.settings import DEFAULT_ROOT, DEFAULT_TOKEN_BUDGET, ScratchpadSettings
from agent_memory.store.memory_storage import MemoryStorage, detect_storage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from agent_memory.models import Memory

MAX_ENTRIES: Final = 100
"""Entries of a scratchpad; a prompt has no room for more."""
_BETWEEN_TRIES: Final = 0.005
_PATIENCE: Final = 10.0
"""Seconds that a rendering waits for the lock."""


def find_evicted(before: Scratchpad, after: Scratchpad) -> str | None:
    """Return the first entry that is missing after a change, or None."""
    return next((memory_id for memory_id in before.ids() if memory_id not in after), None)


class ScratchpadManager:
    """Scratchpad of one agent.

    Args:
        agent_id: Name of the agent.
        max_size: Maximum number of entries, from 1 to 100.
        storage: Storage of the memories; opened by agent and root if omitted.
        storage_root: Folder of all agents; the default one if omitted.
        promotion_threshold: Number of accesses from which an access counts as a promotion.
        clock: Source of the present.
        redactor: Removes secrets from copies of refused edits; the built-in one if omitted.

    Attributes:
        pad_file: Rendered file, with the saves of people.
        lock: Lock to hold while edits are applied and the file is rendered.
        selection: Rule by which entries are chosen.

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
        redactor: Redactor | None = None,
    ) -> None:
        if isinstance(max_size, bool) or not isinstance(max_size, int) or not 1 <= max_size <= MAX_ENTRIES:
            raise ValidationError(f"max_size must be a whole number from 1 to {MAX_ENTRIES}, got {max_size!r}.")
        self.storage = storage or detect_storage(agent_id, storage_root, clock=clock)
        self.agent_id = self.storage.agent_id
        self.max_size = max_size
        self.promotion_threshold = promotion_threshold
        self.selection = Selection(max_size, promotion_threshold)
        self._clock = clock
        self._rendered: dict[str, RenderedEntry] = {}
        folder = getattr(self.storage, "folder", None) or folder_of(agent_id, storage_root or DEFAULT_ROOT)
        self.lock = RenderLock(folder.path)
        self.pad_file = PadFile(folder.scratchpad, clock, redactor)

    @property
    def file(self) -> Path:
        """Path of scratchpad.yaml."""
        return self.pad_file.path

    async def load(self) -> Scratchpad:
        """Return the present scratchpad.

        Raises:
            StorageError: The memories cannot be read.
        """
        return self.choose(await self.storage.recent(self.selection))

    def choose(self, recent: Sequence[Memory]) -> Scratchpad:
        """Return the scratchpad of some candidates."""
        return Scratchpad(agent_id=self.agent_id, entries=self.selection.choose(recent))

    async def save(self, scratchpad: Scratchpad) -> None:
        """Render a scratchpad to scratchpad.yaml atomically.

        Raises:
            BusyError: Another process has the lock.
            StorageError: The file cannot be written, or (code `edited`) it has edits that were not applied.
        """
        async with self.lock.taken(_PATIENCE) as is_mine:
            if not is_mine:
                raise BusyError("Another process uses scratchpad.yaml, so it was not rendered.")
            look = await asyncio.to_thread(self.pad_file.look, remove=True)
            is_rendered = not look.saves and await self.render_over(scratchpad, look.content)
        if not is_rendered:
            raise StorageError(
                "scratchpad.yaml has edits that were not applied yet, so it was not rendered.",
                code="edited",
                recovery="Read the scratchpad through the service, which applies them.",
            )

    async def render_over(self, scratchpad: Scratchpad, absorbed: bytes | None) -> bool:
        """Render a scratchpad in place of known content; see `PadFile.replace`.

        Raises:
            StorageError: The file cannot be written.
        """
        text = render_file(scratchpad.entries, self.agent_id, self._rendered)
        return await asyncio.to_thread(self.pad_file.replace, text, absorbed)

    async def add_memory(self, memory: Memory) -> str | None:
        """Add a memory to the scratchpad; return the removed ID or None.

        A new memory is stored first.
        """
        before = await self.load()
        if await self.storage.get(memory.id) is None:
            await self.storage.store(memory)
        await self.storage.update(memory.id, {"promoted_at": self._clock(), "evicted_at": None})
        after = await self.load()
        return find_evicted(before, after)

    async def promote(self, memory_id: str) -> bool:
        """Bring a memory into the scratchpad; return False if it was there.

        Raises:
            UnknownIdError: No such memory.
            StorageError: Nothing was written.
        """
        if await self.storage.get(memory_id) is None:
            raise UnknownIdError(f"No memory {quoted(memory_id)}; nothing was promoted.")
        present = memory_id in await self.load()
        await self.storage.update(memory_id, {"promoted_at": self._clock(), "evicted_at": None})
        return not present

    async def format_for_context(self, token_budget: int = DEFAULT_TOKEN_BUDGET) -> str:
        """Return the block for a model within `token_budget` estimated tokens."""
        pad = await self.load()
        return render(pad.entries, self.agent_id, ScratchpadSettings(token_budget=token_budget)).text


class RenderLock:
    """Lock of one folder's scratchpad for threads, event loops and processes.

    It makes sure that an edit is applied once. Waits are bounded, because a stopped process may hold it.

    Args:
        folder: Agent folder; it is locked itself, so no lock file is left over.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._descriptor: int | None = None

    @contextlib.asynccontextmanager
    async def taken(self, patience: float) -> AsyncIterator[bool]:
        """Hold the lock in a `with` block; yield False on timeout.

        Args:
            patience: Seconds to wait.
        """
        deadline = time.monotonic() + patience
        # Polling takes 20 µs and no thread: a thread could get the lock after its waiter was cancelled. Another process
        # cannot set an event.
        while not (is_held := self._acquire()) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_BETWEEN_TRIES)
        try:
            yield is_held
        finally:
            if is_held:
                self._release()

    def _acquire(self) -> bool:
        if self._pid != os.getpid():
            self._begin()  # a forked child: its parent's lock was closed
        if not self._mutex.acquire(blocking=False):
            return False
        try:
            self._descriptor = hold_folder(self._folder)
        except BlockingIOError:
            self._mutex.release()
            return False
        return True

    def _release(self) -> None:
        if self._descriptor is not None:
            unlock_and_close(self._descriptor)
        self._mutex.release()
