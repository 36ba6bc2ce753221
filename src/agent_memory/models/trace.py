"""`Trace`: what stays of a record that was forgotten for a reason: the reason, when, and a salted hash of its text."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.models.clock import as_utc, to_text
from agent_memory.models.text import folded_text

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_REASON_CHARS: Final = 200
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 16
_MAX_FIELD: Final = 500


@dataclass(frozen=True, slots=True)
class Trace:
    """What stays of a record that was released.

    Attributes:
        id: The record's.
        at: When it was released.
        reason: Why, without secrets.
        salt: Hexadecimal; one for all traces that were left in one place, where nothing was imported.
        hash: Of the text with that salt, hexadecimal. Who knows a text can tell that it is the one; nothing leads back.
    """

    id: str
    at: datetime
    reason: str
    salt: str
    hash: str

    @staticmethod
    def new_salt() -> str:
        """Return a salt."""
        return secrets.token_hex(_SALT_BYTES)

    @classmethod
    def of(cls, record_id: str, text: str, at: datetime, reason: str, salt: str) -> Trace:
        """Return the trace of a text."""
        return cls(record_id, at, reason, salt, salted_hash(text, salt))

    def to_json(self) -> dict[str, Any]:
        """Return it as a log keeps it, without the id."""
        return {"at": to_text(self.at), "reason": self.reason, "salt": self.salt, "hash": self.hash}

    @classmethod
    def from_json(cls, record_id: str, said: Mapping[str, Any]) -> Trace | None:
        """Rebuild one; None where it is none."""
        try:
            at, values = datetime.fromisoformat(said["at"]), [said[name] for name in ("reason", "salt", "hash")]
            bytes.fromhex(said["salt"] + said["hash"])
        except (KeyError, TypeError, ValueError):
            return None
        if at.tzinfo is None or not all(isinstance(each, str) and len(each) <= _MAX_FIELD for each in values):
            return None
        return cls(record_id, as_utc(at), *values)


def salted_hash(text: str, salt: str) -> str:
    """Return the hash (hex) of a text folded for case, width and white space, as `content_hash` folds it."""
    key = bytes.fromhex(salt)[: hashlib.blake2b.MAX_KEY_SIZE]
    return hashlib.blake2b(folded_text(text), key=key, digest_size=_HASH_BYTES).hexdigest()
