"""Process of one session that searches, lists and reads its status.

    python -m benchmarks.scale.search WHAT ROOT SIZE ROUNDS [EMBEDDER]

WHAT is `asking` (searches, lists and the status) or `catching up` (with what another process wrote). A search is what
`storage.search` does in its thread, the vector of the query being known: it looks at the journal, ranks, and loads the
best five. `words` has no vector, `meaning` no words, `hybrid` both. What another process wrote is caught up with by
reading it, and its words. Prints figures as JSON.
"""

from __future__ import annotations

import random
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.memories import FileStorage
from agent_memory.memory import MemoryService
from benchmarks.harness import await_calls, measure_calls
from benchmarks.scale.data import MOST_SECONDS, embedder_of, run, settings_of, write_lines
from benchmarks.scale.figures import BenchmarkFigure, asked, figure, question
from benchmarks.scale.vectors import AGENT, DIMENSION, queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.index import Question
    from agent_memory.models import Memory, SearchRequest
    from agent_memory.store.store import Store

FILTERS: Final[dict[str, dict[str, Any]]] = {
    "one category in nine": {"category": "decision"},
    "one tag in a hundred": {"tags": ["tag7"]},
}
LINES: Final = (1, 100)
_WARM: Final = 3
_WRITES: Final = 7


class ScaleSearcher:
    """Searches with questions and vectors that differ from call to call.

    Args:
        replica: In which memories.
        size: How many there are.
        rounds: Calls of each kind at most.
        dimensions: Of the vectors of each embedder.
    """

    def __init__(
        self, replica: Store[Memory], size: int, rounds: int, dimensions: Sequence[int] = (DIMENSION,)
    ) -> None:
        self._replica, self._size, self._rounds = replica, size, rounds
        self._vectors = queries(size, rounds, dimensions)
        self._number = 0
        self._rng = random.Random(1)

    def figures(self) -> list[BenchmarkFigure]:
        """Measure each kind of search, warm."""
        kinds = {"search, words": self.by_words, "search, meaning": self.by_meaning, "search, hybrid": self.hybrid}
        kinds |= {f"search, hybrid, {name}": partial(self.hybrid, filters) for name, filters in FILTERS.items()}
        figures = []
        for what, call in kinds.items():
            measure_calls(call, _WARM, MOST_SECONDS)
            figures.append(figure(what, self._size, measure_calls(call, self._rounds, MOST_SECONDS)))
        return figures

    def by_words(self) -> None:
        """Search with the words of a question alone."""
        request, read, _ = self._next()
        self._search(request, read, "keyword")

    def by_meaning(self) -> None:
        """Search with the vector of a question alone."""
        request, read, vector = self._next()
        self._search(request, replace(read, weights={}, vector=vector), "hybrid")

    def hybrid(self, filters: dict[str, Any] | None = None) -> None:
        """Search with both."""
        request, read, vector = self._next(filters)
        self._search(request, replace(read, vector=vector), "hybrid")

    def _next(self, filters: dict[str, Any] | None = None) -> tuple[SearchRequest, Question, Any]:
        self._number += 1
        vector = self._vectors[self._number % len(self._vectors)]
        return *asked(question(self._rng), filters=filters), vector

    def _search(self, request: SearchRequest, read: Question, mode: str) -> None:
        answer = self._replica.search(request, read)
        assert answer.ranking.mode == mode, answer.ranking.mode
        assert answer.records or not request.filters.admits_all


async def asking(root: Path, size: int, rounds: int, embedder: str = "local") -> list[BenchmarkFigure]:
    """Measure what only reads."""
    settings = settings_of(root, embedder)
    service = MemoryService(FileStorage(AGENT, settings=settings), settings)
    await service.storage.prepare(None)
    dimensions = [part.dimension for part in embedder_of(root, embedder).identity.members]
    figures = ScaleSearcher(service.storage.opened, size, rounds, dimensions).figures()
    await service.list_recent()
    recent = await await_calls(service.list_recent, rounds, MOST_SECONDS)
    states = await await_calls(service.status, max(_WARM, rounds // 10), MOST_SECONDS)
    figures += [figure("list_recent, 10 memories", size, recent), figure("status", size, states)]
    await service.close()
    return figures


async def catching_up(root: Path, size: int, rounds: int) -> list[BenchmarkFigure]:
    """Measure the time to read another process's writes, without a model."""
    storage = FileStorage(AGENT, settings=settings_of(root))
    await storage.prepare()
    replica, figures, first = storage.opened, [], size
    for lines in LINES:
        samples = []
        for _ in range(min(_WRITES, rounds)):
            write_lines(root, lines, first)
            first += lines
            began = time.perf_counter()
            replica.refresh()
            replica.index.warm()
            samples.append(time.perf_counter() - began)
        figures.append(figure(f"catching up with lines of another process: {lines}", size, samples))
    await storage.close()
    return figures


if __name__ == "__main__":
    root, size, rounds = Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    run(asking(root, size, rounds, sys.argv[5]) if sys.argv[1] == "asking" else catching_up(root, size, rounds))
