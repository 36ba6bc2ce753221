"""Lists of records, their counts and versions, and traces of forgotten ones."""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Literal

from agent_memory.models.clock import as_utc, to_text
from agent_memory.models.kind import R
from agent_memory.models.record import GROUP, GROUPED, Record
from agent_memory.models.search import SearchFilters
from agent_memory.models.text import folded_text

if TYPE_CHECKING:
    from collections.abc import Mapping


ListOrder = Literal["newest", "oldest", "used", "accessed"]
RecordState = Literal["valid", "expired", "superseded"]
ANY_STATE: Final[frozenset[RecordState]] = frozenset({"valid", "expired", "superseded"})
MAX_REASON_CHARS: Final = 200
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 16
_MAX_FIELD: Final = 500


@dataclass(frozen=True, slots=True)
class Listing:
    """Request for one part of a list.

    Attributes:
        order: By moment of storing (`newest` or `oldest` first), of last access (`used`), or by number of accesses
            (`accessed`). Among equals the last stored is first, except with the oldest first.
        filters: Conditions of every record.
        states: Allowed states; neither expired nor superseded by default.
        trust: Required trust; None for any.
        pinned: True for pinned records alone.
        beginning: Required beginning of the ID.
        offset: Number of records left out at the start.
        limit: Maximum number of records; None for all.
        session: Session that created them; None for any.
    """

    order: ListOrder = "newest"
    filters: SearchFilters = field(default_factory=SearchFilters)
    states: frozenset[RecordState] = frozenset({"valid"})
    trust: str | None = None
    pinned: bool = False
    beginning: str = ""
    offset: int = 0
    limit: int | None = None
    session: str | None = None

    def admits(self, record: Record, *, expired: bool, superseded: bool) -> bool:
        """Return True if a record is in the list."""
        state = {"expired": expired, "superseded": superseded, "valid": not (expired or superseded)}
        return (
            any(state[name] for name in self.states)
            and self.trust in {None, record.trust}
            and (record.pinned or not self.pinned)
            and record.id.startswith(self.beginning)
            and self.session in {None, record.created_by_session}
            and self.filters.admits(record)
        )

    def key(self, record: Record) -> tuple[float, float]:
        """Return the sort key of a record."""
        stored = record.timestamp.timestamp()
        if self.order == "used":
            accessed = record.last_accessed
            return (0.0, stored) if accessed is None else (1.0, accessed.timestamp())
        return (float(record.access_count), stored) if self.order == "accessed" else (stored, 0.0)

    @property
    def end(self) -> int | None:
        """Position of the end in the whole list; None for all."""
        return None if self.limit is None else self.offset + self.limit


@dataclass(frozen=True, slots=True)
class ListPage(Generic[R]):
    """One part of a list, and the length of the whole list."""

    records: list[R]
    total: int


@dataclass(slots=True)
class RecordCounts:
    """Numbers of records of one kind.

    Attributes:
        records: All except items, superseded and expired ones included.
        items: Items, extracted from documents and conversations.
        superseded, expired, pinned: Numbers among the records.
        by_trust: Records by trust.
        by_facet: Records by the name of a facet, such as `category`, and its value.
        every_by_facet: Records and items by facet.
        last_item: Moment of storing of the last item, even if forgotten since.
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

    def count_items(self, group: str | None) -> int:
        """Return the number of items that a group sees.

        Its own and those without a group; None sees all.
        """
        hidden = self._count_hidden(group, self.every_by_facet) - self._count_hidden(group, self.by_facet)
        return self.items - hidden

    def count_records(self, group: str | None) -> int:
        """Return the number of records, without items, that a group sees."""
        return self.records - self._count_hidden(group, self.by_facet)

    def count_current(self, group: str | None) -> int:
        """Return the number of records and items that a group can find.

        Superseded and expired records are not counted by group, so a group's number includes its own.
        """
        past = self.superseded + self.expired if group is None else 0
        return max(0, self.count_records(group) + self.count_items(group) - past)

    @staticmethod
    def _count_hidden(group: str | None, counts: dict[str, Counter[str]]) -> int:
        """Return the number of other groups' records."""
        if group is None:
            return 0
        (any_group, empty), none = GROUPED, Counter[str]()
        return counts.get(any_group, none)[empty] - (counts.get(GROUP, none)[group] if group else 0)

    def add_facet(self, name: str, value: str, records: int, total: int) -> None:
        """Add to the counts of a facet.

        Args:
            name: Name of the facet.
            value: Value of the facet.
            records: Number of records to add.
            total: Number of records and items to add.
        """
        for counts, count in ((self.by_facet, records), (self.every_by_facet, total)):
            if count:
                by_value = counts.setdefault(name, Counter())
                by_value[value] += count
                if not by_value[value]:
                    del by_value[value]

    def copy(self) -> RecordCounts:
        """Return a copy that can be added to."""
        return replace(
            self,
            by_trust=+self.by_trust,
            by_facet={name: counts.copy() for name, counts in self.by_facet.items() if counts},
            every_by_facet={name: counts.copy() for name, counts in self.every_by_facet.items() if counts},
        )


@dataclass(frozen=True, slots=True)
class RecordVersion(Generic[R]):
    """One change of a record, and the record after it.

    Attributes:
        seq: Number of the change.
        at: Moment of the change, by the writer's clock.
        op: `put` (stored, or first known state), `patch` (changed), `delete` (forgotten) or `move` (moved to or from
            the archive).
        record: The record after the change; None if it was forgotten or breaks the data model.
    """

    seq: int
    at: datetime
    op: str
    record: R | None


@dataclass(frozen=True, slots=True)
class Trace:
    """Trace of a forgotten record: reason, and salted hash of its text.

    Attributes:
        id: ID of the record.
        at: Moment of forgetting.
        reason: Reason without secrets.
        salt: Hexadecimal salt; one for all traces of one storage, except imported ones.
        hash: Hexadecimal salted hash; it confirms a known text, but does not reveal an unknown one.
    """

    id: str
    at: datetime
    reason: str
    salt: str
    hash: str

    @staticmethod
    def new_salt() -> str:
        """Return a new salt."""
        return secrets.token_hex(_SALT_BYTES)

    @classmethod
    def of(cls, record_id: str, text: str, moment: datetime, reason: str, salt: str) -> Trace:
        """Return the trace of a text."""
        return cls(record_id, moment, reason, salt, salted_hash(text, salt))

    def to_json(self) -> dict[str, Any]:
        """Return the log's form, without the ID."""
        return {"at": to_text(self.at), "reason": self.reason, "salt": self.salt, "hash": self.hash}

    @classmethod
    def from_json(cls, record_id: str, fields: Mapping[str, Any]) -> Trace | None:
        """Load a trace from a log, or return None if invalid."""
        try:
            moment, values = datetime.fromisoformat(fields["at"]), [fields[key] for key in ("reason", "salt", "hash")]
            bytes.fromhex(fields["salt"] + fields["hash"])
        except (KeyError, TypeError, ValueError):
            return None
        if moment.tzinfo is None or not all(isinstance(value, str) and len(value) <= _MAX_FIELD for value in values):
            return None
        return cls(record_id, as_utc(moment), *values)


def salted_hash(text: str, salt: str) -> str:
    """Return a hexadecimal hash of a text folded as `content_hash` folds it."""
    key = bytes.fromhex(salt)[: hashlib.blake2b.MAX_KEY_SIZE]
    return hashlib.blake2b(folded_text(text), key=key, digest_size=_HASH_BYTES).hexdigest()
