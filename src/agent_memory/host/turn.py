"""What happened in the turn under way: the user's words, what was stored and shown, whether untrusted text came in."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.models import Memory

_REMEMBERED_TEXTS = 500


@dataclass(slots=True)
class Turn:
    """The turn under way in one session.

    Attributes:
        prompt: The user's own words; empty in a child session, whose prompt is another agent's instruction.
        stored: Contents the model stored by tool in this turn.
        returned: Contents our tools returned in this session, the newest last.
        low_trust: Whether output of an untrusted tool came in during this turn.
    """

    prompt: str = ""
    stored: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    low_trust: bool = False

    def begin(self, prompt: str) -> None:
        """Start a new turn."""
        self.prompt = prompt
        self.stored = []
        self.low_trust = False

    def note_tool(self, tool_name: str, untrusted: Iterable[str]) -> None:
        """Note that a tool has answered; `untrusted` are patterns of tool names whose words are strangers'."""
        if any(fnmatchcase(tool_name.lower(), pattern.lower()) for pattern in untrusted):
            self.low_trust = True

    def note_returned(self, memories: Iterable[Memory]) -> None:
        """Note what the model was shown from memory, so that capture does not take it for news."""
        self.returned = [*self.returned, *(memory.content for memory in memories)][-_REMEMBERED_TEXTS:]


def text_of(data: Any, key: str) -> str:
    """Return a text field of an event's payload; anything else counts as empty."""
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, str) else ""
