"""`Hashes`: which texts are meant, by eight bytes of the hash of each: a million take 8 MB, sets of bytes 150."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PREFIX_BYTES: Final = 8


def prefix_of(key: bytes) -> int:
    """Return the number that stands for a hash: two of a million have the same in one case of 40 million."""
    return int.from_bytes(key[:PREFIX_BYTES], "big")


class Hashes:
    """Hashes of texts, each taken for another one that begins alike.

    Args:
        prefixes: See `prefix_of`; in any order, and repeated or not.
    """

    def __init__(self, prefixes: Iterable[int] = ()) -> None:
        self._sorted = array("Q", sorted(prefixes))

    @classmethod
    def of(cls, keys: Iterable[bytes]) -> Hashes:
        """Return these hashes."""
        return cls(array("Q", map(prefix_of, keys)))

    def __len__(self) -> int:
        return len(self._sorted)

    def __iter__(self) -> Iterator[int]:
        return iter(self._sorted)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, bytes) and self.has(prefix_of(key))

    def has(self, prefix: int) -> bool:
        """Tell whether one of them begins so."""
        at = bisect_left(self._sorted, prefix)
        return at < len(self._sorted) and self._sorted[at] == prefix
