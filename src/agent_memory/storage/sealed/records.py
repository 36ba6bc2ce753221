"""`SealedRecords`: the records of a chain of segments, loaded one by one, and which of them may be found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic

import numpy as np

from agent_memory.models.kind import R
from agent_memory.segments import PINNED, TRUSTS, hash_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from numpy.typing import NDArray

    from agent_memory.models import Kind
    from agent_memory.retrieval.sealed_rows import Masks
    from agent_memory.segments import Chain
    from agent_memory.storage.recency import Order

_MOST_KEPT: Final = 2_000
"""Records that are kept once they were loaded."""

_LOW: Final = TRUSTS.index("low")


class SealedRecords(Generic[R]):
    """All records that are sealed and have not changed since.

    Args:
        kind: Of which kind.
        agent_id: Whose.
        chain: Their segments; its rows are hidden here, and by nobody else.
    """

    def __init__(self, kind: Kind[R], agent_id: str, chain: Chain) -> None:
        self.chain = chain
        self._kind = kind
        self._agent_id = agent_id
        self._kept: dict[str, R] = {}
        self._pairs: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        expiring = [segment.columns["expires"] for segment in chain.segments]
        self._first_end = min((float(each.min()) for each in expiring if len(each)), default=np.inf)

    def __len__(self) -> int:
        return len(self.chain)

    def __iter__(self) -> Iterator[R]:
        """Yield all of them, in the order of storing."""
        for number in self.chain.numbers():
            yield self._load(*self.chain.record(number))

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
        """Hide a record that is about to change, and return what the journal had of it; None if there is none."""
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

    def has_expired(self, before: datetime) -> bool:
        """Tell whether there is a record that has expired by that moment."""
        return self._first_end <= before.timestamp()

    def latest(self, order: Order, count: int) -> list[R]:
        """Return all pinned records, and at least the `count` that `order` places last."""
        if not self.chain.segments:
            return []
        columns = {
            name: self.chain.column(name) for name in ("timestamp", "promoted", "accessed", "access_count", "flags")
        }
        moments = np.maximum(columns["timestamp"], columns["promoted"])
        often = columns["access_count"] >= order.promotion_threshold
        moments[often] = np.maximum(moments[often], columns["accessed"][often])
        alive = self.chain.counting()
        moments[~alive] = -np.inf
        last = np.argpartition(moments, -count)[-count:] if count < len(moments) else np.arange(len(moments))
        chosen = np.union1d(last, np.flatnonzero(columns["flags"] & PINNED))
        return [self._load(*self.chain.record(number)) for number in chosen[alive[chosen]].tolist()]

    # -- what replaced what -------------------------------------------------------------------------------------------

    @property
    def replaces_any(self) -> bool:
        """Whether any of them replaces another record."""
        return any(len(segment.columns["older.hash"]) for segment in self.chain.segments)

    def replacing(self, record_id: str) -> list[str]:
        """Return the ids of those that say they replace a record, in the order of storing."""
        wanted = np.uint64(hash_of(record_id.encode()))
        found = []
        for segment, alive in zip(self.chain.segments, self.chain.alive, strict=True):
            hashes = segment.columns["older.hash"]
            begin, end = np.searchsorted(hashes, wanted), np.searchsorted(hashes, wanted, side="right")
            rows = segment.columns["older.row"][begin:end]
            found += [segment.id(row) for row in rows[alive[rows]].tolist()]
        return found

    def replaced(self) -> Iterator[str]:
        """Yield the id of every record that one of them replaces."""
        for first, segment, alive in zip(self.chain.firsts, self.chain.segments, self.chain.alive, strict=False):
            rows = segment.columns["older.row"]
            for row in rows[alive[rows]].tolist():
                record = self._load(*self.chain.record(first + row))
                if record.supersedes is not None:
                    yield record.supersedes

    def shown(self, now: datetime, replaced: Collection[str], *, superseded: bool) -> Masks:
        """Return which rows may be found.

        Args:
            now: Those that have expired by then may not.
            replaced: Ids of those that a record replaces that is not sealed.
            superseded: Let those be found that were replaced, too.
        """
        moment = now.timestamp()
        if moment < self._first_end and (superseded or not (replaced or self.replaces_any)):
            return self.chain.alive
        masks = [mask.copy() for mask in self.chain.alive]
        if moment >= self._first_end:
            for mask, segment in zip(masks, self.chain.segments, strict=True):
                mask[segment.columns["expires"] <= moment] = False
        if not superseded:
            older, newer = self._replacements()
            found = np.concatenate([np.empty(0, bool), *masks])  # one that has expired hides nothing
            self._clear(masks, older[found[newer]].tolist())
            self._clear(masks, [number for one in replaced if (number := self.chain.find(one)) is not None])
        return masks

    def _clear(self, masks: Masks, numbers: Iterable[int]) -> None:
        for number in numbers:
            at, row = self.chain.place_of(number)
            masks[at][row] = False

    def _replacements(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of rows that are replaced, and of those that replace them, where trust allows it."""
        if self._pairs is None:
            older, newer = [], []
            trust = self.chain.column("trust") if self.chain.segments else np.empty(0, np.uint8)
            for first, segment in zip(self.chain.firsts, self.chain.segments, strict=False):
                hashes, rows = segment.columns["older.hash"], segment.columns["older.row"].astype(np.int64)
                for begin, other in zip(self.chain.firsts, self.chain.segments, strict=False):
                    at = other.rows_of(hashes)
                    there = at >= 0
                    older.append(at[there] + begin)
                    newer.append(rows[there] + first)
            every = np.concatenate([np.empty(0, np.int64), *older]), np.concatenate([np.empty(0, np.int64), *newer])
            may = (trust[every[1]] != _LOW) | (trust[every[0]] == _LOW)
            self._pairs = (every[0][may], every[1][may])
        return self._pairs

    def _load(self, record_id: str, data: dict[str, Any]) -> R:
        return self._kind.load(self._agent_id, record_id, data)
