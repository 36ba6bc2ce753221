"""`State`: the records of one kind as they are now, replayed from the log, and what follows from them. Pure.

Everything here is derived from the log's entries, so another implementation may keep it otherwise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, Generic, cast

import pydantic
from typing_extensions import override

from agent_memory.journal import Records, apply_change
from agent_memory.models import Trace, content_hash, describe, get_duplicate_key
from agent_memory.models.kind import R
from agent_memory.models.record_lists import salted_hash
from agent_memory.store.lookups import Counted, Linking, Order, Recency, Replacements

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from agent_memory.journal import Change, Entry, JournalUpdate
    from agent_memory.models import Document, Kind, Record
    from agent_memory.store.sealed_records import SealedRecords

_NO_CHANGE: Final = frozenset({"touch", "mark"})
"""Operations that change nothing a record says."""
_REACH: Final = 4
"""How many times as many sealed records as a scratchpad takes are looked at first; some may be no longer valid."""


class State(Generic[R]):
    """All records of one kind.

    Four questions are what other parts build on, however the records are kept:

    - `get(id)`: one record, whole.
    - `recent(order, now)`: what a scratchpad is chosen from.
    - `columns(ids)`: what filters, order and ranking need of records; a search index keeps it, this does not.
    - `since(seq)`: which records an index that was built at `seq` has to look at again.

    Args:
        kind: Of which kind.
        agent_id: Whose.
        sealed: Those that are not replayed; None where the log is read from its beginning.

    Attributes:
        kind, agent_id, sealed: As given.
        table: Those that are not sealed, or have changed since.
        last_change: When the last change was made, UTC as text; None without any.
        expiring: Ids of those of these that expire.
        replacements: Which record replaced which.
        links: Which records are linked to which.
        changed_at: Record id to the seq of its last change after what is sealed; accesses do not count. Gone records
            stay listed.
        last_change: When the last of these changes was made, UTC as text; None without any.
    """

    def __init__(self, kind: Kind[R], agent_id: str, sealed: SealedRecords[R] | None = None) -> None:
        self.kind = kind
        self.agent_id = agent_id
        self.sealed = sealed
        self.table = RecordTable(kind, agent_id, sealed)
        self._recency: dict[Order, tuple[Recency, int]] = {}
        self._begin()

    def _begin(self) -> None:
        self.replacements = Replacements(self.records, self.sealed.replacements if self.sealed is not None else None)
        self.links = Linking(self.records, self.sealed.links if self.sealed is not None else None)
        self.changed_at: dict[str, int] = {}
        self.last_change = self.sealed.last_change if self.sealed is not None else None
        self.expiring: set[str] = set()
        self._texts = _Texts(self.kind, self.sealed)
        self.counted = Counted(self.table.records)

    @property
    def records(self) -> Mapping[str, R]:
        """All of them by id, in the order of storing or, where some are sealed, of their last change."""
        return self.table.records if self.sealed is None else AllRecords(self.sealed, self.table.records)

    @property
    def unsealed(self) -> int:
        """How many records have changed or were accessed since what is sealed, gone ones too: what a start replays."""
        return len(self.table.touched_at)

    def get(self, record_id: str) -> R | None:
        """Return a record, also a superseded or expired one, or None."""
        return self.records.get(record_id)

    def absorb(self, update: JournalUpdate) -> Collection[str]:
        """Take in what a look at the log brought; return the ids of what changed by it, gone records included."""
        before: Mapping[str, R] = {}
        if update.reset:
            before = self.table.records
            self.table.begin_again()
            self._begin()
        for entry in update.entries:
            if changes := {change.id: entry.seq for change in entry.changes if _counts(change, self.kind.name)}:
                self.changed_at |= changes
                self.last_change = entry.at
        changed = self.table.apply(update.entries)
        self.replacements.note(changed)
        self.links.note(changed)
        self.counted.note(changed)
        there = [record for record in changed.values() if record is not None]
        self._texts.note(there)
        self.expiring.update(record.id for record in there if record.expires_at is not None)
        if update.reset:  # most often after a compaction, and nothing differs
            changed = dict.fromkeys(before.keys() - self.table.records.keys())
            changed |= {key: record for key, record in self.table.records.items() if before.get(key) is not record}
            if self.sealed is not None:
                self._recency.clear()
        for order, _ in self._recency.values():
            order.update(changed)
        return changed.keys()

    def adopt(self, sealed: SealedRecords[R]) -> list[str]:
        """Take new segments into use, whose changes are all known here; return the ids that are sealed now."""
        gone = self.table.adopt(sealed)
        self.sealed = sealed
        self.changed_at = {one: seq for one, seq in self.changed_at.items() if seq > sealed.chain.last_seq}
        self.replacements = Replacements(self.records, sealed.replacements)
        self.replacements.note(self.table.records)
        self.links = Linking(self.records, sealed.links)
        self.links.note(self.table.records)
        self.expiring = {one for one, record in self.table.records.items() if record.expires_at is not None}
        self._texts = _Texts(self.kind, self.sealed)
        self.counted = Counted(self.table.records)
        self._recency.clear()
        return gone

    def columns(self, record_ids: Iterable[str]) -> Iterator[tuple[str, Document | None]]:
        """Yield each id with the text, facets, times, accesses and trust of its record.

        None for one that is gone or, after a replay, sealed as it is: segments have columns of their own.
        """
        for record_id in record_ids:
            record = self.table.records.get(record_id)
            yield record_id, None if record is None else self.kind.document(record)

    def since(self, seq: int) -> set[str]:
        """Return the ids of what was stored, changed or deleted after that change; accesses do not count."""
        changed = {record_id for record_id, changed in self.changed_at.items() if changed > seq}
        if self.sealed is not None:
            changed.update(self.sealed.since(seq))
            changed.update(
                one
                for one in self.table.records.keys() - self.changed_at.keys()
                if (self.sealed.seq_of(one) or 0) > seq
            )
        return changed

    def has_expired(self, before: datetime) -> bool:
        """Tell whether there is a record that expired before that moment."""
        if self.sealed is not None and self.sealed.replacements.has_expired(before):
            return True
        expiring = (self.records.get(record_id) for record_id in self.expiring)
        return any(record is not None and record.is_expired(before) for record in expiring)

    def is_valid(self, record: R, now: datetime) -> bool:
        """Tell whether a record that is known is neither expired nor superseded."""
        return not record.is_expired(now) and self.replacements.of(record.id, now) is None

    def latest(self, limit: int, now: datetime) -> list[R]:
        """Return the valid records that were stored last, the last first; no items."""
        last_first = reversed(self.table.records.values())  # and so among equal times: sorting is stable
        newest = sorted(last_first, key=_stored, reverse=True)
        found = list(islice((one for one in newest if not one.is_item and self.is_valid(one, now)), limit))
        if self.sealed is not None:
            shown = self.sealed.replacements.shown(now, self.replacements.beside_sealed(now), superseded=False)
            found += reversed(self.sealed.stored_last(limit, self.sealed.notes.of(shown)))
        return sorted(found, key=_stored, reverse=True)[:limit]

    def recent(self, order: Order, now: datetime) -> list[R]:
        """Return what a scratchpad is chosen from; see `RecordStorage.recent`."""
        records = self.records

        def counts(record_id: str) -> bool:
            record = records[record_id]
            return self.is_valid(record, now) and order.admits(record)

        kept, reach = self._recency.get(order, (None, _REACH * order.size))
        while True:
            if kept is None:
                kept = Recency(order)
                sealed = [] if self.sealed is None else self.sealed.latest(order, reach)
                kept.update({record.id: record for record in sealed} | self.table.records)
                self._recency[order] = (kept, reach)
            chosen = kept.choose(counts)
            if self.sealed is None or len(chosen) >= order.size or reach >= len(self.sealed):
                return [records[record_id] for record_id in chosen]
            kept, reach = None, reach * _REACH  # too many of the latest are no longer to be shown

    def same_text(self, text: str, now: datetime, *, items: bool = False, group: str = "") -> R | None:
        """Return the valid record with the same text, or None.

        Args:
            text: Text to look for; white space and Unicode composition are ignored, case is not.
            now: Present moment, which decides what has expired.
            items: True to look among items, False among all other records.
            group: Group that the record belongs to, "" for none.
        """
        key = get_duplicate_key(text)
        candidates = self._texts.saying(self.table.records, text)
        same = (record for record in candidates if get_duplicate_key(self.kind.text_of(record)) == key)
        same = (record for record in same if record.belongs_to == group and record.is_item is items)
        return next((record for record in same if self.is_valid(record, now)), None)

    def was_forgotten(self, text: str) -> bool:
        """Tell whether a record with this text was deleted, or left a trace, and nothing with it is known now."""
        wanted = content_hash(text)
        was = wanted in self.table.forgotten or (self.sealed is not None and self.sealed.forgot(wanted))
        was = was or released(self, text) is not None
        return was and not self._texts.saying(self.table.records, text)


@dataclass(frozen=True, slots=True)
class Changed:
    """What changed: pairs of the number of the last change and the record's id, in their order.

    Attributes:
        records: These.
        last: Number of the last change that was read, of whatever record.
    """

    records: list[tuple[int, str]]
    last: int


def released(state: State[Any], text: str) -> Trace | None:
    """Return the last trace that a record with this text left; None where there is none."""
    traces = state.table.traces
    if not traces:
        return None
    wanted = {salt: salted_hash(text, salt) for salt in {trace.salt for trace in traces.values()}}
    found = [trace for trace in traces.values() if trace.hash == wanted[trace.salt]]
    return max(found, key=lambda trace: trace.at, default=None)


def seq_of(state: State[Any], record_id: str) -> int:
    """Return the number of a known record's last change; accesses do not count."""
    known = state.changed_at.get(record_id)
    if known is None and state.sealed is not None:
        known = state.sealed.seq_of(record_id)
    assert known is not None, "what is here was stored once"
    return known


