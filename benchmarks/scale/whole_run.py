"""Sealing, doctor and export of all memories, each in its own process.

    python -m benchmarks.scale.whole_run WHAT ROOT SIZE [LEAST EMBEDDER]

WHAT is `seal` (every segment from nothing, with its vectors from the cache, if there are LEAST memories), `doctor` or
`export` (every memory made a line of JSON). Prints figures as JSON.
"""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent_memory.care.checks.examination import examine
from agent_memory.cli.formats import encode
from agent_memory.files.layout import folder_of
from agent_memory.memories import FileStorage
from agent_memory.models import MEMORY
from agent_memory.store.memory_storage import SEALED_AT
from agent_memory.store.segment_builder import seal_up
from benchmarks.harness import read_memory
from benchmarks.scale.data import embedder_of, say, settings_of
from benchmarks.scale.figures import BenchmarkFigure, amount
from benchmarks.scale.process import watched
from benchmarks.scale.vectors import AGENT

if TYPE_CHECKING:
    from collections.abc import Callable


def sealing(root: Path, size: int, least: int = SEALED_AT, embedder: str = "local") -> list[BenchmarkFigure]:
    """Measure the sealing of all memories, unless there are too few."""
    if size < least:
        return []
    figures = watched("sealing all", size, "scale.whole_run", "seal", root, size, least, embedder)
    taken = sum(path.stat().st_size for path in folder_of(AGENT, root).path.rglob("*") if path.is_file())
    return [*figures, amount("bytes of a memory on disk, sealed", size, taken / size, "B")]


def doctor(root: Path, size: int) -> list[BenchmarkFigure]:
    """Measure an examination of all files."""
    return watched("doctor", size, "scale.whole_run", "doctor", root, size)


def exporting(root: Path, size: int) -> list[BenchmarkFigure]:
    """Measure going through all memories."""
    return watched("export", size, "scale.whole_run", "export", root, size)


async def _export(root: Path, size: int) -> None:
    storage = FileStorage(AGENT, root, settings=settings_of(root))
    exported = 0
    async for memory in storage.iter_all():
        exported += bool(encode(memory, "jsonl"))
    await storage.close()
    assert exported == size


def _measured(what: str, size: int, call: Callable[[], object]) -> list[BenchmarkFigure]:
    clock, processor = time.perf_counter(), time.process_time()
    call()
    return [
        amount(what, size, time.perf_counter() - clock, "s"),
        amount(f"{what}, processor time", size, time.process_time() - processor, "s"),
        amount(f"{what}, resident memory at most", size, read_memory("self", "VmHWM"), "MiB"),
    ]


def main() -> None:
    """Measure and print."""
    what, root, size = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])

    def seal() -> None:
        least, embedder = int(sys.argv[4]), sys.argv[5]
        seal_up(folder_of(AGENT, root), MEMORY, embedder_of(root, embedder).identity, least)

    def look() -> None:
        report = examine(root, [AGENT], now=datetime.now(UTC), settings=settings_of(root))
        assert report.agents[0].memories == size

    def export() -> None:
        asyncio.run(_export(root, size))

    named = {"seal": ("sealing all", seal), "doctor": ("doctor", look), "export": ("export", export)}
    name, call = named[what]
    say(_measured(name, size, call))


if __name__ == "__main__":
    main()
