"""`State`: the records of one kind, replayed from the log. Pure.

Everything here is derived from the log's entries, so another implementation may hold it otherwise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, cast

import pydantic
from typing_extensions import override

from agent_memory.journal import Change, Entry, JournalUpdate, Records, apply_change
from agent_memory.models import Trace, content_hash, describe, get_duplicate_key
from agent_memory.models.kind import R
from agent_memory.models.record_lists import salted_hash
from agent_memory.models.search import EVERYTHING
from agent_memory.store.lookups import LinkIndex, RecencyIndex, RecencyRule, RecordCounter, ReplacementIndex

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from agent_memory.models import Document, Kind, SearchFilters
    from agent_memory.store.sealed_records import SealedRecords

FORGOTTEN: Final = "forgotten_texts"
"""In the data of a mark: hashes of texts that were forgotten, where a log has no text of them."""
RELEASED: Final = "released"
"""In the data of a mark: the trace of a record that was forgotten for a reason; None once the record exists again."""
MOVED: Final = "moved"
"""In the data of a deletion: the other journal of the folder that has the record now; its text was not forgotten."""
TRIMMED: Final = "trimmed"
"""In the data of a mark before a patch that deletes clauses of a text. Only journals of earlier versions have it."""
_NO_CHANGE: Final = frozenset({"touch", "mark"})
"""Operations that change nothing a record says."""
_REACH: Final = 4
"""Sealed records that are loaded first for each place of a scratchpad; some may be no longer valid."""


class State(Generic[R]):
    """All records of one kind.

    Other parts build on four questions, however the records are stored:

    - `get(id)`: one record.
    - `list_recent(rule, now)`: the candidates for a scratchpad.
    - `iter_documents(ids)`: fields of records for filters, order and ranking, which a search index stores.
    - `since(seq)`: the records that an index built at `seq` has to update.

    Args:
        kind: Kind of the records.
        agent_id: Name of the agent.
        sealed: Records that are not replayed; None if the log is read from its beginning.

    Attributes:
        kind, agent_id, sealed: As given.
        table: Records that are not sealed, or have changed since.
        replacements: Records that replaced others.
        links: Records that are linked to others.
        counter: Counts of the records of `table`.
        expiring: IDs of the records of `table` that expire.
        changed_at: By ID, the number of a record's last unsealed change, deletions included; accesses do not count.
        last_change: UTC time of the last change, or None.
    """

    def __init__(self, kind: Kind[R], agent_id: str, sealed: SealedRecords[R] | None = None) -> None:
        self.kind = kind
        self.agent_id = agent_id
        self.sealed = sealed
        self.table = RecordTable(kind, agent_id, sealed)
        self._recency: dict[RecencyRule, tuple[RecencyIndex, int]] = {}
        self.last_change: str | None = None
        self._clear_lookups()

    def _clear_lookups(self) -> None:
        sealed = self.sealed
        self.replacements = ReplacementIndex(self.records, None if sealed is None else sealed.replacements)
        self.links = LinkIndex(self.records, None if sealed is None else sealed.links)
        self.counter = RecordCounter(self.table.records)
        self.changed_at: dict[str, int] = {}
        self.last_change = None if sealed is None else sealed.last_change
        self.expiring: set[str] = set()
        self._ids_by_text: dict[str, dict[str, None]] | None = None

    def _note(self, changed: Mapping[str, R | None]) -> None:
        self.replacements.note(changed)
        self.links.note(changed)
        self.counter.note(changed)
        existing = [record for record in changed.values() if record is not None]
        self._note_texts(existing)
        self.expiring.update(record.id for record in existing if record.expires_at is not None)

    @property
    def records(self) -> Mapping[str, R]:
        """All records by ID, in the order of storing.

        If some are sealed, in the order of their last change.
        """
        return self.table.records if self.sealed is None else CombinedRecords(self.sealed, self.table.records)

    @property
    def unsealed_count(self) -> int:
        """Number of records changed, accessed or deleted since the last sealing."""
        return len(self.table.touched_at)

    def get(self, record_id: str) -> R | None:
        """Return a record, also a superseded or expired one, or None."""
        return self.records.get(record_id)

    def absorb(self, update: JournalUpdate) -> Collection[str]:
        """Apply an update of the log; return the changed IDs."""
        before: Mapping[str, R] = {}
        if update.reset:
            before = self.table.records
            self.table.reset()
            self._clear_lookups()
        for entry in update.entries:
            # Other kinds may be in the same journal.
            of_kind = [change for change in entry.changes if change.kind == self.kind.name]
            if changes := {change.id: entry.seq for change in of_kind if change.op not in _NO_CHANGE}:
                self.changed_at |= changes
                self.last_change = entry.at
        changed = self.table.apply(update.entries, is_newer=update.is_newer)
        self._note(changed)
        if update.reset:  # most often after a compaction, and nothing differs
            changed = dict.fromkeys(before.keys() - self.table.records.keys())
            changed |= {key: record for key, record in self.table.records.items() if before.get(key) is not record}
            if self.sealed is not None:
                self._recency.clear()
        for recency, _ in self._recency.values():
            recency.note(changed)
        return changed.keys()

    def adopt(self, sealed: SealedRecords[R]) -> list[str]:
        """Replace the segments by new ones; return the IDs sealed now.

        All changes of the new segments are known here.
        """
        adopted = self.table.adopt(sealed)
        changed_at, last_change = self.changed_at, self.last_change
        self.sealed = sealed
        self._clear_lookups()
        self.changed_at = {record_id: seq for record_id, seq in changed_at.items() if seq > sealed.chain.last_seq}
        self.last_change = last_change
        self._note(self.table.records)
        self._recency.clear()
        return adopted

    def iter_documents(self, record_ids: Iterable[str]) -> Iterator[tuple[str, Document | None]]:
        """Yield each ID with the searched fields of its record.

        None for one that is deleted or, after a replay, sealed without a change: segments have columns of their own.
        """
        for record_id in record_ids:
            record = self.table.records.get(record_id)
            yield record_id, None if record is None else self.kind.document(record)

    def iter_records(self, step: int = 1) -> Iterator[R]:
        """Yield every `step`-th record as it is now, loaded when asked for.

        Later changes do not matter.
        """
        sealed = () if self.sealed is None else self.sealed.iter_records(step)
        return chain(sealed, list(self.table.records.values())[::step])

    def since(self, seq: int) -> set[str]:
        """Return the IDs of records stored, changed or deleted after a change.

        Accesses do not count.
        """
        changed = {record_id for record_id, last in self.changed_at.items() if last > seq}
        if self.sealed is not None:
            changed.update(self.sealed.iter_changed(seq))
            accessed = self.table.records.keys() - self.changed_at.keys()
            changed.update(record_id for record_id in accessed if (self.sealed.get_seq(record_id) or 0) > seq)
        return changed

    def get_seq(self, record_id: str) -> int:
        """Return the number of a known record's last change.

        Accesses do not count.
        """
        seq = self.changed_at.get(record_id)
        if seq is None and self.sealed is not None:
            seq = self.sealed.get_seq(record_id)
        assert seq is not None, "every known record was stored once"
        return seq

    def has_expired(self, before: datetime) -> bool:
        """Return True if any record expired before a time."""
        if self.sealed is not None and self.sealed.replacements.has_expired(before):
            return True
        expiring = (self.records.get(record_id) for record_id in self.expiring)
        return any(record is not None and record.is_expired(before) for record in expiring)

    def is_valid(self, record: R, now: datetime) -> bool:
        """Return True if a known record is neither expired nor superseded."""
        return not record.is_expired(now) and self.replacements.get_newer(record.id, now) is None

    def list_newest(self, limit: int, now: datetime) -> list[R]:
        """Return the valid records stored last, newest first, without items."""
        stored_at = attrgetter("timestamp")
        last_first = reversed(self.table.records.values())  # also among equal times: sorting is stable
        newest = sorted(last_first, key=stored_at, reverse=True)
        valid = (record for record in newest if not record.is_item and self.is_valid(record, now))
        records = list(islice(valid, limit))
        if self.sealed is not None:
            overrides = self.replacements.list_overrides(now)
            visible = self.sealed.replacements.mask_visible(now, overrides, superseded=False)
            records += reversed(self.sealed.load_newest(limit, self.sealed.notes.of(visible)))
        return sorted(records, key=stored_at, reverse=True)[:limit]

    def list_recent(self, rule: RecencyRule, now: datetime) -> list[R]:
        """Return the candidates for a scratchpad; see `RecordStorage.recent`."""
        records = self.records

        def counts(record_id: str) -> bool:
            record = records[record_id]
            return self.is_valid(record, now) and rule.admits(record)

        recency, reach = self._recency.get(rule, (None, _REACH * rule.size))
        while True:
            if recency is None:
                recency = RecencyIndex(rule)
                sealed = [] if self.sealed is None else self.sealed.load_recent(rule.promotion_threshold, reach)
                recency.note({record.id: record for record in sealed} | self.table.records)
                self._recency[rule] = (recency, reach)
            chosen = recency.choose(counts)
            if self.sealed is None or len(chosen) >= rule.size or reach >= len(self.sealed):
                return [records[record_id] for record_id in chosen]
            recency, reach = None, reach * _REACH  # too many of the latest may no longer be shown

    def find_same_text(
        self, text: str, now: datetime, *, items: bool = False, group: str = "", among: SearchFilters = EVERYTHING
    ) -> R | None:
        """Return the valid record with the same text, or None.

        Args:
            text: Text to look for; white space and Unicode composition are ignored, case is not.
            now: Present moment, which decides what has expired.
            items: True to look among items, False among all other records.
            group: Group that the record belongs to, "" for none.
            among: Conditions that the record meets.
        """
        key = get_duplicate_key(text)
        for record in self._find_by_text(text):
            is_same = get_duplicate_key(self.kind.text_of(record)) == key
            is_here = record.belongs_to == group and record.is_item is items
            if is_same and is_here and among.admits(record) and self.is_valid(record, now):
                return record
        return None

    def was_forgotten(self, text: str) -> bool:
        """Return True if a text was forgotten and no record has it."""
        text_hash = content_hash(text)
        was_forgotten = (
            text_hash in self.table.forgotten
            or (self.sealed is not None and self.sealed.has_forgotten(text_hash))
            or self.find_trace(text) is not None
        )
        return was_forgotten and not self._find_by_text(text)

    def find_trace(self, text: str) -> Trace | None:
        """Return the last trace of a record with this text, or None."""
        traces = self.table.traces.values()
        hashes = {salt: salted_hash(text, salt) for salt in {trace.salt for trace in traces}}
        matching = [trace for trace in traces if trace.hash == hashes[trace.salt]]
        return max(matching, key=attrgetter("at"), default=None)

    def _note_texts(self, records: Iterable[R]) -> None:
        if self._ids_by_text is not None:
            for record in records:
                self._ids_by_text.setdefault(content_hash(self.kind.text_of(record)), {})[record.id] = None

    def _find_by_text(self, text: str) -> list[R]:
        """Return all records with this text, expired and replaced ones too."""
        if self._ids_by_text is None:
            self._ids_by_text = {}
            self._note_texts(self.table.records.values())
        text_hash = content_hash(text)
        # An ID stays listed when its record is changed or deleted, so each text is compared again.
        listed = (self.table.records.get(record_id) for record_id in self._ids_by_text.get(text_hash, ()))
        sealed = [] if self.sealed is None else self.sealed.find_by_text(text_hash)
        candidates = [*sealed, *(record for record in listed if record is not None)]
        return [record for record in candidates if content_hash(self.kind.text_of(record)) == text_hash]


@dataclass(frozen=True, slots=True)
class ChangedRecords:
    """Records that changed after a change.

    Attributes:
        records: Pairs of the number of the last change and the record's ID, in their order.
        last: Number of the last change of any record that was read.
    """

    records: list[tuple[int, str]]
    last: int


class CombinedRecords(Mapping[str, R]):
    """Sealed and unsealed records as one mapping.

    A sealed record is loaded when it is looked up.

    Args:
        sealed: Sealed records without those that have changed since.
        unsealed: All other records, by ID.
    """

    def __init__(self, sealed: SealedRecords[R], unsealed: Mapping[str, R]) -> None:
        self._sealed = sealed
        self._unsealed = unsealed

    def __getitem__(self, record_id: str) -> R:
        record = self._unsealed.get(record_id)
        if record is None:
            record = self._sealed.get(record_id)
        if record is None:
            raise KeyError(record_id)
        return record

    @override
    def __contains__(self, record_id: object) -> bool:
        """Return True if the record is known, without loading it."""
        return record_id in self._unsealed or (
            isinstance(record_id, str) and self._sealed.chain.find(record_id) is not None
        )

    def __iter__(self) -> Iterator[str]:
        yield from self._sealed.iter_ids()
        yield from self._unsealed

    def __len__(self) -> int:
        return len(self._sealed) + len(self._unsealed)


class RecordTable(Generic[R]):
    """The unsealed records of one kind, replayed from the log.

    Args:
        kind: Kind of the records; changes of other kinds are ignored.
        agent_id: Name of the agent.
        sealed: Records that are not replayed; a record that changes is taken from there.

    Attributes:
        records: Records by ID, in the order of storing.
        invalid: By ID, why a record breaks the data model; the journal still has such a record.
        forgotten: Hashes of the deleted texts.
        traces: By ID, traces of records that were forgotten for a reason.
        touched_at: By ID, the number of the last change or access of all replayed records, deleted ones too.
    """

    def __init__(self, kind: Kind[R], agent_id: str, sealed: SealedRecords[R] | None = None) -> None:
        self._kind = kind
        self._agent_id = agent_id
        self._sealed = sealed
        self._before: tuple[Records, dict[str, R]] = ({}, {})
        self._clear()
        if sealed is not None:
            self.traces |= sealed.traces
            self.invalid |= {record_id: record.why for record_id, record in sealed.invalid.items()}

    def _clear(self) -> None:
        self.records: dict[str, R] = {}
        self.invalid: dict[str, str] = {}
        self.forgotten: set[str] = set()
        self.traces: dict[str, Trace] = {}
        self.touched_at: dict[str, int] = {}
        self._raw: Records = {}

    def reset(self) -> None:
        """Discard everything, before a replay from the beginning.

        A record that is replayed without a change, as after a compaction, is not validated again: that takes most of
        the time of a replay.
        """
        valid = {record_id: record for record_id, record in self.records.items() if record_id not in self.invalid}
        self._before = (self._raw, valid)
        self._clear()
        if self._sealed is not None:
            self._sealed.hide_all()

    def adopt(self, sealed: SealedRecords[R]) -> list[str]:
        """Keep only records changed after new segments; return other IDs."""
        last = sealed.chain.last_seq
        adopted = [record_id for record_id, seq in self.touched_at.items() if seq <= last]
        for record_id in adopted:
            del self.touched_at[record_id]
            self._raw.pop(record_id, None)
            self.records.pop(record_id, None)
        for record_id in self.touched_at:
            sealed.take(record_id)
        self.invalid = {record_id: why for record_id, why in self.invalid.items() if record_id in self.touched_at}
        self.invalid |= {record_id: record.why for record_id, record in sealed.invalid.items()}
        self._sealed = sealed
        return adopted

    def get_raw(self, record_id: str) -> dict[str, Any]:
        """Return a record of `records` or `invalid` as the journal has it."""
        if self._sealed is not None and (invalid := self._sealed.invalid.get(record_id)) is not None:
            return invalid.data
        return self._raw[record_id]

    def apply(self, entries: Collection[Entry], *, is_newer: bool = False) -> dict[str, R | None]:
        """Replay entries; return each changed record, None for a deleted one.

        A change that would break the data model leaves the record as it was and is noted in `invalid`.

        Args:
            entries: Entries in file order.
            is_newer: True if a newer version wrote them: an invalid record is shown with what is known of it.
        """
        changed: dict[str, R | None] = {}  # the record as its last change knows it
        name, raw = self._kind.name, self._raw
        sealed = self._find_sealed(entries)
        invalid_before = {record_id: self.get_raw(record_id) for record_id in self.invalid}
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
        if invalid := rebuilt.keys() & self.invalid.keys():
            rebuilt |= self._restore_valid(invalid, entries, invalid_before)
        if is_newer:
            rebuilt |= self._load_known(invalid)
        return rebuilt

    def _load_known(self, invalid: Collection[str]) -> dict[str, R | None]:
        loaded = {key: self._kind.load_known(self._agent_id, key, self._raw[key]) for key in invalid}
        self.records |= {record_id: record for record_id, record in loaded.items() if record is not None}
        return {record_id: self.records.get(record_id) for record_id in invalid}

    def _find_sealed(self, entries: Collection[Entry]) -> set[str]:
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
        is_lost = (change.op == "delete" and MOVED not in change.data) or TRIMMED in change.data
        text = self._raw.get(change.id, {}).get(self._kind.text) if is_lost else None
        if isinstance(text, str):
            self.forgotten.add(content_hash(text))
        if change.op == "delete":
            return
        self.forgotten.update(change.data.get(FORGOTTEN, ()))
        if RELEASED in change.data:
            data = change.data[RELEASED]
            trace = Trace.from_json(change.id, data) if isinstance(data, dict) else None
            if trace is None:
                self.traces.pop(change.id, None)
            else:
                self.traces[change.id] = trace

    def _rebuild(self, record_id: str, record: R | None = None) -> R | None:
        """Return a rebuilt record, None for a deleted or invalid one.

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

    def _restore_valid(
        self, invalid: Collection[str], entries: Collection[Entry], invalid_before: Records
    ) -> dict[str, R | None]:
        """Return each invalid record in its last valid version, None without one.

        Changes that fit that version are applied to it, so that the result does not depend on how many entries are
        read at once. No program of ours writes such a change, so replaying twice loses nothing.

        Args:
            invalid: IDs of the invalid records.
            entries: Entries that were just applied.
            invalid_before: Raw data, before the entries, of records that were invalid already.
        """
        valid: dict[str, R | None] = {record_id: self.records.get(record_id) for record_id in invalid}
        full: Records = {record_id: record.to_record() for record_id, record in valid.items() if record}
        full |= invalid_before
        for entry in entries:
            for change in entry.changes:
                if change.kind != self._kind.name or change.id not in valid:
                    continue
                last = valid[change.id]
                partial: Records = {change.id: last.to_record()} if last is not None else {}
                for records in (partial, full):  # all changes count, where they result in a valid record
                    if apply_change(records, change, entry.at):
                        with contextlib.suppress(pydantic.ValidationError):
                            data = records.get(change.id)
                            valid[change.id] = self._kind.load(self._agent_id, change.id, data) if data else None
        for record_id, record in valid.items():
            if record is None:
                self.records.pop(record_id, None)
            else:
                self.records[record_id] = record
        return valid
