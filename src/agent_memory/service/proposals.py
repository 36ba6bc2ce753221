"""Proposals of one conversation: acts that wait for the user's yes.

A yes is structural: a message that is only yes directly after exactly one shown proposal, or a sentence of the user's
own that holds the proposal's id and neither asks nor denies. Words of a request do not count.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_FORGOTTEN: Final = 3
"""Memories that a model forgets in one turn without the user's yes."""
MAX_PINNED: Final = 10
"""Memories that a model pins in one turn without the user's yes."""
_MAX_OPEN: Final = 50
_MAX_ANSWER_CHARS: Final = 40
_WORD: Final = re.compile(r"[^\W_]+")
_QUOTE: Final = re.compile('[>`"“”„«»「」]')
"""Marks of quoted text; an answer of the user's own has none."""
_YES: Final = frozenset(
    {"yes", "y", "yep", "yeah", "ok", "okay", "sure", "agreed", "confirm", "confirmed", "ja", "oui", "si", "sí", "sì"}
    | {"sim", "tak", "да", "はい", "是", "是的", "好", "好的", "네", "예"}
)
_NO: Final = frozenset(
    {"no", "n", "nope", "cancel", "nein", "non", "não", "nee", "nie", "нет", "いいえ", "不", "不是", "아니요"}
)
_POLITE: Final = frozenset({"please", "thanks", "bitte", "danke", "merci", "gracias", "grazie"})


def proposal_id(*parts: object) -> str:
    """Return the id of a proposal, the same for the same act."""
    return hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:12]


class ProposalBook:
    """The proposals of one conversation.

    Args:
        owner: Session that the user talks to; a plain yes answers no proposal of another one.
    """

    def __init__(self, owner: str = "") -> None:
        self._owner = owner
        self._open: dict[str, None] = {}
        self._shown: set[str] = set()
        self._agreed: frozenset[str] = frozenset()
        self._forgotten: set[str] = set()
        self._pinned: set[str] = set()

    def add(self, proposal: str, session_id: str) -> str:
        """Note that a proposal was shown in this turn; return its id.

        Args:
            proposal: Id from `proposal_id`, or of a preview.
            session_id: Session whose tool showed it.
        """
        self._open.pop(proposal, None)
        self._open[proposal] = None
        while len(self._open) > _MAX_OPEN:
            del self._open[next(iter(self._open))]
        if session_id == self._owner:
            self._shown.add(proposal)
        return proposal

    def is_open(self, proposal: str) -> bool:
        """Return True if the proposal was shown and not refused."""
        return proposal in self._open

    def is_agreed(self, proposal: str) -> bool:
        """Return True if the user's last message agrees to the proposal."""
        return proposal in self._agreed

    def close(self, proposal: str) -> None:
        """Close a proposal that was carried out; its yes counts once."""
        self._open.pop(proposal, None)
        self._agreed -= {proposal}

    def reserve_forgetting(self, memory_ids: Collection[str]) -> bool:
        """Count memories to forget in this turn; return False if they are too many.

        Args:
            memory_ids: IDs of all memories of one call; too many are not counted.
        """
        counted = self._forgotten.union(memory_ids)
        if len(counted) > MAX_FORGOTTEN:
            return False
        self._forgotten = counted
        return True

    def reserve_pin(self, memory_id: str) -> bool:
        """Count a memory to pin; return False above the limit."""
        self._pinned |= {memory_id} if len(self._pinned) < MAX_PINNED else set()
        return memory_id in self._pinned

    def begin_turn(self, prompt: str) -> None:
        """Take the user's message as the answer to what was shown.

        Args:
            prompt: The whole message, as the user typed it.
        """
        shown, self._shown = self._shown, set()
        self._pinned = set()
        self._forgotten = set()
        named = {proposal for proposal in self._open if proposal in prompt.lower()}
        self._agreed = frozenset({proposal for proposal in named if _is_agreed_in(prompt, proposal)})
        answer = _plain_answer(prompt)
        if answer == "yes" and len(shown) == 1:
            self._agreed |= shown
        elif answer == "no":
            for proposal in shown:
                self._open.pop(proposal, None)


def is_commanded(prompt: str, verbs: str, memory_id: str) -> bool:
    """Return True if a user's sentence is only a command ("forget mem-…").

    Args:
        prompt: The user's message.
        verbs: Words of the command, separated by `|`.
        memory_id: Memory that it names.
    """
    if memory_id not in prompt.lower():
        return False
    from agent_memory.capture.spoken import own_sentences  # its patterns are for those who hear a user

    command = re.compile(
        rf"(?:(?:ok|okay|yes|please),? )*(?:{verbs}) {re.escape(memory_id)}(?: for good)?(?:,? please)?[.!]*",
        re.IGNORECASE,
    )
    return any(command.fullmatch(sentence.strip()) for sentence in own_sentences(prompt))


def _plain_answer(prompt: str) -> str | None:
    """Return "yes" or "no" if a message says nothing else."""
    words = set(_WORD.findall(prompt.lower())) if len(prompt) <= _MAX_ANSWER_CHARS else set()
    if "?" in prompt or _QUOTE.search(prompt) or not words - _POLITE:
        return None
    return "yes" if words <= _YES | _POLITE else "no" if words <= _NO | _POLITE else None


def _is_agreed_in(prompt: str, proposal: str) -> bool:
    from agent_memory.capture.orders import denies
    from agent_memory.capture.spoken import is_question, own_sentences

    return any(
        proposal in sentence.lower() and not is_question(sentence) and not denies(sentence)
        for sentence in own_sentences(prompt)
    )
