"""Callers of the service: sessions and the memories they may name.

A session that is bound to a group sees the records of its group and those of none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from agent_memory.errors import UnknownIdError
from agent_memory.memory.proposals import ProposalBook
from agent_memory.models import is_memory_id, sees
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.memory.results import Updated
    from agent_memory.models import Memory, Trust
    from agent_memory.store.memory_storage import MemoryStorage

Emit = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends an event's name and payload to the listeners; must not raise."""
OnEvent = Callable[[str, "Mapping[str, Any]", "Memory | None"], None]
"""Takes an event's name and payload, and the memory it is about as it is now; must not raise."""
Report = Callable[..., Awaitable[None]]
"""`Monitor.report`: takes an event's name, the caller and the fields."""


async def drop_event(event: str, data: dict[str, Any]) -> None:
    """Ignore an event: for use without a host."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The session that a call comes from, and that gets its events.

    Several sessions may share one service.

    Attributes:
        session_id: ID of the session.
        emit: Sends events to the session.
        trust: Trust of the words in the call: a person's or a program's (high), a model's (medium), or those of a model
            with untrusted text in its conversation (low).
        prompt: Text that the user typed in this turn. Parts of it have medium trust in a call of low trust.
        proposals: Acts of this conversation that wait for the user's yes.
        group: Group of the session, `tenant:session`: it sees the records of that group and of none. An empty one sees
            the records of none, None sees all.
        told: Group whose events are shown to a session that works on all groups, with those of none.
        project: Project of the session. New memories belong to it, and its memories come first in searches. Empty for
            none.
        is_tainted: True if the conversation has the result of an untrusted tool. A model forgets nothing above low
            trust then without the user's yes.
        prompt_before: Text that the user typed in the turn before, from which capture stored statements at its end.
        on_event: Takes each event before `emit` does, with its memory, which no payload holds; None takes none.
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
        """Group whose events are shown, with those of none; None for all."""
        return self.told if self.group is None else self.group

    def as_person(self) -> Caller:
        """Return the caller for a person's act, such as an edit."""
        return replace(self, trust="high")

    def of_no_group(self) -> Caller:
        """Return the caller for work on the records of all groups."""
        return replace(self, group=None, told=self.may_hear)


NOBODY = Caller()


class MemoryWrites(Protocol):
    """Changes of memories that other parts ask for; `MemoryService` has them."""

    async def store(self, values: Mapping[str, Any], caller: Caller) -> object:
        """Store a new memory."""

    async def update(
        self, memory_id: str, changes: Mapping[str, Any], caller: Caller, *, may_have_expired: bool = False
    ) -> Updated:
        """Change fields of a memory."""

    async def evict(self, memory_id: str) -> None:
        """Remove a memory from the scratchpad."""

    async def report(self, event: str, caller: Caller, memory: Memory | None = None, /, **fields: Any) -> None:
        """Emit an event."""


def is_seen(memory: Memory, caller: Caller) -> bool:
    """Return True if a caller may see a memory."""
    return sees(caller.group, memory.facets)


async def check_seen(storage: MemoryStorage, caller: Caller, ids: Iterable[object], outcome: str = "") -> None:
    """Refuse a memory of another group, as if it did not exist.

    Args:
        storage: Storage of the memories.
        caller: Session that names them.
        ids: IDs to check; values that are no IDs of memories are ignored.
        outcome: End of the message, such as "; nothing was changed".

    Raises:
        UnknownIdError: One of them belongs to another group.
    """
    if caller.group is None:
        return
    for memory_id in ids:
        if not isinstance(memory_id, str) or not is_memory_id(memory_id):
            continue
        memory = await storage.get(memory_id)
        if memory is not None and not is_seen(memory, caller):
            raise UnknownIdError(f"There is no memory {quoted(memory_id)}{outcome}.")


async def check_referred(storage: MemoryStorage, caller: Caller, values: object, aim: str) -> None:
    """Refuse fields of a memory that name one of another group.

    Raises:
        UnknownIdError: `supersedes` or a link names one.
    """
    if caller.group is None or not isinstance(values, Mapping):
        return
    await check_seen(storage, caller, [values.get("supersedes")], f" to supersede; nothing was {aim}")
    links = values.get("links")
    ends = [_get_end(link) for link in links] if isinstance(links, list) else []
    await check_seen(storage, caller, ends, f" to link to; nothing was {aim}")


def _get_end(link: Any) -> object:
    return link.get("id") if isinstance(link, Mapping) else getattr(link, "id", None)
