"""One agent that grows into the vector engine, in a process of its own.

    python -m benchmarks.latency.growing_store ROOT SIZE ROUNDS

Searches before, while and after the index is built in the background, how long that takes, how long this process stood
still meanwhile (a thread that wants to wake up every 2 ms), and how much memory it, the builder and the holder of the
shard have had at most. Prints figures as JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import threading
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.engines.ann_index import AnnIndex
from agent_memory.engines.shard_process import EngineClient
from agent_memory.index import ExactCosines
from agent_memory.memories import MigratableStorage
from benchmarks.harness import await_calls, read_memory
from benchmarks.latency.data import (
    BenchmarkFigure,
    amount,
    asked,
    figure,
    question,
    sampled,
)
from benchmarks.latency.vectors import AGENT, queries

if TYPE_CHECKING:
    from collections.abc import Callable

_TICK: Final = 0.002
_POOL: Final = 60
"""Candidates a ranking asks for."""
_PATIENCE: Final = 120.0
_BUDGET: Final = 25.0
_BUDGET_BUILT: Final = 10.0
_BUDGET_BUILDING: Final = 40.0
_LARGE: Final = 100_000
FILTERS: Final[dict[str, dict[str, Any]]] = {
    "one category in nine": {"category": "decision"},
    "one tag in a hundred": {"tags": ["tag7"]},
}


class LateTicker(threading.Thread):
    """Wants to wake up every 2 ms and remembers by how much it was late: what the interpreter lock costs others."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._over = threading.Event()
        self.late: list[float] = []

    def run(self) -> None:
        """Tick until `stop`."""
        before = time.perf_counter()
        while not self._over.wait(_TICK):
            now = time.perf_counter()
            self.late.append(max(0.0, now - before - _TICK))
            before = now

    def stop(self) -> list[float]:
        """Return by how many seconds each tick was late."""
        self._over.set()
        self.join()
        return self.late


