"""The scratchpad file's part of the service: taking over a person's edits, and rendering anew behind the scenes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_memory.errors import AgentMemoryError, StorageError, ValidationError
from agent_memory.logs import get_logger
from agent_memory.service.caller import NOBODY, Caller

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agent_memory.models import Scratchpad
    from agent_memory.scratchpad import PadEdits, ScratchpadManager
    from agent_memory.scratchpad.saves import Look, Save

log = get_logger(__name__)

MAX_EDITS: Final = 200
"""Taken over from one save: twice what a scratchpad can show, half a second of writing."""
_READERS_PATIENCE: Final = 2.0
"""Seconds a reader waits for whoever is taking over edits; a process that was stopped may hold the turn."""
_RENDERERS_PATIENCE: Final = 10.0
_ROUNDS: Final = 20
"""Renderings in a row because somebody saved in between."""


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


class ScratchpadSync:
    """Keeps scratchpad.yaml and the journal in step, off the critical path. For any number of event loops."""

    def __init__(self, manager: ScratchpadManager, write_path: WritePath) -> None:
        self._manager = manager
        self._write_path = write_path
        self._rendering: dict[asyncio.AbstractEventLoop, _Rendering] = {}
        self._model_at: Callable[[float], Caller | None] = lambda _moment: None
        self._is_stale = False
        self._folds = 0
        self._noticed: tuple[int, int, int] | None = None
        self._tried: tuple[int, int, int] | None = None
        self._trouble: str | None = None  # code of what is in the way now, and was told

    def attribute_edits(self, model_at: Callable[[float], Caller | None]) -> None:
        """Have edits of the file told apart: those of a model, and those of a person, as which all count otherwise.

        Args:
            model_at: Returns, for a moment in seconds since 1970, the model that may have saved the file then, or None.
        """
        self._model_at = model_at

    def schedule(self, caller: Caller = NOBODY) -> None:
        """Have the file rendered soon; many calls in a row cost one or two renderings."""
        self._is_stale = True
        loop = asyncio.get_running_loop()
        for other in [other for other in self._rendering if other.is_closed()]:
            self._rendering.pop(other, None)  # it ended with its loop, or is a fork's parent's
        rendering = self._rendering.get(loop)
        if rendering is None or rendering.task.done():
            self._rendering[loop] = _Rendering(loop.create_task(self._render_until_quiet(loop, caller)))
        else:
            rendering.again = True

    async def load(self, caller: Caller = NOBODY) -> Scratchpad:
        """Take over a person's edits, then return the scratchpad.

        Edits that cannot be taken over now wait in the file, and nobody renders over them.

        Raises:
            StorageError: The memories cannot be read.
        """
        await self.absorb(caller)
        return await self._manager.load()

    async def absorb(self, caller: Caller = NOBODY, *, at_once: bool = False) -> bool:
        """Take over a person's edits, if there are any; costs a look at the file if there are none.

        Args:
            caller: The session that asks.
            at_once: Wait for nobody.

        Returns:
            False if edits may still wait: they could not be read or taken over, or somebody is at it.
        """
        try:
            if not (await self._manager.look(patience=0 if at_once else None)).saves:
                self._trouble = None
                return True
        except StorageError as error:
            await self._not_now(error, caller)
            return False
        async with self._manager.turn.taken(0 if at_once else _READERS_PATIENCE) as is_mine:
            # If it is not, somebody is taking them over at this moment.
            return is_mine and await self._bring_into_step(caller)

    async def notice(self, caller: Caller = NOBODY) -> None:
        """Take over edits if the file is not as it was when that last succeeded; a few microseconds if it is.

        What cannot be taken over now is tried again by each call, without waiting a second time.
        """
        looks_like = self._manager.looks_like()
        if looks_like != self._noticed:
            at_once, self._tried = looks_like == self._tried, looks_like
            if await self.absorb(caller, at_once=at_once):
                self._noticed = looks_like

    async def settle(self) -> None:
        """Wait for a rendering under way in this loop, and do that of a loop that ended before it."""
        loop = asyncio.get_running_loop()
        folds = await self._manager.storage.folds()
        if self._is_stale or folds != self._folds:  # what has expired and was dropped may still stand in the file
            self._folds = folds
            self.schedule()
        while (rendering := self._rendering.get(loop)) and not rendering.task.done():
            await asyncio.gather(rendering.task, return_exceptions=True)

    async def _render_until_quiet(self, loop: asyncio.AbstractEventLoop, caller: Caller) -> None:
        try:
            await self._render_all(loop, caller)
        except asyncio.CancelledError:
            self._is_stale = True  # its loop ends; whoever settles in another one does it
            raise

    async def _render_all(self, loop: asyncio.AbstractEventLoop, caller: Caller) -> None:
        while True:
            async with self._manager.turn.taken(_RENDERERS_PATIENCE) as is_mine:
                self._is_stale = self._rendering[loop].again = False
                if not is_mine:
                    log.warning("scratchpad_not_rendered", code="busy", error="Another process holds the scratchpad.")
                elif not await self._bring_into_step(caller):
                    return  # what could not be read must not be overwritten
            if not self._rendering[loop].again:
                return

    async def _bring_into_step(self, caller: Caller) -> bool:
        """Take over what was saved and render, until nobody saved in between; tell whether that was possible.

        The turn is held.
        """
        try:
            for _ in range(_ROUNDS):
                look = await self._manager.look(remove=True)
                for save in look.saves:
                    await self._absorb(save, caller)
                self._trouble = None
                if await self._render(look):
                    return True
        except StorageError as error:
            await self._not_now(error, caller)
            return False
        return True  # somebody saves without a break: each save waits for whoever looks next, none is lost

    async def _render(self, look: Look) -> bool:
        try:
            return await self._manager.render_over(await self._manager.load(), look.content)
        except StorageError as error:
            # A view: what it shows is safe in the journal, and the next change tries again.
            log.warning("scratchpad_not_rendered", code=error.code, error=error.message)
        if look.content is not None and any(save.path == self._manager.file for save in look.saves):
            try:
                await self._manager.withdraw(look.content)
            except StorageError as error:
                log.warning("scratchpad_not_withdrawn", code=error.code, error=error.message)
        return True

    async def _not_now(self, error: StorageError, caller: Caller) -> None:
        """Tell, once, that edits are still in the file; who looks at the scratchpad next tries again."""
        told, self._trouble = self._trouble, error.code
        if told != error.code:
            log.warning("scratchpad_edits_not_taken_over", code=error.code, error=error.message)
            await self._degraded(error, error.message, caller)

    async def _absorb(self, save: Save, caller: Caller) -> None:
        """Apply each edit by itself; of what is refused a copy is kept, since the file is rendered anew."""
        if save.problem is not None:
            name = await self._manager.keep_aside(save)
            message = f"{save.problem.message} Your edit is kept as {name}, and the file was rendered anew."
            await self._set_aside(save.problem, message, caller)
        else:
            model = self._model_at(save.changed_at)
            refused = await self._take_over(save.edits, caller, model)
            if refused:
                name, first = await self._manager.keep_aside(save), refused[0]
                what = f"{len(refused)} edits of scratchpad.yaml were refused ({first.message})"
                message = f"{what} The file was kept as {name}."
                await self._set_aside(first, message, caller)
        await self._manager.discard(save)

    async def _take_over(self, edits: PadEdits, caller: Caller, model: Caller | None) -> list[ValidationError]:
        """Take over up to `MAX_EDITS` edits, as a person's or as the model's; return why the others were not."""
        kind, writer = ("user", caller.as_person()) if model is None else ("assistant", model)
        spoken = {"source": {"kind": kind, "detail": "scratchpad.yaml"}, "trust": writer.trust}
        refused: list[ValidationError] = []
        redacted: dict[str, None] = {}
        write, changed, added = self._write_path, edits.changed, edits.added
        if model is not None:  # it pins nothing that way, and unpins nothing
            changed = {memory_id: _without_pin(change) for memory_id, change in changed.items()}
            added = [_without_pin(values) for values in added]
        steps: list[Callable[[], Awaitable[object]]] = [
            *(partial(write.update, memory_id, change, writer) for memory_id, change in changed.items()),
            *(partial(self._evict, memory_id, writer) for memory_id in edits.removed),
            *(partial(write.store, {**spoken, **values}, writer) for values in added),
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
        await self._write_path.report("memory:scratchpad_edited", caller, **counts)
        return refused

    async def _evict(self, memory_id: str, writer: Caller) -> None:
        if writer.trust == "low":
            raise ValidationError("A model that has read a stranger's text takes nothing out of the scratchpad.")
        await self._write_path.evict(memory_id)

    async def _set_aside(self, error: AgentMemoryError, message: str, caller: Caller) -> None:
        """Tell who listens, and who works at a terminal, that an edit is in another file now."""
        log.warning("scratchpad_edit_set_aside", code=error.code, error=message)
        await self._degraded(error, message, caller)

    async def _degraded(self, error: AgentMemoryError, message: str, caller: Caller) -> None:
        await self._write_path.report(
            "memory:degraded", caller, component="scratchpad", code=error.code, message=message
        )


def _without_pin(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != "pinned"}


@dataclass(slots=True)
class _Rendering:
    """The rendering under way in one loop, and whether something changed since it last looked."""

    task: asyncio.Task[None]
    again: bool = False
