"""`TidyingPlan`: what would be tidied, and why, in the order in which it would be done. Plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.models import Memory, TidyAction

LEAST_BUDGET: Final = 10
MOST_BUDGET: Final = 100
"""What a person reads through before saying yes."""
SHARE: Final = 10
"""One of so many memories at most: however wrong a rule is, a run leaves nine tenths where they are."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What would become of one memory.

    Attributes:
        action: `archive`, `merge` or `expire`: it goes to the archive; `delete`: it leaves the archive for good.
        memory: As it was when this was suggested; it is left out if it has been used or changed since.
        why: A sentence.
        rule: By which rule: `unused`, `too_many`, `retention`, `merged`, `expired` or `old`.
        importance: 0..1, by which they are ordered.
        older: The older versions that go with it.
        into: With `merge`, the memory that stays.
    """

    action: TidyAction
    memory: Memory
    why: str
    rule: str
    importance: float
    older: tuple[Memory, ...] = ()
    into: Memory | None = None

    @property
    def size(self) -> int:
        """How many memories move."""
        return 1 + len(self.older)


@dataclass(frozen=True, slots=True)
class Budget:
    """Most memories that one run moves."""

    most: int

    @classmethod
    def of(cls, memories: int, given: int | None = None) -> Budget:
        """Return the one for so many memories: a tenth of them, at least 10, at most 100."""
        if given is not None:
            return cls(given)
        return cls(min(MOST_BUDGET, max(LEAST_BUDGET, memories // SHARE)))


@dataclass(frozen=True, slots=True)
class TidyingPlan:
    """What a run would do; nothing is done yet.

    Attributes:
        made_at: When it was made.
        suggestions: What would be done, in this order: what expired, what is said twice, what is least important, and
            last what would leave the archive.
        budget: How many memories move at most.
        waiting: How many more are suggested, for another run.
        memories, archived: How many there are, live and in the archive.
    """

    made_at: datetime
    suggestions: tuple[Suggestion, ...]
    budget: Budget
    waiting: int
    memories: int
    archived: int

    @property
    def moving(self) -> int:
        """How many memories would move."""
        return sum(each.size for each in self.suggestions)


def within(suggestions: list[Suggestion], budget: Budget) -> tuple[list[Suggestion], int]:
    """Return those that fit the budget, in their order, and how many memories of the others wait.

    One with more older versions than a whole run may move would wait forever; it is taken as the only one.
    """
    taken: list[Suggestion] = []
    left, waiting = budget.most, 0
    for each in suggestions:
        if each.size <= left or (each.size > budget.most and not taken):
            taken.append(each)
            left -= min(left, each.size)
        else:
            waiting += each.size
    return taken, waiting
