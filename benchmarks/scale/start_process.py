"""Process of a session: its first answer, and its memory.

    python -m benchmarks.scale.start_process WAY ROOT EMBEDDER

is one such session. WAY is `words` (no embedder), `hybrid` (the model was loaded before) or `loading` (it was not). It
says how many seconds its first answer took from making the storage on, answers 20 more, and waits for the end of its
standard input. Before the clock starts everything is imported, by a search in a memory of one.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import agent_memory.store.segment_opener  # noqa: F401  what a memory of one has no need of
from agent_memory.embeddings.onnx_runtime import import_quietly
from agent_memory.memories import FileStorage
from agent_memory.models import Memory
from benchmarks.scale.data import embedder_of, settings_of, write_lines
from benchmarks.scale.figures import BenchmarkFigure, amount, figure, question
from benchmarks.scale.process import ProcessMemory, heard, memory_of, started
from benchmarks.scale.vectors import AGENT

WAYS: Final = {
    "words": "first answer, by words",
    "hybrid": "first answer, hybrid, model loaded",
    "loading": "first answer, hybrid, and loading the model",
}
UNSEALED: Final = "first answer, by words, as much unsealed as can be"
MEMORY: Final = {
    ("words", "local"): "memory without a model",
    ("words", "languages"): "memory without a model",
    ("hybrid", "local"): "memory with the model",
    ("hybrid", "languages"): "memory with two models",
}
_MORE: Final = 20
_PATIENCE: Final = 300.0


def starts(root: Path, size: int, sessions: int, embedder: str = "local") -> list[BenchmarkFigure]:
    """Measure sessions of each way, one after the other."""
    figures = []
    for way, what in WAYS.items():
        seconds, taken = _sessions(way, root, sessions, embedder)
        if (memory := MEMORY.get((way, embedder))) is not None:
            figures.append(amount(f"{memory}, private", size, taken.private, "MB"))
            figures.append(amount(f"{memory}, mapped", size, taken.mapped, "MB"))
        figures.append(figure(what, size, seconds))
    return figures


def unsealed_starts(root: Path, size: int, sessions: int, lines: int) -> BenchmarkFigure:
    """Measure sessions that begin with so many lines behind what is sealed."""
    write_lines(root, lines, 50 * size)
    return figure(UNSEALED, size, _sessions("words", root, sessions, "local")[0])


def _sessions(way: str, root: Path, count: int, embedder: str) -> tuple[list[float], ProcessMemory]:
    seconds, taken = [], []
    for _ in range(count):
        with started("scale.start_process", way, root, embedder) as process:
            seconds.append(heard(process))
            assert heard(process) == "idle"
            taken.append(memory_of(process.pid))
    return seconds, max(taken, key=lambda each: each.private)


async def answer(way: str, root: Path, name: str) -> None:
    """Be a session."""
    embedder = embedder_of(root, name)  # keeps the model, of which a process has one
    if way == "hybrid":
        embedder.embed_query("load")
    with tempfile.TemporaryDirectory() as scratch:
        await _rehearse(Path(scratch), name if way == "hybrid" else "none")
    if way == "loading":
        import tokenizers  # noqa: F401  as onnxruntime

        import_quietly()
    by_meaning = way != "words"
    rng = random.Random(1)
    asked = question(rng)
    began = time.perf_counter()
    storage = FileStorage(AGENT, settings=settings_of(root, name if by_meaning else "none"))
    hits = await storage.search(asked, patience=_PATIENCE if by_meaning else 0)
    took = time.perf_counter() - began
    assert hits, "nothing found"
    assert hits.mode == ("hybrid" if by_meaning else "keyword"), hits.mode
    print(json.dumps(took), flush=True)
    for _ in range(_MORE):
        await storage.search(question(rng))
    print(json.dumps("idle"), flush=True)
    sys.stdin.read()
    await storage.close()


async def _rehearse(root: Path, embedder: str) -> None:
    storage = FileStorage("another", settings=settings_of(root, embedder))
    await storage.store(Memory(agent_id="another", content="The ledger uses Kafka."))
    assert await storage.search("ledger", patience=_PATIENCE)
    await storage.close()


if __name__ == "__main__":
    asyncio.run(answer(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
