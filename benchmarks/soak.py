"""Check that a memory of 50,000 records loses and leaks nothing.

    python -m benchmarks.soak [--records 50000] [--seed N] [--json]

One process stores, seals, updates, searches by words, forgets, purges, compacts and reopens. Exits with 1 when a bound
is broken:

- Every record that was acknowledged and not forgotten is there after the memory is opened again, with its last text.
- A purged text is in no file.
- Rounds of work after the second one add at most a quarter to the resident memory, and no open descriptor.
- Everything takes at most 30 s of CPU and 20 ms more for each record.
"""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.care.privacy.purge import Purging
from agent_memory.files.layout import folder_of
from agent_memory.memory import MemoryService
from agent_memory.models import MEMORY, Memory
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from agent_memory.store.segment_builder import seal_up
from benchmarks.concurrency.worker import QUERIES, fact
from benchmarks.harness import build_parser, open_scratch, print_report, read_memory, render_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

_AGENT: Final = "bench"
_BATCH: Final = 1_000
_ROUNDS: Final = 4
_GROWTH: Final = 1.25
_MARGIN_MB: Final = 30.0
_CPU_SECONDS_PER_RECORD: Final = 0.02
_START_SECONDS: Final = 30.0
_PURGED: Final = "Zanzibar paid the quince invoice {number} of the lighthouse keeper."


@dataclass(slots=True)
class SoakSample:
    """What the process holds after a round."""

    round: int
    records: int
    rss_mb: float
    descriptors: int
    cpu_seconds: float


@dataclass(slots=True)
class SoakState:
    """Texts that must be there, texts that must not, and samples.

    Attributes:
        contents: Acknowledged text of each live record, by ID.
        purged: Texts that were purged.
        samples: One for each round.
    """

    contents: dict[str, str] = field(default_factory=dict)
    purged: list[str] = field(default_factory=list)
    samples: list[SoakSample] = field(default_factory=list)


class SoakRun:
    """One memory, opened again after each round."""

    def __init__(self, root: Path, records: int, seed: int) -> None:
        self._began = time.process_time()
        self._root, self._records, self._choose = root, records, random.Random(seed)
        self.state = SoakState()

    def open_service(self) -> MemoryService:
        """Open the memory of the agent."""
        settings = ServiceSettings(storage_root=str(self._root), embedder="none")
        return MemoryService(FileStorage(_AGENT, settings=settings), settings)

    async def run(self) -> SoakState:
        """Store all records, work in rounds, return the last state."""
        service = self.open_service()
        while len(self.state.contents) < self._records:
            await self._store(service, min(_BATCH, self._records - len(self.state.contents)))
        for number in range(_ROUNDS):
            await self._work(service, number)
            await service.close()
            service = self.open_service()
            self._take_sample(number)
        await self._compare(service)
        await service.close()
        return self.state

    async def _store(self, service: MemoryService, count: int) -> None:
        """Store records as one change."""
        texts = [fact(self._choose, f"house {len(self.state.contents) + number}") for number in range(count)]
        memories = [Memory(agent_id=_AGENT, content=text) for text in texts]
        await service.storage.store_many(memories)
        self.state.contents |= {memory.id: memory.content for memory in memories}

    async def _work(self, service: MemoryService, number: int) -> None:
        """Update, search, forget, purge, compact and seal; keep the number of records."""
        changed = self._choose.sample(sorted(self.state.contents), max(4, self._records // 100))
        for memory_id in changed[::2]:
            updated = await service.update(memory_id, {"content": fact(self._choose, f"change {number} {memory_id}")})
            self.state.contents[memory_id] = updated.memory.content
        for memory_id in changed[1::2]:
            await service.forget(memory_id)
            del self.state.contents[memory_id]
        for _ in range(max(4, self._records // 500)):
            await service.search(f"{self._choose.choice(QUERIES)} {self._choose.randrange(self._records)}")
        await self._purge(service, number)
        await self._store(service, len(changed[1::2]))
        await service.writer.compact()
        assert await asyncio.to_thread(seal_up, folder_of(_AGENT, self._root), MEMORY, None, 1), "nothing was sealed"
        await service.settle()

    async def _purge(self, service: MemoryService, number: int) -> None:
        """Store a text and purge it."""
        text = _PURGED.format(number=number)
        stored = await service.store({"content": text})
        purging = Purging(service)
        receipt = await purging.run(await purging.plan([stored.memory.id]))
        assert not receipt.failed, receipt.failed
        self.state.purged.append(text)

    def _take_sample(self, number: int) -> None:
        gc.collect()  # files of segments that were replaced are open until their last search result is collected
        descriptors, rss = len(list(Path("/proc/self/fd").iterdir())), round(read_memory("self", "VmRSS"), 1)
        cpu = round(time.process_time() - self._began, 1)
        self.state.samples.append(SoakSample(number, len(self.state.contents), rss, descriptors, cpu))

    async def _compare(self, service: MemoryService) -> None:
        """Keep of the expected contents those that are missing or different."""
        async for memory in service.storage.iter_all():
            if self.state.contents.get(memory.id) == memory.content:
                del self.state.contents[memory.id]


def judge(state: SoakState, records: int, root: Path) -> list[str]:
    """Return which bounds were broken, a sentence each."""
    problems = [f"{len(state.contents)} records are missing or have another text"] if state.contents else []
    files = [path for path in root.rglob("*") if path.is_file()]
    problems += [
        f"{path.relative_to(root)} holds a purged text"
        for path in files
        if any(text.encode() in path.read_bytes() for text in state.purged)
    ]
    _, first, *_, last = state.samples
    if last.rss_mb > _GROWTH * first.rss_mb + _MARGIN_MB:
        problems.append(f"the resident memory has grown from {first.rss_mb} MB to {last.rss_mb} MB")
    if last.descriptors > first.descriptors:
        problems.append(f"open descriptors have grown from {first.descriptors} to {last.descriptors}")
    if last.cpu_seconds > _CPU_SECONDS_PER_RECORD * records + _START_SECONDS:
        problems.append(f"the work took {last.cpu_seconds} s of CPU")
    return problems


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print; 0 when every bound was kept."""
    parser = build_parser("soak", __doc__, "--seed", "--json", seed=1)
    parser.add_argument("--records", type=int, default=50_000)
    args = parser.parse_args(argv)
    with open_scratch() as folder:
        state = asyncio.run(SoakRun(folder, args.records, args.seed).run())
        problems = judge(state, args.records, folder)
    report = {"records": args.records, "seed": args.seed, "problems": problems}
    report["samples"] = [asdict(sample) for sample in state.samples]
    rows = render_rows("round", {str(sample.round): asdict(sample) for sample in state.samples}, 12)
    verdict = [f"BROKEN: {problem}" for problem in problems] or ["Every bound was kept, and nothing is lost."]
    print_report(report, [*rows, "", *verdict], as_json=args.json)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
