"""`Row`: one record on its way into a segment. Plain values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

TRUSTS: Final = ("high", "medium", "low")
"""A trust is kept by its place in here."""

TELLS_TIME: Final = 1
PINNED: Final = 2
ASKS: Final = 4


class Row(NamedTuple):
    """What a segment keeps of one record.

    Attributes:
        id: Its id.
        seq: Number of its last change.
        data: As the journal has it, JSON.
        text_hash: Of its words, 32 bytes.
        older: Id of the record that it replaces; empty when it replaces none.
        links: Ids of the records that it is linked to, and names of relations by which it is looked up.
        timestamp, moment: When it was stored, and when what it tells was so; seconds since 1970.
        expires: When it expires; infinite when it does not.
        promoted, accessed: When it was promoted and last accessed; minus infinity when it never was.
        access_count: How often it was accessed.
        trust: One of `TRUSTS`.
        flags: `TELLS_TIME`, `PINNED` and `ASKS`; 8 in segments of earlier versions, and ignored.
        length: How many terms it has, repeats included.
        terms: How often each term stands in it.
        facets: Names and values.
        session: The number of the session that it stands in, 64 bits; 0 for none.
        speaker: Who says it, when it has the form of a turn; empty otherwise.
        speakers: Who speaks in a whole talk that it holds.
        called: Words that it calls, as if they were names.
        pieces: Hashes of the texts that are embedded for it, 32 bytes each.
        arrival: Its place in the order of storing, which no change alters.
    """

    id: str
    seq: int
    data: bytes
    text_hash: bytes
    timestamp: float
    moment: float
    terms: Mapping[str, int]
    length: int
    facets: Sequence[tuple[str, str]] = ()
    older: str = ""
    links: Collection[str] = ()
    expires: float = math.inf
    promoted: float = -math.inf
    accessed: float = -math.inf
    access_count: int = 0
    trust: str = "medium"
    flags: int = 0
    session: int = 0
    speaker: str = ""
    speakers: Sequence[str] = ()
    called: Sequence[str] = ()
    pieces: Sequence[bytes] = ()
    arrival: int = 0
