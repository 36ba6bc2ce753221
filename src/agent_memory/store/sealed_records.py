"""`SealedRecords`: the records of a chain of segments, loaded one by one, or listed and counted in their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic

import numpy as np

from agent_memory.index.facets import meeting
from agent_memory.index.segment import Part, hash_of
from agent_memory.index.segment_writer import PINNED, TRUSTS
from agent_memory.index.terms import session_number
from agent_memory.models import ITEM, from_seconds
from agent_memory.models.kind import R

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from agent_memory.index.parts import Masks
    from agent_memory.index.segment import Chain, Segment
    from agent_memory.models import Kind, Listing, RecordCounts, Trace
    from agent_memory.store.lookups import Order

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


def count_sealed(chain: Chain, notes: Part, tally: RecordCounts, now: datetime) -> None:
    """Add sealed records to a tally, but for what is superseded."""
    for segment, alive in zip(notes.segments, notes.alive, strict=True):
        tally.expired += int((alive & (segment.columns["expires"] <= now.timestamp())).sum())
        tally.pinned += int((alive & (segment.columns["flags"] & PINNED > 0)).sum())
        trusts = np.bincount(segment.columns["trust"][alive], minlength=len(TRUSTS)).tolist()
        tally.by_trust.update({trust: count for trust, count in zip(TRUSTS, trusts, strict=True) if count})
    for segment, alive, every in zip(notes.segments, notes.alive, chain.alive, strict=True):
        times = segment.columns["timestamp"][every & ~alive]
        if len(times):
            last = from_seconds(float(times.max()))
            tally.last_item = last if tally.last_item is None else max(last, tally.last_item)
    for segment, alive, every in zip(notes.segments, notes.alive, chain.alive, strict=True):
        facets = segment.lists("facets")
        for number, key in enumerate(facets.keys.every()):
            name, _, value = key.decode().partition("\0")
            rows = facets.at(number).rows
            tally.add_facet(name, value, int(alive[rows].sum()), int(every[rows].sum()))


class SealedLinks:
    """What sealed records are linked to.

    Args:
        chain: Their segments.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        hashes = ((at, np.asarray(segment.columns["linked.hash"])) for at, segment in enumerate(chain.segments))
        self._targets = [(at, each) for at, each in hashes if len(each)]  # most often nothing is linked

    def leading_to(self, record_id: str) -> Iterator[str]:
        """Yield the ids of those that are probably linked to a record, those that were sealed last first."""
        if not self._targets:
            return
        wanted = np.uint64(hash_of(record_id.encode()))
        for at, hashes in reversed(self._targets):
            begin = int(hashes.searchsorted(wanted))
            if begin == len(hashes) or hashes[begin] != wanted:
                continue
            segment, alive = self._chain.segments[at], self._chain.alive[at]
            rows = segment.columns["linked.row"][begin : int(hashes.searchsorted(wanted, side="right"))]
            yield from (segment.id(row) for row in reversed(rows[alive[rows]].tolist()))


def order_of(
    sealed: SealedRecords[Any],
    listing: Listing,
    now: datetime,
    keys: Sequence[tuple[float, float]],
    replaced: Mapping[str, bool],
) -> tuple[list[int | str], int]:
    """Return what is to be shown, in order, and how many records there are in all.

    Args:
        sealed: The records.
        listing: Which of them.
        now: The present.
        keys: Those of the records that are not sealed and are listed, in the order of storing.
        replaced: By id, whether a record is replaced, where that does not follow from what is sealed alone.

    Returns:
        The ids of sealed records, and the places in `keys` of others.
    """
    numbers = _admitted(sealed, listing, now, replaced)
    first, second = _keys(sealed.chain, listing, numbers)
    first = np.concatenate([first, [key[0] for key in keys]])
    second = np.concatenate([second, [key[1] for key in keys]])
    # Among equals the one stored last is the last here: all is read backwards but for the oldest first.
    order = np.lexsort((second, first))
    if listing.order != "oldest":
        order = order[::-1]
    shown = order[listing.offset : listing.end].tolist()
    chain, count = sealed.chain, len(numbers)

    def named(place: int) -> int | str:
        if place >= count:
            return place - count
        at, row = chain.place_of(int(numbers[place]))
        return chain.segments[at].id(row)

    return [named(place) for place in shown], len(order)


def _admitted(
    sealed: SealedRecords[Any], listing: Listing, now: datetime, replaced: Mapping[str, bool]
) -> NDArray[np.int64]:
    """Return the numbers of the rows that are listed."""
    chain = sealed.chain
    superseded = sealed.replacements.replaced_rows(now, replaced)
    found = []
    for at, (segment, alive) in enumerate(zip(chain.segments, chain.alive, strict=True)):
        mask = alive & _in_state(segment, superseded[at], listing, now)
        if not listing.filters.admits_all:
            mask &= meeting(segment, listing.filters)
        if listing.trust is not None:
            mask &= segment.columns["trust"] == TRUSTS.index(listing.trust)
        if listing.pinned:
            mask &= segment.columns["flags"] & PINNED > 0
        if listing.beginning:
            mask &= segment.strings("ids").beginning(listing.beginning.encode("utf-8", "surrogatepass"))
        if listing.session is not None:
            mask &= segment.columns["session"] == np.uint64(session_number(listing.session) if listing.session else 0)
        found.append(np.flatnonzero(mask) + chain.firsts[at])
    return np.concatenate([np.empty(0, np.int64), *found])


