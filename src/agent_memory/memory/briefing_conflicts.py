"""Conflicts of memories in a briefing: never the older memory alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from agent_memory.memory import Caller, MemoryService, Suspect
    from agent_memory.memory.briefing_choice import Passage
    from agent_memory.models import Memory, Record

_NEAR: Final = 0.25
"""Least nearness of a memory whose doubt bears on a prompt: its score is .7 of the best one's."""
_TOLD: Final = 3
"""Pairs that are told."""
MOST_CHARS: Final = 400
"""What is longer is left to a search: whole entries only, since half of one may say the opposite."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """What of an agent's memories is in doubt.

    Attributes:
        pairs: Those that bear on the prompt, or on how an agent behaves; the most important first.
        waiting: How many pairs there are.
        older: Ids of the older ones of pairs that are concerned: none of them is told without its newer one.
    """

    pairs: tuple[Suspect, ...] = ()
    waiting: int = 0
    older: frozenset[str] = frozenset()


async def doubts_of(
    service: MemoryService, caller: Caller, found: Iterable[Passage], standing: Iterable[Record], known: Collection[str]
) -> Doubts:
    """Return what is in doubt of what a session would be told.

    Args:
        service: The agent's memory.
        caller: The session; what belongs to other groups is left out.
        found: What bears on the prompt.
        standing: What stands whatever is asked.
        known: Ids of what the model reads already: a pair that it knows whole is not told.

    Raises:
        StorageError: What is stored cannot be read.
    """
    waiting = await service.disputes.how_many(caller, vouched=True)
    if not waiting:
        return Doubts()
    passages = list(found)
    quoted = {each.id for each in passages if each.talk}  # what was said later in a talk is read below what it corrects
    concerned = {each.id for each in passages} | {each.id for each in standing}
    undecided = await service.disputes.undecided(caller, concerned)
    pairs = [pair for pair in undecided if not {pair.newer.id, pair.older.id} <= quoted]
    near = {each.id: each.nearness for each in passages if each.nearness >= _NEAR}

    def rank(pair: Suspect) -> tuple[float, bool]:
        both = (pair.newer, pair.older)
        return max(near.get(each.id, 0.0) for each in both), any(map(_stands, both))

    told = [pair for pair in sorted(pairs, key=rank, reverse=True) if any(rank(pair)) and _is_told(pair, known)]
    return Doubts(tuple(told[:_TOLD]), waiting, frozenset(pair.older.id for pair in pairs))


def _is_told(pair: Suspect, known: Collection[str]) -> bool:
    """Return True if a pair may be told: it is new, short, and no stranger's."""
    both = (pair.newer, pair.older)
    is_new = any(each.id not in known for each in both)
    return is_new and all(each.trust != "low" and len(each.content) <= MOST_CHARS for each in both)


def _stands(memory: Memory) -> bool:
    return memory.pinned or memory.category == "preference"
