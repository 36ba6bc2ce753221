"""Measure hooks, imports, embedding, and search with the vector engine, against budgets and rivals.

    python -m benchmarks.latency [--sizes 1000,5000,20000,100000] [--rounds 200] [--json] [--plot FILE.png]

Memories are synthetic sentences with synthetic vectors in clusters (put into the cache), so that a size of 5,000 takes
seconds; figures named "embedding", and searches "by text", run the real model. Everything goes through the product's
own storage. For each size one process grows from files into the vector engine while it is searched; then come numpy,
the raw engine and QdrantClient's local mode over the same vectors, and ratios of medians. What needs no engine is
measured by `benchmarks.scale`. Measure on a machine that does nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amplifier_core.testing import MockContextManager, MockCoordinator

from agent_memory.embeddings.local import LocalEmbedder
from amplifier_module_hooks_memory_capture import mount as mount_capture
from amplifier_module_hooks_memory_ingestion import mount as mount_ingestion
from benchmarks.harness import build_parser, draw_lines, print_report
from benchmarks.latency.data import (
    BenchmarkFigure,
    FigureRatio,
    amount,
    figure,
    fill,
    points_of,
    sampled,
    sentence,
)
from benchmarks.latency.first_search import first_answer
from benchmarks.latency.vectors import AGENT

if TYPE_CHECKING:
    from collections.abc import Callable

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


def measure_once(rounds: int) -> list[BenchmarkFigure]:
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


async def measure_hooks(root: Path, rounds: int) -> list[BenchmarkFigure]:
    """Measure what each of two modules adds to a prompt, a tool's answer and the end of a turn."""
    ingesting = {"observe_tools": ["bash"], "embedder": "none"}
    return [
        *await _measure_hooks("capture", mount_capture, {"storage_root": str(root)}, rounds),
        *await _measure_hooks("ingestion", mount_ingestion, {"storage_root": str(root), **ingesting}, rounds),
    ]


async def _measure_hooks(
    name: str, mount: Callable[..., Any], config: dict[str, Any], rounds: int
) -> list[BenchmarkFigure]:
    """Measure the time inside the handlers of a module."""
    handlers: dict[str, list[Any]] = {}
    coordinator = MockCoordinator()
    coordinator.config["session"] = {"capabilities": {"agent_identity": AGENT}}
    register = coordinator.hooks.register
    context = MockContextManager()
    await coordinator.mount("context", context)

    class ListeningCoordinator:
        """The coordinator, with an eye on who registers for what."""

        def __getattr__(self, name: str) -> Any:
            if name == "hooks":
                return self
            return getattr(coordinator if hasattr(coordinator, name) else coordinator.hooks, name)

        def register(self, event: str, handler: Any, **options: Any) -> Any:
            handlers.setdefault(event, []).append(handler)
            return register(event, handler, **options)

    cleanup = await mount(ListeningCoordinator(), config)
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


def floor_append(root: Path, rounds: int) -> BenchmarkFigure:
    """Measure what no store can be faster than: appending 1 kB and syncing it."""
    descriptor = os.open(root / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def append() -> None:
        os.write(descriptor, b"x" * 1024)
        os.fsync(descriptor)

    samples = sampled(append, rounds)
    os.close(descriptor)
    return figure("floor: append and fsync", 0, samples)


def measure_growing(root: Path, size: int, rounds: int, seconds: float) -> list[BenchmarkFigure]:
    """Measure an agent that grows into the engine, first answers, and what stands beside, each in its own process."""
    figures = _child("benchmarks.latency.growing_store", root, size, rounds)
    for way, what in (("words", "process start to first answer"), ("hybrid", "process start to first hybrid answer")):
        figures.append(amount(what, size, first_answer(way, root, size), "s"))
    return figures + _child("benchmarks.latency.peers", root, size, rounds, seconds)


def _child(module: str, *arguments: object) -> list[BenchmarkFigure]:
    command = [sys.executable, "-W", "ignore", "-m", module, *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
    return [BenchmarkFigure(**item) for item in json.loads(output.splitlines()[-1])]


def ratios(figures: list[BenchmarkFigure]) -> list[FigureRatio]:
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
                found.append(FigureRatio(what, size, round(p50[one, size] / p50[other, size], 2), **promise))
        if (hybrid, size) in p50:
            extra = p50[hybrid, size] - p50[dense, size]
            limit = {5_000: 3.0, 100_000: 8.0}.get(size)
            found.append(FigureRatio("text and ranking add, ms", size, round(extra, 2), at_most=limit))
    return found


def table(figures: list[BenchmarkFigure], compared: list[FigureRatio]) -> str:
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


def _verdict(item: BenchmarkFigure | FigureRatio) -> str:
    if isinstance(item, BenchmarkFigure) and item.budget is None:
        return ""
    return "  kept" if item.kept else "  MISSED"


def main() -> None:
    """Measure and print."""
    parser = build_parser("latency", __doc__, "--rounds", "--json", "--plot")
    parser.add_argument("--sizes", default="1000,5000", help="numbers of memories, with commas")
    parser.add_argument("--seconds", type=float, default=300, help="for filling QdrantClient's local mode; 0 leaves it")
    args = parser.parse_args()
    figures = measure_once(args.rounds)
    with tempfile.TemporaryDirectory() as scratch:
        figures += asyncio.run(measure_hooks(Path(scratch) / "hooks", args.rounds))
        figures.append(floor_append(Path(scratch), args.rounds))
        for size in (int(part) for part in args.sizes.split(",")):
            root = Path(scratch) / str(size)
            fill(root, size)
            figures += measure_growing(root, size, args.rounds, args.seconds)
    compared = ratios(figures)
    if args.plot:
        draw_lines({what: points_of(figures, what) for what in _DRAWN}, args.plot, "milliseconds, median")
    rows = [{**asdict(item), "kept": item.kept} for item in figures]
    report = {"figures": rows, "ratios": [{**asdict(ratio), "kept": ratio.kept} for ratio in compared]}
    print_report(report, [table(figures, compared)], as_json=args.json)
