"""One session that stores, in a process of its own.

    python -m benchmarks.scale.store WHAT ROOT SIZE ROUNDS

WHAT is `one by one` or `in bulk`. One caller who waits for each answer; eight callers who do, all the time; eight who
store at the same moment, again and again; eight who store while a sync is under way; and many memories in one call.
Without a model: embedding comes after the answer. A store goes the way of the tools, through `MemoryService`, redaction
included. Processor time is that of all threads of the process from the call to the answer, also for what is done in the
background meanwhile, such as the scratchpad's file. Syncs are those of the journal. Prints figures as JSON.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.layout import folder_of
from agent_memory.memories import FileStorage
from agent_memory.memory import MemoryService
from agent_memory.models import Memory
from benchmarks.scale.data import run, settings_of
from benchmarks.scale.figures import BenchmarkFigure, amount, figure, sentence
from benchmarks.scale.process import wait_for_children
from benchmarks.scale.vectors import AGENT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

CALLERS: Final = 8
_PATIENCE: Final = 20.0
_LOOK: Final = 0.002
_IN_GROUPS: Final = 4
_AT_ONCE: Final = 500
_BULK: Final = 2_000
"""With what is stored before, fewer than are sealed by a child: that is measured by itself."""


class SyncCounter:
    """Counts the syncs of one file in this process.

    Args:
        path: The file.

    Attributes:
        count: So many were begun.
        may_go_on: Cleared, they wait.
    """

    def __init__(self, path: Path) -> None:
        self.count = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        really = os.fsync

        def counted(descriptor: Any) -> None:
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                self.count += 1
                self.may_go_on.wait()
            really(descriptor)

        os.fsync = counted  # type: ignore[assignment]


class MemoryStorer:
    """Stores sentences that nobody has stored yet.

    Args:
        service: Where.
        size: How many memories there are.
    """

    def __init__(self, service: MemoryService, size: int) -> None:
        self.service, self._rng, self._number = service, random.Random(size + 1), size * 10

    def texts(self) -> Iterator[str]:
        """Yield sentences."""
        while True:
            self._number += 1
            yield sentence(self._rng, self._number)

    async def one(self, text: str) -> None:
        """Store one."""
        assert not (await self.service.store({"content": text, "category": "note"})).duplicate

    async def alone(self, text: Callable[[], str], rounds: int) -> list[float]:
        """Return the processor time of stores, one after the other."""
        samples = []
        for _ in range(rounds):
            words = text()
            began = time.process_time()
            await self.one(words)
            samples.append(time.process_time() - began)
            await self.service.settle()
        return samples


async def together(callers: list[Awaitable[object]]) -> tuple[float, float]:
    """Wait for all callers; return elapsed and CPU time."""
    clock, processor = time.perf_counter(), time.process_time()
    await asyncio.gather(*callers)
    return time.perf_counter() - clock, time.process_time() - processor


async def one_by_one(root: Path, size: int, rounds: int) -> list[BenchmarkFigure]:
    """Measure stores of one memory each."""
    service = MemoryService(FileStorage(AGENT, settings=settings_of(root)), settings_of(root))
    storer = MemoryStorer(service, size)
    texts = storer.texts()
    await storer.alone(lambda: next(texts), 3)  # the redactor loads at the first store
    long = (" ".join(next(texts) for _ in range(10))[:1000] for _ in range(rounds))
    figures = [
        figure("store alone, processor time", size, await storer.alone(lambda: next(texts), rounds)),
        figure("store alone, 1,000 characters, processor time", size, await storer.alone(lambda: next(long), rounds)),
    ]
    figures += await in_groups(folder_of(AGENT, root).journal, storer, size, max(1, rounds // _IN_GROUPS))
    await service.close()
    return figures


async def in_groups(journal: Path, storer: MemoryStorer, size: int, rounds: int) -> list[BenchmarkFigure]:
    """Measure eight callers, each at its own pace and all together."""
    syncs, texts = SyncCounter(journal), storer.texts()
    waiting = [await _waiting(storer, syncs) for _ in range(rounds)]
    syncs.count = 0

    async def caller() -> None:
        for _ in range(rounds):
            await storer.one(next(texts))

    seconds, processor = await together([caller() for _ in range(CALLERS)])
    await storer.service.settle()
    before = syncs.count
    for _ in range(rounds):
        await together([storer.one(next(texts)) for _ in range(CALLERS)])
    stored = CALLERS * rounds
    return [
        amount("stores of 8 callers, processor time each", size, 1000 * processor / stored, "ms"),
        amount("stores of 8 callers, a second", size, stored / seconds, "/s"),
        amount("stores of 8 callers, journal syncs for 8", size, CALLERS * before / stored, ""),
        amount("8 stores that wait for a sync, journal syncs", size, max(waiting), ""),
        amount("8 stores at the same moment, journal syncs", size, (syncs.count - before) / rounds, ""),
    ]


async def _waiting(storer: MemoryStorer, syncs: SyncCounter) -> int:
    """Return the syncs for eight stores requested during a sync."""
    texts, begun = storer.texts(), syncs.count
    syncs.may_go_on.clear()
    first = asyncio.ensure_future(storer.one(next(texts)))
    while syncs.count == begun:  # noqa: ASYNC110 - a thread of the storage begins it
        await asyncio.sleep(_LOOK)
    callers = [asyncio.ensure_future(storer.one(next(texts))) for _ in range(CALLERS)]
    await asyncio.sleep(_LOOK)  # each of them asks
    syncs.may_go_on.set()
    await asyncio.gather(first, *callers)
    await storer.service.settle()
    return syncs.count - begun - 1


async def in_bulk(root: Path, size: int, _rounds: int) -> list[BenchmarkFigure]:
    """Measure many memories in one call."""
    storage, rng = FileStorage(AGENT, settings=settings_of(root)), random.Random(size + 2)
    await storage.count()
    seconds, stored = 0.0, 0
    while stored < _BULK and seconds < _PATIENCE:
        waiting = [
            Memory(agent_id=AGENT, content=sentence(rng, 20 * size + stored + number), category="note")
            for number in range(_AT_ONCE)
        ]
        began = time.perf_counter()
        await storage.store_many(waiting)
        seconds += time.perf_counter() - began
        stored += _AT_ONCE
    await storage.close()
    return [amount("store_many, memories a second", size, stored / seconds, "/s")]


if __name__ == "__main__":
    measured = {"one by one": one_by_one, "in bulk": in_bulk}[sys.argv[1]]
    run(measured(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
    wait_for_children()
