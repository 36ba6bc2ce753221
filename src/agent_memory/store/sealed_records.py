"""`SealedRecords`: the records of a chain of segments.

They are loaded one by one, or listed and counted in columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic

import numpy as np

from agent_memory.index.facets import meeting
from agent_memory.index.segment import Chain, ChainPart, hash_id
from agent_memory.index.segment_writer import PINNED, TRUSTS
from agent_memory.index.terms import session_number
from agent_memory.models import ITEM, from_seconds
from agent_memory.models.kind import R

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from agent_memory.index.parts import Masks
    from agent_memory.models import Kind, Listing, RecordCounts, Trace

_LOW: Final = TRUSTS.index("low")
_MOST_LOADED: Final = 2_000
"""Loaded records that are cached."""


@dataclass(frozen=True, slots=True)
class InvalidRecord:
    """A record that breaks the data model.

    Its row, if there is one, has its last valid version.

    Attributes:
        data: Record as the journal has it, with its changes applied.
        why: Reason why it is invalid.
    """

    data: dict[str, Any]
    why: str


class SealedReferences:
    """IDs that sealed records name in one column.

    Args:
        chain: Segments of the records.
        column: Name of the column: "older" or "linked".
    """

    def __init__(self, chain: Chain, column: str) -> None:
        self._chain = chain
        self._column = column
        hashes = (
            (place, np.asarray(segment.columns[f"{column}.hash"])) for place, segment in enumerate(chain.segments)
        )
        self._hashes = [(place, values) for place, values in hashes if len(values)]  # most often there are none

    def __bool__(self) -> bool:
        """Return True if any record names another one."""
        return bool(self._hashes)

    def find_naming(self, record_id: str, *, latest_first: bool = False) -> Iterator[str]:
        """Yield the IDs of records that, by a hash, name another.

        Args:
            record_id: ID of the named record.
            latest_first: True for the reverse order of storing.
        """
        if not self._hashes:
            return
        wanted = np.uint64(hash_id(record_id.encode()))
        in_order = reversed if latest_first else iter
        for place, hashes in in_order(self._hashes):
            begin = int(hashes.searchsorted(wanted))
            if begin == len(hashes) or hashes[begin] != wanted:
                continue
            segment, alive = self._chain.segments[place], self._chain.alive[place]
            rows = segment.columns[f"{self._column}.row"][begin : int(hashes.searchsorted(wanted, side="right"))]
            yield from (segment.id(row) for row in in_order(rows[alive[rows]].tolist()))


class SealedReplacements:
    """Replacements among sealed records, and masks of visible rows.

    Args:
        chain: Segments of the records.

    Attributes:
        references: IDs of the records that they replace.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.references = SealedReferences(chain, "older")
        self._pairs: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        expiring = [segment.columns["expires"] for segment in chain.segments]
        self._first_end = min((float(ends.min()) for ends in expiring if len(ends)), default=np.inf)

    def has_expired(self, before: datetime) -> bool:
        """Return True if any record has expired by that time."""
        moment = before.timestamp()
        return self._first_end <= moment and any(
            bool((alive & (segment.columns["expires"] <= moment)).any())
            for segment, alive in zip(self.chain.segments, self.chain.alive, strict=True)
        )

    def list_ends(self) -> list[datetime]:
        """Return the times at which records expire, in no order."""
        moments: list[float] = []
        for segment, alive in zip(self.chain.segments, self.chain.alive, strict=True):
            ends = segment.columns["expires"]
            moments += ends[alive & np.isfinite(ends)].tolist()
        return [from_seconds(moment) for moment in moments]

    def iter_replaced(self) -> Iterator[str]:
        """Yield the ID of every record that a sealed one replaces."""
        for first, segment, alive in zip(self.chain.firsts, self.chain.segments, self.chain.alive, strict=False):
            rows = segment.columns["older.row"]
            for row in rows[alive[rows]].tolist():
                older = self.chain.record(first + row)[1].get("supersedes")
                if older:
                    yield str(older)

    def mask_replaced(self, now: datetime, overrides: Mapping[str, bool]) -> Masks:
        """Return masks of the rows that an unexpired record replaces; see `mask_visible`."""
        masks = [np.zeros(len(alive), bool) for alive in self.chain.alive]
        if self.references or overrides:
            older, newer = self._find_pairs()
            valid = self.chain.counting() & (self.chain.column("expires") > now.timestamp())
            self._set(masks, older[valid[newer]].tolist(), to=True)
            for number, is_replaced in self._number(overrides):
                self._set(masks, [number], to=is_replaced)
        return masks

    def mask_visible(self, now: datetime, overrides: Mapping[str, bool], *, superseded: bool) -> Masks:
        """Return masks of the rows that a search may find.

        Args:
            now: Time at which expired rows are hidden.
            overrides: By ID, True if a record is replaced, where sealed records alone do not say so rightly.
            superseded: True to find replaced rows, too.
        """
        moment = now.timestamp()
        if moment < self._first_end and (superseded or not (overrides or self.references)):
            return self.chain.alive
        masks = [mask.copy() for mask in self.chain.alive]
        if moment >= self._first_end:
            for mask, segment in zip(masks, self.chain.segments, strict=True):
                mask[segment.columns["expires"] <= moment] = False
        if not superseded:
            older, newer = self._find_pairs()
            unexpired = np.concatenate([np.empty(0, bool), *masks])  # an expired row hides nothing
            self._set(masks, older[unexpired[newer]].tolist(), to=False)
            for number, is_replaced in self._number(overrides):
                self._set(masks, [number], to=bool(unexpired[number]) and not is_replaced)
        return masks

    def _number(self, overrides: Mapping[str, bool]) -> list[tuple[int, bool]]:
        pairs = ((self.chain.find(record_id), is_replaced) for record_id, is_replaced in overrides.items())
        return [(number, is_replaced) for number, is_replaced in pairs if number is not None]

    def _set(self, masks: Masks, numbers: Iterable[int], *, to: bool) -> None:
        for number in numbers:
            place, row = self.chain.locate(number)
            masks[place][row] = to

    def _find_pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of replaced rows and of their replacements.

        A replacement needs enough trust.
        """
        if self._pairs is None:
            older, newer = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
            trust = self.chain.column("trust") if self.chain.segments else np.empty(0, np.uint8)
            for first, segment in zip(self.chain.firsts, self.chain.segments, strict=False):
                hashes, rows = segment.columns["older.hash"], segment.columns["older.row"].astype(np.int64)
                for begin, holder in zip(self.chain.firsts, self.chain.segments, strict=False):
                    places = holder.find_rows(hashes)
                    older.append(places[places >= 0] + begin)
                    newer.append(rows[places >= 0] + first)
            replaced, replacing = np.concatenate(older), np.concatenate(newer)
            is_allowed = (trust[replacing] != _LOW) | (trust[replaced] == _LOW)
            self._pairs = (replaced[is_allowed], replacing[is_allowed])
        return self._pairs


class SealedRecords(Generic[R]):
    """All records that are sealed and have not changed since.

    Args:
        kind: Kind of the records.
        agent_id: Name of the agent.
        chain: Segments of the records; only this object hides rows of it.
        last_change: UTC time of the last sealed change, None if it is unknown.
        invalid: By ID, records that break the data model.
        traces: By ID, traces of records that were forgotten for a reason.

    Attributes:
        notes: Rows that are not items.
        replacements: Replacements among them.
        links: IDs of the records that they are linked to.
        invalid: As given, without records that have changed since.
    """

    def __init__(
        self,
        kind: Kind[R],
        agent_id: str,
        chain: Chain,
        last_change: str | None = None,
        invalid: Mapping[str, InvalidRecord] | None = None,
        traces: Mapping[str, Trace] | None = None,
    ) -> None:
        self.chain = chain
        self.notes = ChainPart(chain, ITEM)
        self.invalid = dict(invalid or {})
        self.traces = dict(traces or {})
        self.last_change = last_change
        self._kind = kind
        self._agent_id = agent_id
        self._loaded: dict[str, R] = {}
        self.replacements = SealedReplacements(chain)
        self.links = SealedReferences(chain, "linked")

    def __len__(self) -> int:
        return len(self.chain)

    # -- loading ------------------------------------------------------------------------------------------------------

    def get(self, record_id: str) -> R | None:
        """Return a record, None if it is unknown or has changed since."""
        record = self._loaded.get(record_id)
        if record is not None:
            return record
        number = self.chain.find(record_id)
        if number is None:
            return None
        if len(self._loaded) >= _MOST_LOADED:
            self._loaded.clear()
        record = self._loaded[record_id] = self._load(number)
        return record

    def iter_records(self, step: int = 1) -> Iterator[R]:
        """Yield every `step`-th record as it is now, loaded when asked for.

        Later changes do not matter.
        """
        return map(self._load, np.flatnonzero(self.chain.counting())[::step].tolist())

    def iter_segments(self, places: Iterable[int]) -> Iterator[R]:
        """Yield the records of some segments, given by their places."""
        for place in places:
            for row in np.flatnonzero(self.chain.alive[place]).tolist():
                yield self._load(self.chain.firsts[place] + row)

    def iter_ids(self) -> Iterator[str]:
        """Yield the IDs of all records, in the order of storing."""
        return map(self._get_id, self.chain.numbers())

    def load_newest(self, count: int, among: Masks) -> list[R]:
        """Return the rows stored last among some, in the order of storing."""
        numbers = np.flatnonzero(np.concatenate([np.empty(0, bool), *among]))
        times = self.chain.column("timestamp")[numbers]
        if count < len(numbers):
            least = np.partition(times, -count)[-count]
            later, equal = numbers[times > least], numbers[times == least]
            numbers = np.sort(np.concatenate([later, equal[len(equal) - (count - len(later)) :]]))
        return [self._load(number) for number in numbers.tolist()]

    def load_recent(self, promotion_threshold: int, count: int) -> list[R]:
        """Return all pinned and at least the `count` most recent records.

        Without items and records of low trust, which no scratchpad shows: after an import, nearly all may be that.

        Args:
            promotion_threshold: Accesses from which on the last access makes a record recent.
            count: Number of records that are not pinned.
        """
        if not self.chain.segments:
            return []
        names = ("timestamp", "promoted", "accessed", "access_count", "flags", "trust")
        columns = {name: self.chain.column(name) for name in names}
        moments = np.maximum(columns["timestamp"], columns["promoted"])
        often = columns["access_count"] >= promotion_threshold
        moments[often] = np.maximum(moments[often], columns["accessed"][often])
        alive = np.concatenate(self.notes.alive) & (columns["trust"] != _LOW)
        moments[~alive] = -np.inf
        last = np.argpartition(moments, -count)[-count:] if count < len(moments) else np.arange(len(moments))
        # Not `np.union1d`, which loads numpy.ma: 8 ms of each start.
        chosen = (columns["flags"] & PINNED) != 0
        chosen[last] = True
        records = [self._load(number) for number in np.flatnonzero(chosen & alive).tolist()]
        if len(self._loaded) + len(records) <= _MOST_LOADED:  # each is asked for by its ID next
            self._loaded |= {record.id: record for record in records}
        return records

    def find_by_text(self, text_hash: str) -> list[R]:
        """Return the records whose text probably has this hexadecimal hash."""
        return [self._load(number) for number in self.chain.saying(bytes.fromhex(text_hash))]

    def has_forgotten(self, text_hash: str) -> bool:
        """Return True if a text of this hexadecimal hash was forgotten."""
        return self.chain.forgot(bytes.fromhex(text_hash))

    # -- changes ------------------------------------------------------------------------------------------------------

    def take(self, record_id: str) -> dict[str, Any] | None:
        """Hide a record before its change; return its raw data."""
        self.invalid.pop(record_id, None)
        number = self.chain.find(record_id)
        if number is None:
            return None
        _, data = self.chain.record(number)
        self.chain.hide(np.array([hash_id(record_id.encode())], np.uint64))
        self._loaded.pop(record_id, None)
        return data

    def hide_all(self) -> None:
        """Hide all records: everything is replayed from the beginning."""
        self.chain.hide_all()
        self.invalid.clear()
        self._loaded.clear()

    def iter_changed(self, seq: int) -> Iterator[str]:
        """Yield the IDs of records changed after a change."""
        for segment, alive in zip(self.chain.segments, self.chain.alive, strict=True):
            if segment.about.last_seq > seq:
                for row in np.flatnonzero(alive & (segment.columns["seq"] > seq)).tolist():
                    yield segment.id(row)

    def get_seq(self, record_id: str) -> int | None:
        """Return the number of a record's last sealed change, or None.

        Also of a record that has changed since.
        """
        for segment in reversed(self.chain.segments):
            row = segment.find_row(record_id)
            if row is not None:
                return int(segment.columns["seq"][row])
        return None

    # -- lists and counts ---------------------------------------------------------------------------------------------

    def list_ids(
        self, listing: Listing, now: datetime, keys: Sequence[tuple[float, float]], overrides: Mapping[str, bool]
    ) -> tuple[list[int | str], int]:
        """Return a page of a list, and the length of the list.

        Args:
            listing: Filters, order and page.
            now: Time at which records are expired.
            keys: Keys of the unsealed records of the list, in the order of storing.
            overrides: As in `SealedReplacements.mask_visible`.

        Returns:
            IDs of sealed records, and places in `keys` of unsealed ones.
        """
        numbers = self._find_listed(listing, now, overrides)
        first, second = self._get_keys(listing, numbers)
        first = np.concatenate([first, [key[0] for key in keys]])
        second = np.concatenate([second, [key[1] for key in keys]])
        # Of equal keys the one stored last comes last here: every order except the oldest first is read backwards.
        order = np.lexsort((second, first))
        if listing.order != "oldest":
            order = order[::-1]
        count = len(numbers)
        page = order[listing.offset : listing.end].tolist()
        return [place - count if place >= count else self._get_id(int(numbers[place])) for place in page], len(order)

    def add_counts(self, tally: RecordCounts, now: datetime, overrides: Mapping[str, bool]) -> None:
        """Add the sealed records to a tally."""
        tally.items += len(self) - len(self.notes)
        tally.records += len(self.notes)
        replaced = self.replacements.mask_replaced(now, overrides)
        for place, (segment, notes) in enumerate(zip(self.chain.segments, self.notes.alive, strict=True)):
            columns, alive = segment.columns, self.chain.alive[place]
            tally.superseded += int((replaced[place] & notes).sum())
            tally.expired += int((notes & (columns["expires"] <= now.timestamp())).sum())
            tally.pinned += int((notes & (columns["flags"] & PINNED > 0)).sum())
            trusts = np.bincount(columns["trust"][notes], minlength=len(TRUSTS)).tolist()
            tally.by_trust.update({trust: count for trust, count in zip(TRUSTS, trusts, strict=True) if count})
            item_times = columns["timestamp"][alive & ~notes]
            if len(item_times):
                last = from_seconds(float(item_times.max()))
                tally.last_item = last if tally.last_item is None else max(last, tally.last_item)
            facets = segment.lists("facets")
            for number, key in enumerate(facets.keys.every()):
                name, _, value = key.decode().partition("\0")
                rows = facets.at(number).rows
                tally.add_facet(name, value, int(notes[rows].sum()), int(alive[rows].sum()))

    def _find_listed(self, listing: Listing, now: datetime, overrides: Mapping[str, bool]) -> NDArray[np.int64]:
        """Return the numbers of the rows of a list."""
        replaced = self.replacements.mask_replaced(now, overrides)
        numbers = [np.empty(0, np.int64)]
        for place, (segment, alive) in enumerate(zip(self.chain.segments, self.chain.alive, strict=True)):
            columns = segment.columns
            expired = columns["expires"] <= now.timestamp()
            states = {"expired": expired, "superseded": replaced[place], "valid": ~(expired | replaced[place])}
            mask = alive & np.any([states[name] for name in listing.states], axis=0)
            if not listing.filters.admits_all:
                mask &= meeting(segment, listing.filters)
            if listing.trust is not None:
                mask &= columns["trust"] == TRUSTS.index(listing.trust)
            if listing.pinned:
                mask &= columns["flags"] & PINNED > 0
            if listing.beginning:
                mask &= segment.strings("ids").beginning(listing.beginning.encode("utf-8", "surrogatepass"))
            if listing.session is not None:
                mask &= columns["session"] == np.uint64(session_number(listing.session) if listing.session else 0)
            numbers.append(np.flatnonzero(mask) + self.chain.firsts[place])
        return np.concatenate(numbers)

    def _get_keys(self, listing: Listing, numbers: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return `Listing.key` of some rows, as two columns."""
        if not len(numbers):
            return np.empty(0), np.empty(0)
        stored = self.chain.column("timestamp")[numbers]
        if listing.order == "used":
            accessed = self.chain.column("accessed")[numbers]
            was_used = accessed > -np.inf
            return was_used.astype(np.float64), np.where(was_used, accessed, stored)
        if listing.order == "accessed":
            return self.chain.column("access_count")[numbers].astype(np.float64), stored
        return stored, np.zeros(len(numbers))

    def _get_id(self, number: int) -> str:
        place, row = self.chain.locate(number)
        return self.chain.segments[place].id(row)

    def _load(self, number: int) -> R:
        return self._kind.load(self._agent_id, *self.chain.record(number))
