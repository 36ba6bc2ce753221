"""Measure a compaction from another process that stores.

    python -m benchmarks.scale.compaction ROLE ROOT

ROLE is `fold` (compacts, and says from when to when, the longest time it held the lock, and its processor time, in
seconds) or `write` (stores, with a pause of 20 ms after each, until its standard input ends; then it says when each
store began and how long it took). Both clocks are the machine's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.journal.writer import JournalFile
from agent_memory.memories import FileStorage
from agent_memory.models import Memory
from benchmarks.scale.data import settings_of
from benchmarks.scale.figures import BenchmarkFigure, figure, sentence
from benchmarks.scale.process import heard, started, wait_for_children
from benchmarks.scale.vectors import AGENT

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIMES: Final = 3
_LARGE: Final = 100_000
_PAUSE: Final = 0.02
_WARM: Final = 20


def compaction(root: Path, size: int) -> list[BenchmarkFigure]:
    """Compact some times while another process stores; what is longest counts."""
    took, processor, held, waited, calm = [], [], [], [], list[float]()
    for _ in range(_TIMES if size <= _LARGE else 1):
        with started("scale.compaction", "write", root) as writer:
            assert heard(writer) == "ready"
            with started("scale.compaction", "fold", root) as folder:
                process_report = heard(folder)
            assert writer.stdin is not None
            writer.stdin.close()
            stores = heard(writer)
        begin, end = process_report["begin"], process_report["end"]
        took.append(end - begin)
        processor.append(process_report["processor"])
        held.append(process_report["held"])
        waited.append(max(duration for begun, duration in stores if begun < end and begun + duration > begin))
        calm += [duration for begun, duration in stores if begun + duration <= begin]
    return [
        figure("compaction, all of it", size, took),
        figure("compaction, processor time", size, processor),
        figure("compaction, lock held", size, [max(held)]),
        figure("compaction, longest store of another process", size, [max(waited)]),
        figure("longest store of that process before it", size, [max(calm)]),
    ]


async def fold(root: Path) -> None:
    """Compact."""
    storage = FileStorage(AGENT, settings=settings_of(root))
    await storage.count()
    with _holding() as held:
        begin, processor = time.perf_counter(), time.process_time()
        await storage.compact()
        process_report = {"begin": begin, "end": time.perf_counter(), "processor": time.process_time() - processor}
    print(json.dumps({**process_report, "held": max(held)}), flush=True)
    await storage.close()


@contextlib.contextmanager
def _holding() -> Iterator[list[float]]:
    """Measure how long this process holds the lock of a journal."""
    seconds, really = list[float](), JournalFile.held

    @contextlib.contextmanager
    def noted(file: JournalFile, wait: float | None = None) -> Iterator[Any]:
        with really(file, wait) as held:
            began = time.perf_counter()
            try:
                yield held
            finally:
                seconds.append(time.perf_counter() - began)

    JournalFile.held = noted  # type: ignore[assignment,method-assign]
    try:
        yield seconds
    finally:
        JournalFile.held = really  # type: ignore[method-assign]


async def write(root: Path) -> None:
    """Store until told to stop."""
    storage, rng = FileStorage(AGENT, settings=settings_of(root)), random.Random(time.time_ns())
    listening = threading.Thread(target=sys.stdin.read, daemon=True)
    listening.start()
    stores = list[tuple[float, float]]()

    async def store() -> None:
        memory = Memory(agent_id=AGENT, content=sentence(rng, rng.randrange(10**9)), category="note")
        began = time.perf_counter()
        await storage.store(memory)
        stores.append((began, time.perf_counter() - began))
        await asyncio.sleep(_PAUSE)

    while len(stores) < _WARM:
        await store()
    stores.clear()
    print(json.dumps("ready"), flush=True)
    while listening.is_alive():
        await store()
    print(json.dumps(stores), flush=True)
    await storage.close()


if __name__ == "__main__":
    asyncio.run({"fold": fold, "write": write}[sys.argv[1]](Path(sys.argv[2])))
    wait_for_children()
