"""Callers of the service, the memories they may name, and their proposals.

A session that is bound to a group sees the records of its group and those of none. A yes is structural: a message that
is only yes directly after exactly one shown proposal, or only yes and the proposal's id. Words of a request do not
count.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from agent_memory.errors import UnknownIdError
from agent_memory.language.words import fold
from agent_memory.late import compile_late
from agent_memory.models import is_memory_id, sees
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from agent_memory.models import Memory, Trust
    from agent_memory.store.memory_storage import MemoryStorage


Emit = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends an event's name and payload to the listeners; must not raise."""
OnEvent = Callable[[str, "Mapping[str, Any]", "Memory | None"], None]
"""Takes an event's name and payload, and the memory it is about as it is now; must not raise."""
Report = Callable[..., Awaitable[None]]
"""`Monitor.report`: takes an event's name, the caller and the fields."""
MAX_FORGOTTEN: Final = 3
"""Memories that a model forgets in one turn without the user's yes."""
MAX_PINNED: Final = 10
"""Memories that a model pins in one turn without the user's yes."""
MAX_PROPOSALS: Final = 50
"""Proposals that wait; the oldest leave for new ones."""
_MAX_REPLACED: Final = 500
PROPOSAL_TIME: Final = timedelta(days=30)
"""Time for which a proposal waits."""
_MAX_ANSWER_CHARS: Final = 40
_WORD: Final = compile_late(r"[^\W_]+")
_ID: Final = compile_late(r"[0-9a-f]{12}")
"""ID of a proposal."""
_QUOTE: Final = compile_late('[>`"“”„«»「」]')
"""Marks of quoted text; an answer of the user's own has none."""
_YES: Final = frozenset(
    {"yes", "y", "yep", "yeah", "ok", "okay", "sure", "agreed", "confirm", "confirmed", "ja", "oui", "si", "sí", "sì"}
    | {"sim", "tak", "да", "はい", "是", "是的", "好", "好的", "네", "예"}
)
_NO: Final = frozenset(
    {"no", "n", "nope", "cancel", "nein", "non", "não", "nee", "nie", "нет", "いいえ", "不", "不是", "아니요"}
)
_POLITE: Final = frozenset({"please", "thanks", "bitte", "danke", "merci", "gracias", "grazie"})
_AGREES: Final = frozenset({"do", "now"}) | _YES | _POLITE
"""Words next to the id of a proposal that make a yes."""
_PLAIN: Final = compile_late(r"[\w\s,.!、。]*")
_COMMAND: Final = compile_late(
    r"(?:(?:ok|okay|yes|please),? )*(?P<verb>[a-z]+) (?P<id>mem-[0-9a-f]+)(?: for good)?(?:,? please)?[.!]*",
    re.IGNORECASE,
)
"""A sentence that is only a command with the ID of a memory."""


@dataclass(frozen=True, slots=True)
class ProposedAct:
    """Act on memories that waits for a person's yes.

    Attributes:
        proposal: ID from `proposal_id`.
        verb: What is to be done.
        text: Words that it stores, changes or forgets.
        memory_ids: Memories that it forgets or changes.
        values: Fields that it stores or changes.
    """

    proposal: str
    verb: Literal["forget", "store", "update"]
    text: str
    memory_ids: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


class ProposalHolder(Protocol):
    """Holder of proposed acts across sessions."""

    async def hold(self, act: ProposedAct, caller: Caller) -> bool:
        """Add an act for a person's yes; return True if it waits."""

    async def settle(self, proposal: str, caller: Caller) -> None:
        """Remove an act that was done after the user's yes."""


_AGREED: Final = ContextVar[frozenset[str] | None]("agreed_proposals", default=None)


def get_agreed() -> frozenset[str]:
    """Return the proposals whose acts are being carried out."""
    return _AGREED.get() or frozenset()


