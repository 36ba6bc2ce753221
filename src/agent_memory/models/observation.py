"""`Observation`: something seen in a conversation that may be worth a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from agent_memory.models.memory import MAX_CONTENT_CHARS, Category, Memory
from agent_memory.models.record import Fraction, Source, Trust
from agent_memory.models.times import UtcDatetime

if TYPE_CHECKING:
    from datetime import datetime


class Observation(BaseModel):
    """A candidate: the sentence, its category, how sure the rule is (0..1), and where it was seen."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    content: str = Field(min_length=1, max_length=MAX_CONTENT_CHARS)
    category: Category
    confidence: Fraction
    source: Source = Source(kind="user")
    trust: Trust = "medium"
    tags: list[str] = Field(default_factory=list)
    rule: str = ""
    session_id: str = ""
    observed_at: UtcDatetime | None = None

    def to_memory(self, agent_id: str, *, timestamp: datetime | None = None) -> Memory:
        """Return the memory this observation would become for `agent_id`; for programs, capture itself does not ask.

        Raises:
            ValidationError: The agent id or the text breaks the data model.
        """
        stored_at: dict[str, Any] = {"timestamp": timestamp} if timestamp else {}
        seen = self.model_dump(exclude={"rule", "session_id"})
        return Memory(agent_id=agent_id, created_by_session=self.session_id, **seen, **stored_at)
