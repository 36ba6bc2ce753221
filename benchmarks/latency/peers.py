"""Rivals of search over the same vectors: numpy, the raw engine, local mode.

    python -m benchmarks.latency.peers ROOT SIZE ROUNDS SECONDS

ROOT holds a folder in which an index has been built; nobody uses it meanwhile. Local mode is left out when it cannot
be filled within SECONDS, or is not installed. Prints figures as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agent_memory.engines.shard import Shard
from agent_memory.engines.shard_process import PayloadConditions
from agent_memory.files.layout import folder_of
from agent_memory.store.shards import Shards
from benchmarks.latency.data import BenchmarkFigure, amount, figure, memories, sampled
from benchmarks.latency.first_search import first_answer
from benchmarks.latency.vectors import AGENT, queries, vectors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

NEAREST: Final = 60
_IN_A_CALL: Final = 500
_DECISION: Final = PayloadConditions(facets=["category=decision"])


def numpy_figures(size: int, rounds: int, asked: Iterator[NDArray[np.float32]]) -> list[BenchmarkFigure]:
    """Measure the product of a matrix and a vector, in one thread, and the same with the best sorted."""
    matrix = vectors(size)

    def best() -> Any:
        values = matrix @ next(asked)
        chosen = np.argpartition(-values, min(NEAREST, size - 1))[:NEAREST]
        return chosen[np.argsort(-values[chosen])]

    return [
        figure("numpy: matrix product", size, sampled(lambda: matrix @ next(asked), rounds)),
        figure("numpy: matrix product, best 60 sorted", size, sampled(best, rounds)),
    ]


def engine_figures(root: Path, size: int, rounds: int, asked: Iterator[NDArray[np.float32]]) -> list[BenchmarkFigure]:
    """Measure the shard in use, opened in this process."""
    shards = Shards(folder_of(AGENT, root))
    name = shards.active()[1]
    assert name is not None, "the index was not built"
    folder = shards.get_path(name)
    shard = Shard.open(folder)
    plain = sampled(lambda: shard.nearest(next(asked).tolist(), NEAREST), rounds)
    narrow = sampled(lambda: shard.nearest(next(asked).tolist(), NEAREST, where=_DECISION), rounds)
    shard.close()
    return [
        figure("engine: nearest 60", size, plain),
        figure("engine: nearest 60, one category in nine", size, narrow),
        amount("engine: process start to first answer", size, first_answer("engine", folder, size), "s"),
    ]


def local_mode_figures(
    root: Path, size: int, rounds: int, seconds: float, asked: Iterator[NDArray[np.float32]]
) -> list[BenchmarkFigure]:
    """Measure QdrantClient's local mode, if it can be filled in time."""
    if find_spec("qdrant_client") is None:
        return []
    from qdrant_client import QdrantClient, models  # only where it is installed

    client = QdrantClient(path=str(root / "local-mode"))
    client.create_collection(AGENT, vectors_config=models.VectorParams(size=384, distance=models.Distance.COSINE))
    rows, made, began = vectors(size), memories(size), time.perf_counter()
    for begin in range(0, size, _IN_A_CALL):
        points = [
            models.PointStruct(id=number, vector=rows[number].tolist(), payload={"category": made[number].category})
            for number in range(begin, min(size, begin + _IN_A_CALL))
        ]
        client.upsert(AGENT, points)
        if time.perf_counter() - began > seconds:
            client.close()
            return [amount(f"local mode: filled to {begin + _IN_A_CALL}, then given up", size, seconds, "s")]
    filled = time.perf_counter() - began
    condition = models.FieldCondition(key="category", match=models.MatchValue(value="decision"))

    def ask(only: models.Filter | None) -> object:
        return client.query_points(AGENT, query=next(asked).tolist(), limit=NEAREST, query_filter=only)

    plain = sampled(lambda: ask(None), min(rounds, 50))
    narrow = sampled(lambda: ask(models.Filter(must=[condition])), min(rounds, 20))
    client.close()
    return [
        amount("local mode: filling", size, filled, "s"),
        figure("local mode: nearest 60", size, plain),
        figure("local mode: nearest 60, one category in nine", size, narrow),
        amount("local mode: process start to first answer", size, first_answer("local-mode", root, size), "s"),
    ]


def main() -> None:
    """Measure and print."""
    root, size, rounds, seconds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    asked = cycle(queries(size, rounds))
    figures = numpy_figures(size, rounds, asked) + engine_figures(root, size, rounds, asked)
    figures += local_mode_figures(root, size, rounds, seconds, asked)
    print(json.dumps([asdict(item) for item in figures]))


if __name__ == "__main__":
    main()
