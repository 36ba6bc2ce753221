"""Synthetic memories, samples, figures and ratios of the latency benchmark."""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings import VectorCache, text_hash
from agent_memory.embeddings.local import LocalEmbedder
from agent_memory.files.layout import folder_of
from agent_memory.index import read_question
from agent_memory.journal import Change, Journal
from agent_memory.models import CATEGORIES, MEMORY, Memory, SearchRequest, filters_of, utc_now
from benchmarks.harness import get_percentile, measure_calls
from benchmarks.latency.vectors import AGENT, vectors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
_TAGS: Final = 100
_IN_A_LINE: Final = 200


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


@dataclass(frozen=True)
class FigureRatio:
    """Ratio of two medians of one run, with its promised bound."""

    what: str
    size: int
    value: float
    at_most: float | None = None
    at_least: float | None = None

    @property
    def kept(self) -> bool:
        """True if the bound is kept."""
        return (self.at_most is None or self.value <= self.at_most) and (
            self.at_least is None or self.value >= self.at_least
        )


def figure(what: str, size: int, seconds: list[float], budget_ms: float | None = None) -> BenchmarkFigure:
    """Sum up samples in seconds; the figure is in milliseconds."""
    p95 = get_percentile(seconds, 0.95)
    return BenchmarkFigure(what, size, round(statistics.median(seconds) * 1000, 3), round(p95 * 1000, 3), budget_ms)


def amount(what: str, size: int, value: float, unit: str, budget: float | None = None) -> BenchmarkFigure:
    """Note one number that is no latency."""
    return BenchmarkFigure(what, size, round(value, 3), round(value, 3), budget, unit)


def sampled(call: Callable[[], object], rounds: int) -> list[float]:
    """Return the seconds of each call, after three warm-up calls."""
    for _ in range(3):
        call()
    return measure_calls(call, rounds)


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


def memories(size: int) -> list[Memory]:
    """Return memories of all categories, each with one of a hundred tags."""
    rng = random.Random(size)
    return [
        Memory(
            agent_id=AGENT,
            id=f"mem-{number:012x}",
            content=sentence(rng, number),
            category=CATEGORIES[number % len(CATEGORIES)],
            tags=[f"tag{number % _TAGS}"],
        )
        for number in range(size)
    ]


def fill(root: Path, size: int) -> None:
    """Write memories and their vectors, in large portions: how long a store takes is measured elsewhere."""
    folder = folder_of(AGENT, root)
    made = memories(size)
    journal = Journal(folder.journal, {MEMORY.name})
    for begin in range(0, size, _IN_A_LINE):
        with journal.locked() as writer:
            changes = [Change("put", MEMORY.name, one.id, one.to_record()) for one in made[begin : begin + _IN_A_LINE]]
            writer.append(changes)
    cache, rows = VectorCache(folder.vectors), vectors(size)
    cache.put_many(LocalEmbedder().identity, {text_hash(m.content): v for m, v in zip(made, rows, strict=True)})
    cache.close()


def points_of(figures: list[BenchmarkFigure], what: str) -> list[tuple[float, float]]:
    """Return number of memories and median of each figure of a name."""
    return sorted((item.size, item.p50) for item in figures if item.what == what)
