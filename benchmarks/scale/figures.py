"""Figures of the scale benchmark, and synthetic sentences and questions."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.index import read_question
from agent_memory.models import SearchRequest, filters_of, utc_now
from benchmarks.harness import get_percentile

if TYPE_CHECKING:
    import random

    from agent_memory.embeddings.protocol import Vector
    from agent_memory.index import Question

SUBJECTS: Final = (
    "ledger", "parser", "queue", "cache", "router", "scheduler", "session", "journal", "worker", "exporter",
)  # fmt: skip
OBJECTS: Final = (
    "PostgreSQL", "Redis", "Kafka", "SQLite", "YAML", "protobuf", "gzip", "TLS", "coroutines", "snapshots",
)  # fmt: skip
_VERBS = ("uses", "needs", "prefers", "avoids", "replaces", "validates", "retries", "compresses", "mirrors")
_REASONS = ("because it is faster", "since the audit asked for it", "after the outage in May", "to keep tests simple")


@dataclass(frozen=True)
class BenchmarkFigure:
    """One measurement: median and 95th percentile, and the budget for the latter, if there is one."""

    what: str
    size: int
    p50: float
    p95: float
    budget: float | None = None
    unit: str = "ms"

    @property
    def kept(self) -> bool:
        """True if the budget is kept."""
        return self.budget is None or self.p95 <= self.budget


def figure(what: str, size: int, seconds: list[float], budget_ms: float | None = None) -> BenchmarkFigure:
    """Sum up samples in seconds; the figure is in milliseconds."""
    p95 = get_percentile(seconds, 0.95)
    return BenchmarkFigure(what, size, round(statistics.median(seconds) * 1000, 3), round(p95 * 1000, 3), budget_ms)


def amount(what: str, size: int, value: float, unit: str, budget: float | None = None) -> BenchmarkFigure:
    """Note one number that is no latency."""
    return BenchmarkFigure(what, size, round(value, 3), round(value, 3), budget, unit)


def sentence(rng: random.Random, number: int) -> str:
    """Return a sentence of about the length that people store."""
    return (
        f"The {rng.choice(SUBJECTS)} of service {number} {rng.choice(_VERBS)} {rng.choice(OBJECTS)} "
        f"{rng.choice(_REASONS)}, and the {rng.choice(SUBJECTS)} {rng.choice(_VERBS)} {rng.choice(OBJECTS)} instead."
    )


def question(rng: random.Random) -> str:
    """Return a question about such sentences; half of all memories hold one of its words."""
    return f"why does the {rng.choice(SUBJECTS)} use {rng.choice(OBJECTS)}"


def asked(
    text: str, vector: Vector | None = None, filters: dict[str, Any] | None = None
) -> tuple[SearchRequest, Question]:
    """Return a request for the best five, read, with the vector of its text."""
    request = SearchRequest(text, 5, utc_now(), filters_of(filters))
    return request, replace(read_question(text, request.now), vector=vector)


def points_of(figures: list[BenchmarkFigure], what: str) -> list[tuple[float, float]]:
    """Return number of memories and median of each figure of a name."""
    return sorted((item.size, item.p50) for item in figures if item.what == what)
