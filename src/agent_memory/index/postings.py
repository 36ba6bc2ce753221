"""BM25 over postings held in arrays. Knows terms and document numbers; must not know records, time or vectors."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_memory.index.results import SEALED_FROM, Norm, SearchLimits
from agent_memory.index.scores import FewScores, ManyScores, Scores, numpy_if_there

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

_MAX_FREQUENCY: Final = 65_535  # what an array of type H holds
_SCARCE: Final = 16
"""How many postings for one document looked for make it cheaper to look each up than to run through them all."""


class Background(Protocol):
    """Documents that are searched elsewhere, and that weigh words here."""

    @property
    def documents(self) -> int:
        """How many there are."""

    @property
    def length(self) -> int:
        """How many terms they have together."""

    def frequency(self, term: str) -> int:
        """Return how many hold a term."""

    def lengths_of(self, numbers: Iterable[int]) -> dict[int, int]:
        """Return how many terms each of some has; numbers of others are left out."""

    def counts(self, terms: Iterable[str], numbers: Iterable[int]) -> dict[str, list[tuple[int, int]]]:
        """Return for each term those of some documents that hold it, with its frequency there."""


@dataclass(slots=True)
class _Counted:
    """How many documents there are, how many terms they have together, and how many of them hold each."""

    documents: int = 0
    length: int = 0
    holding: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Indexed:
    """What is indexed, and what of it are items."""

    terms: dict[str, tuple[array[int], array[int]]] = field(default_factory=dict)
    """Term to documents, ascending, and the frequency in each."""
    lengths: array[int] = field(default_factory=lambda: array("I"))
    every: _Counted = field(default_factory=_Counted)
    """Without `holding`: that is the length of a term's list."""
    items: _Counted = field(default_factory=_Counted)
    changes: int = 0

    def counted(self, *, is_whole: bool) -> tuple[int, int]:
        """Return how many documents there are, or notes among them, and how many terms these have."""
        if is_whole:
            return self.every.documents, self.every.length
        return self.every.documents - self.items.documents, self.every.length - self.items.length

    def count(self, terms: Iterable[str], document: int, by: int, *, is_item: bool) -> None:
        """Note that a document came (`by` 1) or goes (-1)."""
        self.changes += 1
        for counted in (self.every, *([self.items] if is_item else ())):
            counted.documents += by
            counted.length += by * self.lengths[document]
        for term in terms if is_item else ():
            self.items.holding[term] += by
            if not self.items.holding[term]:
                del self.items.holding[term]


