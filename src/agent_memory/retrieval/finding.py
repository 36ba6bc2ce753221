"""Candidates of one search: the best by words and the best by meaning that pass the filters, and how many there are.

Looks at as few memories as it can: with 100,000 of them half may hold a word of the query. So counts are exact while
they are small and estimated beyond `_COUNTED`. Changes nothing; who ranks them is `ranking`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent_memory.models import Memory
    from agent_memory.retrieval.dense import Cosines
    from agent_memory.retrieval.index import SearchIndex
    from agent_memory.retrieval.query import Question
    from agent_memory.retrieval.scores import Scores

    Allowed = Callable[[Memory], bool] | None

T = TypeVar("T")

_COUNTED: Final = 1_000
"""Memories of one list looked at for a count; beyond, it is estimated from these. A thousand take a quarter of a
millisecond, and the error of such a share is below three percent (two standard errors)."""


@dataclass(slots=True)
class Found:
    """Memories above the floor: by words and by meaning (with raw cosines), best first, and how many in all."""

    scores: Scores  # by document; also of memories that the filters leave out
    words: list[str]
    meaning: list[tuple[str, float]]
    cosines: Cosines | None
    floor: float  # of a hit by meaning alone
    filtered: list[str]
    total: int


@dataclass(slots=True)
class _List(Generic[T]):
    """One list of candidates that pass the filters, best first, and how many there would be."""

    kept: list[T]
    total: int
    left_out: list[T] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return len(self.kept) == self.total


def find(index: SearchIndex, question: Question, cosines: Cosines | None, size: int, allowed: Allowed) -> Found:
    """Return at least the best `size` of each list, and how many there are."""
    scores = index.postings.scores(question.weights)
    floor = index.settings.similarity_threshold
    if floor is None:
        floor = index.vectors.similarity_threshold if index.vectors is not None else 0.0

    def by_words(count: int) -> list[str]:
        return [index.owners[document] for document in scores.best(count)]

    def by_meaning(count: int) -> list[tuple[str, float]]:
        return cosines.at_least(floor, count) if cosines is not None else []

    near = cosines.how_many(floor) if cosines is not None else 0
    if allowed is None:
        words, meaning = _List(by_words(size), len(scores)), _List(by_meaning(size), near)
    else:
        words = _sift(by_words, len(scores), size, lambda one: allowed(index.entries[one].memory))
        meaning = _sift(by_meaning, near, size, lambda pair: allowed(index.entries[pair[0]].memory))
    both = _in_both(index, scores, words, meaning, cosines, floor) if cosines is not None else 0
    filtered = dict.fromkeys([*words.left_out, *(one for one, _ in meaning.left_out)])
    total = max(words.total + meaning.total - both, len(words.kept), len(meaning.kept))
    return Found(scores, words.kept, meaning.kept, cosines, floor, list(filtered), total)


def _sift(best: Callable[[int], Sequence[T]], total: int, size: int, admits: Callable[[T], bool]) -> _List[T]:
    """Go through a list, best first, until `size` of it are admitted and enough are seen to tell how many will be."""
    sifted: _List[T] = _List([], 0)
    looked = 0
    for one in _best_first(best, total):
        if looked >= _COUNTED and len(sifted.kept) >= size:
            break
        looked += 1
        (sifted.kept if admits(one) else sifted.left_out).append(one)
    share = len(sifted.kept) / max(1, looked)
    sifted.total = len(sifted.kept) + round(share * (total - looked))
    return sifted


def _best_first(best: Callable[[int], Sequence[T]], total: int) -> Iterator[T]:
    """Yield a list that is dear to sort as a whole, in growing portions."""
    given, count = 0, _COUNTED
    while given < total:
        found = best(count)
        if len(found) <= given:
            return
        yield from found[given:]
        given, count = len(found), 8 * count


def _in_both(
    index: SearchIndex,
    scores: Scores,
    words: _List[str],
    meaning: _List[tuple[str, float]],
    cosines: Cosines,
    floor: float,
) -> int:
    """Return how many are found by words and by meaning, exactly when one of the lists is short."""
    if meaning.is_whole:
        return sum(score_of(index, scores, memory_id) > 0 for memory_id, _ in meaning.kept)
    # Those that filters have admitted, or else any: the best of all are nearer than the rest.
    sample = words.kept if words.left_out else [index.owners[document] for document in scores.sample(_COUNTED)]
    near = sum(cosine >= floor for cosine in cosines.of(sample).values())
    return round(near * words.total / max(1, len(sample)))


def score_of(index: SearchIndex, scores: Scores, memory_id: str) -> float:
    """Return the raw BM25 score of a memory."""
    document = index.entries[memory_id].document
    return 0.0 if document is None else scores.get(document)
