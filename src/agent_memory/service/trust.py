"""Whose words count for what: the levels high (a person's) > medium (a model's) > low (a stranger's).

What is derived or changed has the lowest trust of its sources. A call of low trust changes, replaces, forgets or pins
nothing above low, unless the user's own words of the turn order it. The one place that decides this, for every caller.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.models import ACCESS, IDENTITY, MEMORY, PLACE, Memory, is_memory_id, rests_on
from agent_memory.storage.changes import overlaid
from agent_memory.storage.cleaning import joined, redact_fields, with_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_memory.capture import Action
    from agent_memory.models import Trust
    from agent_memory.service.caller import Caller
    from agent_memory.storage.cleaning import Redacted
    from agent_memory.storage.protocols import Storage

_ORDER: Final[tuple[Trust, ...]] = ("low", "medium", "high")
_DONE: Final[Mapping[Action, str]] = {"change": "changed", "forget": "forgotten", "pin": "brought into the scratchpad"}
_SAY: Final[Mapping[Action, str]] = {"change": "correct", "forget": "forget", "pin": "pin"}

SAID: Final = tuple(name for name in Memory.model_fields if name not in {*IDENTITY, *ACCESS, "content"})
"""What a statement brings along, in the model's order; the rest is the memory's own history."""


def statement_of(memory: Memory) -> dict[str, Any]:
    """Return what makes a memory its author's, to put in place of what a stranger gave one with the same text."""
    return {name: getattr(memory, name) for name in SAID}


def lowest(*trusts: Trust) -> Trust:
    """Return the lowest of some trusts."""
    return min(trusts, key=_ORDER.index)


class TrustGate:
    """Decides what trust a write has, and whether it may touch what is there."""

    def __init__(self, storage: Storage[Memory]) -> None:
        self._storage = storage

    async def admit(self, memory: Redacted[Memory], caller: Caller) -> Redacted[Memory]:
        """Return a new memory with the trust it may have.

        Raises:
            ValidationError: It would replace a memory of higher trust, and the user did not order that (`needs_user`).
        """
        new = memory.value
        trust = lowest(new.trust, await self._trust_of(new.content, caller), *await self._of_sources(new, caller))
        if new.supersedes is not None and caller.trust == "low":
            replaced = await self._storage.get(new.supersedes)
            if replaced is not None and replaced.trust != "low":
                await self._check_replacing(replaced, trust, caller)
        return memory if trust == new.trust else with_fields(memory, trust=trust)

    async def change(
        self, before: Memory, changes: Redacted[dict[str, Any]], caller: Caller
    ) -> Redacted[dict[str, Any]]:
        """Return what an update is to change: where the words are new, trust and source, too.

        Raises:
            ValidationError: A value is wrong; or the memory has higher trust, and the user did not order this
                (`needs_user`).
        """
        if caller.trust == "high":
            return changes
        values = changes.value
        await self.check("pin" if values.keys() == {"pinned"} else "change", [before], caller)
        after = overlaid(before, {key: value for key, value in values.items() if key in Memory.model_fields})
        words = {key for key in values.keys() - PLACE if getattr(after, key, None) != getattr(before, key, None)}
        if not words:
            return changes
        content = values.get("content")
        theirs = await self._trust_of(content, caller) if content and words == {"content"} else caller.trust
        lowered = lowest(before.trust, theirs, *await self._of_sources(after, caller))
        whose = {"trust": lowered, "source": {"kind": "assistant", "detail": "memory_update"}}
        return joined(changes, redact_fields(MEMORY, whose))

    async def check_all(self, action: Action, memory_ids: Iterable[str], caller: Caller) -> None:
        """Refuse like `check`; an unknown id is no reason to."""
        found = [await self._storage.get(each) for each in memory_ids]
        await self.check(action, [memory for memory in found if memory is not None], caller)

    async def check(self, action: Action, memories: list[Memory], caller: Caller) -> None:
        """Refuse what a call of low trust may not do.

        Args:
            action: What is to be done.
            memories: The one that was named, and those that share its fate.
            caller: Who wants it.

        Raises:
            ValidationError: One of them has higher trust, and the user did not order this (`needs_user`).
        """
        if caller.trust != "low" or all(memory.trust == "low" for memory in memories):
            return
        for memory in memories:
            if await self._is_ordered(action, memory, caller):
                return
        named = next(memory for memory in memories if memory.trust != "low")
        raise ValidationError(
            f"{named.id} was not {_DONE[action]}: text of a stranger is in this conversation, and the user has not "
            "asked for it in this turn.",
            code="needs_user",
            recovery=f"Ask the user; it is done in a turn in which they say, for instance: {_SAY[action]} {named.id}.",
        )

    async def reason(self, reason: str, caller: Caller) -> str:
        """Return why something is forgotten, as far as it may be kept: nothing of a stranger's, empty then.

        It is told to whoever stores the same text again, without being asked for.
        """
        return "" if reason and await self._trust_of(reason, caller) == "low" else reason

    async def _check_replacing(self, replaced: Memory, trust: Trust, caller: Caller) -> None:
        ordered = await self._is_ordered("change", replaced, caller)
        if trust != "low" and (ordered or await self._is_ordered("forget", replaced, caller)):
            return
        raise ValidationError(
            f"Nothing was stored: it would replace {replaced.id}, but text of a stranger is in this conversation, and "
            "the user has not said the new fact and that it replaces the old one in this turn.",
            code="needs_user",
            recovery=f"Store it without supersedes, or ask the user to say: replace {replaced.id}, and by what.",
        )

    async def _of_sources(self, memory: Memory, caller: Caller) -> list[Trust]:
        """Return the trust of each memory that one is derived from; a person may trust more than these."""
        ends = [link.id for link in memory.links if rests_on(link.rel) and is_memory_id(link.id)]
        found = [await self._storage.get(one) for one in ends] if caller.trust != "high" else []
        return [source.trust for source in found if source is not None]

    @staticmethod
    async def _trust_of(content: str, caller: Caller) -> Trust:
        """Return the trust that a text has by its caller; what the user said in this turn is no stranger's."""
        if caller.trust != "low" or not caller.prompt:
            return caller.trust
        from agent_memory.capture import says  # its patterns are for those who hear a user

        return "medium" if await asyncio.to_thread(says, caller.prompt, content) else "low"

    @staticmethod
    async def _is_ordered(action: Action, memory: Memory, caller: Caller) -> bool:
        if not caller.prompt:
            return False
        from agent_memory.capture import orders  # its patterns are for those who hear a user

        texts = (memory.content, *memory.tags, memory.category)
        was_shown = memory.id in caller.shown
        return await asyncio.to_thread(orders, action, caller.prompt, memory.id, texts, was_shown=was_shown)
