"""`State`: what one agent's records of one kind are now, and what follows from them. Pure: updates in, answers out.

Everything here is derived from the log's entries, so another implementation may keep it otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from agent_memory.models import content_hash
from agent_memory.models.kind import R
from agent_memory.storage.recency import Order, Recency
from agent_memory.storage.replacements import Replacements
from agent_memory.storage.table import RecordTable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from agent_memory.journal import Update
    from agent_memory.models import Document, Kind


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

    Attributes:
        kind, agent_id: As given.
        replacements: Which record replaced which.
        changed_at: Record id to the seq of its last change; accesses do not count. Gone records stay listed.
        last_change: When the last of these changes was made, UTC as text; None without any.
    """

    def __init__(self, kind: Kind[R], agent_id: str) -> None:
        self.kind = kind
        self.agent_id = agent_id
        self._table = RecordTable(kind, agent_id)
        self._recency: dict[Order, Recency] = {}
        self._begin()

    def _begin(self) -> None:
        self.replacements = Replacements()
        self.changed_at: dict[str, int] = {}
        self.last_change: str | None = None
        self._expiring: set[str] = set()
        self._texts = _Texts(self.kind)

    @property
    def records(self) -> dict[str, R]:
        """All of them by id, in the order of storing."""
        return self._table.records

    @property
    def invalid(self) -> dict[str, str]:
        """Ids whose record breaks the data model, with the reason; each is as it last was whole, if it ever was."""
        return self._table.invalid

    def get(self, record_id: str) -> R | None:
        """Return a record, also a superseded or expired one, or None."""
        return self.records.get(record_id)

    def absorb(self, update: Update) -> Collection[str]:
        """Take in what a look at the log brought; return the ids of what changed by it, gone records included."""
        before: Mapping[str, R] = {}
        if update.reset:
            before = self.records
            self._table.begin_again()
            self._begin()
        for entry in update.entries:
            if changes := {change.id: entry.seq for change in entry.changes if change.op != "touch"}:
                self.changed_at |= changes
                self.last_change = entry.at
        changed = self._table.apply(update.entries)
        self.replacements.note(self.records, changed)
        there = [record for record in changed.values() if record is not None]
        self._texts.note(there)
        self._expiring.update(record.id for record in there if record.expires_at is not None)
        if update.reset:  # most often after a compaction, and nothing differs
            changed = dict.fromkeys(before.keys() - self.records.keys())
            changed |= {key: record for key, record in self.records.items() if before.get(key) is not record}
        for order in self._recency.values():
            order.update(changed)
        return changed.keys()

    def columns(self, record_ids: Iterable[str]) -> Iterator[tuple[str, Document | None]]:
        """Yield each id with the text, facets, times, accesses and trust of its record; None for one that is gone."""
        for record_id in record_ids:
            record = self.records.get(record_id)
            yield record_id, None if record is None else self.kind.document(record)

    def since(self, seq: int) -> set[str]:
        """Return the ids of what was stored, changed or deleted after that change; accesses do not count."""
        return {record_id for record_id, changed in self.changed_at.items() if changed > seq}

    @property
    def hides_nothing(self) -> bool:
        """Whether every record is valid whatever the time: nothing was ever superseded, nothing expires."""
        return not self.replacements and not self._expiring

    def has_expired(self, before: datetime) -> bool:
        """Tell whether there is a record that expired before that moment."""
        expiring = (self.records.get(record_id) for record_id in self._expiring)
        return any(record is not None and record.is_expired(before) for record in expiring)

    def is_valid(self, record: R, now: datetime) -> bool:
        """Tell whether a record that is known is neither expired nor superseded."""
        return not record.is_expired(now) and self.replacements.of(record.id, now) is None

    def valid(self, now: datetime) -> list[R]:
        """Return what an agent may be shown: neither expired nor superseded, in the order of storing."""
        replaced = self.replacements.all(now)
        return [
            record
            for record_id, record in self.records.items()
            if record_id not in replaced and (record.expires_at is None or record.expires_at > now)
        ]

    def recent(self, order: Order, now: datetime) -> list[R]:
        """Return what a scratchpad is chosen from; see `Storage.recent`."""
        kept = self._recency.get(order)
        if kept is None:
            kept = self._recency[order] = Recency(order)
            kept.update(self.records)

        def counts(record_id: str) -> bool:
            record = self.records[record_id]
            return self.is_valid(record, now) and order.admits(record)

        return [self.records[record_id] for record_id in kept.choose(counts)]

    def same_text(self, text: str, now: datetime) -> R | None:
        """Return the valid record that says the same (ignoring case and white space), if there is one."""
        said_by = map(self.get, self._texts.said_by(self.records, text))
        return next((record for record in said_by if record is not None and self.is_valid(record, now)), None)

    def was_forgotten(self, text: str) -> bool:
        """Tell whether a record with this text was deleted and nothing with it is known now."""
        return content_hash(text) in self._table.forgotten and not self._texts.said_by(self.records, text)


class _Texts(Generic[R]):
    """Which records say what, read when it is first asked for."""

    def __init__(self, kind: Kind[R]) -> None:
        self._kind = kind
        self._ids: dict[str, dict[str, None]] | None = None

    def note(self, records: Iterable[R]) -> None:
        """Learn what records say now."""
        if self._ids is not None:
            for record in records:
                self._ids.setdefault(content_hash(self._kind.text_of(record)), {})[record.id] = None

    def said_by(self, records: Mapping[str, R], text: str) -> list[str]:
        """Return the ids of all records that say this now, expired and replaced ones too, in the order of storing."""
        if self._ids is None:
            self._ids = {}
            self.note(records.values())
        wanted = content_hash(text)
        # An id stays listed when its record is changed or deleted, so each one is looked at again.
        listed = (records.get(record_id) for record_id in self._ids.get(wanted, ()))
        return [each.id for each in listed if each is not None and content_hash(self._kind.text_of(each)) == wanted]