def _in_state(segment: Segment, superseded: NDArray[np.bool_], listing: Listing, now: datetime) -> NDArray[np.bool_]:
    expired = segment.columns["expires"] <= now.timestamp()
    states = {"expired": expired, "superseded": superseded, "valid": ~(expired | superseded)}
    found = np.zeros(len(segment), bool)
    for one in listing.states:
        found |= states[one]
    return found


def _keys(chain: Chain, listing: Listing, numbers: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return `Listing.key` of some rows, as two columns."""
    if not len(numbers):
        return np.empty(0), np.empty(0)
    stored = chain.column("timestamp")[numbers]
    if listing.order == "used":
        accessed = chain.column("accessed")[numbers]
        was = accessed > -np.inf
        return was.astype(np.float64), np.where(was, accessed, stored)
    if listing.order == "accessed":
        return chain.column("access_count")[numbers].astype(np.float64), stored
    return stored, np.zeros(len(numbers))


_LOW: Final = TRUSTS.index("low")


class SealedReplacements:
    """What sealed records say they replace.

    Args:
        chain: Their segments.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._pairs: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        expiring = [segment.columns["expires"] for segment in chain.segments]
        self._first_end = min((float(each.min()) for each in expiring if len(each)), default=np.inf)
        hashes = ((at, np.asarray(segment.columns["older.hash"])) for at, segment in enumerate(chain.segments))
        self._older = [(at, each) for at, each in hashes if len(each)]  # most often nothing replaces anything

    def has_expired(self, before: datetime) -> bool:
        """Tell whether there is a record that has expired by that moment."""
        moment = before.timestamp()
        return self._first_end <= moment and any(
            bool((alive & (segment.columns["expires"] <= moment)).any())
            for segment, alive in zip(self.chain.segments, self.chain.alive, strict=True)
        )

    def ends(self) -> list[datetime]:
        """Return when those that count expire, of those that do, in no order."""
        moments: list[float] = []
        for segment, alive in zip(self.chain.segments, self.chain.alive, strict=True):
            ends = segment.columns["expires"]
            moments += ends[alive & np.isfinite(ends)].tolist()
        return [from_seconds(each) for each in moments]

    @property
    def replaces_any(self) -> bool:
        """Whether any of them replaces another record."""
        return bool(self._older)

    def replacing(self, record_id: str) -> list[str]:
        """Return the ids of those that say they replace a record, in the order of storing."""
        if not self._older:
            return []
        wanted = np.uint64(hash_of(record_id.encode()))
        found = []
        for at, hashes in self._older:
            begin = int(hashes.searchsorted(wanted))
            if begin == len(hashes) or hashes[begin] != wanted:
                continue
            segment, alive = self.chain.segments[at], self.chain.alive[at]
            rows = segment.columns["older.row"][begin : int(hashes.searchsorted(wanted, side="right"))]
            found += [segment.id(row) for row in rows[alive[rows]].tolist()]
        return found

    def replaced(self) -> Iterator[str]:
        """Yield the id of every record that one of them replaces."""
        for first, segment, alive in zip(self.chain.firsts, self.chain.segments, self.chain.alive, strict=False):
            rows = segment.columns["older.row"]
            for row in rows[alive[rows]].tolist():
                older = self.chain.record(first + row)[1].get("supersedes")
                if older:
                    yield str(older)

    def how_many(self, now: datetime, replaced: Mapping[str, bool], among: Masks) -> int:
        """Return how many of some rows are replaced, by any row that counts or by those that are not sealed."""
        masks = zip(self.replaced_rows(now, replaced), among, strict=True)
        return sum(int((mask & alive).sum()) for mask, alive in masks)

    def replaced_rows(self, now: datetime, replaced: Mapping[str, bool]) -> Masks:
        """Return which rows are replaced, by one that has not expired; see `shown`."""
        masks = [np.zeros(len(alive), bool) for alive in self.chain.alive]
        if self.replaces_any or replaced:
            older, newer = self._replacements()
            valid = self.chain.counting() & (self.chain.column("expires") > now.timestamp())
            self._set(masks, older[valid[newer]].tolist(), to=True)
            for number, is_replaced in self._numbers(replaced):
                self._set(masks, [number], to=is_replaced)
        return masks

    def shown(self, now: datetime, replaced: Mapping[str, bool], *, superseded: bool) -> Masks:
        """Return which rows may be found.

        Args:
            now: Those that have expired by then may not.
            replaced: By id, whether a record is replaced, where that does not follow from these alone.
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
            self._set(masks, older[found[newer]].tolist(), to=False)
            for number, is_replaced in self._numbers(replaced):
                self._set(masks, [number], to=bool(found[number]) and not is_replaced)
        return masks

    def _numbers(self, replaced: Mapping[str, bool]) -> list[tuple[int, bool]]:
        every = ((self.chain.find(one), is_replaced) for one, is_replaced in replaced.items())
        return [(number, is_replaced) for number, is_replaced in every if number is not None]

    def _set(self, masks: Masks, numbers: Iterable[int], *, to: bool) -> None:
        for number in numbers:
            at, row = self.chain.place_of(number)
            masks[at][row] = to

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
