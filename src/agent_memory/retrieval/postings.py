"""BM25 over postings held in arrays. Knows terms and document numbers; must not know memories, time or vectors."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_COMPACT_AT: Final = 1_024
_MAX_FREQUENCY: Final = 65_535  # what an array of type H holds


class Postings:
    """An inverted index that grows and shrinks; scores are those of an index built fresh from what is left.

    Args:
        k1: Term frequency saturation.
        b: Length normalisation, 0..1.
    """

    def __init__(self, k1: float, b: float) -> None:
        self._k1 = k1
        self._b = b
        self._documents: dict[str, array[int]] = {}
        self._frequencies: dict[str, array[int]] = {}
        self._lengths: array[int] = array("I")
        self._dead: set[int] = set()
        self._total_length = 0

    def __len__(self) -> int:
        return len(self._lengths) - len(self._dead)

    def add(self, terms: Iterable[str]) -> int:
        """File a document under its terms and return its number; numbers rise and are never reused."""
        document = len(self._lengths)
        length = 0
        for term, frequency in Counter(terms).items():
            length += frequency
            if term not in self._documents:
                self._documents[term] = array("I")
                self._frequencies[term] = array("H")
            self._documents[term].append(document)
            self._frequencies[term].append(min(frequency, _MAX_FREQUENCY))
        self._lengths.append(length)
        self._total_length += length
        return document

    def remove(self, document: int) -> None:
        """Take a document out; its postings go at the next sweep.

        Args:
            document: A number that `add` returned and that was not removed yet.
        """
        self._dead.add(document)
        self._total_length -= self._lengths[document]
        if len(self._dead) >= _COMPACT_AT and len(self._dead) % _COMPACT_AT == 0:
            self._sweep()

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of a term, 0 for one nobody uses."""
        documents = self._documents.get(term)
        if not documents:
            return 0.0
        alive = sum(document not in self._dead for document in documents) if self._dead else len(documents)
        return math.log(1 + (len(self) - alive + 0.5) / (alive + 0.5)) if alive else 0.0

    def scores(self, weights: Mapping[str, float]) -> dict[int, float]:
        """Return the BM25 score of every document that holds at least one term.

        Args:
            weights: How much each query term counts; its number of occurrences, as a rule.
        """
        found: dict[int, float] = {}
        if not len(self):
            return found
        steepness = self._k1 * self._b * len(self) / max(1, self._total_length)
        flat = self._k1 * (1 - self._b)
        lengths = self._lengths
        for term, weight in weights.items():
            documents = self._documents.get(term)
            if not documents:
                continue
            gain = weight * self.idf(term) * (self._k1 + 1)
            for document, frequency in zip(documents, self._frequencies[term], strict=True):
                part = gain * frequency / (frequency + flat + steepness * lengths[document])
                found[document] = found.get(document, 0.0) + part
        for document in self._dead & found.keys():
            del found[document]
        return found

    def full_score(self, weights: Mapping[str, float]) -> float:
        """Return what a document of average length would score that holds every term once, unknown terms too."""
        unknown = math.log(1 + (len(self) + 0.5) / 0.5)
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
        lengths = self._lengths
        flat, slope = self._k1 * (1 - self._b), self._k1 * self._b * len(self) / max(1, self._total_length)
        heaviness = {
            document: flat + slope * sum([lengths[one] for one in window]) / len(window)
            for document, window in windows.items()
        }
        for term, weight in weights.items():
            documents = self._documents.get(term)
            if not documents:
                continue
            together: dict[int, int] = {}
            for document, frequency in zip(documents, self._frequencies[term], strict=True):
                if document in within:
                    for window_of in within[document]:
                        together[window_of] = together.get(window_of, 0) + frequency
            gain = weight * self.idf(term) * (self._k1 + 1)
            for document, frequency in together.items():
                found[document] += gain * frequency / (frequency + heaviness[document])
        return found

    def _sweep(self) -> None:
        """Drop the postings of removed documents; their numbers stay taken."""
        for term, documents in list(self._documents.items()):
            if self._dead.isdisjoint(documents):
                continue
            kept = [at for at, document in enumerate(documents) if document not in self._dead]
            if not kept:
                del self._documents[term], self._frequencies[term]
                continue
            frequencies = self._frequencies[term]
            self._documents[term] = array("I", [documents[at] for at in kept])
            self._frequencies[term] = array("H", [frequencies[at] for at in kept])
