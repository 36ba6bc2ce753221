"""`Disputes`: pairs of memories that look as if they cannot both be right, and what is decided about them.

A pair is a link of the newer memory with the relation `_suspect`; a decision gives that link another relation. So the
journal knows all of it, and a list of the pairs reads no other memories.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Literal

from agent_memory.errors import ValidationError
from agent_memory.models import BESIDE, DISTINCT, REPLACES, SUSPECT, may_stand_for
from agent_memory.service.caller import NOBODY
from agent_memory.service.results import Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_memory.models import Memory
    from agent_memory.service.caller import Caller, Report
    from agent_memory.service.scratchpad_sync import ScratchpadSync
    from agent_memory.service.writing import WritePath

Decision = Literal["replace", "keep", "not_same"]
_RELS: Final[dict[Decision, str]] = {"replace": REPLACES, "keep": BESIDE, "not_same": DISTINCT}
_PATIENCE: Final = 5.0
"""Seconds to wait for vectors; nobody waits for this."""


class Disputes:
    """One agent's suspect pairs; part of its `MemoryService`.

    Args:
        writing: The write path to the memories.
        report: Sends events.
        pad: Has the scratchpad's file rendered.
    """

    def __init__(self, writing: WritePath, report: Report, pad: ScratchpadSync) -> None:
        self._storage, self._writing = writing.storage, writing
        self._report, self._pad = report, pad

    async def undecided(self) -> list[Suspect]:
        """Return the pairs that wait for a decision, the latest first.

        One whose memories have changed meanwhile so that both can be right, or of which one was replaced, forgotten or
        has expired, is left out.

        Raises:
            StorageError: The memories cannot be read.
        """
        newer = await self._storage.undecided()
        wanted = list(dict.fromkeys(link.id for one in newer for link in one.links if link.rel == SUSPECT))
        older = await self._storage.valid_among(wanted)
        found = await asyncio.to_thread(lambda: list(_pairs(newer, older)))
        return sorted(found, key=lambda each: each.newer.timestamp, reverse=True)

    async def decide(
        self, memory_id: str, other_id: str, decision: Decision, caller: Caller = NOBODY
    ) -> Suspect | None:
        """Settle a pair: `replace` lets the first replace the other; both stay with `keep` and `not_same`.

        `past.restore` brings back what was replaced. Another decision may follow, but takes no replacement back.

        Returns:
            The pair as it was, if it was waiting.

        Raises:
            UnknownIdError: There is no such memory.
            ValidationError: They are no pair that was ever suspect; one would replace itself; or the caller may not
                (`needs_user`).
            StorageError: Nothing was changed.
        """
        waiting = [each for each in await self.undecided() if {each.newer.id, each.older.id} == {memory_id, other_id}]
        memories = {one: await self._storage.get(one) for one in (memory_id, other_id)}
        holder, end = self._ends(memories, memory_id, other_id)
        await self._writing.gate.check("change", [memory for memory in memories.values() if memory is not None], caller)
        links = [
            link.model_copy(update={"rel": _RELS[decision]}) if _is_of(link, end) else link for link in holder.links
        ]
        if decision == "replace":
            await self._replace(memory_id, other_id, caller)
        await self._storage.update(holder.id, {"links": links})
        outcome = {"replace": "replaced"}.get(decision, decision)
        ids = {"memory_id": holder.id, "older_id": end}
        await self._report("memory:suspect", caller, **ids, kind=None, hint=None, outcome=outcome)
        self._pad.schedule(caller)
        return next(iter(waiting), None)

    async def look(self, memory_ids: Iterable[str] | None = None, caller: Caller = NOBODY) -> int:
        """Compare memories with those that share most with them; return how many pairs were found.

        Args:
            memory_ids: Which, in the order of storing; all when omitted, which takes some milliseconds for each.
            caller: The session that asks.

        Raises:
            StorageError: What was found before stays.
        """
        if memory_ids is None:
            memory_ids = [memory.id async for memory in self._storage.iter_all()]
        return await self._writing.comparing.behind(list(memory_ids), caller)

    async def look_again(self, memory_id: str, caller: Caller = NOBODY, *, by_meaning: bool) -> None:
        """Compare a stored memory with more than a store has time for.

        Args:
            memory_id: Which.
            caller: The session that asks.
            by_meaning: Also with those nearest by their vectors, unless there are none within some seconds.

        Raises:
            StorageError: The memories cannot be read or changed.
        """
        await self.look([memory_id], caller)
        if by_meaning and await self._storage.prepare(_PATIENCE):
            await self._writing.comparing.behind_by_meaning(memory_id, caller)

    def _ends(self, memories: dict[str, Memory | None], memory_id: str, other_id: str) -> tuple[Memory, str]:
        """Return the memory whose link makes the two a pair, and the id of the other."""
        for one, other in ((memory_id, other_id), (other_id, memory_id)):
            holder = memories[one]
            if holder is not None and any(_is_of(link, other) for link in holder.links):
                return holder, other
        raise ValidationError(
            f"{memory_id} and {other_id} are no pair that looked as if it cannot be right; nothing was changed.",
            code="no_such_pair",
            recovery="To let one replace the other, change the newer one: supersedes.",
        )

    async def _replace(self, memory_id: str, other_id: str, caller: Caller) -> None:
        """Let a memory replace another, behind what it replaces already."""
        oldest = [memory_id, *await self._storage.older_versions(memory_id)]
        if other_id not in oldest:
            await self._storage.update(oldest[-1], {"supersedes": other_id})
            await self._writing.changed(oldest[-1], ["supersedes"], (), caller)


def _is_of(link: object, other_id: str) -> bool:
    return getattr(link, "id", None) == other_id and getattr(link, "rel", None) in {SUSPECT, *_RELS.values()}


def _pairs(newer: Iterable[Memory], older: dict[str, Memory]) -> Iterator[Suspect]:
    """Yield the pairs that still look as if they cannot both be right."""
    from agent_memory.suspects import compare  # its patterns are for those who look

    for one in newer:
        for link in one.links:
            other = older.get(link.id) if link.rel == SUSPECT else None
            if other is None or not may_stand_for(one.trust, other.trust):
                continue
            suspicion = compare(one, other, are_near=True)  # whatever they were found by
            if suspicion is not None:
                yield Suspect(one, other, suspicion.kind, suspicion.hint, suspicion.evidence)
