"""How fast memories are written, who waits for whom, and what a compaction costs the others.

    python -m benchmarks.writing [--memories 100000] [--processes 8] [--seconds 5] [--json]

Processor time is of the process that writes, all its threads; on a busy machine wall times say little.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.lock import folder_lock
from agent_memory.journal import Change, Journal
from agent_memory.models import Memory
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, folder_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AGENT: Final = "bench"
OFFLINE: Final = ServiceSettings(embedder="none")
_STORES: Final = 600
_BULK: Final = 5000
_PIECE: Final = 500


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.writing", description=__doc__.partition("\n")[0])
    parser.add_argument("--memories", type=int, default=100_000, help="in the journal that is compacted")
    parser.add_argument("--processes", type=int, default=8, help="that want the lock at the same time")
    parser.add_argument("--seconds", type=float, default=5, help="for which they do")
    parser.add_argument("--json", action="store_true", help="for machines")
    args = parser.parse_args(argv)
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        report |= asyncio.run(storing(Path(scratch) / "stores"))
        report |= fairness(Path(scratch) / "lock", args.processes, args.seconds)
        report |= compaction(Path(scratch) / "compaction", args.memories)
    print(json.dumps(report, indent=1) if args.json else "\n".join(f"{name:44}{said}" for name, said in report.items()))
    return 0


# -- one process ------------------------------------------------------------------------------------------------------


async def storing(root: Path) -> dict[str, Any]:
    """Return what a store costs alone, with seven others, and in bulk."""
    storage = FileStorage(AGENT, root, settings=OFFLINE)
    syncs = _counted_syncs()
    await storage.store(_memory("the first also makes the files"))
    report: dict[str, Any] = {}
    for callers in (1, 8):
        syncs.clear()
        with _timed() as took:
            await asyncio.gather(*(_stores(storage, f"{callers} {n}", _STORES // callers) for n in range(callers)))
        name = "store alone" if callers == 1 else f"store by {callers} callers"
        report[f"{name}, ms of processor time"] = round(took["cpu"] / _STORES * 1000, 2)
        report[f"{name}, a second"] = round(_STORES / took["wall"])
        report[f"{name}, syncs each"] = round(len(syncs) / _STORES, 2)
    memories = [_memory(f"bulk {number}") for number in range(_BULK)]
    with _timed() as took:
        for begin in range(0, _BULK, _PIECE):
            await storage.store_many(memories[begin : begin + _PIECE])
    report["in bulk, a second"] = round(_BULK / took["wall"])
    await storage.close()
    return report


async def _stores(storage: FileStorage, name: str, count: int) -> None:
    for number in range(count):
        await storage.store(_memory(f"caller {name} number {number}"))


def _memory(content: str) -> Memory:
    return Memory(agent_id=AGENT, content=content, timestamp=datetime.now(UTC))


def _counted_syncs() -> list[int]:
    real, seen = os.fsync, list[int]()

    def fsync(descriptor: int) -> None:
        seen.append(descriptor)
        real(descriptor)

    os.fsync = fsync  # type: ignore[assignment]
    return seen


@contextlib.contextmanager
def _timed() -> Iterator[dict[str, float]]:
    took: dict[str, float] = {}
    cpu, wall = time.process_time(), time.monotonic()
    yield took
    took["cpu"], took["wall"] = time.process_time() - cpu, time.monotonic() - wall


# -- many processes ---------------------------------------------------------------------------------------------------


def fairness(folder: Path, processes: int, seconds: float) -> dict[str, Any]:
    """Return how often each of some processes got the folder's lock, and the longest wait."""
    folder.mkdir(parents=True)
    with multiprocessing.Pool(processes) as pool:
        done = pool.starmap(_wants_the_lock, [(str(folder), time.time() + seconds + 1)] * processes)
    counts = [count for count, _ in done]
    return {
        f"lock, {processes} processes, fewest and most times": f"{min(counts)} {max(counts)}",
        f"lock, {processes} processes, longest wait in ms": round(max(longest for _, longest in done) * 1000),
    }


def _wants_the_lock(folder: str, until: float) -> tuple[int, float]:
    count, longest = 0, 0.0
    while time.time() < until:
        asked = time.monotonic()
        with folder_lock(Path(folder)):
            longest = max(longest, time.monotonic() - asked)
            count += 1
            time.sleep(0.0002)
    return count, longest


def compaction(root: Path, memories: int) -> dict[str, Any]:
    """Return how long a compaction takes, for how long it has the lock, and how long another writer waits."""
    path = folder_of(AGENT, root).journal
    journal = Journal(path, {"memory"})
    with journal.locked() as writer:
        for number in range(memories):
            memory = _memory(f"fact {number} of the house, in some twenty words or so")
            writer.append([Change("put", "memory", memory.id, memory.to_record())])
    journal.poll()
    ready, stop = multiprocessing.Event(), multiprocessing.Event()
    waits: Any = multiprocessing.Queue()
    other = multiprocessing.Process(target=_writes_on, args=(str(path), ready, stop, waits))
    other.start()
    ready.wait()
    with _timed() as whole, journal.prepare_compaction() as new, journal.hold(), _timed() as held:
        journal.put_in_place(new)
    with _timed() as reading:
        journal.poll()
    time.sleep(0.5)
    stop.set()
    longest, count = waits.get()
    other.join()
    return {
        f"compaction of {memories:,}, s in all": round(whole["wall"], 2),
        f"compaction of {memories:,}, ms with the lock": round(held["wall"] * 1000),
        f"compaction of {memories:,}, ms of that on the processor": round(held["cpu"] * 1000),
        "reading on after it, ms of processor time": round(reading["cpu"] * 1000),
        f"longest of {count} writes of another process, ms": round(longest * 1000),
    }


def _writes_on(path: str, ready: Any, stop: Any, waits: Any) -> None:
    journal, longest, count = Journal(Path(path), {"memory"}), 0.0, 0
    journal.poll()
    ready.set()
    while not stop.is_set():
        asked = time.monotonic()
        journal.poll()
        with journal.locked() as writer:
            writer.append([Change("touch", "memory", "nobody")])
        longest, count = max(longest, time.monotonic() - asked), count + 1
        time.sleep(0.005)
    waits.put((longest, count))


if __name__ == "__main__":
    raise SystemExit(main())
