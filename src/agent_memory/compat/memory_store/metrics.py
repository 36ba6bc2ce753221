"""What a `MemoryStore` measures: for programs that scrape it (`agent_memory.logs`), and as a summary."""

from __future__ import annotations

import time
from collections import Counter, deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.logs import CounterMetric, HistogramMetric

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Operation = Literal["store", "retrieve"]
_OPERATIONS: Final = ("store", "retrieve")
_REMEMBERED: Final = 1000
"""Latest calls of each operation, of which the summary tells the median and the 95th percentile."""

OPERATIONS: Final = CounterMetric(
    "agent_memory_store_operations",
    "Calls of a memory store, and those that failed.",
    {"operation": _OPERATIONS, "outcome": ("done", "failed")},
)
LATENCY: Final = HistogramMetric(
    "agent_memory_store_latency_milliseconds", "From the call to the answer.", {"operation": _OPERATIONS}
)


class MemoryPerformanceMetrics:
    """Counts what one store did, how long it took and how often it failed."""

    def __init__(self) -> None:
        self._taken: dict[str, deque[float]] = {name: deque(maxlen=_REMEMBERED) for name in _OPERATIONS}
        self._calls, self._errors = Counter[str](), Counter[str]()
        self._results = 0

    @contextmanager
    def timing(self, operation: Operation) -> Iterator[None]:
        """Measure one call; one that raises is counted as failed."""
        began = time.perf_counter()
        try:
            yield
        except BaseException:
            self._errors[operation] += 1
            OPERATIONS.add(operation=operation, outcome="failed")
            raise
        took = (time.perf_counter() - began) * 1000
        self._calls[operation] += 1
        self._taken[operation].append(took)
        OPERATIONS.add(operation=operation, outcome="done")
        LATENCY.observe(took, operation=operation)

    def found(self, count: int) -> None:
        """Count the entries of an answer."""
        self._results += count

    def get_summary(self) -> dict[str, Any]:
        """Return for each operation how often it was done, how often it failed, and milliseconds."""
        told = {name: self._of(name) for name in _OPERATIONS}
        told["retrieve"]["results"] = self._results
        return told

    def _of(self, operation: str) -> dict[str, Any]:
        taken = sorted(self._taken[operation])
        times = {"p50_ms": _at(taken, 0.5), "p95_ms": _at(taken, 0.95)}
        return {"count": self._calls[operation], "errors": self._errors[operation], **times}


def _at(ordered: Sequence[float], share: float) -> float | None:
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3) if ordered else None
