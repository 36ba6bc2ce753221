"""Trust levels: high (confirmed), medium (typed, or a model's), low.

What is derived or reworded has the lowest trust of its sources. The one place that decides what a caller may do to a
memory; `TrustGate` has the table.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from pydantic_core import to_jsonable_python

from agent_memory.errors import ValidationError
from agent_memory.memory.caller import (
    MAX_FORGOTTEN,
    MAX_PINNED,
    ProposedAct,
    carrying_out,
    get_agreed,
    is_commanded,
    note_agreed,
    proposal_id,
)
from agent_memory.memory.similarity import is_near
from agent_memory.models import (
    ACCESS,
    IDENTITY,
    MAX_CONTENT_CHARS,
    MEMORY,
    PLACE,
    TRUST_ORDER,
    Memory,
    is_memory_id,
    is_stated,
    rests_on,
)
from agent_memory.store.changes import overlay_fields
from agent_memory.store.record_redaction import Redacted, join_fields, redact_fields, with_fields

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from agent_memory.memory.caller import Caller
    from agent_memory.memory.monitor import Monitor
    from agent_memory.models import Trust
    from agent_memory.store.memory_storage import MemoryStorage

Action = Literal["change", "forget", "pin"]
_ActName = Literal["change", "expire", "forget", "pin", "replace", "reword", "unpin"]

_DONE: Final[Mapping[_ActName, str]] = {
    "change": "changed",
    "expire": "changed",
    "forget": "forgotten",
    "pin": "brought into the scratchpad",
    "replace": "replaced",
    "reword": "changed",
    "unpin": "unpinned",
}
_COMMANDS: Final[Mapping[_ActName, str]] = {
    "forget": "forget|delete|remove",
    "pin": "pin|promote",
    "replace": "replace|update|correct",
    "unpin": "unpin",
}
"""Verbs that are a command with the ID of a memory; a change of text needs a proposal."""
_COUNT_CHARS: Final = 20
_MAX_NAMED: Final = 20
"""IDs of memories in one message."""
_REDUCING: Final = frozenset({"expire", "replace", "reword", "unpin"})
"""Acts that take something from what the user stated."""
ASK: Final = (
    "Show the user exactly what would be done to {memory}, with the id {proposal}. Then repeat the same call in the "
    "turn in which they answer only yes, or with that id."
)
_WAITS: Final = " It also waits in `agent-memory review`."

SAID: Final = tuple(name for name in Memory.model_fields if name not in {*IDENTITY, *ACCESS, "content"})
"""Fields of a statement, in the model's order; the others are the memory's own history."""


def get_statement(memory: Memory) -> dict[str, Any]:
    """Return the fields for an untrusted memory with the same text."""
    return {name: getattr(memory, name) for name in SAID}


def lowest(*trusts: Trust) -> Trust:
    """Return the lowest of several levels of trust."""
    return min(trusts, key=TRUST_ORDER.index)


@dataclass(frozen=True, slots=True)
class _MemoryAct:
    """Act of a call on a memory.

    Attributes:
        name: Kind of the act.
        memory: Memory as it is now.
        proposal: Id of the proposal of exactly this call.
        text: Text that takes the place of the memory's; empty for none.
        prompts: Messages of the user that the text may quote.
        changed_id: Memory that an update changes; empty for a store.
        values: Fields that the call stores or changes.
    """

    name: _ActName
    memory: Memory
    proposal: str
    text: str = ""
    prompts: tuple[str, ...] = ()
    changed_id: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    def as_proposed(self) -> ProposedAct:
        """Return the whole call as an act that can wait."""
        values, text = to_jsonable_python(dict(self.values)), self.text or self.memory.content
        if not self.changed_id:
            return ProposedAct(self.proposal, "store", text, values=values)
        return ProposedAct(self.proposal, "update", text, (self.changed_id,), values)


class _MadeProposal(NamedTuple):
    """Proposal that was made to the user.

    Attributes:
        id: ID that an answer names.
        is_held: True if it also waits in the inbox.
    """

    id: str
    is_held: bool

    def ask(self, what: str) -> str:
        """Return the advice to the model, for a refusal."""
        return ASK.format(memory=what, proposal=self.id) + (_WAITS if self.is_held else "")


class TrustGate:
    """Decides what trust a write has, and what it may change.

    What the call of a person or a program may do is not limited here. Others need, for a memory above low trust:

    | act | call of a model | call after untrusted text |
    |---|---|---|
    | replace or reword what the user stated | a quote of their typed words, or their yes | their yes |
    | shorten its life, unpin it | their yes | their yes |
    | replace, reword or change any other memory | nothing | their yes |
    | pin | nothing up to ten in a turn, else their yes | their yes |
    | forget | nothing up to three in a turn, if untainted; else their yes | their yes |
    | repeat a text of low trust, to raise it | the user's word | the user's word |

    A client by MCP forgets nothing of high trust without a yes, and after untrusted text nothing above low trust.

    The user stated what they said themselves, and all that has high trust (`is_stated`). Their yes answers a proposal,
    or is a command with the memory's id. A text of low trust replaces nothing above it.
    """

    def __init__(self, storage: MemoryStorage, monitor: Monitor) -> None:
        self._storage, self._monitor = storage, monitor

    async def admit(self, memory: Redacted[Memory], caller: Caller) -> Redacted[Memory]:
        """Return a new memory with the trust it may have.

        Raises:
            ValidationError: It would replace a memory of higher trust, and the user did not order that (`needs_user`).
        """
        new = memory.value
        act = await self._find_storing(new) if caller.trust == "low" else None
        agreed = act is not None and self._is_agreed(act.proposal, caller)
        theirs: Trust = "medium" if agreed else await self._get_trust(new.content, caller)
        trust = lowest(new.trust, theirs, *await self._list_source_trusts(new, caller))
        if act is not None:
            await self._check(act, trust, caller)
        origin = caller.origin if caller.trust != "high" else new.origin
        if caller.trust == "low" and theirs == "medium" and not agreed:
            origin = "quoted"  # the user's own words
        return memory if (trust, origin) == (new.trust, new.origin) else with_fields(memory, trust=trust, origin=origin)

    async def propose_replacing(self, memory: Memory, caller: Caller) -> str | None:
        """Return the ID of a proposal if replacing needs the user's yes.

        Both memories stay visible then. None if a model may replace it.

        Args:
            memory: Memory to be stored.
            caller: Session that stores it.
        """
        if caller.trust == "low":
            return None  # refused in `admit`
        act = await self._find_replacing(memory.supersedes, memory.content, caller.prompt)
        act = None if act is None else replace(act, values=_list_stored(memory))
        proposal = None if act is None else await self._find_proposal(act, caller)
        return None if proposal is None else proposal.id

    async def change(
        self, before: Memory, changes: Redacted[dict[str, Any]], caller: Caller
    ) -> Redacted[dict[str, Any]]:
        """Return the changes of an update with their trust and source.

        Raises:
            ValidationError: A value is wrong; or the user did not agree to this (`needs_user`).
        """
        if caller.trust == "high":
            return _vouch(before, changes, caller.origin)
        values = {key: value for key, value in changes.value.items() if key in Memory.model_fields}
        after = overlay_fields(before, values)
        for act in await self._list_acts(before, after, changes.value, caller):
            await self._check(act, before.trust, caller)
        statement = values.keys() - PLACE - {"supersedes"}
        words = {key for key in statement if getattr(after, key) != getattr(before, key)}
        if not words:
            return changes
        whose: dict[str, Any] = {"trust": before.trust, "source": before.source.model_dump()}
        if "content" in words or not is_stated(before):  # else the words are still the user's
            theirs = await self._get_trust(after.content, caller) if words == {"content"} else caller.trust
            whose["trust"] = lowest(before.trust, theirs, *await self._list_source_trusts(after, caller))
        if "content" in words:
            whose |= {"source": {"kind": "assistant", "detail": "memory_update"}, "origin": caller.origin}
        return join_fields(changes, redact_fields(MEMORY, whose))

    async def may_raise(self, memory: Memory, caller: Caller) -> bool:
        """Return True if repeating a text may raise its trust.

        The word of the user or of a program does, a model's repetition does not.

        Args:
            memory: Memory with the trust that `admit` gave it.
            caller: Session that stores it.
        """
        if memory.trust == "low":
            return False
        return caller.trust == "high" or is_stated(memory) or await self._is_said(memory.content, caller)

    async def check_all(self, action: Action, memory_ids: Iterable[str], caller: Caller) -> None:
        """Refuse like `check`; unknown IDs are ignored."""
        if caller.trust != "low":
            return
        memories = [await self._storage.get(memory_id) for memory_id in memory_ids]
        await self.check(action, [memory for memory in memories if memory is not None], caller)

    async def check(self, action: Action, memories: list[Memory], caller: Caller) -> None:
        """Refuse what a call of low trust may not do.

        Args:
            action: What is to be done.
            memories: Named memory, then those that are changed with it.
            caller: Session that asks for it.

        Raises:
            ValidationError: One of them has higher trust, and the user did not agree to this (`needs_user`).
        """
        if caller.trust != "low" or all(memory.trust == "low" for memory in memories):
            return
        if action in _COMMANDS and await self._is_commanded(action, memories[0], caller):
            return
        proposal = proposal_id(action, memories[0].id)
        if self._is_agreed(proposal, caller):
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
        if self._is_agreed(proposal, caller):
            return
        if await self._is_each_commanded(memories, caller) and caller.proposals.reserve_forgetting((), related_ids):
            return
        protected = next((memory.id for memory in (*memories, *related) if not may_forget(memory, caller)), None)
        if protected is not None and caller.forgets_up_to is not None:
            why = f"{protected} was not forgotten: the user has not agreed to this."
        elif protected is not None and caller.trust == "low":
            why = f"{protected} was not forgotten: text of an untrusted source is in this conversation."
        elif is_upkeep or caller.proposals.reserve_forgetting(ids, related_ids):
            return
        else:
            why = f"Nothing was forgotten: more than {MAX_FORGOTTEN} memories in one turn need the user's yes."
        what = ids[0] if len(ids) == 1 else f"these {len(ids)} memories"
        what += f" with {', '.join(related_ids[:_MAX_NAMED])}" if related else ""
        values = {"with": ", ".join(related_ids)} if related else {}
        act = ProposedAct(proposal, "forget", _join_contents([*memories, *related]), tuple(ids), values)
        proposed = await self._propose(act, caller)
        raise ValidationError(why, code="needs_user", recovery=proposed.ask(what))

    async def _propose(self, act: ProposedAct, caller: Caller) -> _MadeProposal:
        """Propose an act to the user."""
        is_held = self._monitor.proposals is not None and await self._monitor.proposals.hold(act, caller)
        return _MadeProposal(caller.proposals.add(act.proposal, caller.session_id), is_held)

    @contextlib.asynccontextmanager
    async def settling(self, caller: Caller) -> AsyncIterator[None]:
        """Do an act in the block; settle its proposals if it succeeds."""
        with carrying_out():
            before = get_agreed()
            yield
            if (holder := self._monitor.proposals) is not None:
                for proposal in get_agreed() - before:
                    await holder.settle(proposal, caller)

    @staticmethod
    def _is_agreed(proposal: str, caller: Caller) -> bool:
        """Return True, and note it, if the user agreed to a proposal."""
        is_agreed = caller.proposals.is_agreed(proposal)
        if is_agreed:
            note_agreed(proposal)
        return is_agreed

    async def _is_each_commanded(self, memories: Sequence[Memory], caller: Caller) -> bool:
        return all([await self._is_commanded("forget", memory, caller) for memory in memories])

    async def reason(self, reason: str, caller: Caller) -> str:
        """Return a reason; empty for one of an untrusted source.

        Storing the same text again shows it.
        """
        return "" if reason and await self._get_trust(reason, caller) == "low" else reason

    async def _find_replacing(self, replaced_id: object, content: str, *prompts: str) -> _MemoryAct | None:
        """Return the act of replacing a memory; None without it."""
        replaced = await self._storage.get(replaced_id) if isinstance(replaced_id, str) else None
        if replaced is None:
            return None
        return _MemoryAct("replace", replaced, proposal_id("replace", replaced.id, content), content, prompts)

    async def _find_storing(self, new: Memory) -> _MemoryAct | None:
        """Return the act of a store that replaces a memory."""
        act, values = await self._find_replacing(new.supersedes, new.content), _list_stored(new)
        proposal = proposal_id("replace", new.supersedes, sorted(values.items()))
        return None if act is None else replace(act, proposal=proposal, values=values)

    async def _list_acts(
        self, before: Memory, after: Memory, values: Mapping[str, Any], caller: Caller
    ) -> list[_MemoryAct]:
        """List the acts of an update on a memory and its target."""
        names: list[_ActName] = ["change"] if values.keys() - {"pinned", "supersedes"} else []
        names += ["reword"] if after.content != before.content else []
        names += ["expire"] if _is_shortened(before, after) else []
        names += ["pin" if after.pinned else "unpin"] if after.pinned != before.pinned else []
        wording = [(name, str(value)) for name, value in sorted(values.items())]
        is_pin = bool(names) and values.keys() == {"pinned"}
        proposal = proposal_id(names[0], before.id) if is_pin else proposal_id("change", before.id, wording)
        acts = [
            _MemoryAct(name, before, proposal, after.content, (caller.prompt,), before.id, values) for name in names
        ]
        captured = (caller.prompt_before,) if is_stated(before) and after.content == before.content else ()
        replacing = await self._find_replacing(values.get("supersedes"), after.content, caller.prompt, *captured)
        if replacing is not None:
            replacing = replace(replacing, changed_id=before.id, values=values)
            acts.append(replace(replacing, proposal=proposal) if names else replacing)
        return acts

    async def _check(self, act: _MemoryAct, trust: Trust, caller: Caller) -> None:
        """Refuse an act that needs the user's yes.

        A text of low trust replaces nothing above it, whatever the user answers.

        Args:
            act: What is to be done.
            trust: Trust of the text.
            caller: Session that asks for it.
        """
        proposal = await self._find_proposal(act, caller)
        if act.name == "replace" and trust == "low" and act.memory.trust != "low":
            proposal = await self._propose(act.as_proposed(), caller)
        if proposal is not None:
            raise _refuse(act, proposal, caller)

    async def _find_proposal(self, act: _MemoryAct, caller: Caller) -> _MadeProposal | None:
        """Return the proposal of an act that needs a yes."""
        if caller.trust == "high" or self._is_agreed(act.proposal, caller):
            return None
        if act.name in _COMMANDS and await self._is_commanded(act.name, act.memory, caller):
            return None
        if caller.trust == "low":
            is_free = act.memory.trust == "low"
        elif act.name == "pin":
            is_free = caller.proposals.reserve_pin(act.memory.id)
        else:
            is_free = act.name not in _REDUCING or not is_stated(act.memory) or await self._is_quoted(act, caller)
        return None if is_free else await self._propose(act.as_proposed(), caller)

    async def _is_quoted(self, act: _MemoryAct, caller: Caller) -> bool:
        """Return True if a new text quotes the user on the memory."""
        if act.name not in {"replace", "reword"}:
            return False
        from agent_memory.capture import find_quote, share_topic  # its patterns are for those who hear a user

        for prompt in filter(None, act.prompts):
            quote = await asyncio.to_thread(find_quote, prompt, act.text, act.memory.content)
            if quote and share_topic(quote, act.memory.content):
                return True
            if quote and await is_near(self._storage, quote, act.memory, caller):
                return True
        return False

    async def _list_source_trusts(self, memory: Memory, caller: Caller) -> list[Trust]:
        """Return the trust of each source; empty for a person."""
        ends = [link.id for link in memory.links if rests_on(link.rel) and is_memory_id(link.id)]
        sources = [await self._storage.get(end) for end in ends] if caller.trust != "high" else []
        return [source.trust for source in sources if source is not None]

    @staticmethod
    async def _get_trust(content: str, caller: Caller) -> Trust:
        """Return the trust of a text; the user's words have medium."""
        return "medium" if caller.trust == "low" and await TrustGate._is_said(content, caller) else caller.trust

    @staticmethod
    async def _is_said(content: str, caller: Caller) -> bool:
        """Return True if the user said a text in this turn."""
        if not caller.prompt:
            return False
        from agent_memory.capture import says  # its patterns are for those who hear a user

        return await asyncio.to_thread(says, caller.prompt, content)

    @staticmethod
    async def _is_commanded(action: _ActName, memory: Memory, caller: Caller) -> bool:
        return await asyncio.to_thread(is_commanded, caller.prompt, _COMMANDS[action], memory.id)


