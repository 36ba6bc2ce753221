"""`Candidate`: what would be remembered, and waits in the inbox for a person's yes. Plain value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from agent_memory.models.clock import UtcDatetime  # noqa: TC001 - pydantic resolves it
from agent_memory.models.identifiers import new_id
from agent_memory.models.kind import Kind
from agent_memory.models.memory import Memory, MemoryId
from agent_memory.models.record import IdOf

if TYPE_CHECKING:
    from datetime import datetime, timedelta

CandidateId = Annotated[str, IdOf("cnd")]


class Candidate(Memory):
    """A memory to be, with all fields that it would have; found by no search and shown to no model.

    Attributes:
        via: What would have kept it: capture, or the model by a tool.
        rule: The rule by which capture found it.
        replaces: The memory that it would supersede.
        is_note: Waiting note: capture kept it without a cue. Else the mode `ask` has it wait for a yes.
        waits_since: Time of a restore; its time of waiting begins again then.
    """

    id: CandidateId = Field(default_factory=lambda: new_id("cnd-"))
    supersedes: CandidateId | None = None
    via: Literal["capture", "tool"] = "capture"
    rule: str = Field(default="", max_length=100)
    replaces: MemoryId | None = None
    is_note: bool = False
    waits_since: UtcDatetime | None = None

    @classmethod
    def of(cls, memory: Memory, **said: object) -> Candidate:
        """Return a memory as the inbox keeps it, under an id of its own, with what is said of that."""
        own = memory.model_dump(exclude={"id", "supersedes"})
        return cls.model_validate({**own, "replaces": memory.supersedes, **said})

    def wanted(self) -> dict[str, Any]:
        """Return the fields of the memory that it is to become, without its id and the time of storing."""
        values = self.model_dump(exclude={*_OWN, "id", "agent_id", "timestamp", "supersedes"}, exclude_defaults=True)
        if self.observed_at is None:
            values["observed_at"] = self.timestamp
        return values | ({} if self.replaces is None else {"supersedes": self.replaces})

    def is_over(self, now: datetime, kept: timedelta) -> bool:
        """Return True if its text has expired, or it waited too long and is no note."""
        return self.is_expired(now) or (not self.is_note and self._has_waited(now, kept))

    def is_archived(self, now: datetime, kept: timedelta) -> bool:
        """Return True if it is a note that waited for as long as notes wait."""
        return self.is_note and self._has_waited(now, kept)

    def _has_waited(self, now: datetime, kept: timedelta) -> bool:
        return (self.waits_since or self.timestamp) + kept <= now


_OWN: Final = set(Candidate.model_fields) - set(Memory.model_fields)

CANDIDATE: Final = Kind(
    name="candidate", model=Candidate, prefix="cnd-", journal="inbox.yaml", text="content", read_ahead=False
)
