"""Estimate, progress and result of a migration to the vector engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

Progress = Callable[[str, int, int], Awaitable[None]]
"""Called with the stage (embed, load, index, check, switch), the number of steps done and the number of all steps."""


@dataclass(frozen=True, slots=True)
class Built:
    """A shard in use.

    Attributes:
        shard: Its name.
        memories: Number of memories when it was built.
        points: Number of its points.
    """

    shard: str
    memories: int
    points: int


@dataclass(frozen=True, slots=True)
class MigrationProgress:
    """Progress of a migration; `VectorStorage.migrate_from_file` returns it at the end.

    Attributes:
        memories_processed: Number of memories that were moved.
        total: Number of memories to move.
    """

    memories_processed: int
    total: int

    @property
    def percent_complete(self) -> float:
        """Progress in percent; 100 if there is nothing to move."""
        return round(100 * self.memories_processed / self.total, 1) if self.total else 100.0

    @property
    def is_complete(self) -> bool:
        """True if all memories were moved."""
        return self.memories_processed >= self.total


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cost of a migration.

    Attributes:
        count: Number of memories to move.
        seconds: Time on a machine with two cores.
        dollars: Price of embedding the texts that have no vector yet.
    """

    count: int
    seconds: float
    dollars: float


class MovableIndex(Protocol):
    """Index of an agent that can be moved to the vector engine."""

    async def estimate(self) -> Estimate:
        """Return the expected cost of `migrate`."""

    async def migrate(self, progress: Progress | None = None) -> Built:
        """Build an index and answer from it."""

    async def migration_begun(self) -> bool:
        """Return True if a migration was begun and has neither ended nor failed."""

    async def note_migration(self, *, begun: bool) -> None:
        """Record that a migration has begun, or has ended."""
