"""Candidates of one search: the best by words and the best by meaning that pass the filters, and how many there are.

Looks at as few memories as it can: with 100,000 of them half may hold a word of the query. So counts are exact while
they are small and estimated beyond `_COUNTED`. Changes nothing; who ranks them is `ranking`.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.models import Memory
    from agent_memory.retrieval.dense import Cosines
    from agent_memory.retrieval.index import SearchIndex
    from agent_memory.retrieval.query import Question
    from agent_memory.retrieval.scores import Scores

T = TypeVar("T")

_COUNTED: Final = 500
"""Memories of one list looked at for a count; beyond, it is estimated from these. Five hundred take about half a
millisecond, and the error of such a share is below five percent of the list (two standard errors)."""
_FEW: Final = 2_000
"""Documents up to which looking at each is cheaper than going through lists of hits until enough have passed."""
_SAMPLED: Final = 200
"""Memories whose cosines are asked for to tell how many of a long list are near, too."""


@dataclass(frozen=True, slots=True)
class Sieve:
    """What a search is limited to.

    Attributes:
        admits: Tells whether a memory passes.
        meeting: The documents among which all that pass are; None when they may be any.
    """

    admits: Callable[[Memory], bool]
    meeting: Sequence[int] | NDArray[np.integer] | None = None


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
    left_out: Sequence[T] = ()

    @property
    def is_whole(self) -> bool:
        return len(self.kept) == self.total


def find(
    index: SearchIndex,
    question: Question,
    cosines: Cosines | None,
    size: int,
    sieve: Sieve | None,
) -> Found:
    """Return at least the best `size` of each list, and how many there are."""
    scores = index.postings.scores(question.weights)
    floor = index.settings.similarity_threshold
    if floor is None:
        floor = index.vectors.similarity_threshold if index.vectors is not None else 0.0

    meeting = sieve.meeting if sieve is not None else None
    if meeting is not None and len(meeting) <= _FEW:
        lists = _among(index, scores, cosines, floor, [int(document) for document in meeting])
    else:
        lists = _anywhere(index, scores if meeting is None else scores.within(meeting), cosines, floor)
    if sieve is None:
        words, meaning = _List(lists.words(size), lists.worded), _List(lists.meaning(size), lists.near)
    else:
        # Of documents that meet the filter, as far as is known, nearly all pass: a few tell how many will.
        least = size if meeting is not None and lists.worded > _COUNTED else _COUNTED
        words = _sift(lists.words, lists.worded, size, lambda one: sieve.admits(index.entries[one].memory), least)
        meaning = _sift(lists.meaning, lists.near, size, lambda pair: sieve.admits(index.entries[pair[0]].memory))
    both = 0 if cosines is None else _in_both(index, scores, words, meaning, cosines, floor)
    filtered = dict.fromkeys([*words.left_out, *(one for one, _ in meaning.left_out)])
    total = max(words.total + meaning.total - both, len(words.kept), len(meaning.kept))
    return Found(scores, words.kept, meaning.kept, cosines, floor, list(filtered), total)


@dataclass(frozen=True, slots=True)
class _Lists:
    """The best by words and by meaning, of whom filters are still to be asked, and how many of each there are."""

    words: Callable[[int], list[str]]
    worded: int
    meaning: Callable[[int], list[tuple[str, float]]]
    near: int


def _anywhere(index: SearchIndex, scores: Scores, cosines: Cosines | None, floor: float) -> _Lists:
    def words(count: int) -> list[str]:
        return [index.owners[document] for document in scores.best(count)]

    def meaning(count: int) -> list[tuple[str, float]]:
        return cosines.at_least(floor, count) if cosines is not None else []

    return _Lists(words, len(scores), meaning, cosines.how_many(floor) if cosines is not None else 0)


def _among(index: SearchIndex, scores: Scores, cosines: Cosines | None, floor: float, few: list[int]) -> _Lists:
    """As `_anywhere`, of some documents."""
    worded = sorted(((score, document) for document in few if (score := scores.get(document)) > 0), reverse=True)
    words = [index.owners[document] for _, document in worded]
    cosine_of = cosines.of(index.owners[document] for document in few) if cosines is not None else {}
    meaning = sorted((pair for pair in cosine_of.items() if pair[1] >= floor), key=itemgetter(1), reverse=True)
    return _Lists(lambda count: words[:count], len(words), lambda count: meaning[:count], len(meaning))


def _sift(
    best: Callable[[int], Sequence[T]], total: int, size: int, admits: Callable[[T], bool], least: int | None = None
) -> _List[T]:
    """Go through a list, best first, until `size` of it are admitted and `least` are seen, to tell how many will be."""
    least = _COUNTED if least is None else least
    kept: list[T] = []
    left_out: list[T] = []
    looked = 0
    for one in _best_first(best, total, least * 3 // 2):
        if looked >= least and len(kept) >= size:
            break
        looked += 1
        (kept if admits(one) else left_out).append(one)
    return _List(kept, len(kept) + round((total - looked) * len(kept) / max(1, looked)), left_out)


def _best_first(best: Callable[[int], Sequence[T]], total: int, count: int) -> Iterator[T]:
    """Yield a list that is dear to sort as a whole, in growing portions, beginning with `count`."""
    given = 0
    while given < total:
        found = best(count)
        if len(found) <= given:
            return
        yield from found[given:]
        given, count = len(found), 2 * count


def _in_both(
    index: SearchIndex,
    scores: Scores,
    words: _List[str],
    meaning: _List[tuple[str, float]],
    cosines: Cosines,
    floor: float,
) -> int:
    """Return how many are found by words and by meaning, exactly when one of the lists is short.

    Else it is estimated from those that filters have admitted or, without filters, from hits of all ranks.
    """
    if meaning.is_whole:
        return sum(score_of(index, scores, memory_id) > 0 for memory_id, _ in meaning.kept)
    most = _SAMPLED if words.total > _COUNTED else _COUNTED
    if words.is_whole or words.left_out:
        sample = words.kept[:most]
    else:
        sample = [index.owners[document] for document in scores.sample(most)]
    near = sum(cosine >= floor for cosine in cosines.of(sample).values())
    return round(near * words.total / max(1, len(sample)))


def score_of(index: SearchIndex, scores: Scores, memory_id: str) -> float:
    """Return the raw BM25 score of a memory."""
    document = index.entries[memory_id].document
    return 0.0 if document is None else scores.get(document)
