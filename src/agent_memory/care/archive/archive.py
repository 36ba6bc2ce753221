"""`Archive`: the memories of one agent that were put away, in `archive.yaml`.

A memory goes there in two steps: it is stored whole in the archive and synced, then it is taken out of `memories.yaml`.
It comes back the same way round. So there is no moment at which it is in neither; what a killed process left in both
counts as live, and the next change of the archive takes it out of there. Changes of an archive wait for each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.archive.chains import whole_chains
from agent_memory.care.archive.reading import ArchiveReader
from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.memory import NOBODY
from agent_memory.models import (
    ARCHIVED,
    MEMORY,
    ArchivedMemory,
    Memory,
)
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import timedelta

    from agent_memory.memory import Caller, MemoryService

_AT_ONCE: Final = 100
"""Memories that move as one change: a line of at most some megabytes."""
ASKED: Final = "asked"
"""The rule of what was put away because somebody said so."""


class Archive(ArchiveReader):
    """One agent's archive. Opens nothing until the first call and creates nothing until the first write.

    Args:
        service: Of the agent; what goes and comes passes through it.
        clock: Source of the present.
        grace: How long what was deleted from the archive can be brought back.

    Attributes:
        service, clock: As given.
        runs: What was put away at once.

    Raises:
        ConfigurationError: The agent's memories are on a server, which has no archive.
    """

    # -- putting away -------------------------------------------------------------------------------------------------

    async def add(self, memory_ids: Iterable[str], caller: Caller = NOBODY, *, why: str = "") -> list[ArchivedMemory]:
        """Put memories away because somebody says so, each with the older ones that it replaced.

        Args:
            memory_ids: Which.
            caller: The session that asks.
            why: A sentence, at most 300 characters.

        Raises:
            UnknownIdError: There is no such memory; none was put away.
            ValidationError: One is replaced by another one, and goes with that; or the caller may not put it away
                (`needs_user`). None was put away.
            StorageError: What was put away before is safe.
        """
        storage = self.service.storage
        chains: dict[str, Memory] = {}
        for one in dict.fromkeys(memory_ids):
            await self.service.get(one)
            if newer := (await storage.replaced_by([one])).get(one):
                raise ValidationError(
                    f"{one} is replaced by {newer}; nothing was archived.",
                    code="replaced",
                    recovery=f"Archive {newer}: what it replaced goes with it.",
                )
            replaced = await _with_older(self.service, one)
            chains |= {memory.id: memory for memory in replaced}
        await self.service.writer.check_moving(list(chains), caller)
        now = self.clock()
        records = [ArchivedMemory.of(each, archived_at=now, rule=ASKED, why=why) for each in chains.values()]
        return await self.put(records, caller)

    async def put(self, records: Sequence[ArchivedMemory], caller: Caller = NOBODY) -> list[ArchivedMemory]:
        """Put memories away; return those that are. One that was used or changed since it was read stays live.

        Args:
            records: As they are to be kept, with all that replace or were replaced by each other side by side.
            caller: The session that asks.

        Raises:
            StorageError: What was put away before is safe, and nothing is in neither file.
        """
        async with self._alone():
            await self._mend()
            return await self._put(records, caller)

    async def _put(self, records: Sequence[ArchivedMemory], caller: Caller) -> list[ArchivedMemory]:
        here = await self.service.storage.texts_of([each.id for each in records])
        done: list[ArchivedMemory] = []
        for some in _portions([each for each in records if each.id in here]):
            await self._kept.store_many(some)
            memories = [each.memory for each in some]
            rules = {each.id: each.rule for each in some}
            out = await self.service.writer.move_out(memories, ARCHIVED.journal, caller, rules=rules, run=some[0].run)
            gone = set(out)
            await self._drop(each.id for each in some if each.id not in gone)
            done += [each for each in some if each.id in gone]
        return done

    async def mend(self) -> list[str]:
        """Take out of the archive what is live as well, as a killed process leaves it; return the ids.

        Raises:
            StorageError: Nothing was taken out.
        """
        async with self._alone():
            return await self._mend()

    async def _mend(self) -> list[str]:
        if not self.exists():
            return []
        listed = await self._everything()
        both = await self.service.storage.texts_of([each.id for each in listed])
        return await self._drop(each.id for each in listed if each.id in both)

    # -- taking back --------------------------------------------------------------------------------------------------

    async def restore(self, memory_ids: Iterable[str], caller: Caller = NOBODY) -> list[Memory]:
        """Bring memories back with all their fields, and with what replaced them or was replaced by them.

        Returns:
            All that came back, those that were asked for first.

        Raises:
            UnknownIdError: One is not in the archive; none came back.
            ValidationError: The id of one is taken by another text by now; none came back.
            StorageError: What came back before is safe, and nothing is in neither file.
        """
        wanted = list(dict.fromkeys(memory_ids))
        async with self._alone():
            here = {each.id: each for each in await self._everything()}
            for one in wanted:
                if one not in here:
                    raise UnknownIdError(
                        f"{quoted(one)} is not in the archive; nothing was brought back.",
                        recovery="`agent-memory archive list` shows what is.",
                    )
            back = [here[one].memory for one in whole_chains(wanted, here)]
            for some in _portions(back):
                await self.service.writer.put_back(some, caller, was="archived")
                await self._drop(each.id for each in some)
            return sorted(back, key=lambda each: each.id not in wanted)

    async def forget(self, memory_id: str, caller: Caller = NOBODY, *, reason: str = "") -> Any:
        """Forget a memory that is in the archive, as `MemoryService.forget` does with one that is not.

        It comes back for that moment, so that it is forgotten like every other one: capture does not store it again,
        it can be brought back for a time, and a reason leaves a trace.

        Raises:
            UnknownIdError: It is not in the archive.
            ValidationError: The caller may not forget it (`needs_user`), or the reason is too long.
            StorageError: It is not forgotten.
        """
        await self.restore([memory_id], caller)
        return await self.service.forget(memory_id, caller, reason=reason)

    async def untag(self, memory_id: str, tags: Collection[str]) -> None:
        """Take tags from a memory that is in the archive; one that is not there is left."""
        async with self._alone():
            known = await self._kept.get(memory_id)
            if known is not None:
                await self._kept.update(memory_id, {"tags": [tag for tag in known.tags if tag not in tags]})

    async def take_in(self, records: Sequence[ArchivedMemory], *, dry_run: bool = False) -> int:
        """Put into the archive what an export had there; return how many memories.

        What is live here, archived already or was forgotten stays as it is.

        Raises:
            StorageError: None was put there.
        """
        async with self._alone():
            await self._mend()
            known = {each.id for each in await self._everything()}
            known |= (await self.service.storage.texts_of([each.id for each in records])).keys()
            forgotten = await self.service.storage.forgotten_among([each.content for each in records])
            new = {each.id: each for each in records if each.id not in known and each.content not in forgotten}
            if new and not dry_run:
                await self._kept.store_many(list(new.values()))
            return len(new)

    async def delete(self, memory_ids: Collection[str]) -> list[str]:
        """Delete memories from the archive; return which were there. `undelete` brings them back for a time.

        Raises:
            StorageError: Nothing was deleted.
        """
        async with self._alone():
            await self._mend()
            known = [one for one in dict.fromkeys(memory_ids) if await self._kept.get(one) is not None]
            if known:
                await self._kept.forget_many(known)
            return known

    async def undelete(self, memory_id: str) -> bool:
        """Bring what was deleted from the archive back into it; tell whether that was still possible."""
        async with self._alone():
            try:
                gone = await self._kept.forgotten_with(memory_id)
            except UnknownIdError:
                return False
            await self._kept.store_many(gone)
            return True

    # -- looking after it ----------------------------------------------------------------------------------------

    async def compact(self, grace: timedelta | None = None) -> None:
        """Drop from `archive.yaml` what came back or was deleted longer ago than `grace`, 30 days when omitted.

        Raises:
            StorageError: The file is as it was.
        """
        if self.exists():
            await self._kept.compact(grace)

    async def close(self) -> None:
        """Close what is open; the service stays open. May be called more than once."""
        await self._kept.close()
        await self.runs.close()

    async def _drop(self, memory_ids: Iterable[str]) -> list[str]:
        """Take out of the archive what is live."""
        found = [await self._kept.get(one) for one in memory_ids]
        known = [each for each in found if each is not None]
        return await self._kept.move_out(known, MEMORY.journal, whole=False) if known else []


async def _with_older(service: MemoryService, memory_id: str) -> list[Memory]:
    head = await service.get(memory_id)
    older = [await service.storage.get(one) for one in await service.storage.older_versions(memory_id)]
    known = [each for each in older if each is not None]
    replaced = await service.storage.replaced_by([each.id for each in known])
    return [head, *(each for each in known if each.id in replaced)]


def _portions(records: Sequence[Any]) -> list[list[Any]]:
    """Return records in portions, none of which parts what replaced each other."""
    portions: list[list[Any]] = [[]]
    ids: set[str] = set()
    for each in records:
        joined = each.id in ids or (each.supersedes is not None and each.supersedes in ids)
        if len(portions[-1]) >= _AT_ONCE and not joined:
            portions.append([])
            ids = set()
        portions[-1].append(each)
        ids |= {each.id, *([each.supersedes] if each.supersedes else [])}
    return [some for some in portions if some]