def may_forget(memory: Memory, caller: Caller) -> bool:
    """Return True if a model forgets this memory without a yes."""
    highest = caller.forgets_up_to or ("low" if caller.trust == "low" else "high")
    return lowest(memory.trust, highest) == memory.trust


def _vouch(before: Memory, changes: Redacted[dict[str, Any]], origin: str) -> Redacted[dict[str, Any]]:
    """Return a person's changes with the resulting origin and trust.

    A pin or a new text gives the user's own words high trust, and no other's.
    """
    values, whose = changes.value, dict[str, Any]()
    is_reworded = values.get("content", before.content) != before.content
    if is_reworded and "origin" not in values:
        whose["origin"] = origin
    is_vouched = is_reworded or values.get("pinned") is True
    if is_vouched and before.source.kind == "user" and before.trust == "medium" and "trust" not in values:
        whose["trust"] = "high"
    return join_fields(changes, redact_fields(MEMORY, whose)) if whose else changes


def _list_stored(memory: Memory) -> dict[str, Any]:
    """Return the fields of a memory that a call would store."""
    excluded = {*IDENTITY, *ACCESS, "trust", "source", "origin"}
    return memory.model_dump(mode="json", exclude=excluded, exclude_defaults=True)


def _is_shortened(before: Memory, after: Memory) -> bool:
    return after.expires_at is not None and (before.expires_at is None or after.expires_at < before.expires_at)


