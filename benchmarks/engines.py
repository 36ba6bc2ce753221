"""Segments beside the embedded vector engine, over the same memories: from how many on does the engine pay?

    python -m benchmarks.engines [--sizes 20000,100000] [--rounds 200] [--json]

For each size an agent is filled as `benchmarks.scale` does, its vectors in the cache, and is searched by one session
after its memories were sealed, then by one after it was moved to the engine: the time from making the storage to the
first hybrid answer, the model being loaded, and until the engine is asked; searches with the query's vector given; the
private memory of the process and its children after that (`memory_of`); and how long sealing and building take.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.embeddings.local import LocalEmbedder
from agent_memory.memories import FileStorage, VectorStorage
from benchmarks.latency.data import Figure, amount, question
from benchmarks.latency.vectors import AGENT
from benchmarks.scale.data import fill, run, settings_of
from benchmarks.scale.process import figures_of, memory_of
from benchmarks.scale.report import document, table
from benchmarks.scale.search import Searcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WAYS: Final = ("segments", "engine")
_PATIENCE: Final = 900.0


def measure(root: Path, size: int, rounds: int) -> Iterator[Figure]:
    """Measure an agent of one size in an empty folder; yield each figure once it is known."""
    fill(root, size)
    yield from figures_of("scale.whole_run", "seal", root, size, 1)
    yield from _named("segments", figures_of("engines", "segments", root, size, rounds))
    yield from _named("engine", figures_of("engines", "build", root, size))
    yield from _named("engine", figures_of("engines", "engine", root, size, rounds))


def _named(way: str, figures: list[Figure]) -> Iterator[Figure]:
    return (replace(each, what=f"{way}: {each.what}") for each in figures)


async def build(root: Path, size: int) -> list[Figure]:
    """Move an agent to the engine."""
    storage = VectorStorage(AGENT, settings=settings_of(root, "local"), wanted=False)
    began = time.perf_counter()
    await storage.migrate()
    took = time.perf_counter() - began
    await storage.close()
    return [amount("building the index", size, took, "s")]


async def session(way: str, root: Path, size: int, rounds: int) -> list[Figure]:
    """Be a session."""
    embedder = LocalEmbedder()  # keeps the model, of which a process has one
    embedder.embed_query("load")
    began, settings = time.perf_counter(), settings_of(root, "local")
    storage = FileStorage(AGENT, settings=settings) if way == "segments" else VectorStorage(AGENT, settings=settings)
    found = await storage.search(question(random.Random(1)), patience=_PATIENCE)
    assert found.mode == "hybrid", found.mode
    figures = [amount("first answer, hybrid, model loaded", size, time.perf_counter() - began, "s")]
    if isinstance(storage, VectorStorage):
        assert await storage.caught_up(_PATIENCE)
        figures.append(amount("until it is asked", size, time.perf_counter() - began, "s"))
    figures += Searcher(storage.opened, size, rounds).figures()
    figures.append(amount("private memory", size, memory_of(os.getpid()).private, "MB"))
    await storage.close()
    return figures


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", default="20000,100000", help="numbers of memories, with commas between")
    parser.add_argument("--rounds", type=int, default=200, help="searches behind each percentile")
    parser.add_argument("--json", action="store_true", help="for machines")
    args = parser.parse_args(argv)
    figures = []
    for size in map(int, args.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            for each in measure(Path(folder), size, args.rounds):
                print(json.dumps(asdict(each)), file=sys.stderr, flush=True)
                figures.append(each)
    print(json.dumps(document(figures)) if args.json else table(figures))


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] in {*WAYS, "build"}:
        place, count = Path(sys.argv[2]), int(sys.argv[3])
        run(build(place, count) if sys.argv[1] == "build" else session(sys.argv[1], place, count, int(sys.argv[4])))
    else:
        main()
