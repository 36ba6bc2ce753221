"""`Passage` and `Claim`: what is read, and what it states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.models import Trust


@dataclass(frozen=True, slots=True)
class Passage:
    """A turn of a talk or a whole document; `speaker` is empty where nobody says it."""

    id: str
    text: str
    speaker: str = ""
    role: str = "user"
    said_at: datetime | None = None
    trust: Trust = "medium"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a passage states.

    Attributes:
        text: It stands by itself: the quote as one line, and what it answers or which heading it stands under.
        start, end: Of the quote: `Passage.text[start:end]`.
        rule: Which rule drew it.
        category: As memories have it.
        speaker: Who said it, if anybody did.
    """

    text: str
    start: int
    end: int
    rule: str
    category: str = "note"
    speaker: str = ""
