"""Pairs of memories that look as if they cannot both be right, as a briefing tells them: never the older one alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from agent_memory.lifecycle.briefing.choosing import Passage
    from agent_memory.models import Memory
    from agent_memory.service import Caller, MemoryService, Suspect

_NEAR: Final = 0.25
"""Least nearness of a memory whose doubt bears on a prompt: its score is .7 of the best one's."""
_TOLD: Final = 3
"""Pairs that are told."""
_LOOKED_AT: Final = 200
"""Pairs that are looked at; each takes a tenth of a millisecond. Of more, only the number is told."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """What of an agent's memories is in doubt.

    Attributes:
        pairs: Those that bear on the prompt, or on how an agent behaves; the most important first.
        waiting: How many pairs there are.
        older: Ids of the older ones of all pairs: none of them is told without its newer one.
    """

    pairs: tuple[Suspect, ...] = ()
    waiting: int = 0
    older: frozenset[str] = frozenset()


async def doubts_of(
    service: MemoryService,
    caller: Caller,
    found: Iterable[Passage],
    known: Collection[str],
    is_told: Callable[[Memory], bool],
) -> Doubts:
    """Return what is in doubt for a session.

    Args:
        service: The agent's memory.
        caller: The session; what belongs to other groups is left out.
        found: What bears on the prompt.
        known: Ids of what the model reads already: a pair that it knows whole is not told.
        is_told: Whether a memory may be told at all.

    Raises:
        StorageError: What is stored cannot be read.
    """
    waiting = await service.disputes.how_many(caller, vouched=True)
    if not 0 < waiting <= _LOOKED_AT:
        return Doubts(waiting=waiting)
    passages = list(found)
    quoted = {each.id for each in passages if each.talk}  # what was said later in a talk is read below what it corrects
    undecided = await service.disputes.undecided(caller)
    every = [pair for pair in undecided if not {pair.newer.id, pair.older.id} <= quoted]
    near = {each.id: each.nearness for each in passages if each.nearness >= _NEAR}

    def rank(pair: Suspect) -> tuple[float, bool]:
        both = (pair.newer, pair.older)
        return max(near.get(each.id, 0.0) for each in both), any(map(_stands, both))

    told = [
        pair
        for pair in sorted(every, key=rank, reverse=True)
        if any(rank(pair)) and not {pair.newer.id, pair.older.id} <= set(known)
        if is_told(pair.newer) and is_told(pair.older)
    ]
    return Doubts(tuple(told[:_TOLD]), len(every), frozenset(pair.older.id for pair in every))


def _stands(memory: Memory) -> bool:
    return memory.pinned or memory.category == "preference"
