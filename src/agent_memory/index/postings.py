"""`Postings`: the word lists of rows that come and go.

Plain Python; long lists are read as arrays if numpy is installed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from heapq import nlargest
from typing import TYPE_CHECKING, Any, Final

from agent_memory.index.results import SearchLimits
from agent_memory.index.scores import numpy_if_there

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from agent_memory.index.results import Norm
    from agent_memory.index.word_lists import WordLists

_MAX_FREQUENCY: Final = 65_535  # what an array of type H holds
_SCARCE: Final = 16
"""Postings for one wanted row from which each row is looked up instead of reading all postings."""


class Postings:
    """Rows by the words they hold: `WordLists` that grow and shrink.

    Args:
        arrays_from: As in `SearchLimits`.

    Attributes:
        lengths: Terms of each row, repeats included.
    """

    def __init__(self, arrays_from: int = SearchLimits().arrays_from) -> None:
        self.lengths = array("I")
        self._arrays_from = arrays_from
        self._terms: dict[str, tuple[array[int], array[int]]] = {}
        self._changes = 0
        self._scored: tuple[object, dict[int, float]] = ((), {})

    def add(self, counts: Mapping[str, int]) -> int:
        """Add a row by the frequencies of its terms and return it; rows rise and are never reused."""
        row = len(self.lengths)
        for term, count in counts.items():
            known = self._terms.get(term)
            if known is None:
                known = self._terms[term] = (array("I"), array("H"))
            known[0].append(row)
            known[1].append(min(count, _MAX_FREQUENCY))
        self.lengths.append(sum(counts.values()))
        self._changes += 1
        return row

    def drop(self, row: int, terms: Iterable[str]) -> None:
        """Remove a row from the lists of all its distinct terms."""
        for term in terms:
            rows, frequencies = self._terms[term]
            place = bisect_left(rows, row)
            del rows[place], frequencies[place]
            if not rows:
                del self._terms[term]
        self._changes += 1

    def frequency(self, term: str) -> int:
        """Return the number of rows that hold a term."""
        return len(self._terms[term][0]) if term in self._terms else 0

    def best(self, gains: Mapping[str, float], norm: Norm, count: int, among: bytearray) -> list[tuple[float, int]]:
        """Return the best rows: see `WordLists.best`."""
        np = self._numpy_for(gains)
        if np is not None:
            return self._as_arrays().best(gains, norm, count, np.frombuffer(among, bool))
        return nlargest(count, [(score, row) for row, score in self._score(gains, norm).items() if among[row]])

    def scores_of(self, gains: Mapping[str, float], norm: Norm, rows: Sequence[int]) -> list[float]:
        """Return the score of each of `rows`, 0 for a row without any of the terms."""
        np = self._numpy_for(gains)
        if np is not None:
            return self._as_arrays().scores_of(gains, norm, rows)
        scores = self._score(gains, norm)
        return [scores.get(row, 0.0) for row in rows]

    def how_many(self, terms: Collection[str], among: bytearray) -> int:
        """Return the number of rows with any of `terms`, an estimate if many have one."""
        np = self._numpy_for(terms)
        if np is not None:
            return self._as_arrays().how_many(terms, np.frombuffer(among, bool))
        holding = set[int]().union(*(self._terms[term][0] for term in terms if term in self._terms))
        return sum(map(among.__getitem__, holding))

    def sample(self, terms: Collection[str], among: bytearray, step: int) -> list[int]:
        """Return the rows of every `step`-th occurrence of `terms`, ascending."""
        rows = (self._terms[term][0][::step] for term in terms if term in self._terms)
        return sorted(row for row in set[int]().union(*rows) if among[row])

    def counts_of(self, term: str, rows: Collection[int]) -> Iterator[tuple[int, int]]:
        """Yield those of some rows that hold a term, with its frequency."""
        holding, frequencies = self._terms.get(term, ((), ()))
        if len(holding) < _SCARCE * len(rows):
            wanted = set(rows)
            yield from (pair for pair in zip(holding, frequencies, strict=True) if pair[0] in wanted)
            return
        for row in rows:
            place = bisect_left(holding, row)
            if place < len(holding) and holding[place] == row:
                yield row, frequencies[place]

    def _numpy_for(self, terms: Iterable[str]) -> Any:
        """Return numpy if the lists of these terms are long enough for arrays, else None."""
        return numpy_if_there() if sum(map(self.frequency, terms)) >= self._arrays_from else None

    def _as_arrays(self) -> WordLists:
        """Return the lists as arrays; not to be kept, since nothing could be added meanwhile."""
        from agent_memory.index.word_lists import read_arrays

        return read_arrays(self._terms, self.lengths)

    def _score(self, gains: Mapping[str, float], norm: Norm) -> dict[int, float]:
        """Return the score of each row that holds a term: as `WordLists`, operation by operation."""
        asked = (tuple(gains.items()), norm, self._changes)
        if self._scored[0] != asked:
            scores: dict[int, float] = {}
            (flat, steepness), lengths = norm, self.lengths
            for term, gain in gains.items():
                for row, count in zip(*self._terms.get(term, ((), ())), strict=True):
                    share = gain * (count / (count + (flat + steepness * lengths[row])))
                    scores[row] = scores.get(row, 0.0) + share
            self._scored = asked, scores
        return self._scored[1]
