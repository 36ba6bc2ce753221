"""`Candidate`: what would be remembered, and waits in the inbox for a person's yes. Plain value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

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
    """

    id: CandidateId = Field(default_factory=lambda: new_id("cnd-"))
    supersedes: CandidateId | None = None
    via: Literal["capture", "tool"] = "capture"
    rule: str = Field(default="", max_length=100)
    replaces: MemoryId | None = None

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
        """Tell whether it has waited for as long as candidates are kept, or what it says has expired."""
        return self.timestamp + kept <= now or self.is_expired(now)


_OWN: Final = set(Candidate.model_fields) - set(Memory.model_fields)

CANDIDATE: Final = Kind(
    name="candidate", model=Candidate, prefix="cnd-", journal="inbox.yaml", text="content", read_ahead=False
)
