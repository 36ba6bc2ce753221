"""`SealedRecords`: the records of a chain of segments, loaded one by one, and which of them may be found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic

import numpy as np

from agent_memory.index.part import Part
from agent_memory.index.row import PINNED
from agent_memory.index.segment import hash_of
from agent_memory.models import ITEM
from agent_memory.models.kind import R
from agent_memory.store.sealed_links import SealedLinks
from agent_memory.store.sealed_replacements import SealedReplacements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent_memory.index.chain import Chain
    from agent_memory.index.parts import Masks
    from agent_memory.models import Kind, Trace
    from agent_memory.store.recency import Order

_MOST_KEPT: Final = 2_000
"""Records that are kept once they were loaded."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """What the journal says of a record that breaks the data model; a row, if there is one, has what it was before.

    Attributes:
        data: As it stands there, its changes applied.
        why: What is wrong with it.
    """

    data: dict[str, Any]
    why: str


class SealedRecords(Generic[R]):
    """All records that are sealed and have not changed since.

    Args:
        kind: Of which kind.
        agent_id: Whose.
        chain: Their segments; its rows are hidden here alone.
        last_change: When the last of their changes was made, UTC as text; None where that is not known.
        invalid: By id, those that break the data model.
        traces: By id, what stays of records that were forgotten for a reason.

    Attributes:
        replacements: Which of them replace which records.
        links: Which of them are linked to which records.
        traces: As given.
        invalid: As given, but for those that are about to change.
    """

    def __init__(
        self,
        kind: Kind[R],
        agent_id: str,
        chain: Chain,
        last_change: str | None = None,
        invalid: Mapping[str, Invalid] | None = None,
        traces: Mapping[str, Trace] | None = None,
    ) -> None:
        self.chain = chain
        self.notes = Part(chain, ITEM)
        self.invalid = dict(invalid or {})
        self.traces = dict(traces or {})
        self.last_change = last_change
        self._kind = kind
        self._agent_id = agent_id
        self._kept: dict[str, R] = {}
        self.replacements = SealedReplacements(chain)
        self.links = SealedLinks(chain)

    def __len__(self) -> int:
        return len(self.chain)

    def snapshot(self) -> Iterator[R]:
        """Return all of them as they are now; each is loaded when it is asked for, whatever is hidden meanwhile."""
        numbers = np.flatnonzero(self.chain.counting())
        return (self._load(*self.chain.record(number)) for number in numbers.tolist())

    def stored_last(self, count: int, among: Masks) -> list[R]:
        """Return those of some rows that were stored last, in the order of storing."""
        numbers = np.flatnonzero(np.concatenate([np.empty(0, bool), *among]))
        times = self.chain.column("timestamp")[numbers]
        if count < len(numbers):
            least = np.partition(times, -count)[-count]
            later, equal = numbers[times > least], numbers[times == least]
            numbers = np.sort(np.concatenate([later, equal[len(equal) - (count - len(later)) :]]))
        return [self._load(*self.chain.record(number)) for number in numbers.tolist()]

    def within(self, segments: Iterable[int]) -> Iterator[R]:
        """Yield those of some segments, by their places."""
        for at in segments:
            for row in np.flatnonzero(self.chain.alive[at]).tolist():
                yield self._load(*self.chain.record(self.chain.firsts[at] + row))

    def get(self, record_id: str) -> R | None:
        """Return a record, None if there is none or it has changed since."""
        known = self._kept.get(record_id)
        if known is not None:
            return known
        number = self.chain.find(record_id)
        if number is None:
            return None
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        record = self._kept[record_id] = self._load(*self.chain.record(number))
        return record

    def ids(self) -> Iterator[str]:
        """Yield the ids of all of them, in the order of storing."""
        for number in self.chain.numbers():
            at, row = self.chain.place_of(number)
            yield self.chain.segments[at].id(row)

    def take(self, record_id: str) -> dict[str, Any] | None:
        """Hide a record that is about to change, and return what a row has of it; None if there is none."""
        self.invalid.pop(record_id, None)
        number = self.chain.find(record_id)
        if number is None:
            return None
        _, data = self.chain.record(number)
        self.chain.hide(np.array([hash_of(record_id.encode())], np.uint64))
        self._kept.pop(record_id, None)
        return data

    def begin_again(self) -> None:
        """Hide all of them: everything is replayed from the beginning."""
        self.chain.hide_all()
        self.invalid.clear()
        self._kept.clear()

    def saying(self, text_hash: str) -> list[R]:
        """Return the records whose words probably have this hash, hexadecimal, in the order of storing."""
        return [self._load(*self.chain.record(number)) for number in self.chain.saying(bytes.fromhex(text_hash))]

    def forgot(self, text_hash: str) -> bool:
        """Tell whether a text of this hash, hexadecimal, was forgotten before what is not sealed."""
        return self.chain.forgot(bytes.fromhex(text_hash))

    def since(self, seq: int) -> Iterator[str]:
        """Yield the ids of records that were changed after that change."""
        for segment, alive in zip(self.chain.segments, self.chain.alive, strict=True):
            if segment.about.last_seq > seq:
                for row in np.flatnonzero(alive & (segment.columns["seq"] > seq)).tolist():
                    yield segment.id(row)

    def seq_of(self, record_id: str) -> int | None:
        """Return the number of the last change that is sealed, also of a record that changed since; None if none is."""
        for segment in reversed(self.chain.segments):
            row = segment.row_of(record_id)
            if row is not None:
                return int(segment.columns["seq"][row])
        return None

    def latest(self, order: Order, count: int) -> list[R]:
        """Return all pinned records, and at least the `count` that `order` places last; no items."""
        if not self.chain.segments:
            return []
        columns = {
            name: self.chain.column(name) for name in ("timestamp", "promoted", "accessed", "access_count", "flags")
        }
        moments = np.maximum(columns["timestamp"], columns["promoted"])
        often = columns["access_count"] >= order.promotion_threshold
        moments[often] = np.maximum(moments[often], columns["accessed"][often])
        alive = np.concatenate(self.notes.alive)
        moments[~alive] = -np.inf
        last = np.argpartition(moments, -count)[-count:] if count < len(moments) else np.arange(len(moments))
        chosen = np.union1d(last, np.flatnonzero(columns["flags"] & PINNED))
        return [self._load(*self.chain.record(number)) for number in chosen[alive[chosen]].tolist()]

    def _load(self, record_id: str, data: dict[str, Any]) -> R:
        return self._kind.load(self._agent_id, record_id, data)
