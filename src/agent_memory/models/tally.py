"""`Tally`: how many records there are, by what counts about them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from agent_memory.models.document import GROUP, GROUPED, Facet


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
    """

    records: int = 0
    items: int = 0
    superseded: int = 0
    expired: int = 0
    pinned: int = 0
    by_trust: Counter[str] = field(default_factory=Counter)
    by_facet: dict[str, Counter[str]] = field(default_factory=dict)
    every_by_facet: dict[str, Counter[str]] = field(default_factory=dict)

    def items_of(self, group: str | None) -> int:
        """Return how many items a group sees: its own and those of none; None sees all."""
        if group is None:
            return self.items
        facets = [GROUPED, *([(GROUP, group)] if group else [])]
        items = [self._count(self.every_by_facet, each) - self._count(self.by_facet, each) for each in facets]
        return self.items - items[0] + sum(items[1:])

    def add_facet(self, name: str, value: str, records: int, every: int) -> None:
        """Count records, and records and items, with a facet."""
        for counts, count in ((self.by_facet, records), (self.every_by_facet, every)):
            if count:
                counts.setdefault(name, Counter())[value] += count

    @staticmethod
    def _count(counts: dict[str, Counter[str]], facet: Facet) -> int:
        name, value = facet
        return counts[name][value] if name in counts else 0
