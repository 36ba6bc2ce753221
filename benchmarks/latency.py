"""How long things take, beside the budget for each: `python -m benchmarks.latency [--sizes 1000,5000] [--json]`.

Memories are synthetic sentences with synthetic vectors (random unit vectors put into the cache), so that a size of
5,000 takes seconds; the figures named "embedding" run the real model. Percentiles are over `--rounds` calls after a
warm-up. Everything goes through the product's own storage and service. Beside them, in the same run, the floor: one
append with fsync, and one numpy matrix product. A store's processor time is that of the store alone: embedding and the
scratchpad file come behind the answer, so the one is switched off there and the other waited for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from amplifier_core.testing import MockContextManager, MockCoordinator

from agent_memory.embeddings import VectorCache, text_hash
from agent_memory.embeddings.local import MINILM_DIMENSION, LocalEmbedder
from agent_memory.models import Memory
from agent_memory.scratchpad import ScratchpadManager
from agent_memory.service import MemoryService
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from amplifier_module_hooks_memory_capture import mount as mount_capture

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_SUBJECTS = ("ledger", "parser", "queue", "cache", "router", "scheduler", "session", "journal", "worker", "exporter")
_VERBS = ("uses", "needs", "prefers", "avoids", "replaces", "validates", "retries", "compresses", "mirrors")
_OBJECTS = ("PostgreSQL", "Redis", "Kafka", "SQLite", "YAML", "protobuf", "gzip", "TLS", "coroutines", "snapshots")
_REASONS = ("because it is faster", "since the audit asked for it", "after the outage in May", "to keep tests simple")


@dataclass(frozen=True)
class Figure:
    """One measurement: median and 95th percentile in milliseconds, and the budget for the latter, if there is one."""

    what: str
    size: int
    p50_ms: float
    p95_ms: float
    budget_ms: float | None = None

    @property
    def kept(self) -> bool:
        """Whether the budget is kept."""
        return self.budget_ms is None or self.p95_ms <= self.budget_ms


def sentence(rng: random.Random, number: int) -> str:
    """Return a sentence of about the length that people store."""
    return (
        f"The {rng.choice(_SUBJECTS)} of service {number} {rng.choice(_VERBS)} {rng.choice(_OBJECTS)} "
        f"{rng.choice(_REASONS)}, and the {rng.choice(_SUBJECTS)} {rng.choice(_VERBS)} {rng.choice(_OBJECTS)} instead."
    )


def figure(what: str, size: int, seconds: list[float], budget_ms: float | None = None) -> Figure:
    """Sum up samples."""
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return Figure(what, size, round(statistics.median(ordered) * 1000, 3), round(p95 * 1000, 3), budget_ms)


async def timed(call: Callable[[], Awaitable[object]], rounds: int) -> list[float]:
    """Return how long each of `rounds` awaited calls took, in seconds."""
    samples = []
    for _ in range(rounds):
        started = time.perf_counter()
        await call()
        samples.append(time.perf_counter() - started)
    return samples


async def fill(root: Path, size: int) -> FileStorage:
    """Write `size` memories and their vectors, and return the storage, closed for the next opener's sake."""
    rng = random.Random(size)
    storage = FileStorage("bench", root)
    memories = [Memory(agent_id="bench", content=sentence(rng, number), category="note") for number in range(size)]
    for memory in memories:
        await storage.store(memory)
    identity = LocalEmbedder().identity
    vectors = np.random.default_rng(size).normal(size=(size, MINILM_DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    await storage.close()
    cache = VectorCache(storage.folder.vectors)
    cache.put_many(identity, {text_hash(m.content): v for m, v in zip(memories, vectors, strict=True)})
    cache.close()
    return FileStorage("bench", root)


async def measure(root: Path, size: int, rounds: int) -> list[Figure]:
    """Measure one size in this process."""
    storage = await fill(root, size)
    rng = random.Random(7)
    figures = []
    started = time.perf_counter()
    await storage.search("which service uses Kafka")
    figures.append(figure("keyword search, first after start", size, [time.perf_counter() - started], 300))
    await storage.prepare()
    store = storage._store  # noqa: SLF001 - the synchronous core: no thread hop in the figure
    now = store.clock()

    def keyword() -> None:
        index = store._index  # noqa: SLF001
        vectors, index.vectors = index.vectors, None
        index.search(f"why does the {rng.choice(_SUBJECTS)} use {rng.choice(_OBJECTS)}", limit=5, now=now)
        index.vectors = vectors

    unit = np.random.default_rng(1).normal(size=MINILM_DIMENSION).astype(np.float32)
    unit /= np.linalg.norm(unit)

    def hybrid() -> None:
        text = f"why does the {rng.choice(_SUBJECTS)} use {rng.choice(_OBJECTS)}"
        store._index.search(text, limit=5, now=now, vector=unit)  # noqa: SLF001

    figures.append(figure("keyword search, warm", size, sampled(keyword, rounds), 5))
    figures.append(figure("hybrid search, query vector given", size, sampled(hybrid, rounds), 25))
    queries = iter(f"what about the {rng.choice(_SUBJECTS)} and {number}" for number in range(10 * rounds))
    figures.append(figure("hybrid search, by text", size, await timed(lambda: storage.search(next(queries)), rounds)))
    manager = ScratchpadManager("bench", storage=storage)
    figures.append(figure("scratchpad load and format", size, await timed(manager.format_for_context, rounds), 10))
    figures.append(await measure_store(root, size, rounds))
    matrix = np.random.default_rng(2).normal(size=(size, MINILM_DIMENSION)).astype(np.float32)
    figures.append(figure("floor: numpy matrix product", size, sampled(lambda: matrix @ unit, rounds)))
    await storage.close()
    return figures


async def measure_store(root: Path, size: int, rounds: int) -> Figure:
    """Measure the processor time of a store of 1,000 characters, all threads together."""
    service = MemoryService(FileStorage("bench", root, settings=ServiceSettings(embedder="none")))
    rng = random.Random(3)
    await service.store({"content": "warm up: the redactor loads at the first store", "category": "note"})
    samples = []
    for number in range(rounds):
        text = " ".join(sentence(rng, number * 100 + part) for part in range(20))[:1000]
        started = time.process_time()
        await service.store({"content": text, "category": "note"})
        samples.append(time.process_time() - started)
        await service.settle()
    await service.close()
    return figure("store, 1,000 characters, processor time", size, samples, 15)


def sampled(call: Callable[[], object], rounds: int) -> list[float]:
    """Return how long each of `rounds` calls took, in seconds, after three that do not count."""
    for _ in range(3):
        call()
    samples = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        samples.append(time.perf_counter() - started)
    return samples


def search_in_process(root: str, rounds: int, barrier: Any, results: Any) -> None:
    """Search in a process of its own, at the same time as others."""

    async def work() -> None:
        storage = FileStorage("bench", root)
        await storage.prepare()
        store, rng = storage._store, random.Random(os.getpid())  # noqa: SLF001
        unit = np.random.default_rng(1).normal(size=MINILM_DIMENSION).astype(np.float32)
        unit /= np.linalg.norm(unit)
        await asyncio.to_thread(barrier.wait)

        def hybrid() -> None:
            text = f"why does the {rng.choice(_SUBJECTS)} use {rng.choice(_OBJECTS)}"
            store._index.search(text, limit=5, now=store.clock(), vector=unit)  # noqa: SLF001

        results.put(sampled(hybrid, rounds))
        await storage.close()

    asyncio.run(work())


def measure_together(root: Path, size: int, rounds: int, processes: int) -> Figure:
    """Measure hybrid search in several processes at once."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=search_in_process, args=(str(root), rounds, barrier, results)) for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    samples = [sample for _ in workers for sample in results.get(timeout=300)]
    for worker in workers:
        worker.join()
    return figure(f"hybrid search, vector given, {processes} processes", size, samples, 25)


def measure_once(rounds: int) -> list[Figure]:
    """Measure what does not depend on the number of memories."""
    embedder = LocalEmbedder()
    started = time.perf_counter()
    embedder.embed_query("load")
    loading = figure("embedding: loading the model", 0, [time.perf_counter() - started])
    numbers = iter(range(10 * rounds))
    embedding = sampled(lambda: embedder.embed_query(f"which database did we pick for ledger {next(numbers)}"), rounds)
    figures = [loading, figure("embedding a query", 0, embedding, 15)]
    for what, before, budget in (
        ("import agent_memory", "", 300),
        ("import after amplifier_core", "amplifier_core", 80),
    ):
        code = f"import time{', ' + before if before else ''}; t = time.perf_counter(); import agent_memory; "
        code += "print(time.perf_counter() - t)"
        runs = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(7)]
        figures.append(figure(what, 0, [statistics.median(runs)], budget))
    return figures


async def measure_hooks(root: Path, rounds: int) -> list[Figure]:
    """Measure what capture adds to a prompt, a tool's answer and the end of a turn: the time inside its handlers."""
    handlers: dict[str, list[Any]] = {}
    coordinator = MockCoordinator()
    coordinator.config["session"] = {"capabilities": {"agent_identity": "bench"}}
    register = coordinator.hooks.register
    context = MockContextManager()
    await coordinator.mount("context", context)

    class Listening:
        """The coordinator, with an eye on who registers for what."""

        def __getattr__(self, name: str) -> Any:
            if name == "hooks":
                return self
            return getattr(coordinator if hasattr(coordinator, name) else coordinator.hooks, name)

        def register(self, event: str, handler: Any, **options: Any) -> Any:
            handlers.setdefault(event, []).append(handler)
            return register(event, handler, **options)

    cleanup = await mount_capture(Listening(), {"storage_root": str(root)})
    rng, figures = random.Random(5), []
    for event in ("prompt:submit", "tool:post", "orchestrator:complete"):
        samples = []
        for number in range(rounds):
            text = sentence(rng, number)
            await context.add_message({"role": "assistant", "content": text})
            data = {"prompt": text, "tool_name": "bash", "result": {"success": True, "output": text}}
            started = time.perf_counter()
            for handler in handlers[event]:
                await handler(event, data)
            samples.append(time.perf_counter() - started)
            await asyncio.sleep(0.02)  # a conversation has pauses, in which the queue is worked off
        figures.append(figure(f"capture hook on {event}", 0, samples, 1))
    await cleanup()
    return figures


def floor_append(root: Path, rounds: int) -> Figure:
    """Measure what no store can be faster than: appending 1 kB and syncing it."""
    descriptor = os.open(root / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def append() -> None:
        os.write(descriptor, b"x" * 1024)
        os.fsync(descriptor)

    samples = sampled(append, rounds)
    os.close(descriptor)
    return figure("floor: append and fsync", 0, samples)


def table(figures: list[Figure]) -> str:
    """Return the figures for people."""
    lines = [f"{'what':<46}{'memories':>9}{'p50 ms':>10}{'p95 ms':>10}{'budget':>9}"]
    for item in figures:
        budget = "" if item.budget_ms is None else f"{item.budget_ms:g}"
        verdict = "" if item.budget_ms is None else ("  kept" if item.kept else "  MISSED")
        size = str(item.size or "")
        lines.append(f"{item.what:<46}{size:>9}{item.p50_ms:>10.3f}{item.p95_ms:>10.3f}{budget:>9}{verdict}")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.latency", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,5000", help="numbers of memories, with commas")
    parser.add_argument("--processes", type=int, default=8, help="for the search in several processes at once")
    parser.add_argument("--rounds", type=int, default=200, help="calls behind each percentile")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    args = parser.parse_args()
    figures = measure_once(args.rounds)
    with tempfile.TemporaryDirectory() as scratch:
        figures += asyncio.run(measure_hooks(Path(scratch) / "hooks", args.rounds))
        figures.append(floor_append(Path(scratch), args.rounds))
        for size in (int(part) for part in args.sizes.split(",")):
            root = Path(scratch) / str(size)
            figures += asyncio.run(measure(root, size, args.rounds))
            figures.append(measure_together(root, size, args.rounds, args.processes))
    if args.json:
        print(json.dumps([{**asdict(item), "kept": item.kept} for item in figures], indent=1))
    else:
        print(table(figures))


if __name__ == "__main__":
    main()
