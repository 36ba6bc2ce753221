"""`Observation`: something seen in a conversation that may be worth a memory."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from agent_memory.models.clock import UtcDatetime
from agent_memory.models.memory import MAX_CONTENT_CHARS, Category
from agent_memory.models.record import Fraction, Source, Trust


class Observation(BaseModel):
    """A candidate: the sentence, its category, how sure the rule is (0..1), and where it was seen.

    `cue`: class of the user's explicit words (memory, standing, decision, identity, custom); without one it waits.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    content: str = Field(min_length=1, max_length=MAX_CONTENT_CHARS)
    category: Category
    confidence: Fraction
    source: Source = Source(kind="user")
    trust: Trust = "medium"
    tags: list[str] = Field(default_factory=list)
    rule: str = ""
    cue: str = ""
    expires_at: UtcDatetime | None = None
    session_id: str = ""
    observed_at: UtcDatetime | None = None