def snapshot(state: State[R]) -> Iterator[R]:
    """Return all records as they are now, to be loaded one by one whatever changes meanwhile."""
    sealed = state.sealed.snapshot() if state.sealed is not None else ()
    return chain(sealed, list(state.table.records.values()))


def _counts(change: Change, kind: str) -> bool:
    """Tell whether a change is more than an access, and of a kind: others may lie in the same journal."""
    return change.op not in _NO_CHANGE and change.kind == kind


def _stored(record: Record) -> datetime:
    return record.timestamp


class AllRecords(Mapping[str, R]):
    """Sealed records and those that came or changed since, as one mapping; a sealed one is loaded when asked for.

    Args:
        sealed: The ones; those that changed are hidden there.
        unsealed: The others.
    """

    def __init__(self, sealed: SealedRecords[R], unsealed: Mapping[str, R]) -> None:
        self._sealed = sealed
        self._unsealed = unsealed

    def __getitem__(self, record_id: str) -> R:
        found = self._unsealed.get(record_id)
        if found is None:
            found = self._sealed.get(record_id)
        if found is None:
            raise KeyError(record_id)
        return found

    @override
    def __contains__(self, record_id: object) -> bool:
        """Tell so without loading the record."""
        return record_id in self._unsealed or (
            isinstance(record_id, str) and self._sealed.chain.find(record_id) is not None
        )

    def __iter__(self) -> Iterator[str]:
        yield from self._sealed.ids()
        yield from self._unsealed

    def __len__(self) -> int:
        return len(self._sealed) + len(self._unsealed)


