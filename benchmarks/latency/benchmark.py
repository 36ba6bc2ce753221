"""How long things take, beside the budget for each, and beside what nobody can be faster than.

    python -m benchmarks.latency [--sizes 1000,5000,20000,100000] [--rounds 200] [--json] [--plot FILE.png]

Memories are synthetic sentences with synthetic vectors in clusters (put into the cache), so that a size of 5,000 takes
seconds; figures named "embedding", and searches "by text", run the real model. Everything goes through the product's
own storage and service. For each size one process grows from files into the vector engine while it is searched; then
come numpy, the raw engine and QdrantClient's local mode over the same vectors, and ratios of medians. A store's
processor time is that of the store alone: embedding and the scratchpad file come behind the answer, so the one is
switched off there and the other waited for. Measure on a machine that does nothing else.
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
from dataclasses import asdict
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amplifier_core.testing import MockContextManager, MockCoordinator

from agent_memory.embeddings.local import LocalEmbedder
from agent_memory.memory import MemoryService
from agent_memory.scratchpad import ScratchpadManager
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from amplifier_module_hooks_memory_capture import mount as mount_capture
from amplifier_module_hooks_memory_ingestion import mount as mount_ingestion
from benchmarks.latency.data import (
    Figure,
    Ratio,
    amount,
    asked,
    figure,
    fill,
    question,
    sampled,
    sentence,
    timed,
)
from benchmarks.latency.first_search import first_answer
from benchmarks.latency.scratchpad import scratchpads
from benchmarks.latency.vectors import AGENT, queries

if TYPE_CHECKING:
    from collections.abc import Callable

_SMALL: Final = 5_000
_UP_TO_NUMPY: Final = 20_000
_LOCAL_NARROW: Final = "local mode: nearest 60, one category in nine"
_ENGINE_NARROW: Final = "engine: nearest 60, one category in nine"
_OURS_NARROW: Final = "filtered search, one category in nine, index built"
_LOCAL_FIRST: Final = "local mode: process start to first answer"
_ENGINE_FIRST: Final = "engine: process start to first answer"
_OURS_FIRST: Final = "process start to first hybrid answer"
_DRAWN: Final = (
    "hybrid search, before the index is built",
    "hybrid search, index built",
    _OURS_NARROW,
    "dense candidates, index built",
    "numpy: matrix product",
    "engine: nearest 60",
    "local mode: nearest 60",
    _LOCAL_NARROW,
)


async def measure(root: Path, size: int, rounds: int) -> list[Figure]:
    """Measure what needs no engine, in this process."""
    storage = FileStorage(AGENT, root)
    rng = random.Random(7)
    started = time.perf_counter()
    await storage.search("which service uses Kafka", patience=0)
    first = time.perf_counter() - started
    figures = [figure("keyword search, first after start", size, [first], 300 if size <= _SMALL else None)]
    await storage.prepare()
    store = storage.opened

    def keyword() -> None:
        index = store.index
        vectors, index.vectors = index.vectors, None
        index.search(*asked(question(rng)))
        index.vectors = vectors

    figures.append(figure("keyword search, warm", size, sampled(keyword, rounds), 5 if size <= _SMALL else None))
    manager = ScratchpadManager(AGENT, storage=storage)
    figures.append(figure("scratchpad load and format", size, await timed(manager.format_for_context, rounds), 10))
    await storage.close()
    figures.append(await measure_store(root, size, rounds))
    return figures


async def measure_store(root: Path, size: int, rounds: int) -> Figure:
    """Measure the processor time of a store of 1,000 characters, all threads together."""
    service = MemoryService(FileStorage(AGENT, root, settings=ServiceSettings(embedder="none")))
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


def search_in_process(root: str, size: int, rounds: int, barrier: Any, results: Any) -> None:
    """Search in a process of its own, at the same time as others."""

    async def work() -> None:
        storage = FileStorage(AGENT, root)
        await storage.prepare()
        store, rng = storage.opened, random.Random(os.getpid())
        vectors = cycle(queries(size, rounds))
        await asyncio.to_thread(barrier.wait)

        def hybrid() -> None:
            store.index.search(*asked(question(rng), next(vectors)))

        results.put(sampled(hybrid, rounds))
        await storage.close()

    asyncio.run(work())


def measure_together(root: Path, size: int, rounds: int, processes: int) -> Figure:
    """Measure hybrid search in several processes at once."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=search_in_process, args=(str(root), size, rounds, barrier, results))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    samples = [sample for _ in workers for sample in results.get(timeout=300)]
    for worker in workers:
        worker.join()
    return figure(f"hybrid search, {processes} processes at once", size, samples, 25 if size <= _SMALL else None)


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
        ("import of all of agent_memory", "", 300),
        ("import of all, after amplifier_core", "amplifier_core", 80),
    ):
        code = f"import time{', ' + before if before else ''}; t = time.perf_counter(); from agent_memory import *; "
        code += "print(time.perf_counter() - t)"
        runs = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(7)]
        figures.append(figure(what, 0, [statistics.median(runs)], budget))
    return figures


