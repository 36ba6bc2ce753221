"""`Tally`: how many records there are, by what counts about them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agent_memory.models.document import GROUP, GROUPED

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(slots=True)
class Tally:
    """Numbers of records of one kind.

    Attributes:
        records: All but items, superseded and expired ones included.
        items: What was drawn from documents and talks.
        superseded, expired, pinned: Of the records.
        by_trust: The records by trust.
        by_facet: The records by the name of a facet, such as `category`, and its value.
        every_by_facet: The same of records and items together.
        last_item: When the last item was stored, even if it is gone since.
    """

    records: int = 0
    items: int = 0
    superseded: int = 0
    expired: int = 0
    pinned: int = 0
    by_trust: Counter[str] = field(default_factory=Counter)
    by_facet: dict[str, Counter[str]] = field(default_factory=dict)
    every_by_facet: dict[str, Counter[str]] = field(default_factory=dict)
    last_item: datetime | None = None

    def items_of(self, group: str | None) -> int:
        """Return how many items a group sees: its own and those of none; None sees all."""
        return self.items - self._of_others(group, self.every_by_facet) + self._of_others(group, self.by_facet)

    def records_of(self, group: str | None) -> int:
        """Return how many records, no items, a group sees."""
        return self.records - self._of_others(group, self.by_facet)

    def count_current(self, group: str | None) -> int:
        """Return the number of records and items that a group can find.

        Superseded and expired records are not counted by group, so a group's number includes its own.
        """
        past = self.superseded + self.expired if group is None else 0
        return max(0, self.records_of(group) + self.items_of(group) - past)

    @staticmethod
    def _of_others(group: str | None, counts: dict[str, Counter[str]]) -> int:
        if group is None:
            return 0
        (any_group, empty), none = GROUPED, Counter[str]()
        return counts.get(any_group, none)[empty] - (counts.get(GROUP, none)[group] if group else 0)

    def add_facet(self, name: str, value: str, records: int, every: int) -> None:
        """Count records, and records and items, with a facet."""
        for counts, count in ((self.by_facet, records), (self.every_by_facet, every)):
            if count:
                by_value = counts.setdefault(name, Counter())
                by_value[value] += count
                if not by_value[value]:
                    del by_value[value]

    def copy(self) -> Tally:
        """Return the same counts, to be added to."""
        return replace(
            self,
            by_trust=+self.by_trust,
            by_facet={name: counts.copy() for name, counts in self.by_facet.items() if counts},
            every_by_facet={name: counts.copy() for name, counts in self.every_by_facet.items() if counts},
        )
