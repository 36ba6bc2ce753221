"""`ServiceLimits`: timeouts and maximum sizes of the service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Seconds, and a number of memories.

    Attributes:
        search_patience: A search waits so long for all that has no vector; None waits while a model loads.
        edits_patience: A reader waits for another that takes over edits; a process that was stopped may hold the lock.
        rendering_patience: A rendering waits for its turn.
    """

    search_patience: float | None = None
    edits_patience: float = 2.0
    rendering_patience: float = 10.0
