"""Trust levels: high (a person) > medium (a model) > low (untrusted).

What is derived or changed has the lowest trust of its sources. A call of low trust changes, replaces, forgets or pins
nothing above low, unless the user agreed to that very act: a proposal with an id, or a command with the memory's id.
Words about something do not count. The one place that decides this, for every caller.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.errors import ValidationError
from agent_memory.models import ACCESS, IDENTITY, MEMORY, PLACE, Memory, is_memory_id, rests_on
from agent_memory.service.proposals import MAX_FORGOTTEN, is_commanded, proposal_id
from agent_memory.storage.changes import overlaid
from agent_memory.storage.cleaning import joined, redact_fields, with_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_memory.models import Trust
    from agent_memory.service.caller import Caller
    from agent_memory.storage.cleaning import Redacted
    from agent_memory.storage.protocols import Storage

_ORDER: Final[tuple[Trust, ...]] = ("low", "medium", "high")
Action = Literal["change", "forget", "pin"]

_DONE: Final[Mapping[Action, str]] = {"change": "changed", "forget": "forgotten", "pin": "brought into the scratchpad"}
_COMMANDS: Final = {"forget": "forget|delete|remove", "pin": "pin|promote", "replace": "replace|update|correct"}
"""Verbs that are a command with the id of a memory; a change of text is bound by no id, and needs a proposal."""
_MAX_NAMED: Final = 20
"""IDs of memories in one message."""
ASK: Final = (
    "Show the user exactly what would be done to {memory}, with the id {proposal}. Then repeat the same call in the "
    "turn in which they answer only yes, or with that id."
)

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
        agreed = caller.proposals.is_agreed(proposal_id("replace", new.supersedes, new.content))
        theirs: Trust = "medium" if agreed else await self._trust_of(new.content, caller)
        trust = lowest(new.trust, theirs, *await self._of_sources(new, caller))
        if caller.trust == "low":
            await self._check_replacing(new.supersedes, new.content, trust, caller)
        return memory if trust == new.trust else with_fields(memory, trust=trust)

    async def propose_replacing(self, memory: Memory, caller: Caller) -> str | None:
        """Return the id of a proposal if a model's memory may not replace what the user stated; None if it may.

        It may if its text quotes what the user typed in this turn, or if the user agreed. Otherwise both memories stay
        visible, and the proposal waits for a yes.

        Args:
            memory: New memory with `supersedes`.
            caller: Session that stores it.
        """
        if memory.supersedes is None or caller.trust != "medium":
            return None  # a call of low trust is refused in `admit`
        replaced = await self._storage.get(memory.supersedes)
        if replaced is None or not await self._needs_yes(replaced, memory.content, caller):
            return None
        return caller.proposals.add(proposal_id("replace", replaced.id, memory.content), caller.session_id)

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
        replaced = values.get("supersedes")
        if "low" in {caller.trust, before.trust}:
            await self._check_replacing(replaced, before.content, before.trust, caller)
        if caller.trust == "medium":
            await self._check_stated(before, values, caller)
        if values.keys() == {"pinned"}:
            await self.check("pin", [before], caller)
        elif replaced is None or values.keys() != {"supersedes"}:
            wording = [(name, str(value)) for name, value in sorted(values.items())]
            await self.check("change", [before], caller, proposal_id("change", before.id, wording))
        after = overlaid(before, {key: value for key, value in values.items() if key in Memory.model_fields})
        statement = values.keys() - PLACE - {"supersedes"}
        words = {key for key in statement if getattr(after, key, None) != getattr(before, key, None)}
        if not words:
            return changes
        content = values.get("content")
        theirs = await self._trust_of(content, caller) if content and words == {"content"} else caller.trust
        lowered = lowest(before.trust, theirs, *await self._of_sources(after, caller))
        whose: dict[str, Any] = {"trust": lowered}
        if "content" in words:  # else the words are still of who said them
            whose["source"] = {"kind": "assistant", "detail": "memory_update"}
        return joined(changes, redact_fields(MEMORY, whose))

    async def check_all(
        self, action: Action, memory_ids: Iterable[str], caller: Caller, proposal: str | None = None
    ) -> None:
        """Refuse like `check`; an unknown id is no reason to."""
        if caller.trust != "low":
            return
        memories = [await self._storage.get(memory_id) for memory_id in memory_ids]
        await self.check(action, [memory for memory in memories if memory is not None], caller, proposal)

    async def check(self, action: Action, memories: list[Memory], caller: Caller, proposal: str | None = None) -> None:
        """Refuse what a call of low trust may not do.

        Args:
            action: What is to be done.
            memories: The one that was named, and those that share its fate.
            caller: Session that asks for it.
            proposal: Id of the proposal of exactly this act; by default that of the action on the first memory.

        Raises:
            ValidationError: One of them has higher trust, and the user did not agree to this (`needs_user`).
        """
        if caller.trust != "low" or all(memory.trust == "low" for memory in memories):
            return
        if proposal is None:
            if action in _COMMANDS and await self._is_commanded(action, memories[0], caller):
                return
            proposal = proposal_id(action, memories[0].id)
        if caller.proposals.is_agreed(proposal):
            return
        named = next(memory for memory in memories if memory.trust != "low")
        raise ValidationError(
            f"{named.id} was not {_DONE[action]}: text of an untrusted source is in this conversation, and the user "
            "has not agreed to this.",
            code="needs_user",
            recovery=ASK.format(memory=named.id, proposal=caller.proposals.add(proposal, caller.session_id)),
        )

    async def check_forgetting(
        self, memories: Sequence[Memory], related: Sequence[Memory], caller: Caller, *, is_upkeep: bool = False
    ) -> None:
        """Refuse to forget what needs the user's yes, and count the rest.

        A model forgets up to three memories in a turn by itself, or those that the user names in a command each. In a
        tainted conversation only those of low trust. A version that was replaced in this conversation counts, too.

        Args:
            memories: All memories of one call.
            related: Older versions and items of talk that go with them.
            caller: Session that asks for it.
            is_upkeep: True if they go with their source: only low trust is refused.

        Raises:
            ValidationError: The user did not agree to forget these memories (`needs_user`).
        """
        if caller.trust == "high":
            return
        ids, related_ids = sorted(memory.id for memory in memories), [memory.id for memory in related]
        proposal = proposal_id("forget", *ids, *sorted(related_ids))
        if caller.proposals.is_agreed(proposal):
            return
        if await self._are_commanded(memories, caller) and caller.proposals.reserve_forgetting((), related_ids):
            return
        protected = next((memory.id for memory in (*memories, *related) if memory.trust != "low"), None)
        if protected is not None and caller.trust == "low":
            why = f"{protected} was not forgotten: text of an untrusted source is in this conversation."
        elif is_upkeep:
            return
        elif protected is not None and caller.is_tainted:
            why = f"{protected} was not forgotten: a result of another tool is in this conversation."
        elif caller.proposals.reserve_forgetting(ids, related_ids):
            return
        else:
            why = f"Nothing was forgotten: more than {MAX_FORGOTTEN} memories in one turn need the user's yes."
        what = ids[0] if len(ids) == 1 else f"these {len(ids)} memories"
        what += f" with {', '.join(related_ids[:_MAX_NAMED])}" if related else ""
        raise ValidationError(
            why,
            code="needs_user",
            recovery=ASK.format(memory=what, proposal=caller.proposals.add(proposal, caller.session_id)),
        )

    async def _are_commanded(self, memories: Sequence[Memory], caller: Caller) -> bool:
        return all([await self._is_commanded("forget", memory, caller) for memory in memories])

    async def reason(self, reason: str, caller: Caller) -> str:
        """Return why something is forgotten, as far as it may be kept: nothing of a stranger's, empty then.

        It is told to whoever stores the same text again, without being asked for.
        """
        return "" if reason and await self._trust_of(reason, caller) == "low" else reason

    async def _check_stated(self, before: Memory, values: Mapping[str, Any], caller: Caller) -> None:
        """Refuse a change that hides or rewords what the user stated, unless it quotes the user or they agreed."""
        content = values.get("content") or before.content
        target = await self._storage.get(str(values["supersedes"])) if values.get("supersedes") else None
        is_stated = before.source.kind == "user" and content == before.content
        if target is not None and not is_stated and await self._needs_yes(target, content, caller):
            raise _unquoted(target, proposal_id("replace", target.id, content), caller)
        if content != before.content and await self._is_restricted(before, content, caller):
            wording = [(name, str(value)) for name, value in sorted(values.items())]
            proposal = proposal_id("change", before.id, wording)
            if not caller.proposals.is_agreed(proposal):
                raise _unquoted(before, proposal, caller)

    @staticmethod
    async def _is_restricted(replaced: Memory, content: str, caller: Caller) -> bool:
        """Return True if the user stated a memory and the new text quotes nothing that they typed in this turn."""
        if replaced.source.kind != "user":
            return False
        from agent_memory.capture import quotes  # its patterns are for those who hear a user

        return not await asyncio.to_thread(quotes, caller.prompt, content, replaced.content)

    async def _check_replacing(self, replaced_id: object, content: str, trust: Trust, caller: Caller) -> None:
        """Refuse that untrusted text replaces what is above it."""
        replaced = await self._storage.get(replaced_id) if isinstance(replaced_id, str) else None
        if replaced is None or replaced.trust == "low":
            return
        if trust != "low" and await self._is_replacing_agreed(replaced, content, caller):
            return
        proposal = proposal_id("replace", replaced.id, content)
        ask = ASK.format(memory=replaced.id, proposal=caller.proposals.add(proposal, caller.session_id))
        raise ValidationError(
            f"Nothing was written: it would replace {replaced.id}, but text of an untrusted source is in it or in this "
            "conversation, and the user has not agreed to this.",
            code="needs_user",
            recovery=f"Leave out supersedes, or ask: {ask}",
        )

    async def _needs_yes(self, replaced: Memory, content: str, caller: Caller) -> bool:
        """Return True if a model's text may replace a memory only after the user's yes."""
        is_restricted = await self._is_restricted(replaced, content, caller)
        return is_restricted and not await self._is_replacing_agreed(replaced, content, caller)

    async def _is_replacing_agreed(self, replaced: Memory, content: str, caller: Caller) -> bool:
        """Return True if the user agreed that this text replaces a memory, or commanded it by the memory's ID."""
        proposal = proposal_id("replace", replaced.id, content)
        return caller.proposals.is_agreed(proposal) or await self._is_commanded("replace", replaced, caller)

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
    async def _is_commanded(action: str, memory: Memory, caller: Caller) -> bool:
        return await asyncio.to_thread(is_commanded, caller.prompt, _COMMANDS[action], memory.id)


def _unquoted(stated: Memory, proposal: str, caller: Caller) -> ValidationError:
    return ValidationError(
        f"{stated.id} was not replaced: the user stated it, and the new text quotes nothing that they typed in this "
        "turn.",
        code="needs_user",
        recovery=ASK.format(memory=stated.id, proposal=caller.proposals.add(proposal, caller.session_id)),
    )
