"""`WordScorer`: BM25 over all parts of an index.

Knows terms and row numbers; must not know records, time or vectors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from agent_memory.index.results import Norm

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_memory.index.parts import PartList
    from agent_memory.index.results import RankingSettings

_MOST_TERMS: Final = 10_000


class WordScorer:
    """Weights of words, from sums over all parts.

    The weights are those of all rows or, without items, of the rest: documents and talks yield a hundred times more
    rows than an agent notes. Scores are those of an index built again from the rows that are alive.

    Args:
        parts: Rows by number.
        settings: `k1` and `b`.
        items: Whether items count for the weights.

    Attributes:
        parts: As given.
    """

    def __init__(self, parts: PartList, settings: RankingSettings, *, items: bool) -> None:
        self.parts = parts
        self._k1, self._b = settings.k1, settings.b
        self._items = items
        self._state = (-1, 0)
        self._sums = (0, 0)
        self._frequencies: dict[str, int] = {}
        self._idfs: dict[str, float] = {}

    @property
    def documents(self) -> int:
        """Number of rows that count."""
        return self._count()[0]

    @property
    def norm(self) -> Norm:
        """What the length of a row counts."""
        documents, length = self._count()
        return Norm(self._k1 * (1 - self._b), self._k1 * self._b * documents / max(1, length))

    def frequency(self, term: str) -> int:
        """Return the number of rows that hold a term, an estimate for a frequent term."""
        self._count()
        frequency = self._frequencies.get(term)
        if frequency is None:
            frequency = sum(part.frequency(term, items=self._items) for part in self.parts.parts)
            self._frequencies[term] = frequency
        return frequency

    def _count(self) -> tuple[int, int]:
        """Return the number of rows and of their terms; counts again if rows came or died."""
        if self._state != self.parts.state or len(self._frequencies) >= _MOST_TERMS:
            self._state = self.parts.state
            self._frequencies.clear()
            self._idfs.clear()
            statistics = [part.statistics(items=self._items) for part in self.parts.parts]
            self._sums = sum(part.documents for part in statistics), sum(part.length for part in statistics)
        return self._sums

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of a term, 0 if no row holds it."""
        self._count()
        idf = self._idfs.get(term)
        if idf is None:
            frequency = self.frequency(term)
            idf = self._idfs[term] = self.compute_idf(frequency) if frequency else 0.0
        return idf

    def compute_idf(self, frequency: int) -> float:
        """Return the inverse document frequency of a term that `frequency` rows hold."""
        return math.log(1 + (max(0, self.documents - frequency) + 0.5) / (frequency + 0.5))

    def gains(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Return the most that each term can add to a score, the largest first, without unknown terms.

        Args:
            weights: Weight of each query term, above 0; its number of occurrences, as a rule.
        """
        gains = [(weight * self.idf(term) * (self._k1 + 1), term) for term, weight in weights.items()]
        # All parts add in this order, so that equal rows have equal scores.
        return {term: gain for gain, term in sorted(gains, key=lambda pair: -pair[0]) if gain > 0}

    def scores_of(self, weights: Mapping[str, float], numbers: Iterable[int]) -> dict[int, float]:
        """Return the BM25 score of each row, 0 for a row without any of the terms."""
        gains, norm = self.gains(weights), self.norm
        scores: dict[int, float] = {}
        for part, rows in self.parts.by_part(numbers):
            pairs = zip(rows, part.words.scores_of(gains, norm, rows), strict=True)
            scores.update((part.first + row, score) for row, score in pairs)
        return scores

    def full_score(self, weights: Mapping[str, float]) -> float:
        """Return the score of an average row with every term once.

        Unknown terms count as those of no row.
        """
        unknown = self.compute_idf(0)
        return sum(weight * (self.idf(term) or unknown) for term, weight in weights.items())

    def window_scores(self, weights: Mapping[str, float], windows: Mapping[int, tuple[int, ...]]) -> dict[int, float]:
        """Return BM25 scores of rows read together with others, each window as one row.

        The length of a window is the mean of its rows, so that a row at the edge of a talk is not favoured.

        Args:
            weights: As in `gains`.
            windows: For a row, all rows of its window, itself among them.
        """
        scores = dict.fromkeys(windows, 0.0)
        windows_with: dict[int, list[int]] = {}
        for number, window in windows.items():
            for member in window:
                windows_with.setdefault(member, []).append(number)
        flat, slope = self.norm
        lengths: dict[int, int] = {}
        for part, rows in self.parts.by_part(windows_with):
            lengths.update(zip((part.first + row for row in rows), part.lengths(rows), strict=True))
        heaviness = {
            number: flat + slope * sum([lengths[member] for member in window]) / len(window)
            for number, window in windows.items()
        }
        held = self.held(weights, windows_with)
        for term, weight in weights.items():
            together: dict[int, int] = {}
            for member, frequency in held[term]:
                for number in windows_with[member]:
                    together[number] = together.get(number, 0) + frequency
            gain = weight * self.idf(term) * (self._k1 + 1)
            for number, frequency in together.items():
                scores[number] += gain * frequency / (frequency + heaviness[number])
        return scores

    def held(self, terms: Iterable[str], numbers: Iterable[int]) -> dict[str, list[tuple[int, int]]]:
        """Return for each term those rows that hold it, with its frequency there."""
        held: dict[str, list[tuple[int, int]]] = {term: [] for term in terms}
        for part, rows in self.parts.by_part(numbers):
            for term, pairs in held.items():
                pairs += [(part.first + row, frequency) for row, frequency in part.words.counts_of(term, rows)]
        return held