class _Texts(Generic[R]):
    """Which records say what, read when it is first asked for."""

    def __init__(self, kind: Kind[R], sealed: SealedRecords[R] | None) -> None:
        self._kind = kind
        self._sealed = sealed
        self._ids: dict[str, dict[str, None]] | None = None

    def note(self, records: Iterable[R]) -> None:
        """Learn what records say now."""
        if self._ids is not None:
            for record in records:
                self._ids.setdefault(content_hash(self._kind.text_of(record)), {})[record.id] = None

    def saying(self, records: Mapping[str, R], text: str) -> list[R]:
        """Return all records that say this now, expired and replaced ones too; `records` are those not sealed."""
        if self._ids is None:
            self._ids = {}
            self.note(records.values())
        wanted = content_hash(text)
        # An id stays listed when its record is changed or deleted, so each one is looked at again.
        listed = (records.get(one) for one in self._ids.get(wanted, ()))
        known = self._sealed.saying(wanted) if self._sealed is not None else []
        every = [*known, *(record for record in listed if record is not None)]
        return [record for record in every if content_hash(self._kind.text_of(record)) == wanted]


FORGOTTEN = "forgotten_texts"
"""In the data of a mark: hashes of texts that were forgotten, where a log keeps no text of them."""
RELEASED = "released"
"""In the data of a mark: the trace of a record that was forgotten for a reason; None where it is there again."""
MOVED = "moved"
"""In the data of a deletion: which other journal of the folder has the record now; its text was not forgotten."""
TRIMMED = "trimmed"
"""In the data of a mark before a patch that deletes clauses of a text. Only journals of earlier versions have it."""


