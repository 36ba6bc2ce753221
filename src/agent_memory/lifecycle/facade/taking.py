"""`Taking`: interactions and contexts as turns and documents, by the one way in for these."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agent_memory.errors import ValidationError
from agent_memory.knowledge.intake.drafting import UNKNOWN, Document, Turn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.lifecycle.facade.entries import labels_of, metadata_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.lifecycle.facade.entries import MemoryEntry
    from agent_memory.models import Record
    from agent_memory.service import Caller
    from agent_memory.service.caller import Report

_ROLES: Final = frozenset({"user", "assistant", "tool", "system"})


class Taking:
    """Takes in what an agent hears and reads.

    Args:
        knowledge: Where it goes.
        report: Sends events.
        caller: Returns the session that asks.
    """

    def __init__(self, knowledge: Knowledge, report: Report, caller: Callable[[], Caller]) -> None:
        self._knowledge, self._caller = knowledge, caller
        self._ingest = Ingest(knowledge, report)
        self._placing = asyncio.Lock()
        self._next: dict[str, int] = {}

    async def document(self, entry: MemoryEntry) -> Record:
        """Take in a context; what is said of it besides is for the caller to add.

        Raises:
            ValidationError: It is too long, or nothing but a secret; nothing was stored.
            StorageError: Nothing was stored.
        """
        caller = self._caller()
        given = Document(entry.text, entry.summary, said_at=entry.timestamp)
        taken = await self._ingest.resource(
            given, group=caller.group or "", tags=labels_of(entry), metadata=metadata_of(entry), caller=caller
        )
        return taken.record

    async def turn(self, entry: MemoryEntry) -> Record:
        """Take in an interaction as the next turn of the conversation of its session; raises as `document`."""
        (taken,) = await self.turns([entry])
        if isinstance(taken, str):
            raise ValidationError("Nothing was stored of a turn that cannot be kept.", code=taken)
        return taken

    async def turns(self, entries: Sequence[MemoryEntry]) -> list[Record | str]:
        """Take in interactions of one session in as few changes as they fit in.

        Returns:
            For each its record, or the code of why it cannot be kept.

        Raises:
            StorageError: Some may be on the disk.
        """
        caller = self._caller()
        caller = replace(caller, session_id=entries[0].session_id or caller.session_id)
        group, said = caller.group or "", [_turn_of(entry) for entry in entries]
        key = caller.session_id or self._knowledge.agent_id
        begun = await self._ingest.conversation(key, group=group, caller=caller)
        conversation = begun.record.id
        async with self._placing:
            first = await self._place(conversation, len(said))
            kept, refused = await self._ingest.turns(
                said, conversation=conversation, first=first, group=group, is_live=True, caller=caller
            )
        why, records = dict(refused), iter([each.record for each in kept])
        return [why[first + at] if first + at in why else next(records) for at in range(len(said))]

    async def _place(self, conversation: str, count: int) -> int:
        """Return the place of the first of some turns in their conversation: behind the others."""
        if conversation not in self._next:
            known = await self._knowledge.episodes.linked_to(conversation)
            self._next[conversation] = 1 + max((each.order for each in known), default=-1)
        order = self._next[conversation]
        self._next[conversation] = order + count
        return order


def _read_role(entry: MemoryEntry) -> str:
    """Return the role that an entry states, else one from its source."""
    role = entry.content.get("role")
    if role is not None:
        return role if role in _ROLES else UNKNOWN
    return "user" if entry.source.startswith("user") else "assistant"


def _turn_of(entry: MemoryEntry) -> Turn:
    speaker = entry.content.get("speaker")
    return Turn(
        entry.text,
        _read_role(entry),
        speaker if isinstance(speaker, str) else "",
        entry.timestamp,
        metadata=metadata_of(entry),
        tags=tuple(labels_of(entry)),
    )
