"""`Briefing`: what a session is told before its first answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_memory.models import Episode, Memory


@dataclass(frozen=True, slots=True)
class Briefing:
    """What is put before the model.

    Attributes:
        text: Empty where there is nothing to tell.
        tokens: An estimate that overshoots.
        memories, turns: What is shown, in part or whole: once one of them was forgotten, the text is void.
    """

    text: str = ""
    tokens: int = 0
    memories: tuple[Memory, ...] = ()
    turns: tuple[Episode, ...] = ()
