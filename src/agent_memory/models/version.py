"""`Version`: a record as it was after one of its changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from agent_memory.models.kind import R

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Version(Generic[R]):
    """One change of a record, and what the record was after it.

    Attributes:
        seq: Number of the change.
        at: When it was made, by the clock of who made it.
        op: `put` (stored, or all that is known of what came before), `patch` (changed), `delete` (forgotten)
            or `move` (put into the archive, or taken from there).
        record: The record after it; None when it was forgotten, or when it broke the data model.
    """

    seq: int
    at: datetime
    op: str
    record: R | None