async def measure_hooks(root: Path, rounds: int) -> list[Figure]:
    """Measure what each of two modules adds to a prompt, a tool's answer and the end of a turn."""
    ingesting = {"observe_tools": ["bash"], "embedder": "none"}
    return [
        *await _measure_hooks("capture", mount_capture, {"storage_root": str(root)}, rounds),
        *await _measure_hooks("ingestion", mount_ingestion, {"storage_root": str(root), **ingesting}, rounds),
    ]


async def _measure_hooks(name: str, mount: Callable[..., Any], config: dict[str, Any], rounds: int) -> list[Figure]:
    """Measure the time inside the handlers of a module."""
    handlers: dict[str, list[Any]] = {}
    coordinator = MockCoordinator()
    coordinator.config["session"] = {"capabilities": {"agent_identity": AGENT}}
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

    cleanup = await mount(Listening(), config)
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
        figures.append(figure(f"{name} hook on {event}", 0, samples, 1))
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


def measure_growing(root: Path, size: int, rounds: int, seconds: float) -> list[Figure]:
    """Measure an agent that grows into the engine, first answers, and what stands beside, each in its own process."""
    figures = _child("benchmarks.latency.growing_store", root, size, rounds)
    for way, what in (("words", "process start to first answer"), ("hybrid", "process start to first hybrid answer")):
        figures.append(amount(what, size, first_answer(way, root, size), "s"))
    return figures + _child("benchmarks.latency.peers", root, size, rounds, seconds)


