"""The scratchpad file's part of the service: taking over a person's edits, and rendering anew in the background."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, StorageError, ValidationError
from agent_memory.files.atomic import signature
from agent_memory.logs import get_logger
from agent_memory.memory.caller import NOBODY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_memory.memory.caller import Caller, Writes
    from agent_memory.memory.limits import ServiceLimits
    from agent_memory.memory.scratchpad_manager import ScratchpadManager
    from agent_memory.memory.scratchpad_saves import Look, PadFile, Save

log = get_logger(__name__)

MAX_EDITS: Final = 200
"""Taken over from one save: twice what a scratchpad can show, half a second of writing."""
_ROUNDS: Final = 20
"""Renderings in a row because the file was saved in between."""


class ScratchpadSync:
    """Keeps scratchpad.yaml and the journal in step, off the critical path. For any number of event loops.

    Args:
        manager: Reads and renders the file.
        writes: Where edits of the file go.
        limits: How long the file is waited for.

    Attributes:
        attribute_edits: Distinguishes a model's edits from a person's; see `EditIntake.attribute_edits`.
    """

    def __init__(self, manager: ScratchpadManager, writes: Writes, limits: ServiceLimits) -> None:
        self._manager, self._file = manager, manager.pad_file
        self._limits = limits
        self._intake = EditIntake(manager.pad_file, writes)
        self.attribute_edits = self._intake.attribute_edits
        self._tasks: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}
        self._is_stale = False
        self._compactions = 0
        self._noticed: tuple[int, int, int] | None = None
        self._tried: tuple[int, int, int] | None = None
        self._trouble: str | None = None  # code of what is in the way now, and was reported

    def schedule(self, caller: Caller = NOBODY) -> None:
        """Have the file rendered soon; many calls in a row cost one or two renderings."""
        self._is_stale = True
        loop = asyncio.get_running_loop()
        # A loop that is closed ended with its task, or is a fork's parent's.
        self._tasks = {each: task for each, task in self._tasks.items() if not (each.is_closed() or task.done())}
        if loop not in self._tasks:
            self._tasks[loop] = loop.create_task(self._render_until_fresh(caller))

    async def absorb(self, caller: Caller = NOBODY, *, at_once: bool = False) -> bool:
        """Take over a person's edits, if there are any; costs a look at the file if there are none.

        Args:
            caller: The session that asks.
            at_once: Do not wait for the lock or for a program that is writing.

        Returns:
            False if edits may still wait: they could not be read or taken over, or another holds the lock.
        """
        try:
            if not (await asyncio.to_thread(self._file.look, patience=0 if at_once else None)).saves:
                self._trouble = None
                return True
        except StorageError as error:
            await self._not_now(error, caller)
            return False
        async with self._manager.lock.taken(0 if at_once else self._limits.edits_patience) as is_mine:
            # If it is not, another thread or process takes them over at this moment.
            return is_mine and await self._bring_into_step(caller)

    async def notice(self, caller: Caller = NOBODY) -> None:
        """Take over edits if the file is not as it was when that last succeeded; a few microseconds if it is.

        What cannot be taken over now is tried again by each call, without waiting a second time.
        """
        looks_like = signature(self._file.path)
        if looks_like != self._noticed:
            at_once, self._tried = looks_like == self._tried, looks_like
            if await self.absorb(caller, at_once=at_once):
                self._noticed = looks_like

    async def settle(self) -> None:
        """Wait for a rendering under way in this loop, and do that of a loop that ended before it."""
        loop = asyncio.get_running_loop()
        compactions = await self._manager.storage.folds()
        # What has expired and was dropped may still stand in the file.
        if self._is_stale or compactions != self._compactions:
            self._compactions = compactions
            self.schedule()
        while (task := self._tasks.get(loop)) and not task.done():
            await asyncio.gather(task, return_exceptions=True)

    async def _render_until_fresh(self, caller: Caller) -> None:
        try:
            while True:
                async with self._manager.lock.taken(self._limits.rendering_patience) as is_mine:
                    self._is_stale = False
                    if not is_mine:
                        why = "Another process holds the scratchpad."
                        log.warning("scratchpad_not_rendered", code="busy", error=why)
                    elif not await self._bring_into_step(caller):
                        return  # what could not be read must not be overwritten
                if not self._is_stale:
                    return
        except asyncio.CancelledError:
            self._is_stale = True  # its loop ends; the next settle in another loop does it
            raise

    async def _bring_into_step(self, caller: Caller) -> bool:
        """Take over what was saved and render, until no save came in between; return whether that was possible.

        The lock is held.
        """
        try:
            for _ in range(_ROUNDS):
                look = await asyncio.to_thread(self._file.look, remove=True)
                for save in look.saves:
                    await self._intake.take_over(save, caller)
                self._trouble = None
                if await self._render(look):
                    return True
        except StorageError as error:
            await self._not_now(error, caller)
            return False
        return True  # saves come without a break: each waits for the next look, none is lost

    async def _render(self, look: Look) -> bool:
        try:
            return await self._manager.render_over(await self._manager.load(), look.content)
        except StorageError as error:
            # A view: what it shows is safe in the journal, and the next change tries again.
            log.warning("scratchpad_not_rendered", code=error.code, error=error.message)
        if look.content is not None and any(save.path == self._file.path for save in look.saves):
            try:
                await asyncio.to_thread(self._file.withdraw, look.content)
            except StorageError as error:
                log.warning("scratchpad_not_withdrawn", code=error.code, error=error.message)
        return True

    async def _not_now(self, error: StorageError, caller: Caller) -> None:
        """Report, once, that edits are still in the file; the next look at the scratchpad tries again."""
        before, self._trouble = self._trouble, error.code
        if before != error.code:
            log.warning("scratchpad_edits_not_taken_over", code=error.code, error=error.message)
            await self._intake.degraded(error, error.message, caller)


class EditIntake:
    """Takes over edits of one agent's scratchpad.yaml.

    Args:
        file: Keeps aside what cannot be taken over.
        writes: Where the edits go.
    """

    def __init__(self, file: PadFile, writes: Writes) -> None:
        self._file = file
        self._writes = writes
        self._model_at: Callable[[float], Caller | None] = lambda _moment: None

    def attribute_edits(self, model_at: Callable[[float], Caller | None]) -> None:
        """Distinguish a model's edits of the file from a person's; without this all count as a person's.

        Args:
            model_at: Returns, for a moment in seconds since 1970, the model that may have saved the file then, or None.
        """
        self._model_at = model_at

    async def take_over(self, save: Save, caller: Caller) -> None:
        """Apply each edit by itself; of what is refused a copy is kept, since the file is rendered anew."""
        refused = await self._apply(save, caller) if save.problem is None else [save.problem]
        if refused:
            first, name = refused[0], await asyncio.to_thread(self._file.keep_aside, save.content)
            message = (
                f"{len(refused)} edits of scratchpad.yaml were refused ({first.message}) The file was kept as {name}."
                if save.problem is None
                else f"{first.message} Your edit is kept as {name}, and the file was rendered anew."
            )
            log.warning("scratchpad_edit_set_aside", code=first.code, error=message)
            await self.degraded(first, message, caller)
        await asyncio.to_thread(self._file.discard, save)

    async def _apply(self, save: Save, caller: Caller) -> list[ValidationError]:
        """Take over up to `MAX_EDITS` edits, as a person's or as the model's; return why the others were not."""
        edits, model = save.edits, self._model_at(save.changed_at)
        kind, writer = ("user", caller.as_person()) if model is None else ("assistant", model)
        spoken = {"source": {"kind": kind, "detail": "scratchpad.yaml"}, "trust": writer.trust}
        refused: list[ValidationError] = []
        redacted: dict[str, None] = {}
        writes, changed, added = self._writes, edits.changed, edits.added
        if model is not None:  # it pins nothing that way, and unpins nothing
            changed = {memory_id: _without_pin(change) for memory_id, change in changed.items()}
            added = [_without_pin(values) for values in added]
        steps: list[Callable[[], Awaitable[object]]] = [
            *(partial(writes.update, memory_id, change, writer) for memory_id, change in changed.items()),
            *(partial(self._evict, memory_id, writer) for memory_id in edits.removed),
            *(partial(writes.store, {**spoken, **values}, writer) for values in added),
        ]
        for step in steps[:MAX_EDITS]:
            try:
                redacted.update(dict.fromkeys(getattr(await step(), "redacted", ())))
            except ValidationError as error:
                refused.append(error)
        refused += [
            ValidationError(f"No more than {MAX_EDITS} edits are taken over at once.", code="too_many")
            for _ in steps[MAX_EDITS:]
        ]
        if redacted:
            what = f"Secrets were removed from an edit of scratchpad.yaml ({', '.join(redacted)})."
            log.warning("scratchpad_edit_redacted", error=f"{what} Secrets are never stored.")
        counts = {"changed": len(edits.changed), "added": len(edits.added), "removed": len(edits.removed)}
        await self._writes.report("memory:scratchpad_edited", caller, **counts)
        return refused

    async def _evict(self, memory_id: str, writer: Caller) -> None:
        if writer.trust == "low":
            raise ValidationError("A model that has read a stranger's text takes nothing out of the scratchpad.")
        await self._writes.evict(memory_id)

    async def degraded(self, error: AgentMemoryError, message: str, caller: Caller) -> None:
        """Emit an event: something about the scratchpad does not work."""
        await self._writes.report("memory:degraded", caller, component="scratchpad", code=error.code, message=message)


def _without_pin(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != "pinned"}
