"""`Rows`: how a vector and the hash of its text stand in the cache, plain or encrypted. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agent_memory.encryption import DataKey

_HASH_BYTES: Final = 32
_NONE: Final = (b"", b"")


class Rows:
    """Rows of one moment.

    Args:
        key: What they are encrypted with; None where they are plain.
    """

    def __init__(self, key: DataKey | None) -> None:
        self._key = key

    def name_of(self, text_hash: bytes) -> bytes:
        """Return the key of the row for the hash of a text; of 32 bytes."""
        return text_hash if self._key is None else self._key.hashed(text_hash)

    def written(self, text_hash: bytes, vector: bytes) -> tuple[bytes, bytes]:
        """Return a row. An encrypted one also holds the hash: rows are dropped by those of the texts that stay."""
        if self._key is None:
            return text_hash, vector
        name = self._key.hashed(text_hash)
        return name, self._key.locked(("vector", name.hex()), text_hash + vector)

    def read(self, row: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        """Return the hash of the text and the vector of a row; both empty for one that is not of this key."""
        if self._key is None:
            return row
        name, content = row
        try:
            both = self._key.unlocked(("vector", name.hex()), content)
        except ValueError:
            return _NONE
        return both[:_HASH_BYTES], both[_HASH_BYTES:]
