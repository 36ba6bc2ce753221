"""`Briefing`: result of a briefing, without the code that builds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_memory.models import Episode, Memory


@dataclass(frozen=True, slots=True)
class Briefing:
    """Text for a model, with its sources.

    Attributes:
        text: Text in a fence; empty for none.
        tokens: Estimated tokens, at least the real number.
        memories: Memories in the text; it is void once one of them is forgotten.
        turns: Turns of conversations in the text; as for memories.
    """

    text: str = ""
    tokens: int = 0
    memories: tuple[Memory, ...] = ()
    turns: tuple[Episode, ...] = ()
