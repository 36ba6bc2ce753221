"""A process that seals, merges, compacts and stores all the time, and dies in one stage of that."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import BusyError, StorageError
from agent_memory.models import MEMORY, Memory, utc_now
from agent_memory.storage import FileStorage, folder_of
from agent_memory.store.segment_builder import seal_up
from benchmarks.crash.model import AcknowledgedState, PendingOperation, shown
from benchmarks.crash.operations import AGENT, EMBEDDER, LONG_AGO, MemoryVictim, VictimJob, settings_for
from benchmarks.crash.process import CallShim, changes_files
from benchmarks.harness import seal_by_hand

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

    from agent_memory.models import Clock
    from benchmarks.crash.model import Shown
    from benchmarks.crash.process import MessagePipe

_OF_PURGED: Final = "compaction, segments of what was purged"
STAGES: Final = {
    ("index/segment.py", "list_segments"): "swap of segments.json",
    ("index/segment_writer.py", "merge"): "merge",
    ("index/segment_writer.py", "seal"): "seal",
    ("index/segment_vectors.py", "add_vectors"): "vectors",
    ("store/segment_builder.py", "_take_into_use"): "naming a segment",
    ("store/segment_opener.py", "remove_unused"): "removal",
    ("journal/rewrite.py", "fill"): "compaction, before the rename",
    ("journal/rewrite.py", "put_in_place"): "compaction, at the rename",
    ("store/segment_opener.py", "drop_purged"): _OF_PURGED,
    ("journal/writer.py", "append"): "group commit, line",
    ("journal/writer.py", "settle"): "group commit, sync",
}
"""Where a call is made, by the end of the file's name and the function: the innermost counts, but for the purge."""


def stage_of(frame: FrameType | None) -> str:
    """Return the stage in which a call is made; empty in none."""
    found = []
    while frame is not None:
        code = frame.f_code
        for (file, function), stage in STAGES.items():
            if code.co_name == function and code.co_filename.endswith(file):
                found.append(stage)
        frame = frame.f_back
    return _OF_PURGED if _OF_PURGED in found else next(iter(found), "")


class StagedShim(CallShim):
    """Strikes at a call of one stage.

    Args:
        say: See `CallShim`.
        stage: Which.

    Attributes:
        seen: How many calls were made in each.
    """

    def __init__(self, say: Callable[..., None], stage: str) -> None:
        self._stage = stage
        self.seen: Counter[str] = Counter()
        super().__init__(say)

    def _around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        strikes = super()._around(name, call)

        def watched(*arguments: Any, **options: Any) -> Any:
            if not changes_files(name, arguments):
                return call(*arguments, **options)
            stage = stage_of(sys._getframe(1))  # noqa: SLF001 - the documented way to a frame
            self.seen[stage] += 1
            return (strikes if stage == self._stage else call)(*arguments, **options)

        return watched


def storage_of(root: Path, clock: Clock = utc_now) -> FileStorage:
    """Open the agent's memories with vectors that cost nothing."""
    return FileStorage(AGENT, settings=settings_for(root), embedder=EMBEDDER, clock=clock)


def seal_all(root: Path) -> bool:
    """Seal after a single change."""
    return seal_up(folder_of(AGENT, root), MEMORY, EMBEDDER.identity, 1)


class StageVictim(MemoryVictim):
    """A process that works until it is killed in a stage, or is done; `do` of the job is the stage."""

    def __init__(self, say: MessagePipe, job: VictimJob, expected: AcknowledgedState) -> None:
        self._stages = StagedShim(say, job.do)
        super().__init__(say, job, expected, self._stages)

    def run(self) -> None:
        """Do it all once."""
        try:
            asyncio.run(self._work())
        except BusyError as error:
            self._say(busy=error.message)
        self._say(seen=dict(self._stages.seen))

    async def _work(self) -> None:
        past = storage_of(self._job.root, lambda: datetime.now(UTC) - LONG_AGO)
        await self._change(past, self._choose.randint(2, 4))
        await past.prepare(None)
        await past.close()
        self._shim.arm(self._job.at, self._job.how)
        storage = storage_of(self._job.root)
        for _ in range(2):
            await self._change(storage, self._choose.randint(1, 6))
            await storage.prepare(None)
            await asyncio.to_thread(seal_all, self._job.root)
        sealing = asyncio.to_thread(self._seal_during_compaction)
        await asyncio.gather(self._store_several(storage), storage.compact(), sealing)
        await asyncio.to_thread(seal_all, self._job.root)
        await storage.close()

    def _seal_during_compaction(self) -> None:
        """Seal while a compaction may remove what is being written; the next sealing begins anew."""
        with contextlib.suppress(StorageError):
            seal_all(self._job.root)

    def _memory(self) -> Memory:
        words = " ".join(self._choose.choice(("tea", "ledger", "office", "Lyon", "tram")) for _ in range(6))
        return Memory(agent_id=AGENT, content=f"key{self._choose.getrandbits(48)} {words}")

    async def _store_several(self, storage: FileStorage) -> None:
        """Store by several callers, who share a sync."""
        memories = [self._memory() for _ in range(6)]
        self._say(
            pending=asdict(PendingOperation("store", extra=[{**shown(each), "id": each.id} for each in memories]))
        )

        async def store(memory: Memory) -> None:
            await storage.store(memory)
            self._learn({memory.id: shown(memory)})

        await asyncio.gather(*map(store, memories))

    async def _change(self, storage: FileStorage, count: int) -> None:
        """Store some, reword one and forget one."""
        await self._store_several(storage)
        for _ in range(count):
            memory_id = self._choose.choice(list(self._expected.memories))
            new = {"content": self._memory().content}
            await self._apply(
                storage.update(memory_id, new), {memory_id: {**self._expected.memories[memory_id], **new}}
            )
        memory_id = self._choose.choice(list(self._expected.memories))
        await self._apply(storage.delete(memory_id), {memory_id: None})

    async def _apply(self, doing: Any, changed: dict[str, Shown | None]) -> None:
        self._say(pending=asdict(PendingOperation("change", changed=changed)))
        await doing
        self._learn(changed)

    def _learn(self, now: dict[str, Shown | None]) -> None:
        self._say(now=now)
        self._expected.learn(now)


def seal_next(say: MessagePipe, job: VictimJob) -> None:
    """Seal what is left, and be killed in the middle of that."""
    StagedShim(say, job.do).arm(job.at, job.how)
    seal_all(job.root)


def work(say: MessagePipe, job: VictimJob, expected: AcknowledgedState) -> None:
    """Be a `StageVictim`."""
    with seal_by_hand():
        StageVictim(say, job, expected).run()