def note_agreed(proposal: str) -> None:
    """Note that the block of `carrying_out` does the act of a proposal."""
    if (agreed := _AGREED.get()) is not None:
        _AGREED.set(agreed | {proposal})


@contextlib.contextmanager
def carrying_out(*proposals: str) -> Iterator[None]:
    """Carry out acts of proposals in the block; `note_agreed` adds some."""
    token = _AGREED.set(get_agreed().union(proposals))
    try:
        yield
    finally:
        _AGREED.reset(token)


def proposal_id(*parts: object) -> str:
    """Return the id of a proposal, the same for the same act."""
    return hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:12]


class ProposalBook:
    """The proposals of one conversation.

    Args:
        owner: Session that the user talks to; a plain yes answers no proposal of another one.

    Attributes:
        on_change: Called when `waiting` or `replaced_ids` has changed.
    """

    def __init__(self, owner: str = "") -> None:
        self._owner = owner
        self.on_change: Callable[[], None] = lambda: None
        self._open: dict[str, float] = {}
        self._shown: set[str] = set()
        self._agreed: frozenset[str] = frozenset()
        self._forgotten: set[str] = set()
        self._pinned: set[str] = set()
        self._replaced: dict[str, None] = {}

    @property
    def waiting(self) -> dict[str, float]:
        """Time when each open proposal was shown, in seconds since 1970."""
        return dict(self._open)

    @property
    def replaced_ids(self) -> tuple[str, ...]:
        """IDs of memories that a model replaced in this conversation."""
        return tuple(self._replaced)

    def restore(self, proposals: Mapping[str, float], replaced: Iterable[str]) -> None:
        """Take over what an earlier process of the session kept.

        A proposal counts for 30 days, and needs its ID in the answer.
        """
        since = time.time() - PROPOSAL_TIME.total_seconds()
        self._open = {proposal: shown for proposal, shown in proposals.items() if shown >= since} | self._open
        self._replaced = dict.fromkeys(replaced) | self._replaced

    def add(self, proposal: str, session_id: str) -> str:
        """Note that a proposal was shown in this turn; return its id.

        Args:
            proposal: Id from `proposal_id`, or of a preview.
            session_id: Session whose tool showed it.
        """
        self._open.pop(proposal, None)
        self._open[proposal] = time.time()
        while len(self._open) > MAX_PROPOSALS:
            del self._open[next(iter(self._open))]
        if session_id == self._owner:
            self._shown.add(proposal)
        self.on_change()
        return proposal

    def is_agreed(self, proposal: str) -> bool:
        """Return True if the user's last message agrees to the proposal."""
        return proposal in self._agreed

    def list_unknown(self, prompt: str) -> set[str]:
        """Return the earlier sessions' proposals that the user agrees to."""
        words = set(filter(_ID.fullmatch, _WORD.findall(prompt.lower())))
        return _find_agreed(prompt, words - self._open.keys()) if words else set()

    def close(self, proposal: str) -> None:
        """Close a proposal that was carried out; its yes counts once."""
        self._open.pop(proposal, None)
        self._agreed -= {proposal}
        self.on_change()

    def note_replaced(self, memory_id: str) -> None:
        """Note that a model replaced a memory in this conversation."""
        self._replaced[memory_id] = None
        while len(self._replaced) > _MAX_REPLACED:
            del self._replaced[next(iter(self._replaced))]
        self.on_change()

    def reserve_forgetting(self, memory_ids: Collection[str], related: Collection[str] = ()) -> bool:
        """Count memories to forget in this turn; return False above the limit.

        Args:
            memory_ids: IDs of all memories of one call; too many are not counted.
            related: IDs of memories that go with them; those that a model replaced in this conversation count.
        """
        counted = self._forgotten.union(memory_ids, self._replaced.keys() & related)
        if not self.is_within_limit(counted):
            return False
        self._forgotten = counted
        return True

    def is_within_limit(self, memory_ids: Collection[str]) -> bool:
        """Return True if these may be forgotten in this turn, too."""
        return len(self._forgotten.union(memory_ids)) <= MAX_FORGOTTEN

    def reserve_pin(self, memory_id: str) -> bool:
        """Count a memory to pin; return False above the limit."""
        if len(self._pinned) < MAX_PINNED:
            self._pinned.add(memory_id)
        return memory_id in self._pinned

    def begin_turn(self, prompt: str) -> None:
        """Take the user's message as the answer to what was shown.

        Args:
            prompt: The whole message, as the user typed it.
        """
        shown, self._shown = self._shown, set()
        self._pinned = set()
        self._forgotten = set()
        self._agreed = frozenset(_find_agreed(prompt, self._open))
        answer = _read_plain_answer(prompt)
        if answer == "yes" and len(shown) == 1:
            self._agreed |= shown
        elif answer == "no":
            for proposal in shown:
                self.close(proposal)


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
        prompt_before: Text that the user typed in the turn before, from which capture stored statements at its end.
        origin: Origin of the call's words, see `TextOrigin`; empty if the values name it.
        on_event: Takes each event before `emit` does, with its memory, which no payload holds; None takes none.
        forgets_up_to: Highest trust that a model forgets without a yes; None decides by `trust`.
    """

    session_id: str = ""
    emit: Emit = drop_event
    trust: Trust = "high"
    prompt: str = ""
    proposals: ProposalBook = field(default_factory=ProposalBook, compare=False, repr=False)
    group: str | None = None
    told: str | None = None
    project: str = ""
    prompt_before: str = ""
    origin: str = ""
    on_event: OnEvent | None = None
    forgets_up_to: Trust | None = None

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


def is_seen(memory: Memory, caller: Caller) -> bool:
    """Return True if a caller may see a memory."""
    return sees(caller.group, memory.facets)


async def check_seen(storage: MemoryStorage, caller: Caller, ids: Iterable[object], outcome: str = "") -> None:
    """Refuse a memory of another group, as if it did not exist.

    Args:
        storage: Storage of the memories.
        caller: Session that names them.
        ids: IDs to check; other values are ignored.
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
            raise UnknownIdError(f"No memory {quoted(memory_id)}{outcome}.")


