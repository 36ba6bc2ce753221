"""`Pad`: one agent's scratchpad as its service shows and changes it, and what came into it and left it, as events."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from agent_memory.errors import StorageError, UnknownIdError, ValidationError
from agent_memory.memory.caller import NOBODY
from agent_memory.memory.results import Promoted
from agent_memory.models import MemorySearchResult, SearchResults
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.memory.caller import Caller, Report
    from agent_memory.memory.degrading import Degradation
    from agent_memory.memory.scratchpad_manager import ScratchpadManager
    from agent_memory.memory.scratchpad_sync import ScratchpadSync
    from agent_memory.memory.trust import TrustGate
    from agent_memory.models import Clock, Memory, Scratchpad, SearchFilters


class Pad:
    """One agent's scratchpad.

    Args:
        manager: Loads it.
        sync: Keeps its file and the journal in step.
        gate: Decides who may bring what into it.
        degradation: Receives what does not work.
        report: Sends events.
        clock: Source of the present.

    Attributes:
        last: What it was when it was last looked at, None before.
        file: Where it is rendered to, for people.
        notice, attribute_edits: Take over the edits of scratchpad.yaml; say whose they are. See `ScratchpadSync`.
        schedule, settle: Have the file rendered soon; wait for that. See `ScratchpadSync`.
        still_true: Tells whether entries that were shown may be shown again. See `MemoryStorage`.
    """

    def __init__(
        self,
        manager: ScratchpadManager,
        sync: ScratchpadSync,
        gate: TrustGate,
        degradation: Degradation,
        report: Report,
        clock: Clock,
    ) -> None:
        self._manager = manager
        self._storage = manager.storage
        self._sync = sync
        self._gate = gate
        self._degradation = degradation
        self._report = report
        self._clock = clock
        self.last: Scratchpad | None = None
        self.file = manager.file
        self.notice, self.attribute_edits = sync.notice, sync.attribute_edits
        self.schedule, self.settle = sync.schedule, sync.settle
        self.still_true = manager.storage.still_true

    async def load(self, caller: Caller = NOBODY) -> Scratchpad:
        """Return the scratchpad, after taking over what a person changed in its file.

        Edits that cannot be taken over now wait in the file, and nothing is rendered over them.

        Raises:
            StorageError: The memories cannot be read.
        """
        await self._sync.absorb(caller)
        self.last = await self._manager.load()
        return self.last

    async def after_change(self, caller: Caller) -> tuple[Scratchpad | None, str | None]:
        """Return the scratchpad after a change that is on disk; None and why not, which is no failure of the change."""
        try:
            self.last = await self._manager.load()
        except StorageError as error:
            message = f"{error.message} The change is on disk; what the scratchpad shows now is not known."
            await self._degradation.failed("scratchpad", error.code, message, caller)
            return None, message
        self._degradation.worked("scratchpad")
        return self.last, None

    async def promote(self, memory_id: str, caller: Caller = NOBODY) -> Promoted:
        """Bring a memory into the scratchpad; see `MemoryService.promote`."""
        memory = await self._storage.get(memory_id)
        if memory is None:
            raise UnknownIdError(f"There is no memory {quoted(memory_id)}; nothing was promoted.")
        await self._check_promotable(memory)
        await self._gate.check("pin", [memory], caller)
        before = await self._manager.load()
        await self._storage.update(memory_id, {"promoted_at": self._clock(), "evicted_at": None})
        pad, degraded = await self.after_change(caller)
        after = before if pad is None else pad
        # It is not there if it has expired, or if all places are pinned.
        promoted = memory_id not in before and (pad is None or memory_id in pad)
        evicted = _left(before, after)
        if promoted:
            await self._report_promotion(memory_id, "manual", after, evicted, caller)
        self.schedule(caller)
        return Promoted(memory_id, promoted, evicted, len(after), degraded)

    async def evict(self, memory_id: str) -> None:
        """Take a memory out of the scratchpad without forgetting it; an unknown id is no error: it is out."""
        with contextlib.suppress(UnknownIdError):
            await self._storage.update(memory_id, {"evicted_at": self._clock(), "pinned": False})
            self.schedule()

    async def count_access(self, memories: Sequence[Memory], caller: Caller) -> None:
        """Count an access for each memory, which may bring it into the scratchpad."""
        reaching = [
            memory.id
            for memory in memories
            if memory.access_count + 1 >= self._manager.promotion_threshold
            and memory.trust != "low"
            and (self.last is None or memory.id not in self.last)  # one that is there already cannot come in
        ]
        before = await self._manager.load() if reaching else None
        await self._storage.touch([memory.id for memory in memories])
        if before is None:
            return
        after, _ = await self.after_change(caller)
        for memory_id in reaching:
            if after is not None and memory_id in after and memory_id not in before:
                await self._report_promotion(memory_id, "access_threshold", after, _left(before, after), caller)
        self.schedule(caller)

    async def _check_promotable(self, memory: Memory) -> None:
        """Refuse what the scratchpad never shows.

        Raises:
            ValidationError: It is an item, came from an untrusted source, or was replaced.
        """
        if memory.is_item:
            raise ValidationError(
                f"{memory.id} was drawn from a document or a talk and is never put into the scratchpad.",
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
        await self._report(
            "memory:promoted", caller, memory_id=memory_id, reason=reason, scratchpad_size=len(pad), evicted=evicted
        )


def _left(before: Scratchpad, after: Scratchpad) -> str | None:
    """Return the first that was there before and is not there now."""
    return next((memory_id for memory_id in before.ids() if memory_id not in after), None)


def search_pad(pad: Scratchpad, query: str, limit: int, conditions: SearchFilters) -> SearchResults:
    """Return what a scratchpad has on a query, for when the memories cannot be read."""
    hits = [memory for memory in pad.search_keywords(query) if conditions.admits(memory)]
    shown = [
        MemorySearchResult(memory=memory, relevance_score=1 / rank, match_type="scratchpad")
        for rank, memory in enumerate(hits[:limit], start=1)
    ]
    return SearchResults(shown, total_found=len(hits))
