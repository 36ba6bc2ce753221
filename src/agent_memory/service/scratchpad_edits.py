"""What a person, or the model, saved in scratchpad.yaml: taken over edit by edit, the rest set aside."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, ValidationError
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_memory.scratchpad import PadEdits
    from agent_memory.scratchpad.saves import PadFile, Save
    from agent_memory.service.caller import Caller, Writes

log = get_logger(__name__)

MAX_EDITS: Final = 200
"""Taken over from one save: twice what a scratchpad can show, half a second of writing."""


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
        if save.problem is not None:
            name = await asyncio.to_thread(self._file.keep_aside, save.content)
            message = f"{save.problem.message} Your edit is kept as {name}, and the file was rendered anew."
            await self._set_aside(save.problem, message, caller)
        else:
            model = self._model_at(save.changed_at)
            refused = await self._apply(save.edits, caller, model)
            if refused:
                name, first = await asyncio.to_thread(self._file.keep_aside, save.content), refused[0]
                what = f"{len(refused)} edits of scratchpad.yaml were refused ({first.message})"
                message = f"{what} The file was kept as {name}."
                await self._set_aside(first, message, caller)
        await asyncio.to_thread(self._file.discard, save)

    async def _apply(self, edits: PadEdits, caller: Caller, model: Caller | None) -> list[ValidationError]:
        """Take over up to `MAX_EDITS` edits, as a person's or as the model's; return why the others were not."""
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

    async def _set_aside(self, error: AgentMemoryError, message: str, caller: Caller) -> None:
        """Report, by event and warning, that an edit is in another file now."""
        log.warning("scratchpad_edit_set_aside", code=error.code, error=message)
        await self.degraded(error, message, caller)

    async def degraded(self, error: AgentMemoryError, message: str, caller: Caller) -> None:
        """Emit an event: something about the scratchpad does not work."""
        await self._writes.report("memory:degraded", caller, component="scratchpad", code=error.code, message=message)


def _without_pin(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != "pinned"}
