"""History of records: versions of changed ones, and traces of forgotten ones."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic

from agent_memory.models.clock import as_utc, to_text
from agent_memory.models.kind import R
from agent_memory.models.text import folded_text

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_REASON_CHARS: Final = 200
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 16
_MAX_FIELD: Final = 500


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