class RecordTable(Generic[R]):
    """All records of one kind, as they are now.

    Args:
        kind: Of which kind; changes of others are left aside.
        agent_id: Whose.
        sealed: Records that are not replayed; one that changes is taken from there.

    Attributes:
        records: By id, in the order of storing; without those that are sealed.
        invalid: Ids whose record breaks the data model, with the reason; such a record is kept in the journal.
        forgotten: Hashes of the texts that were deleted.
        traces: By id, what stays of those that were forgotten for a reason.
        touched_at: Id to the seq of the last change or access, of all that were replayed, gone records too.
    """

    def __init__(self, kind: Kind[R], agent_id: str, sealed: SealedRecords[R] | None = None) -> None:
        self._kind = kind
        self._agent_id = agent_id
        self._sealed = sealed
        self._before: tuple[Records, dict[str, R]] = ({}, {})
        self._clear()
        self.traces: dict[str, Trace] = {} if sealed is None else dict(sealed.traces)
        self._note_invalid(sealed)

    def _clear(self) -> None:
        self.records: dict[str, R] = {}
        self.invalid: dict[str, str] = {}
        self.forgotten: set[str] = set()
        self.touched_at: dict[str, int] = {}
        self._raw: Records = {}

    def begin_again(self) -> None:
        """Forget everything, before a replay from the beginning.

        What is found again in it, as after a compaction, need not be checked again: that takes most of a replay's time.
        """
        whole = {record_id: record for record_id, record in self.records.items() if record_id not in self.invalid}
        self._before = (self._raw, whole)
        self._clear()
        self.traces = {}
        if self._sealed is not None:
            self._sealed.begin_again()

    def _note_invalid(self, sealed: SealedRecords[R] | None) -> None:
        if sealed is not None:
            self.invalid |= {record_id: each.why for record_id, each in sealed.invalid.items()}

    def adopt(self, sealed: SealedRecords[R]) -> list[str]:
        """Keep only what came behind new segments; return the ids of the rest, which are sealed now."""
        last = sealed.chain.last_seq
        gone = [one for one, seq in self.touched_at.items() if seq <= last]
        for one in gone:
            del self.touched_at[one]
            self._raw.pop(one, None)
            self.records.pop(one, None)
        for one in self.touched_at:
            sealed.take(one)
        self.invalid = {one: why for one, why in self.invalid.items() if one in self.touched_at}
        self._note_invalid(sealed)
        self._sealed = sealed
        return gone

    def as_in_journal(self, record_id: str) -> dict[str, Any]:
        """Return what the journal says of one of `records` or `invalid`, its changes applied."""
        if self._sealed is not None and (known := self._sealed.invalid.get(record_id)) is not None:
            return known.data
        return self._raw[record_id]

    def apply(self, entries: Collection[Entry]) -> dict[str, R | None]:
        """Replay `entries`; return each record that changed, None for one that is gone.

        A change that would break the data model leaves the record as it was and is noted in `invalid`.
        """
        changed: dict[str, R | None] = {}  # the record as its last change knows it
        name, raw = self._kind.name, self._raw
        sealed = self._sealed_among(entries)
        broken_before = {record_id: self.as_in_journal(record_id) for record_id in self.invalid}
        for entry in entries:
            for change in entry.changes:
                if change.kind != name:
                    continue
                if change.id in sealed and change.id not in raw and change.op != "mark":
                    self._take_sealed(change.id)
                if change.op in {"delete", "mark"}:
                    self._note_forgotten(change)
                elif change.op == "put":
                    self.traces.pop(change.id, None)
                if apply_change(raw, change, entry.at):
                    changed[change.id] = cast("R | None", change.record)
                    self.touched_at[change.id] = entry.seq
        rebuilt = {record_id: self._rebuild(record_id, record) for record_id, record in changed.items()}
        self._before = ({}, {})
        if broken := rebuilt.keys() & self.invalid.keys():
            rebuilt |= self._last_good(broken, entries, broken_before)
        return rebuilt

    def _sealed_among(self, entries: Collection[Entry]) -> set[str]:
        if self._sealed is None:
            return set()
        ids = {change.id for entry in entries for change in entry.changes} - self._raw.keys()
        return self._sealed.chain.among(ids) | (ids & self._sealed.invalid.keys())

    def _take_sealed(self, record_id: str) -> None:
        if self._sealed is None:
            return
        invalid, data = self._sealed.invalid.get(record_id), self._sealed.take(record_id)
        if data is not None:
            self._raw[record_id] = data
            self._rebuild(record_id)
        if invalid is not None:
            self._raw[record_id], self.invalid[record_id] = invalid.data, invalid.why

    def _note_forgotten(self, change: Change) -> None:
        goes = (change.op == "delete" and MOVED not in change.data) or TRIMMED in change.data
        text = self._raw.get(change.id, {}).get(self._kind.text) if goes else None
        if isinstance(text, str):
            self.forgotten.add(content_hash(text))
        if change.op == "delete":
            return
        self.forgotten.update(change.data.get(FORGOTTEN, ()))
        if RELEASED in change.data:
            said = change.data[RELEASED]
            trace = Trace.from_json(change.id, said) if isinstance(said, dict) else None
            if trace is None:
                self.traces.pop(change.id, None)
            else:
                self.traces[change.id] = trace

    def _rebuild(self, record_id: str, record: R | None = None) -> R | None:
        """Return a record from what the journal has, None for a deleted or invalid one.

        Args:
            record_id: ID of the record.
            record: The record, where it was validated before it was written.
        """
        raw = self._raw.get(record_id)
        if raw is None:
            self.records.pop(record_id, None)
            self.invalid.pop(record_id, None)
            return None
        old_raw, old_records = self._before
        if record is None and old_raw.get(record_id) == raw:
            record = old_records.get(record_id)
        if record is None:
            try:
                record = self._kind.load(self._agent_id, record_id, raw)
            except pydantic.ValidationError as error:
                self.invalid[record_id] = describe(error)
                return None
        self.invalid.pop(record_id, None)
        self.records[record_id] = record
        return record

    def _last_good(
        self, broken: Collection[str], entries: Collection[Entry], broken_before: Records
    ) -> dict[str, R | None]:
        """Return each broken record as it was before the change that broke it, None where it never was whole.

        Changes that can be made to that are, so that it is the same however many entries are read at once. No program
        of ours writes such a change, so replaying twice is no loss.

        Args:
            broken: Ids.
            entries: Those that were just applied.
            broken_before: What the journal said before them of those that were broken already.
        """
        good: dict[str, R | None] = {record_id: self.records.get(record_id) for record_id in broken}
        said: Records = {record_id: record.to_record() for record_id, record in good.items() if record} | broken_before
        for entry in entries:
            for change in entry.changes:
                if change.kind != self._kind.name or change.id not in good:
                    continue
                last = good[change.id]
                whole: Records = {change.id: last.to_record()} if last is not None else {}
                for records in (whole, said):  # all that was said counts, where that is a record
                    if apply_change(records, change, entry.at):
                        with contextlib.suppress(pydantic.ValidationError):
                            known = records.get(change.id)
                            good[change.id] = self._kind.load(self._agent_id, change.id, known) if known else None
        for record_id, record in good.items():
            if record is None:
                self.records.pop(record_id, None)
            else:
                self.records[record_id] = record
        return good
