"""`AgentScratchpad`: one agent's scratchpad, its file and its edits."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from agent_memory.errors import ConflictError, StorageError, UnknownIdError, UnsupportedError, ValidationError
from agent_memory.files.atomic import read_signature
from agent_memory.files.wording import counted
from agent_memory.logs import get_logger
from agent_memory.memory.caller import NOBODY, Caller
from agent_memory.memory.scratchpad_file import FolderLook, PadEdits, PadSave, hash_memory
from agent_memory.memory.scratchpad_manager import ScratchpadManager, find_evicted
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from agent_memory.memory.monitor import Monitor
    from agent_memory.memory.results import Promoted, Updated
    from agent_memory.memory.trust import TrustGate
    from agent_memory.models import Clock, Memory, Scratchpad

log = get_logger(__name__)

MAX_EDITS: Final = 200
"""Edits applied from one save: twice the entries of a scratchpad, half a second of writing."""
_RENDERING_PAUSE: Final = 0.25
"""Seconds without a change after which the file is rendered: a store does not pay for it."""
_LONGEST_DELAY: Final = 2.0
"""Seconds after which the file is rendered although changes go on."""
_MAX_RENDERINGS: Final = 20
"""Renderings in a row because the file was saved in between."""


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Seconds that the service waits.

    Attributes:
        search_patience: Wait of a search for missing vectors; None waits while a model loads.
        edits_patience: Wait for another process that applies edits of the scratchpad.
        rendering_patience: Wait of a rendering for its turn.
    """

    search_patience: float | None = None
    edits_patience: float = 2.0
    rendering_patience: float = 10.0


class _ScheduledRendering(NamedTuple):
    """Rendering of the file in one loop; `is_awaited` hastens it."""

    task: asyncio.Task[None]
    is_awaited: asyncio.Event


class MemoryWrites(Protocol):
    """Changes of memories that edits ask for; `MemoryService` has them."""

    async def store(self, values: Mapping[str, Any], caller: Caller) -> object:
        """Store a new memory."""

    async def update(
        self, memory_id: str, changes: Mapping[str, Any], caller: Caller, *, expect_seq: int | None = None
    ) -> Updated:
        """Change fields of a memory, unless its last change has another number."""


