"""Candidates: memories that wait in the inbox for a person's yes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from agent_memory.models.clock import UtcDatetime
from agent_memory.models.identifiers import new_id
from agent_memory.models.kind import Kind
from agent_memory.models.memory import Memory, MemoryId
from agent_memory.models.record import IdOf

if TYPE_CHECKING:
    from datetime import datetime, timedelta

CandidateId = Annotated[str, IdOf("cnd")]


class Candidate(Memory):
    """Memory that waits for a yes; no search finds it and no model sees it.

    Attributes:
        via: Source of the candidate: capture, or the model by a tool.
        rule: Rule of capture that found it.
        replaces: Memory that it would supersede.
        is_note: True for a waiting note, captured without a cue; False if the mode `ask` requires a yes.
        waits_since: Moment of a restore, from which its waiting time is counted.
    """

    id: CandidateId = Field(default_factory=lambda: new_id("cnd-"))
    supersedes: CandidateId | None = None
    via: Literal["capture", "tool"] = "capture"
    rule: str = Field(default="", max_length=100)
    replaces: MemoryId | None = None
    is_note: bool = False
    waits_since: UtcDatetime | None = None

    @classmethod
    def of(cls, memory: Memory, **fields: object) -> Candidate:
        """Return a memory as a candidate with a new ID."""
        values = memory.model_dump(exclude={"id", "supersedes"})
        return cls.model_validate({**values, "replaces": memory.supersedes, **fields})

    def wanted(self) -> dict[str, Any]:
        """Return the fields of the memory to be, without ID and time of storing."""
        excluded = {*_INBOX_FIELDS, "id", "agent_id", "timestamp", "supersedes"}
        values = self.model_dump(exclude=excluded, exclude_defaults=True)
        if self.observed_at is None:
            values["observed_at"] = self.timestamp
        return values | ({} if self.replaces is None else {"supersedes": self.replaces})

    def is_over(self, now: datetime, waiting_time: timedelta) -> bool:
        """Return True if its text expired, or it waited too long for a yes."""
        return self.is_expired(now) or (not self.is_note and self._has_waited(now, waiting_time))

    def is_archived(self, now: datetime, waiting_time: timedelta) -> bool:
        """Return True for a note that waited its full time."""
        return self.is_note and self._has_waited(now, waiting_time)

    def _has_waited(self, now: datetime, waiting_time: timedelta) -> bool:
        return (self.waits_since or self.timestamp) + waiting_time <= now


_INBOX_FIELDS: Final = set(Candidate.model_fields) - set(Memory.model_fields)

CANDIDATE: Final = Kind(
    name="candidate", model=Candidate, prefix="cnd-", journal="inbox.yaml", text="content", read_ahead=False
)
