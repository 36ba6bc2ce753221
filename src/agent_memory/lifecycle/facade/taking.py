"""`Taking`: interactions and contexts as turns and documents, by the one way in for these."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_memory.knowledge.intake.drafting import Document, Turn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.lifecycle.facade.entries import labels_of, metadata_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.lifecycle.facade.entries import MemoryEntry
    from agent_memory.models import Record
    from agent_memory.service import Caller
    from agent_memory.service.caller import Report


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
        caller = self._caller()
        caller = replace(caller, session_id=entry.session_id or caller.session_id)
        group = caller.group or ""
        speaker = entry.content.get("speaker")
        role = entry.content.get("role") or (
            "user" if entry.source.startswith("user") or not entry.source else "assistant"
        )
        said = Turn(
            entry.text,
            role if role in {"user", "assistant", "tool", "system"} else "user",
            speaker if isinstance(speaker, str) else "",
            entry.timestamp,
            metadata=metadata_of(entry),
        )
        key = caller.session_id or self._knowledge.agent_id
        begun = await self._ingest.conversation(key, group=group, caller=caller)
        conversation = begun.record.id
        async with self._placing:
            order = await self._place(conversation)
            taken = await self._ingest.turn(
                said,
                conversation=conversation,
                order=order,
                group=group,
                tags=labels_of(entry),
                is_live=True,
                caller=caller,
            )
        return taken.record

    async def _place(self, conversation: str) -> int:
        """Return the place of a turn in its conversation: behind the others, as the last call left them."""
        if conversation not in self._next:
            known = await self._knowledge.episodes.linked_to(conversation)
            self._next[conversation] = 1 + max((each.order for each in known), default=-1)
        order = self._next[conversation]
        self._next[conversation] = order + 1
        return order
