"""`Linking`: which records are linked to a record. Pure."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from agent_memory.models import SUSPECT, listed_as

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent_memory.models import Record

_LOOKED_AT: Final = 64
"""Records that lead to one and are loaded to see whether they may be told."""


class SealedLinking(Protocol):
    """What sealed records are linked to."""

    def leading_to(self, record_id: str) -> Iterator[str]:
        """Yield the ids of those that are probably linked to a record, the latest first."""


class Linking:
    """Answers which records are linked to one.

    Args:
        records: All of them, as they are at any time.
        sealed: What those of them are linked to that are sealed.
    """

    def __init__(self, records: Mapping[str, Record], sealed: SealedLinking | None = None) -> None:
        self._records = records
        self._sealed = sealed
        self._from: dict[str, dict[str, None]] = {}

    def note(self, changed: Mapping[str, Record | None]) -> None:
        """Learn which records have come or changed: None for one that is gone."""
        for record_id, record in changed.items():
            for listed in listed_as(record.links) if record is not None else ():
                known = self._from.setdefault(listed, {})
                known.pop(record_id, None)
                known[record_id] = None

    def leading_to(self, record_id: str, most: int | None = _LOOKED_AT) -> Iterator[Record]:
        """Yield the records that are linked to one, the latest first; looks at `most` alone, None for all."""
        sealed: Iterable[str] = self._sealed.leading_to(record_id) if self._sealed is not None else ()
        every = dict.fromkeys([*reversed(self._from.get(record_id, {})), *islice(sealed, most)])
        for each in islice(every, most):
            record = self._records.get(each)  # an id stays listed when its record is changed or deleted
            if record is not None and any(link.id == record_id for link in record.links):
                yield record

    def undecided(self) -> Iterator[Record]:
        """Yield the records that are suspected not to be right together with older ones; loads no others."""
        sealed: Iterable[str] = self._sealed.leading_to(SUSPECT) if self._sealed is not None else ()
        for each in dict.fromkeys([*reversed(self._from.get(SUSPECT, {})), *sealed]):
            record = self._records.get(each)
            if record is not None and any(link.rel == SUSPECT for link in record.links):
                yield record
