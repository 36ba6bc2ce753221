"""Protocol of a host's session, as the tools use it.

`MemorySession` is such a session for Amplifier. Another host gives the tools an object of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from agent_memory.memory import Caller, MemoryService
    from agent_memory.memory.caller import ProposalBook
    from agent_memory.memory.consent import ConsentState
    from agent_memory.models import Memory


class AgentIdentity(Protocol):
    """Agent of a session and its consent."""

    @property
    def consent(self) -> ConsentState:
        """Rules for what may be stored."""


class ActivatedAgent(Protocol):
    """Agent that a session was switched to."""

    @property
    def agent_id(self) -> str:
        """Name of the agent now."""

    @property
    def previous(self) -> str | None:
        """Name of the agent before, or None."""

    @property
    def is_new(self) -> bool:
        """True if the agent has no folder yet."""

    @property
    def known(self) -> Sequence[str]:
        """Names of the existing agents."""


class UserTurn(Protocol):
    """One turn of a conversation.

    Attributes:
        prompt: Words that the user typed; empty without a user.
        is_heard: True if the host reports prompts at all.
        stored: Contents that tools stored in this turn; tools append to it.
    """

    prompt: str
    is_heard: bool
    stored: list[str]


class UserConversation(Protocol):
    """Conversation of a session, or of the session that delegated to it."""

    @property
    def of_user(self) -> UserTurn:
        """Turn in which the user speaks."""


class StopRequest(Protocol):
    """Request of the user to store nothing."""

    @property
    def is_stopped(self) -> bool:
        """True after the request."""


class UntrustedText(Protocol):
    """Untrusted text in a conversation.

    Attributes:
        by: Name of the tool that brought it, or None.
    """

    by: str | None

    def note(self, by: str, *, is_of_project: bool = False) -> None:
        """Note that untrusted text came in; `is_of_project`: output of the project alone."""


class HostSession(Protocol):
    """One session of a host, as the tools use it."""

    session_id: str
    warnings: list[str]
    counters: dict[str, Callable[[], dict[str, Any]]]

    @property
    def caller(self) -> Caller:
        """Caller of the service in this turn."""

    @property
    def turn(self) -> UserTurn:
        """Turn of this session."""

    @property
    def conversation(self) -> UserConversation:
        """Conversation with the user."""

    @property
    def consent(self) -> StopRequest:
        """Request of the user to store nothing."""

    @property
    def taint(self) -> UntrustedText:
        """Untrusted text in the conversation."""

    @property
    def proposals(self) -> ProposalBook:
        """Acts that wait for the user's yes."""

    @property
    def note_returned(self) -> Callable[[Iterable[Memory]], None]:
        """Notes memories that the model was shown."""

    @property
    def project(self) -> Callable[[], str]:
        """Returns the name of the current project, or an empty text."""

    @property
    def group(self) -> Callable[[], str]:
        """Returns the group of the session; raises ValidationError if it is unknown."""

    async def require(self) -> MemoryService:
        """Return the memory of the agent; raises AgentMemoryError while it is off."""

    async def activate(self, agent_id: str) -> ActivatedAgent:
        """Switch to the memory of another agent."""

    @property
    def current_identity(self) -> AgentIdentity:
        """Agent and its consent, as last checked."""

    def identity(self) -> AgentIdentity:
        """Check the sources of consent; return the agent and its consent."""

    def folder(self) -> str:
        """Return the folder of the memories."""