def is_commanded(prompt: str, verbs: str, memory_id: str) -> bool:
    """Return True if a user's message is only commands ("forget mem-…").

    A message with other lines may be pasted.

    Args:
        prompt: The user's message.
        verbs: Words of the command, separated by `|`.
        memory_id: Memory that it names.
    """
    if memory_id not in prompt.lower():
        return False
    from agent_memory.capture.typed_text import list_own_sentences  # its patterns are for those who hear a user

    is_named = False
    for line in filter(str.strip, prompt.splitlines()):
        commands = [_COMMAND.fullmatch(sentence.strip()) for sentence in list_own_sentences(line)]
        if not any(commands):
            return False
        is_named |= any(
            command["id"].lower() == memory_id and re.fullmatch(verbs, command["verb"], re.IGNORECASE)
            for command in filter(None, commands)
        )
    return is_named


def _read_plain_answer(prompt: str) -> str | None:
    """Return "yes" or "no" if a message says nothing else."""
    words = set(_WORD.findall(prompt.lower())) if len(prompt) <= _MAX_ANSWER_CHARS else set()
    if "?" in prompt or _QUOTE.search(prompt) or not words - _POLITE:
        return None
    return "yes" if words <= _YES | _POLITE else "no" if words <= _NO | _POLITE else None


def _find_agreed(prompt: str, proposals: Collection[str]) -> set[str]:
    """Return the proposals that a message agrees to by their IDs.

    The message is nothing but a yes and IDs. One that says more may report, ask, deny or be pasted.
    """
    plain = fold(prompt)
    words = set(_WORD.findall(plain)) if _PLAIN.fullmatch(plain) else set()
    return words.intersection(proposals) if words <= _AGREES.union(proposals) else set()
