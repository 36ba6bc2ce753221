"""From the start of a process to its first answer; each way is a process that says so on its standard output.

    python -m benchmarks.latency.first_search WAY ROOT SIZE

WAY is `words` (the first search as it comes), `hybrid` (the first search that goes by meaning, too), `engine` (the
nearest points from a shard alone, whose folder ROOT is then) or `local-mode` (the same from QdrantClient's local mode).
"""

# Imports in functions: what one way does not need must not be loaded before its answer
from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

WAYS: Final = ("words", "hybrid", "engine", "local-mode")
_ANSWER: Final = "answer"
_PATIENCE: Final = 300


def first_answer(way: str, root: Path, size: int) -> float:
    """Return the seconds from starting a process to its first answer.

    Raises:
        RuntimeError: It gave none.
    """
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.latency.first_search", way, str(root), str(size)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    if not done.stdout.startswith(_ANSWER):
        raise RuntimeError(f"no answer from {way} at {size}")
    return float(done.stdout.split()[1]) - began  # perf_counter is one clock for all processes of a machine


def say_answered() -> None:
    """Tell when the answer was there: ending the process is not part of it."""
    print(_ANSWER, time.perf_counter(), flush=True)


async def through_storage(root: Path, *, wait: bool) -> None:
    """Search as an agent would that has just started."""
    from agent_memory.memories import MigratableStorage
    from benchmarks.latency.vectors import AGENT

    storage = MigratableStorage(AGENT, root)
    found = await storage.search("why does the ledger use Kafka", patience=_PATIENCE if wait else 0)
    assert found, "nothing found"
    assert not wait or found.mode == "hybrid"
    say_answered()
    await storage.close()


def from_engine(shard_folder: Path, size: int) -> None:
    """Open a shard and ask it, as the process that holds it does."""
    from agent_memory.engines.shard import Shard
    from benchmarks.latency.vectors import queries

    shard = Shard.open(shard_folder)
    assert shard.nearest(queries(size, 1)[0].tolist(), 10)
    say_answered()
    shard.close()


def from_local_mode(root: Path, size: int) -> None:
    """Open the folder and ask it."""
    from qdrant_client import QdrantClient

    from benchmarks.latency.vectors import AGENT, queries

    client = QdrantClient(path=str(root / "local-mode"))
    assert client.query_points(AGENT, query=queries(size, 1)[0].tolist(), limit=10).points
    say_answered()
    client.close()


def main() -> None:
    """Answer once."""
    way, root, size = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if way == "engine":
        from_engine(root, size)
    elif way == "local-mode":
        from_local_mode(root, size)
    else:
        asyncio.run(through_storage(root, wait=way == "hybrid"))


if __name__ == "__main__":
    main()