class Postings:
    """An inverted index that grows and shrinks; scores are those of an index built fresh from what is left.

    How much words weigh is told by all documents or, with `notes_of`, by those that are no items: what was drawn from
    documents and talks is a hundred times more than what an agent noted, and would tell it otherwise.

    Args:
        k1: Term frequency saturation.
        b: Length normalisation, 0..1.
        arrays_from: As in `SearchLimits`.
        background: Documents that count for weights and lengths, and are searched elsewhere; numbers from
            `SEALED_FROM` on are theirs.
        notes_of: What these grow and shrink with, as if no item told how much words weigh. Scores are of items, too:
            who asks for them knows which documents may be found.

    Attributes:
        indexed: What both hold.
    """

    def __init__(
        self,
        k1: float,
        b: float,
        arrays_from: int = SearchLimits().arrays_from,
        background: Background | None = None,
        notes_of: Postings | None = None,
    ) -> None:
        self._k1 = k1
        self._b = b
        self._arrays_from = arrays_from
        self._background = background
        self.indexed: Indexed = Indexed() if notes_of is None else notes_of.indexed
        self._is_whole = notes_of is None
        self._terms, self._lengths = self.indexed.terms, self.indexed.lengths
        self._idf: dict[str, float] = {}  # of terms asked about since the last change
        self._weighed = (0, 0)  # changes, and documents, when they were

    def __len__(self) -> int:
        return self.indexed.counted(is_whole=self._is_whole)[0]

    def add(self, terms: Iterable[str], *, is_item: bool = False) -> int:
        """Index a document under its terms and return its number; numbers rise and are never reused."""
        document = len(self._lengths)
        counts = Counter(terms)
        for term, frequency in counts.items():
            known = self._terms.get(term)
            if known is None:
                known = self._terms[term] = (array("I"), array("H"))
            known[0].append(document)
            known[1].append(min(frequency, _MAX_FREQUENCY))
        self._lengths.append(counts.total())
        self.indexed.count(counts, document, 1, is_item=is_item)
        return document

    def remove(self, document: int, terms: Iterable[str], *, is_item: bool = False) -> None:
        """Take a document out.

        Args:
            document: A number that `add` returned and that was not removed yet.
            terms: What it was indexed under.
            is_item: As it was added.
        """
        every = set(terms)
        self.indexed.count(every, document, -1, is_item=is_item)
        for term in every:
            documents, frequencies = self._terms[term]
            at = _position(documents, document)
            assert at is not None, "removed under terms that it was not indexed under"
            del documents[at], frequencies[at]
            if not documents:
                del self._terms[term]

    def frequency(self, term: str) -> int:
        """Return how many documents hold a term, those of the background included."""
        using = len(self._terms[term][0]) if term in self._terms else 0
        if using and not self._is_whole:
            using -= self.indexed.items.holding[term]
        return using + (self._background.frequency(term) if self._background is not None else 0)

    def idf(self, term: str) -> float:
        """Return the IDF of a term, 0 if no document has it."""
        every = self.documents  # of the background some may count no more
        if (self.indexed.changes, every) != self._weighed:
            self._idf.clear()
            self._weighed = (self.indexed.changes, every)
        known = self._idf.get(term)
        if known is None:
            using = self.frequency(term)
            known = self.compute_idf(using) if using else 0.0
            self._idf[term] = known
        return known

    def compute_idf(self, frequency: int) -> float:
        """Return the IDF of a term that `frequency` documents have."""
        return math.log(1 + (max(0, self.documents - frequency) + 0.5) / (frequency + 0.5))

    def scores(self, weights: Mapping[str, float]) -> Scores:
        """Return the BM25 score of every document that holds at least one term.

        Args:
            weights: How much each query term counts, above 0; its number of occurrences, as a rule.
        """
        gains = {term: gain for term, gain in self.gains(weights).items() if term in self._terms}
        many = sum(len(self._terms[term][0]) for term in gains) >= self._arrays_from
        np = numpy_if_there() if many else None
        return self._few(gains) if np is None else self._many(gains, np)

    def gains(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Return how much each term of a query can add to a score, without those that no document holds."""
        gains = {term: weight * self.idf(term) * (self._k1 + 1) for term, weight in weights.items()}
        return {term: gain for term, gain in gains.items() if gain > 0}

    def _few(self, gains: Mapping[str, float]) -> Scores:
        found: dict[int, float] = {}
        (flat, steepness), lengths = self.norm, self._lengths
        for term, gain in gains.items():
            for document, frequency in zip(*self._terms[term], strict=True):
                part = gain * frequency / (frequency + (flat + steepness * lengths[document]))
                found[document] = found.get(document, 0.0) + part
        return FewScores(found)

    def _many(self, gains: Mapping[str, float], np: Any) -> Scores:
        """As `_few`, operation by operation, so that the numbers are the same to the last bit."""
        flat, steepness = self.norm
        values = np.zeros(len(self._lengths))
        # Views, not copies; they are gone before anything is appended to what lies behind them.
        heaviness = flat + steepness * np.frombuffer(self._lengths, dtype=np.uintc)
        for term, gain in gains.items():
            documents = np.frombuffer(self._terms[term][0], dtype=np.uintc)
            frequencies = np.frombuffer(self._terms[term][1], dtype=np.ushort).astype(np.float64)
            values[documents] += gain * frequencies / (frequencies + heaviness[documents])
        return ManyScores(values)

    @property
    def norm(self) -> Norm:
        """What a document's length counts, with those of the background."""
        length = self.indexed.counted(is_whole=self._is_whole)[1] + (
            self._background.length if self._background is not None else 0
        )
        return Norm(self._k1 * (1 - self._b), self._k1 * self._b * self.documents / max(1, length))

    @property
    def documents(self) -> int:
        """How many there are, with those of the background."""
        return len(self) + (self._background.documents if self._background is not None else 0)

    def full_score(self, weights: Mapping[str, float]) -> float:
        """Return the score of an average document with every term once.

        Unknown terms count as those of no document.
        """
        unknown = self.compute_idf(0)
        return sum(weight * (self.idf(term) or unknown) for term, weight in weights.items())

    def window_scores(self, weights: Mapping[str, float], windows: Mapping[int, tuple[int, ...]]) -> dict[int, float]:
        """Return BM25 scores of documents read together with others, each window as one document.

        A window's length counts by its documents' mean, so that one at the edge of a talk is not favoured.

        Args:
            weights: As in `scores`.
            windows: For a document, all documents of its window, itself among them.
        """
        found = dict.fromkeys(windows, 0.0)
        within: dict[int, list[int]] = {}  # document -> windows that hold it
        for document, window in windows.items():
            for one in window:
                within.setdefault(one, []).append(document)
        (flat, slope), background = self.norm, self._background
        lengths = {one: self._lengths[one] for one in within if one < SEALED_FROM}
        if background is not None:
            lengths |= background.lengths_of(within)
        heaviness = {
            document: flat + slope * sum([lengths[one] for one in window]) / len(window)
            for document, window in windows.items()
        }
        held = self.held(weights, within)
        for term, weight in weights.items():
            together: dict[int, int] = {}
            for document, frequency in held[term]:
                for window_of in within[document]:
                    together[window_of] = together.get(window_of, 0) + frequency
            gain = weight * self.idf(term) * (self._k1 + 1)
            for document, frequency in together.items():
                found[document] += gain * frequency / (frequency + heaviness[document])
        return found

    def held(self, terms: Iterable[str], wanted: Collection[int]) -> dict[str, list[tuple[int, int]]]:
        """Return for each term those of some documents that hold it, with its frequency there."""
        every = list(terms)
        background = self._background
        elsewhere = background.counts(every, wanted) if background is not None else {}
        found = {}
        for term in every:
            documents, frequencies = self._terms.get(term, ((), ()))
            found[term] = [*elsewhere.get(term, ()), *_holding(documents, frequencies, wanted)]
        return found


def _holding(
    documents: Sequence[int], frequencies: Sequence[int], wanted: Collection[int]
) -> Iterator[tuple[int, int]]:
    """Yield those of some documents that a term's list holds, with its frequency there."""
    if len(documents) < _SCARCE * len(wanted):
        yield from (pair for pair in zip(documents, frequencies, strict=True) if pair[0] in wanted)
        return
    for document in wanted:
        at = _position(documents, document)
        if at is not None:
            yield document, frequencies[at]


def _position(documents: Sequence[int], document: int) -> int | None:
    """Return the position of a document in an ascending sequence, None if it does not."""
    at = bisect_left(documents, document)
    return at if at < len(documents) and documents[at] == document else None
