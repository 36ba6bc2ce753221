"""`Preceding`: which turns came just before one in its conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.knowledge.items.drawn import BEFORE, is_talk
from agent_memory.models import Episode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.knowledge.records import Knowledge


class Preceding:
    """Finds the turns before one: among those at hand, and where these begin with it, in the storage.

    Args:
        knowledge: Where the turns are.
        at_hand: Records of a portion and those before it.
    """

    def __init__(self, knowledge: Knowledge, at_hand: Iterable[object]) -> None:
        self._knowledge = knowledge
        self._turns: dict[str, list[Episode]] = {}
        self._whole: set[str] = set()
        for record in at_hand:
            if isinstance(record, Episode) and record.conversation:
                self._turns.setdefault(record.conversation, []).append(record)
        for turns in self._turns.values():
            turns.sort(key=lambda turn: turn.order)

    async def of(self, turn: Episode) -> list[Episode]:
        """Return the few turns of the same conversation and group before one, the first first.

        Raises:
            StorageError: They cannot be read.
        """
        conversation = turn.conversation
        if not conversation:
            return []
        found = self._before(turn, self._turns.get(conversation, ()))
        if not found and turn.order and conversation not in self._whole:
            self._whole.add(conversation)
            every = reversed(await self._knowledge.episodes.linked_to(conversation))
            self._turns[conversation] = sorted(every, key=lambda each: each.order)
            found = self._before(turn, self._turns[conversation])
        return found

    @staticmethod
    def _before(turn: Episode, turns: Iterable[Episode]) -> list[Episode]:
        earlier: list[Episode] = []
        for each in turns:
            if each.id == turn.id or each.order > turn.order:
                break
            if is_talk(each) and each.group == turn.group:
                earlier.append(each)
        return earlier[-BEFORE:]