class GrowingAgent:
    """Searches with given query vectors, and by text.

    Args:
        root: Storage root.
        size: Memories in it.
        rounds: Calls behind a percentile.
    """

    def __init__(self, root: Path, size: int, rounds: int) -> None:
        self.storage = MigratableStorage(AGENT, root)
        self.size, self.rounds = size, rounds
        self.figures: list[BenchmarkFigure] = []
        self._vectors = queries(size, rounds)
        self._rng = random.Random(1)
        self._next = 0

    @property
    def index(self) -> AnnIndex:
        """The dense side of its search."""
        index = self.storage.opened.index.vectors
        assert isinstance(index, AnnIndex)
        return index

    def vector(self) -> Any:
        """Return the next query's vector."""
        self._next += 1
        return self._vectors[self._next % len(self._vectors)]

    def search(self, filters: dict[str, Any] | None = None) -> None:
        """Search as `storage.search` does, the query's vector being known."""
        store, vector = self.storage.opened, self.vector()
        found = store.search(*asked(question(self._rng), vector, filters))
        assert found.ranking.mode == "hybrid"

    def dense(self) -> list[tuple[str, float]]:
        """Return the candidates by meaning for a query."""
        return self.index.cosines(self.vector()).at_least(self.index.similarity_threshold, _POOL)

    def note(self, what: str, call: Callable[[], object], budget: float | None = None) -> None:
        """Sample a call."""
        self.figures.append(figure(what, self.size, sampled(call, self.rounds), budget))

    async def measure(self, when: str, budget: float | None) -> None:
        """Measure searches as they are now. Nothing else is asked of the storage meanwhile, so no thread is needed."""
        self.note(f"hybrid search, {when}", self.search, budget)
        for name, filters in FILTERS.items():
            self.note(f"filtered search, {name}, {when}", partial(self.search, filters), budget)
        self.note(f"dense candidates, {when}", self.dense)
        texts = iter([f"{question(self._rng)} in service {number}" for number in range(self.rounds)])
        by_text = await await_calls(lambda: self.storage.search(next(texts)), self.rounds)
        self.figures.append(figure(f"hybrid search by text, {when}", self.size, by_text))

    async def migrate(self, budget: float | None) -> None:
        """Build the index while searches go on; measure how long it takes and what it costs the others."""
        calm = LateTicker()
        calm.start()
        await asyncio.sleep(2)
        self.figures.append(_worst("longest stall, nothing is built", self.size, calm.stop()))
        ticker, builder = LateTicker(), _BuilderMemory()
        ticker.start()
        began = time.perf_counter()
        migrating = asyncio.ensure_future(self.storage.migrate(builder.heard))
        samples = []
        while not migrating.done():
            started = time.perf_counter()
            await self.storage.worker.run(self.search)
            samples.append(time.perf_counter() - started)
            await asyncio.sleep(0.02)
        await migrating
        self.figures += [
            amount("migration, vectors cached", self.size, time.perf_counter() - began, "s", _seconds_for(self.size)),
            figure("hybrid search, while the index is built", self.size, samples, budget),
            amount("memory of the builder", self.size, builder.peak, "MiB", 1228.8 if self.size >= _LARGE else None),
        ]
        began = time.perf_counter()
        assert await self.storage.caught_up(_PATIENCE), "the index is not in use after two minutes"
        self.figures += [
            amount("from the built index to its use", self.size, time.perf_counter() - began, "s"),
            _worst("longest stall, while the index is built", self.size, ticker.stop(), 50),
        ]

    def recall(self) -> BenchmarkFigure:
        """Compare the engine's ten nearest with the exact ones."""
        found = wanted = 0
        for _ in range(min(100, self.rounds)):
            vector = self.vector()
            exact = {one for one, _ in ExactCosines(self.index, vector).at_least(-1.0, 10)}
            named = self.index.near(vector, -1.0)
            assert named is not None, "the engine did not answer"
            found += len(exact & {one for one, _ in named[0][:10]})
            wanted += len(exact)
        return amount("recall@10 of the engine against exact", self.size, found / wanted, "share")

    def memory(self) -> list[BenchmarkFigure]:
        """Return the peak memory of this process and of the shard's holder."""
        client = self.index.engine
        holder = read_memory(client.pid, "VmHWM") if isinstance(client, EngineClient) else 0.0
        return [
            amount(
                "memory of the agent",
                self.size,
                read_memory("self", "VmHWM"),
                "MiB",
                1024 if self.size >= _LARGE else None,
            ),
            amount("memory of the shard's holder", self.size, holder, "MiB"),
        ]


class _BuilderMemory:
    """Looks at how much memory the builder has taken, whenever it says something."""

    def __init__(self) -> None:
        self.peak = 0.0

    async def heard(self, _stage: str, _done: int, _total: int) -> None:
        self._look()

    def _look(self) -> None:
        for status in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                ours = b"agent_memory.engines.index_builder" in status.read_bytes()
            except OSError:
                continue
            if ours:
                self.peak = max(self.peak, read_memory(status.parent.name, "VmHWM"))


def _worst(what: str, size: int, late: list[float], budget_ms: float | None = None) -> BenchmarkFigure:
    return amount(what, size, 1000 * max(late), "ms", budget_ms)


def _seconds_for(size: int) -> float | None:
    return 5.0 if size <= 5000 else None  # what is promised is about 5,000


async def main() -> None:
    """Measure and print."""
    root, size, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    agent = GrowingAgent(root, size, rounds)
    large = size >= _LARGE
    await agent.storage.prepare(None)
    await agent.measure("before the index is built", _BUDGET_BUILDING if large else _BUDGET)
    await agent.migrate(_BUDGET_BUILDING if large else _BUDGET)
    await agent.measure("index built", _BUDGET_BUILT if large else _BUDGET)
    agent.figures.append(agent.recall())
    agent.figures += agent.memory()
    await agent.storage.close()
    print(json.dumps([asdict(item) for item in agent.figures]))


if __name__ == "__main__":
    asyncio.run(main())
