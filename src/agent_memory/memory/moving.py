"""`Moving`: memories that leave for another journal of the agent's folder, and those that come back from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.memory.caller import NOBODY

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agent_memory.memory.caller import Caller, Report
    from agent_memory.memory.pad import Pad
    from agent_memory.memory.trust import TrustGate
    from agent_memory.models import Memory
    from agent_memory.store.memory_storage import MemoryStorage


class Moving:
    """Moves for a service: what the archive has is out of searches, of lists and of the scratchpad.

    Args:
        storage: Where the memories are.
        gate: Decides what a caller may take out.
        pad: The scratchpad, which must show none of them.
        report: Sends events.
    """

    def __init__(self, storage: MemoryStorage, gate: TrustGate, pad: Pad, report: Report) -> None:
        self._storage, self._gate, self._pad, self._report = storage, gate, pad, report

    async def there(self, memory_ids: Collection[str]) -> set[str]:
        """Return those of these ids that memories here have, superseded and expired ones too."""
        return set(await self._storage.texts_of(memory_ids))

    async def known(self, said: Mapping[str, str]) -> set[str]:
        """Return those of these memories, texts by id, that are here or whose text was forgotten here."""
        forgotten = await self._storage.forgotten_among(list(said.values()))
        return await self.there(list(said)) | {one for one, text in said.items() if text in forgotten}

    async def check(self, memory_ids: Collection[str], caller: Caller = NOBODY) -> None:
        """Refuse what a caller may not take out.

        Raises:
            ValidationError: One has higher trust than the caller, and the user did not order it (`needs_user`).
        """
        await self._pad.notice(caller)  # what the file says of them is taken over now: later it would be added again
        await self._gate.check_all("forget", memory_ids, caller)

    async def out(
        self,
        memories: Sequence[Memory],
        to: str,
        caller: Caller = NOBODY,
        *,
        rules: Mapping[str, str] | None = None,
        run: str | None = None,
    ) -> list[str]:
        """Take out memories that another journal has as they are; return the ids of those that are out.

        Args:
            memories: As that has them, on disk. One that was used or changed since stays, and so does what replaced it
                or was replaced by it.
            to: The name of the journal.
            caller: The session that asks.
            rules: Why, in a word by id, for the events.
            run: With what else they went, for the events.

        Raises:
            StorageError: None is out.
        """
        gone = await self._storage.move_out(memories, to)
        self._pad.last = self._pad.last and self._pad.last.without(gone)
        for each in gone:
            await self._report("memory:archived", caller, memory_id=each, rule=(rules or {}).get(each, ""), run_id=run)
        self._pad.schedule(caller)
        return gone

    async def back(self, memories: Sequence[Memory], caller: Caller = NOBODY) -> None:
        """Bring memories back as they were, all or none; those that are here stay as they are.

        Raises:
            ValidationError: The id of one is taken by another text; none came back.
            StorageError: None came back.
        """
        here = await self.there([memory.id for memory in memories])
        await self._storage.store_many(memories)
        for each in memories:
            if each.id not in here:
                await self._report("memory:restored", caller, memory_id=each.id, was="archived")
        self._pad.schedule(caller)
