"""The records of one kind as objects, made from what the journal says. Pure: entries in, records out."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Generic, cast

import pydantic

from agent_memory.journal import Records, apply_change
from agent_memory.models import Trace, content_hash, describe
from agent_memory.models.kind import R

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_memory.journal import Change, Entry
    from agent_memory.models import Kind
    from agent_memory.store.sealed_records import SealedRecords

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
