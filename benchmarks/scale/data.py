"""Synthetic agent with a year of memories for the scale benchmark."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final

from agent_memory.embeddings import VectorCache, text_hash
from agent_memory.embeddings.registry import get_provider
from agent_memory.files.layout import folder_of
from agent_memory.journal import Change, Journal
from agent_memory.models import CATEGORIES, MEMORY, Memory
from agent_memory.settings import ServiceSettings
from benchmarks.scale.figures import sentence
from benchmarks.scale.vectors import AGENT, portions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator
    from pathlib import Path

    from agent_memory.embeddings.protocol import Embedder
    from benchmarks.scale.figures import BenchmarkFigure

SPAN: Final = timedelta(days=365)
_AT_ONCE: Final = 5_000
_TAGS: Final = 100
_A_SESSION: Final = 20
MOST_SECONDS: Final = 10.0


def settings_of(root: Path, embedder: str = "none") -> ServiceSettings:
    """Return settings for agents below `root`, without a model by default."""
    return ServiceSettings(storage_root=str(root), embedder=embedder)


def each_memory(size: int, now: datetime) -> Iterator[Memory]:
    """Yield memories of the year before `now`, of all categories.

    Twenty are of one session, and each has one of a hundred tags.
    """
    rng, step = random.Random(size), SPAN / size
    for number in range(size):
        yield Memory(
            agent_id=AGENT,
            id=f"mem-{number:012x}",
            content=sentence(rng, number),
            category=CATEGORIES[number % len(CATEGORIES)],
            tags=[f"tag{number % _TAGS}"],
            created_by_session=f"session-{number // _A_SESSION}",
            timestamp=now - (size - number) * step,
        )


def embedder_of(root: Path, name: str) -> Embedder:
    """Return the embedder of a name, not loaded."""
    return get_provider(name).make(settings_of(root, name))


def fill(root: Path, size: int, embedder: str = "local") -> None:
    """Write a line and the vectors of each memory, 5,000 at once."""
    folder, now = folder_of(AGENT, root), datetime.now(UTC)
    moment = [now]
    journal = Journal(folder.journal, {MEMORY.name}, clock=lambda: moment[0])
    cache, parts, made = (
        VectorCache(folder.vectors),
        embedder_of(root, embedder).identity.members,
        each_memory(size, now),
    )
    for batches in zip(*[portions(size, _AT_ONCE, part.dimension) for part in parts], strict=True):
        hashes = []
        with journal.locked() as writer:
            for memory in islice(made, len(batches[0])):
                moment[0] = memory.timestamp
                writer.append([Change("put", MEMORY.name, memory.id, memory.to_record())])
                hashes.append(text_hash(memory.content))
        for part, rows in zip(parts, batches, strict=True):
            cache.put_many(part, dict(zip(hashes, rows, strict=True)))
    cache.close()


def write_lines(root: Path, count: int, first: int) -> None:
    """Append memories as another process does, numbered from `first`."""
    rng = random.Random(first)
    journal = Journal(folder_of(AGENT, root).journal, {MEMORY.name})
    with journal.locked() as writer:
        for number in range(first, first + count):
            memory = Memory(agent_id=AGENT, content=sentence(rng, number), category="note")
            writer.append([Change("put", MEMORY.name, memory.id, memory.to_record())])


def say(figures: list[BenchmarkFigure]) -> None:
    """Hand figures to the process that started this one."""
    print(json.dumps([asdict(figure) for figure in figures]), flush=True)


def run(measuring: Awaitable[list[BenchmarkFigure]]) -> None:
    """Measure and say."""

    async def measured() -> list[BenchmarkFigure]:
        return await measuring

    say(asyncio.run(measured()))
