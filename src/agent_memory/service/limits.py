"""`ServiceLimits`: how long the service waits for what may take long. Given by the constructor, for tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Seconds.

    Attributes:
        search_patience: A search waits for embeddings; loading the local model takes half of one, once in a process.
        edits_patience: A reader waits for another that takes over edits; a process that was stopped may hold the lock.
        rendering_patience: A rendering waits for its turn.
    """

    search_patience: float = 2.0
    edits_patience: float = 2.0
    rendering_patience: float = 10.0