def _child(module: str, *arguments: object) -> list[Figure]:
    command = [sys.executable, "-W", "ignore", "-m", module, *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
    return [Figure(**item) for item in json.loads(output.splitlines()[-1])]


def ratios(figures: list[Figure]) -> list[Ratio]:
    """Compare medians of one run with each other."""
    p50 = {(item.what, item.size): item.p50 for item in figures}
    found = []
    for size in dict.fromkeys(item.size for item in figures if item.size):
        small = size <= _UP_TO_NUMPY
        dense, hybrid = "dense candidates, index built", "hybrid search, index built"
        wanted: list[tuple[str, str, str, dict[str, float]]] = [
            ("dense candidates / numpy's product", dense, "numpy: matrix product", {"at_most": 4} if small else {}),
            ("dense candidates / raw engine", dense, "engine: nearest 60", {}),
            ("local mode / dense candidates", "local mode: nearest 60", dense, {"at_least": 6}),
            ("local mode / raw engine, filtered", _LOCAL_NARROW, _ENGINE_NARROW, {"at_least": 50}),
            ("local mode / hybrid search, filtered", _LOCAL_NARROW, _OURS_NARROW, {}),
            ("local mode / raw engine, first answer", _LOCAL_FIRST, _ENGINE_FIRST, {"at_least": 4}),
            ("local mode / hybrid search, first answer", _LOCAL_FIRST, _OURS_FIRST, {}),
        ]
        for what, one, other, promise in wanted:
            if p50.get((one, size)) and p50.get((other, size)):
                found.append(Ratio(what, size, round(p50[one, size] / p50[other, size], 2), **promise))
        if (hybrid, size) in p50:
            extra = p50[hybrid, size] - p50[dense, size]
            limit = {5_000: 3.0, 100_000: 8.0}.get(size)
            found.append(Ratio("text and ranking add, ms", size, round(extra, 2), at_most=limit))
    return found


def table(figures: list[Figure], compared: list[Ratio]) -> str:
    """Return the figures for people."""
    lines = [f"{'what':<66}{'memories':>9}{'p50':>11}{'p95':>11}{'unit':>6}{'budget':>8}"]
    for item in figures:
        budget = "" if item.budget is None else f"{item.budget:g}"
        size, once = str(item.size or ""), item.p50 == item.p95
        p50, p95 = f"{item.p50:.3f}", "" if once else f"{item.p95:.3f}"
        lines.append(f"{item.what:<66}{size:>9}{p50:>11}{p95:>11}{item.unit:>6}{budget:>8}{_verdict(item)}")
    lines += ["", f"{'ratio of medians':<66}{'memories':>9}{'value':>11}  wanted"]
    for ratio in compared:
        wanted = f"<= {ratio.at_most:g}" if ratio.at_most is not None else ""
        wanted = f">= {ratio.at_least:g}" if ratio.at_least is not None else wanted
        lines.append(
            f"{ratio.what:<66}{ratio.size:>9}{ratio.value:>11.2f}  {wanted}{_verdict(ratio) if wanted else ''}"
        )
    return "\n".join(lines)


def _verdict(item: Figure | Ratio) -> str:
    if isinstance(item, Figure) and item.budget is None:
        return ""
    return "  kept" if item.kept else "  MISSED"


def plot(figures: list[Figure], path: Path) -> None:
    """Draw medians over the number of memories."""
    import matplotlib as mpl  # only for those who ask

    mpl.use("agg")
    from matplotlib import pyplot as plt

    chart, axes = plt.subplots(figsize=(9, 5.5), layout="constrained")
    for what in _DRAWN:
        points = sorted((item.size, item.p50) for item in figures if item.what == what)
        ours = ":" not in what
        if points:
            axes.plot(*zip(*points, strict=True), "o-" if ours else "s--", label=what, linewidth=2 if ours else 1)
    axes.set(xscale="log", yscale="log", xlabel="memories", ylabel="milliseconds, median")
    axes.set_title("One search, the query's vector given")
    axes.grid(visible=True, which="both", alpha=0.25)
    axes.legend(fontsize=8)
    chart.savefig(path, dpi=130)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.latency", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,5000", help="numbers of memories, with commas")
    parser.add_argument("--processes", type=int, default=8, help="for the search in several processes at once")
    parser.add_argument("--rounds", type=int, default=200, help="calls behind each percentile")
    parser.add_argument("--seconds", type=float, default=300, help="for filling QdrantClient's local mode; 0 leaves it")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="for people; needs matplotlib")
    args = parser.parse_args()
    figures = measure_once(args.rounds)
    with tempfile.TemporaryDirectory() as scratch:
        figures += asyncio.run(measure_hooks(Path(scratch) / "hooks", args.rounds))
        figures.append(floor_append(Path(scratch), args.rounds))
        for size in (int(part) for part in args.sizes.split(",")):
            root = Path(scratch) / str(size)
            fill(root, size)
            figures += measure_growing(root, size, args.rounds, args.seconds)
            figures += asyncio.run(measure(root, size, args.rounds))
            figures += scratchpads(root, size, args.rounds)
            if size <= _SMALL:  # eight agents with all memories each
                figures.append(measure_together(root, size, args.rounds, args.processes))
    compared = ratios(figures)
    if args.plot:
        plot(figures, args.plot)
    if args.json:
        rows = [{**asdict(item), "kept": item.kept} for item in figures]
        print(
            json.dumps({"figures": rows, "ratios": [{**asdict(one), "kept": one.kept} for one in compared]}, indent=1)
        )
    else:
        print(table(figures, compared))
