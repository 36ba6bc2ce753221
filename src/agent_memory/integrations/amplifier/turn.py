"""What happened in the turn under way: the user's words, what was stored and shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.models import Memory

_REMEMBERED_TEXTS = 500


@dataclass(slots=True)
class TurnState:
    """The turn under way in one session.

    Attributes:
        prompt: What the user typed; empty in a child session, whose prompt is another agent's instruction.
        prompt_before: Prompt of the turn before.
        stored: Contents the model stored by tool in this turn, but for those of low trust: they replace no candidate.
        returned: Contents our tools returned in this session, the newest last.
        is_heard: Whether a prompt came at all; a session without one has no user to ask.
    """

    prompt: str = ""
    prompt_before: str = ""
    stored: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    is_heard: bool = False

    def begin(self, prompt: str) -> None:
        """Start a new turn."""
        self.prompt_before, self.prompt = self.prompt, prompt
        self.stored = []
        self.is_heard = True

    def note_returned(self, memories: Iterable[Memory]) -> None:
        """Note what the model was shown from memory, so that capture does not take it for news."""
        self.returned = [*self.returned, *(memory.content for memory in memories)][-_REMEMBERED_TEXTS:]


def text_of(data: Any, key: str) -> str:
    """Return a text field of an event's payload; anything else counts as empty."""
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, str) else ""
