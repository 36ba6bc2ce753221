"""The scratchpad file's part of the service: taking over a person's edits, and rendering anew behind the scenes."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from agent_memory.errors import AgentMemoryError, StorageError, ValidationError
from agent_memory.logs import get_logger
from agent_memory.service.caller import NOBODY, Caller

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agent_memory.models import Scratchpad
    from agent_memory.scratchpad import PadEdits, ScratchpadManager

log = get_logger(__name__)


class WritePath(Protocol):
    """What taking over an edit needs of the service."""

    async def store(self, values: Mapping[str, Any], caller: Caller) -> object:
        """Keep a new memory."""

    async def update(self, memory_id: str, changes: Mapping[str, Any], caller: Caller) -> object:
        """Change fields of a memory."""

    async def evict(self, memory_id: str) -> None:
        """Take a memory out of the scratchpad."""

    async def report(self, event: str, caller: Caller, **fields: Any) -> None:
        """Emit an event."""


class PadKeeper:
    """Keeps scratchpad.yaml and the journal in step, one run at a time, off the critical path."""

    def __init__(self, manager: ScratchpadManager, write_path: WritePath) -> None:
        self._manager = manager
        self._write_path = write_path
        self._pid = os.getpid()
        self._lock = asyncio.Lock()
        self._pending: asyncio.Task[None] | None = None
        self._again = False

    @property
    def _turn(self) -> asyncio.Lock:
        if self._pid != os.getpid():  # nobody here would give back what the parent of this fork may hold
            self._pid, self._lock = os.getpid(), asyncio.Lock()
        return self._lock

    def schedule(self) -> None:
        """Have the file rendered soon; many calls in a row cost one or two renderings."""
        if self._is_rendering():
            self._again = True
            return
        self._pending = asyncio.get_running_loop().create_task(self._render_until_quiet())

    async def load(self, caller: Caller = NOBODY) -> Scratchpad:
        """Take over a person's edits, then return the scratchpad.

        Edits that cannot be taken over now wait in the file, and nobody renders over them.

        Raises:
            StorageError: The memories cannot be read.
        """
        async with self._turn:
            await self._absorb_if_possible(caller)
            return await self._manager.load()

    async def settle(self) -> None:
        """Wait for a rendering under way."""
        if self._pending is not None and self._is_rendering():
            await asyncio.gather(self._pending, return_exceptions=True)

    def _is_rendering(self) -> bool:
        """Tell whether a rendering is under way in this loop; that of a fork's parent is not ours to wait for."""
        pending = self._pending
        return pending is not None and not pending.done() and pending.get_loop() is asyncio.get_running_loop()

    async def _render_until_quiet(self) -> None:
        self._again = True
        while self._again:
            self._again = False
            async with self._turn:
                if not await self._absorb_if_possible(NOBODY):
                    return  # what could not be read must not be overwritten
                await self._render()

    async def _render(self) -> None:
        try:
            await self._manager.save(await self._manager.load())
        except StorageError as error:
            # A view: what it shows is safe in the journal, and the next change tries again.
            log.warning("scratchpad_not_rendered", code=error.code, error=error.message)

    async def _absorb_if_possible(self, caller: Caller) -> bool:
        try:
            await self._absorb(caller)
        except StorageError as error:
            # The edits are still in the file; who looks at the scratchpad next tries again.
            log.warning("scratchpad_edits_not_taken_over", code=error.code, error=error.message)
            await self._write_path.report(
                "memory:degraded", caller, component="scratchpad", code=error.code, message=error.message
            )
            return False
        return True

    async def _absorb(self, caller: Caller) -> None:
        try:
            edits = await self._manager.read_edits()
        except ValidationError as error:
            name = await self._manager.keep_broken()
            message = f"{error.message} It was kept as {name} and rendered anew."
            await self._write_path.report(
                "memory:degraded", caller, component="scratchpad", code=error.code, message=message
            )
            await self._render()
            return
        if edits:
            await self._take_over(edits, caller)

    async def _take_over(self, edits: PadEdits, caller: Caller) -> None:
        """Apply each edit by itself; when one is refused the file is kept aside, since rendering would overwrite it."""
        caller = caller.as_person()
        spoken = {"source": {"kind": "user", "detail": "scratchpad.yaml"}, "trust": "high"}
        refused: list[AgentMemoryError] = []
        write = self._write_path
        steps: list[Callable[[], Awaitable[object]]] = [
            *(partial(write.update, memory_id, change, caller) for memory_id, change in edits.changed.items()),
            *(partial(write.store, {**spoken, **values}, caller) for values in edits.added),
            *(partial(write.evict, memory_id) for memory_id in edits.removed),
        ]
        for step in steps:
            try:
                await step()
            except ValidationError as error:
                refused.append(error)
        await self._write_path.report(
            "memory:scratchpad_edited",
            caller,
            changed=len(edits.changed),
            added=len(edits.added),
            removed=len(edits.removed),
        )
        if refused:
            name = await self._manager.keep_broken()
            first = refused[0]
            message = (
                f"{len(refused)} edits of scratchpad.yaml were refused ({first.message}) The file was kept as {name}."
            )
            await self._write_path.report(
                "memory:degraded", caller, component="scratchpad", code=first.code, message=message
            )
        await self._render()  # at once: a second look must not take the same edit over again
