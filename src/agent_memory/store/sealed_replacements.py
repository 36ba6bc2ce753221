"""`SealedReplacements`: which sealed record replaced which, and so which rows may be found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from agent_memory.index.row import TRUSTS
from agent_memory.index.segment import hash_of
from agent_memory.models import from_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from numpy.typing import NDArray

    from agent_memory.index.chain import Chain
    from agent_memory.index.parts import Masks

_LOW: Final = TRUSTS.index("low")


class SealedReplacements:
    """What sealed records say they replace.

    Args:
        chain: Their segments.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._pairs: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        expiring = [segment.columns["expires"] for segment in chain.segments]
        self._first_end = min((float(each.min()) for each in expiring if len(each)), default=np.inf)
        hashes = ((at, np.asarray(segment.columns["older.hash"])) for at, segment in enumerate(chain.segments))
        self._older = [(at, each) for at, each in hashes if len(each)]  # most often nothing replaces anything

    def has_expired(self, before: datetime) -> bool:
        """Tell whether there is a record that has expired by that moment."""
        moment = before.timestamp()
        return self._first_end <= moment and any(
            bool((alive & (segment.columns["expires"] <= moment)).any())
            for segment, alive in zip(self.chain.segments, self.chain.alive, strict=True)
        )

    def ends(self) -> list[datetime]:
        """Return when those that count expire, of those that do, in no order."""
        moments: list[float] = []
        for segment, alive in zip(self.chain.segments, self.chain.alive, strict=True):
            ends = segment.columns["expires"]
            moments += ends[alive & np.isfinite(ends)].tolist()
        return [from_seconds(each) for each in moments]

    @property
    def replaces_any(self) -> bool:
        """Whether any of them replaces another record."""
        return bool(self._older)

    def replacing(self, record_id: str) -> list[str]:
        """Return the ids of those that say they replace a record, in the order of storing."""
        if not self._older:
            return []
        wanted = np.uint64(hash_of(record_id.encode()))
        found = []
        for at, hashes in self._older:
            begin = int(hashes.searchsorted(wanted))
            if begin == len(hashes) or hashes[begin] != wanted:
                continue
            segment, alive = self.chain.segments[at], self.chain.alive[at]
            rows = segment.columns["older.row"][begin : int(hashes.searchsorted(wanted, side="right"))]
            found += [segment.id(row) for row in rows[alive[rows]].tolist()]
        return found

    def replaced(self) -> Iterator[str]:
        """Yield the id of every record that one of them replaces."""
        for first, segment, alive in zip(self.chain.firsts, self.chain.segments, self.chain.alive, strict=False):
            rows = segment.columns["older.row"]
            for row in rows[alive[rows]].tolist():
                older = self.chain.record(first + row)[1].get("supersedes")
                if older:
                    yield str(older)

    def how_many(self, now: datetime, replaced: Mapping[str, bool], among: Masks) -> int:
        """Return how many of some rows are replaced, by any row that counts or by those that are not sealed."""
        masks = zip(self.replaced_rows(now, replaced), among, strict=True)
        return sum(int((mask & alive).sum()) for mask, alive in masks)

    def replaced_rows(self, now: datetime, replaced: Mapping[str, bool]) -> Masks:
        """Return which rows are replaced, by one that has not expired; see `shown`."""
        masks = [np.zeros(len(alive), bool) for alive in self.chain.alive]
        if self.replaces_any or replaced:
            older, newer = self._replacements()
            valid = self.chain.counting() & (self.chain.column("expires") > now.timestamp())
            self._set(masks, older[valid[newer]].tolist(), to=True)
            for number, is_replaced in self._numbers(replaced):
                self._set(masks, [number], to=is_replaced)
        return masks

    def shown(self, now: datetime, replaced: Mapping[str, bool], *, superseded: bool) -> Masks:
        """Return which rows may be found.

        Args:
            now: Those that have expired by then may not.
            replaced: By id, whether a record is replaced, where that does not follow from these alone.
            superseded: Let those be found that were replaced, too.
        """
        moment = now.timestamp()
        if moment < self._first_end and (superseded or not (replaced or self.replaces_any)):
            return self.chain.alive
        masks = [mask.copy() for mask in self.chain.alive]
        if moment >= self._first_end:
            for mask, segment in zip(masks, self.chain.segments, strict=True):
                mask[segment.columns["expires"] <= moment] = False
        if not superseded:
            older, newer = self._replacements()
            found = np.concatenate([np.empty(0, bool), *masks])  # one that has expired hides nothing
            self._set(masks, older[found[newer]].tolist(), to=False)
            for number, is_replaced in self._numbers(replaced):
                self._set(masks, [number], to=bool(found[number]) and not is_replaced)
        return masks

    def _numbers(self, replaced: Mapping[str, bool]) -> list[tuple[int, bool]]:
        every = ((self.chain.find(one), is_replaced) for one, is_replaced in replaced.items())
        return [(number, is_replaced) for number, is_replaced in every if number is not None]

    def _set(self, masks: Masks, numbers: Iterable[int], *, to: bool) -> None:
        for number in numbers:
            at, row = self.chain.place_of(number)
            masks[at][row] = to

    def _replacements(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of rows that are replaced, and of those that replace them, where trust allows it."""
        if self._pairs is None:
            older, newer = [], []
            trust = self.chain.column("trust") if self.chain.segments else np.empty(0, np.uint8)
            for first, segment in zip(self.chain.firsts, self.chain.segments, strict=False):
                hashes, rows = segment.columns["older.hash"], segment.columns["older.row"].astype(np.int64)
                for begin, other in zip(self.chain.firsts, self.chain.segments, strict=False):
                    at = other.rows_of(hashes)
                    there = at >= 0
                    older.append(at[there] + begin)
                    newer.append(rows[there] + first)
            every = np.concatenate([np.empty(0, np.int64), *older]), np.concatenate([np.empty(0, np.int64), *newer])
            may = (trust[every[1]] != _LOW) | (trust[every[0]] == _LOW)
            self._pairs = (every[0][may], every[1][may])
        return self._pairs