class AgentScratchpad:
    """Scratchpad of one agent, in step with scratchpad.yaml.

    Args:
        manager: Selects the entries and renders the file.
        writes: Changes memories as the edits of the file say.
        gate: Decides who may pin memories.
        monitor: Receives events and troubles.
        clock: Source of the present.
        limits: Seconds to wait for the file.

    Attributes:
        last: Scratchpad as it was last loaded; None before.
        file: Path of scratchpad.yaml.
        still_true: Method of the same name of `MemoryStorage`.
    """

    def __init__(
        self,
        manager: ScratchpadManager,
        writes: MemoryWrites,
        gate: TrustGate,
        monitor: Monitor,
        clock: Clock,
        limits: ServiceLimits,
    ) -> None:
        self.manager, self._file, self._storage = manager, manager.pad_file, manager.storage
        self._gate, self._monitor, self._clock, self._limits = gate, monitor, clock, limits
        self._writes = writes
        self._find_model: Callable[[float], Caller | None] = lambda _moment: None
        self.last: Scratchpad | None = None
        self.file = manager.file
        self.still_true = manager.storage.still_true
        self._renderings: dict[asyncio.AbstractEventLoop, _ScheduledRendering] = {}
        self._is_stale = False
        self._changed_at = 0.0
        self._compactions = 0
        self._noticed: tuple[int, int, int] | None = None
        self._tried: tuple[int, int, int] | None = None
        self._edited: dict[str, str] = {}  # checksums of memories as edits of the file left them
        self._trouble: str | None = None  # code of the reported failure to apply edits

    # -- entries ------------------------------------------------------------------------------------------------------

    async def load(self, caller: Caller = NOBODY) -> Scratchpad:
        """Return the scratchpad after applying edits of its file.

        Edits that cannot be applied now remain in the file, which is not overwritten.

        Raises:
            StorageError: The memories cannot be read.
        """
        await self.apply_edits(caller)
        self.last = await self.manager.load()
        return self.last

    async def after_change(
        self, caller: Caller, recent: Sequence[Memory] | None = None
    ) -> tuple[Scratchpad | None, str | None]:
        """Return the scratchpad after a change; or None and the reason.

        Args:
            caller: Session that changed something.
            recent: Candidates for the scratchpad; read when omitted.
        """
        try:
            self.last = await self.manager.load() if recent is None else self.manager.choose(recent)
        except StorageError as error:
            message = f"{error.message} The change is on disk; what the scratchpad shows now is not known."
            await self._monitor.report_failure("scratchpad", error.code, message, caller)
            return None, message
        self._monitor.clear_failure("scratchpad")
        return self.last, None

    def drop(self, memory_ids: Collection[str]) -> None:
        """Remove deleted memories from the last scratchpad, which answers if storage fails."""
        self.last = self.last and self.last.without(set(memory_ids))

    async def promote(self, memory_id: str, caller: Caller = NOBODY) -> Promoted:
        """Bring a memory into the scratchpad; see `MemoryService.promote`."""
        from agent_memory.memory.results import Promoted

        memory = await self._storage.get(memory_id)
        if memory is None:
            raise UnknownIdError(f"No memory {quoted(memory_id)}; nothing was promoted.")
        await self._check_promotable(memory)
        async with self._gate.settling(caller):
            await self._gate.check("pin", [memory], caller)
            before = await self.manager.load()
            await self._storage.update(memory_id, {"promoted_at": self._clock(), "evicted_at": None})
        pad, degraded = await self.after_change(caller)
        after = before if pad is None else pad
        # It is left out if it has expired, or if all places are pinned.
        is_promoted = memory_id not in before and (pad is None or memory_id in pad)
        evicted = find_evicted(before, after)
        if is_promoted:
            await self._report_promotion(memory_id, "manual", after, evicted, caller)
        self.schedule(caller)
        return Promoted(memory_id, is_promoted, evicted, len(after), degraded)

    async def evict(self, memory_id: str) -> None:
        """Remove a memory from the scratchpad alone; unknown IDs are ignored."""
        with contextlib.suppress(UnknownIdError):
            await self._storage.update(memory_id, {"evicted_at": self._clock(), "pinned": False})
            self.schedule()

    async def count_access(self, memories: Sequence[Memory], caller: Caller) -> None:
        """Count an access for each memory, which may promote it."""
        reaching = [
            memory.id
            for memory in memories
            if memory.access_count + 1 >= self.manager.promotion_threshold
            and memory.trust != "low"
            and (self.last is None or memory.id not in self.last)
        ]
        before = await self.manager.load() if reaching else None
        await self._storage.touch([memory.id for memory in memories])
        if before is None:
            return
        after, _ = await self.after_change(caller)
        for memory_id in reaching:
            if after is not None and memory_id in after and memory_id not in before:
                evicted = find_evicted(before, after)
                await self._report_promotion(memory_id, "access_threshold", after, evicted, caller)
        self.schedule(caller)

    async def _check_promotable(self, memory: Memory) -> None:
        """Refuse memories that a scratchpad never shows.

        Raises:
            ValidationError: It is an item, came from an untrusted source, or was replaced.
        """
        if memory.is_item:
            raise ValidationError(
                f"{memory.id} was extracted from a document or conversation and is never put into the scratchpad.",
                code="is_item",
                recovery="If the agent should always know it, store it in its own words.",
            )
        if memory.trust == "low":
            raise ValidationError(
                f"{memory.id} came from an untrusted source and is never put into the scratchpad.",
                code="low_trust",
                recovery="If the user confirms it, store it again in their words.",
            )
        replacement = (await self._storage.replaced_by([memory.id])).get(memory.id)
        if replacement is not None:
            raise ValidationError(
                f"{memory.id} was replaced by {replacement}, so the scratchpad does not show it.",
                code="superseded",
                recovery=f"Promote {replacement} instead.",
            )

    async def _report_promotion(
        self, memory_id: str, reason: str, pad: Scratchpad, evicted: str | None, caller: Caller
    ) -> None:
        await self._monitor.report(
            "memory:promoted", caller, memory_id=memory_id, reason=reason, scratchpad_size=len(pad), evicted=evicted
        )

    # -- file ---------------------------------------------------------------------------------------------------------

    def schedule(self, caller: Caller = NOBODY, *, is_urgent: bool = False) -> None:
        """Render the file once no change has come for a moment.

        Args:
            caller: Session that changed something.
            is_urgent: True to render at once, because the file shows what must not be shown any more.
        """
        self._is_stale, self._changed_at = True, time.monotonic()
        loop, present = asyncio.get_running_loop(), self._renderings.items()
        # A loop that is closed ended with its task, or is a fork's parent's.
        self._renderings = {owner: run for owner, run in present if not (owner.is_closed() or run.task.done())}
        if loop not in self._renderings:
            is_awaited = asyncio.Event()
            task = loop.create_task(self._render_until_fresh(caller, is_awaited))
            self._renderings[loop] = _ScheduledRendering(task, is_awaited)
        if is_urgent:
            self._renderings[loop].is_awaited.set()

    async def apply_edits(self, caller: Caller = NOBODY, *, at_once: bool = False) -> bool:
        """Apply a person's edits of the file.

        Args:
            caller: Session that asks for it.
            at_once: True to wait neither for the lock nor for a program that is writing.

        Returns:
            False if edits may remain: they could not be read or applied, or another process has the lock.
        """
        try:
            if not (await asyncio.to_thread(self._file.look, patience=0 if at_once else None)).saves:
                self._trouble = None
                return True
        except StorageError as error:
            await self._report_unapplied(error, caller)
            return False
        async with self.manager.lock.taken(0 if at_once else self._limits.edits_patience) as is_locked:
            # Otherwise another thread or process applies them at this moment.
            return is_locked and await self._synchronize(caller)

    async def notice(self, caller: Caller = NOBODY) -> None:
        """Apply edits if the file has changed.

        Edits that cannot be applied are tried again by each call, without waiting a second time.
        """
        current = read_signature(self._file.path)
        if current != self._noticed:
            at_once, self._tried = current == self._tried, current
            if await self.apply_edits(caller, at_once=at_once):
                self._noticed = current

    async def settle(self) -> None:
        """Wait for the rendering; repeat that of a loop that ended."""
        loop = asyncio.get_running_loop()
        compactions = await self._storage.folds()
        # The file may still show what has expired and was dropped.
        if self._is_stale or compactions != self._compactions:
            self._compactions = compactions
            self.schedule()
        while (rendering := self._renderings.get(loop)) and not rendering.task.done():
            rendering.is_awaited.set()
            await asyncio.gather(rendering.task, return_exceptions=True)

    async def _wait_for_pause(self, is_awaited: asyncio.Event) -> None:
        """Wait until changes pause or the file is awaited."""
        latest = time.monotonic() + _LONGEST_DELAY
        while (seconds := min(self._changed_at + _RENDERING_PAUSE, latest) - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(is_awaited.wait(), seconds)
                return

    async def _render_until_fresh(self, caller: Caller, is_awaited: asyncio.Event) -> None:
        try:
            while True:
                await self._wait_for_pause(is_awaited)
                async with self.manager.lock.taken(self._limits.rendering_patience) as is_locked:
                    self._is_stale = False
                    if not is_locked:
                        why = "Another process holds the scratchpad."
                        log.warning("scratchpad_not_rendered", code="busy", error=why)
                    elif not await self._synchronize(caller):
                        return  # unread edits must not be overwritten
                if not self._is_stale:
                    return
        except asyncio.CancelledError:
            self._is_stale = True  # its loop ends; the next settle in another loop does it
            raise

    async def _synchronize(self, caller: Caller) -> bool:
        """Apply saved edits and render, until no save comes in between.

        Returns:
            False if edits could not be read or applied.
        """
        try:
            for _ in range(_MAX_RENDERINGS):
                look = await asyncio.to_thread(self._file.look, remove=True)
                for save in look.saves:
                    await self._apply(save, caller)
                self._trouble = None
                if await self._render(look):
                    return True
        except StorageError as error:
            await self._report_unapplied(error, caller)
            return False
        return True  # saves come without a break: each waits for the next look, none is lost

    async def _render(self, look: FolderLook) -> bool:
        """Render the file; return False if it was saved in between."""
        try:
            is_rendered = await self.manager.render_over(await self.manager.load(), look.content)
        except StorageError as error:
            # The entries are safe in the journal, and the next change tries again.
            log.warning("scratchpad_not_rendered", code=error.code, error=error.message)
            await self._withdraw(look)
            return True
        if is_rendered:
            self._noticed = self._file.rendered
        return is_rendered

    async def _withdraw(self, look: FolderLook) -> None:
        """Remove a file with applied edits that could not be rendered again."""
        if look.content is not None and any(save.path == self._file.path for save in look.saves):
            try:
                await asyncio.to_thread(self._file.withdraw, look.content)
            except StorageError as error:
                log.warning("scratchpad_not_withdrawn", code=error.code, error=error.message)

    async def _report_unapplied(self, error: StorageError, caller: Caller) -> None:
        """Report, once, that edits remain in the file."""
        before, self._trouble = self._trouble, error.code
        if before != error.code:
            log.warning("scratchpad_edits_not_taken_over", code=error.code, error=error.message)
            await self._monitor.emit_degraded("scratchpad", error.code, error.message, caller)

    # -- edits --------------------------------------------------------------------------------------------------------

    def attribute_edits(self, model_at: Callable[[float], Caller | None]) -> None:
        """Distinguish a model's edits from a person's.

        Args:
            model_at: Returns, for a moment in seconds since 1970, the model that may have saved the file then, or None.
        """
        self._find_model = model_at

    async def _apply(self, save: PadSave, caller: Caller) -> None:
        """Apply each edit; keep a copy if one is refused."""
        refused = await self._apply_edits(save, caller) if save.problem is None else [save.problem]
        if refused:
            first, name = refused[0], await asyncio.to_thread(self._file.keep_aside, save.content)
            message = (
                f"{counted(len(refused), 'edit')} of scratchpad.yaml {'was' if len(refused) == 1 else 'were'} refused; "
                f"all other edits were applied. {first.message} Your file was kept as {name}: "
                "take what you need from it and edit scratchpad.yaml again."
                if save.problem is None
                else f"{first.message} Your edit is kept as {name}, and the file was rendered anew."
            )
            log.warning("scratchpad_edit_set_aside", code=first.code, error=message)
            await self._monitor.emit_degraded("scratchpad", first.code, message, caller)
        await asyncio.to_thread(self._file.discard, save)

    async def _apply_edits(self, save: PadSave, caller: Caller) -> list[ValidationError]:
        """Apply up to `MAX_EDITS` edits; return the refusals."""
        edits, model = save.edits, self._find_model(save.changed_at)
        kind, writer = ("user", caller.as_person()) if model is None else ("assistant", model)
        stamp = {"source": {"kind": kind, "detail": "scratchpad.yaml"}, "trust": writer.trust}
        refused: list[ValidationError] = []
        redacted: dict[str, None] = {}
        changed, added = edits.changed, edits.added
        if model is not None:  # a model pins and unpins nothing by an edit
            changed = {memory_id: _drop_pin(change) for memory_id, change in changed.items()}
            added = [_drop_pin(values) for values in added]
        steps: list[Callable[[], Awaitable[object]]] = [
            *(partial(self._change_by_edit, edits, memory_id, change, writer) for memory_id, change in changed.items()),
            *(partial(self._evict_by_edit, memory_id, writer) for memory_id in edits.removed),
            *(partial(self._writes.store, {**stamp, **values}, writer) for values in added),
        ]
        for step in steps[:MAX_EDITS]:
            try:
                redacted.update(dict.fromkeys(getattr(await step(), "redacted", ())))
            except ValidationError as error:
                refused.append(error)
        refused += [
            ValidationError(f"No more than {MAX_EDITS} edits are applied at once.", code="too_many")
            for _ in steps[MAX_EDITS:]
        ]
        if redacted:
            what = f"Secrets were removed from an edit of scratchpad.yaml ({', '.join(redacted)})."
            log.warning("scratchpad_edit_redacted", error=f"{what} Secrets are never stored.")
        counts = {"changed": len(edits.changed), "added": len(edits.added), "removed": len(edits.removed)}
        await self._monitor.report("memory:scratchpad_edited", caller, **counts)
        return refused

    async def _change_by_edit(self, edits: PadEdits, memory_id: str, change: dict[str, Any], writer: Caller) -> Updated:
        """Change a memory, unless it is newer than the rendered file.

        Raises:
            ConflictError: It is newer; nothing was changed.
        """
        versions, seq = await self._load_versions(memory_id)
        if versions and edits.is_stale(memory_id, versions) and versions[-1] != self._edited.get(memory_id):
            raise ConflictError(f"{memory_id} was changed after this file was written, so its newer text stays.")
        if replacement := (await self._storage.replaced_by([memory_id])).get(memory_id):
            raise ConflictError(f"{memory_id} was replaced by {replacement}, so its newer text stays.")
        updated = await self._writes.update(memory_id, change, writer, expect_seq=seq)
        self._edited[memory_id] = hash_memory(updated.memory)
        return updated

    async def _load_versions(self, memory_id: str) -> tuple[list[str], int | None]:
        """Return checksums of a memory's versions, and its last change number."""
        try:
            versions = await self._storage.history(memory_id)
        except UnsupportedError:  # a server keeps no versions
            memory = await self._storage.get(memory_id)
            return [] if memory is None else [hash_memory(memory)], None
        checksums = [hash_memory(version.record) for version in versions if version.record is not None]
        return checksums, versions[-1].seq if versions else None

    async def _evict_by_edit(self, memory_id: str, writer: Caller) -> None:
        if writer.trust == "low":
            raise ValidationError("A model that has read untrusted text removes nothing from the scratchpad.")
        await self.evict(memory_id)


def _drop_pin(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != "pinned"}