def _join_contents(memories: Sequence[Memory]) -> str:
    """Join the texts of memories as lines, within the limit."""
    lines: list[str] = []
    for number, memory in enumerate(memories):
        if sum(map(len, lines)) + len(lines) + len(memory.content) > MAX_CONTENT_CHARS - _COUNT_CHARS:
            return "\n".join([*lines, f"and {len(memories) - number} more"])
        lines.append(memory.content)
    return "\n".join(lines)


def _refuse(act: _MemoryAct, proposal: _MadeProposal, caller: Caller) -> ValidationError:
    """Return the refusal of an act that needs the user's yes."""
    if caller.trust == "low" or (act.name == "replace" and not is_stated(act.memory)):
        why = "text of an untrusted source is in it or in this conversation, and the user has not agreed to this"
    elif act.name == "pin":
        why = f"more than {MAX_PINNED} pins in one turn need the user's yes"
    elif act.name in {"replace", "reword"}:
        why = "the user stated it, and the new text quotes nothing that they typed in this turn about it"
    else:
        why = "the user stated it, and has not agreed to this"
    ask = proposal.ask(act.memory.id)
    return ValidationError(
        f"{act.memory.id} was not {_DONE[act.name]}: {why}.",
        code="needs_user",
        recovery=f"Leave out supersedes, or ask: {ask}" if act.name == "replace" else ask,
    )
