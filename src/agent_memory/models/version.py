"""`Version`: a memory as it was after one of its changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.models.memory import Memory


@dataclass(frozen=True, slots=True)
class Version:
    """One change of a memory, and what the memory was after it.

    Attributes:
        seq: Number of the change.
        at: When it was made, by the clock of who made it.
        op: `put` (stored, or all that is known of what came before), `patch` (changed) or `delete` (forgotten).
        memory: The memory after it; None when it was forgotten, or when the record broke the data model.
    """

    seq: int
    at: datetime
    op: str
    memory: Memory | None
