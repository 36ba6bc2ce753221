"""Who calls the service: a session, how it receives events, and whose words it brings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from agent_memory.memory.proposals import ProposalBook

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.memory.results import Updated
    from agent_memory.models import Memory, Trust

Emit = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Takes an event's name and payload to the listeners; must not raise."""
OnEvent = Callable[[str, "Mapping[str, Any]", "Memory | None"], None]
"""Takes an event's name and payload, and the memory it is about as it is now; must not raise."""
Report = Callable[..., Awaitable[None]]
"""`MemoryService.report`: takes an event's name, the caller and the fields; returns once it is emitted."""


async def drop_event(event: str, data: dict[str, Any]) -> None:
    """Do nothing: for use without a host."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The session that a call comes from, and that gets its events.

    Several sessions may share one service.

    Attributes:
        session_id: ID of the session.
        emit: Sends events to the session.
        trust: Whose words the call brings: a person's or a program's (high), a model's (medium), or those of a model
            that has untrusted text in its conversation (low).
        prompt: What the user typed in the turn of the call: what a call of low trust stores of it is theirs.
        proposals: Acts that wait for the user's yes, in the conversation of the call.
        group: The group that the session is bound to, `tenant:session`: it sees what belongs to that or to none. An
            empty one sees what belongs to none, None sees all.
        told: Group of a session that works on the records of all groups: it sees all, but its events show the session
            only what this group may see.
        project: The project that the session works on: what it stores belongs to that, and what it asks for is looked
            for there first. Empty for none.
        is_tainted: True if the conversation holds a result of a tool that is not ours; such a call of a model forgets
            nothing above low trust without the user's yes.
        on_event: Takes each event before `emit` does, with its memory, which no payload holds; None takes none.
        prompt_before: What the user typed in the turn before; capture stored its statements at the end of that turn.
    """

    session_id: str = ""
    emit: Emit = drop_event
    trust: Trust = "high"
    prompt: str = ""
    proposals: ProposalBook = field(default_factory=ProposalBook, compare=False, repr=False)
    group: str | None = None
    told: str | None = None
    project: str = ""
    is_tainted: bool = False
    prompt_before: str = ""
    on_event: OnEvent | None = None

    @property
    def may_hear(self) -> str | None:
        """The group of which events may tell the session, besides what belongs to none; None for all."""
        return self.told if self.group is None else self.group

    def as_person(self) -> Caller:
        """Return the caller for what a person did, such as an edit of a file, whichever session takes it over."""
        return replace(self, trust="high")

    def of_no_group(self) -> Caller:
        """Return the caller for work on what all groups gave, of which the session is told what is its own."""
        return replace(self, group=None, told=self.may_hear)


NOBODY = Caller()


class Writes(Protocol):
    """What a part of the service needs to change a memory by the one write path: the `MemoryService` itself."""

    async def store(self, values: Mapping[str, Any], caller: Caller) -> object:
        """Keep a new memory."""

    async def update(
        self, memory_id: str, changes: Mapping[str, Any], caller: Caller, *, may_have_expired: bool = False
    ) -> Updated:
        """Change fields of a memory."""

    async def evict(self, memory_id: str) -> None:
        """Take a memory out of the scratchpad."""

    async def report(self, event: str, caller: Caller, memory: Memory | None = None, /, **fields: Any) -> None:
        """Emit an event."""
