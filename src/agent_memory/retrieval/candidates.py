"""Candidates of one search: the best by words and the best by embedding that pass the filters, and how many there are.

Looks at as few documents as it can: with 100,000 of them half may hold a word of the query. So counts are exact while
they are small and estimated beyond `SearchLimits.counted`. Changes nothing; `ranking` orders them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Generic, TypeVar

from agent_memory.retrieval.facets import Facets
from agent_memory.retrieval.turns import Talks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent_memory.models import SearchRequest
    from agent_memory.retrieval.dense import Cosines
    from agent_memory.retrieval.facets import Scope
    from agent_memory.retrieval.postings import Postings
    from agent_memory.retrieval.results import IndexedDocument, Question, RankingSettings, SearchLimits
    from agent_memory.retrieval.scores import Scores

T = TypeVar("T")
_Near = tuple[str, float]
"""An id, and the raw cosine of that document."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """What an index holds: documents by id, ids by number, and what is found by word, by facet and by talk."""

    postings: Postings
    documents: dict[str, IndexedDocument] = field(default_factory=dict)
    ids: dict[int, str] = field(default_factory=dict)
    facets: Facets = field(default_factory=Facets)
    talks: Talks = field(default_factory=Talks)


@dataclass(frozen=True, slots=True)
class Search:
    """One search: what is asked, and of what.

    Attributes:
        corpus: What is searched.
        request: What was asked.
        question: Its text, read.
        settings: Constants a user may set.
        limits: How much is looked at closely.
        cosines: Between the question and the documents; None searches by words alone.
        least: The embedder's own floor of a cosine.
        floor: The least cosine of a hit by embedding alone.
        scope: What the search is limited to; None admits everything.
    """

    corpus: Corpus
    request: SearchRequest
    question: Question
    settings: RankingSettings
    limits: SearchLimits
    cosines: Cosines | None = None
    least: float = 0.0
    floor: float = 0.0
    scope: Scope | None = None

    @property
    def size(self) -> int:
        """How many of each list are looked at closely."""
        return max(self.request.limit, self.limits.pool)


@dataclass(slots=True)
class CandidateLists:
    """Documents above the floor: by words and by embedding (with raw cosines), best first, and how many in all."""

    scores: Scores  # by number; also of documents that the filters leave out
    words: Sequence[str]
    near: Sequence[_Near]
    filtered: list[str]
    total: int


@dataclass(frozen=True, slots=True)
class _Ranked(Generic[T]):
    """One list, before filters are asked: its best, best first, as many as are wanted, and how long it is."""

    best: Callable[[int], Sequence[T]]
    total: int


@dataclass(frozen=True, slots=True)
class _Sifted(Generic[T]):
    """One list of candidates that pass the filters, best first, and how many there would be."""

    kept: Sequence[T]
    total: int
    left_out: Sequence[T] = ()

    @property
    def is_whole(self) -> bool:
        return len(self.kept) == self.total


def find(search: Search) -> CandidateLists:
    """Return at least the best `search.size` of each list, and how many there are."""
    scores = search.corpus.postings.scores(search.question.weights)
    scope, limits, size = search.scope, search.limits, search.size
    meeting = scope.meeting if scope is not None else None
    if meeting is not None and len(meeting) <= limits.few:
        by_words, by_embedding = _among(search, scores, [int(number) for number in meeting])
    else:
        by_words, by_embedding = _anywhere(search, scores if meeting is None else scores.within(meeting))
    if scope is None:
        words = _Sifted(by_words.best(size), by_words.total)
        near = _Sifted(by_embedding.best(size), by_embedding.total)
    else:
        # Of documents that meet the filter, as far as is known, nearly all pass: a few tell how many will.
        least = size if meeting is not None and by_words.total > limits.counted else limits.counted
        words = sift(by_words.best, by_words.total, size, scope.admits, least)
        near = sift(by_embedding.best, by_embedding.total, size, lambda pair: scope.admits(pair[0]), limits.counted)
    both = 0 if search.cosines is None else _in_both(search, search.cosines, scores, words, near)
    filtered = dict.fromkeys([*words.left_out, *(one for one, _ in near.left_out)])
    total = max(words.total + near.total - both, len(words.kept), len(near.kept))
    return CandidateLists(scores, words.kept, near.kept, list(filtered), total)


def _anywhere(search: Search, scores: Scores) -> tuple[_Ranked[str], _Ranked[_Near]]:
    cosines, floor, ids = search.cosines, search.floor, search.corpus.ids
    words = _Ranked(lambda count: [ids[number] for number in scores.best(count)], len(scores))
    if cosines is None:
        return words, _Ranked(lambda _: [], 0)
    return words, _Ranked(lambda count: cosines.at_least(floor, count), cosines.how_many(floor))


def _among(search: Search, scores: Scores, few: list[int]) -> tuple[_Ranked[str], _Ranked[_Near]]:
    """As `_anywhere`, of some documents."""
    ids, floor = search.corpus.ids, search.floor
    worded = sorted(((score, number) for number in few if (score := scores[number]) > 0), reverse=True)
    words = [ids[number] for _, number in worded]
    cosine_of = search.cosines.of(ids[number] for number in few) if search.cosines is not None else {}
    near = sorted((pair for pair in cosine_of.items() if pair[1] >= floor), key=itemgetter(1), reverse=True)
    return _Ranked(lambda count: words[:count], len(words)), _Ranked(lambda count: near[:count], len(near))


def sift(
    best: Callable[[int], Sequence[T]], total: int, size: int, admits: Callable[[T], bool], least: int
) -> _Sifted[T]:
    """Go through a list, best first, until `size` of it are admitted and `least` are seen, to tell how many will be."""
    kept: list[T] = []
    left_out: list[T] = []
    looked = 0
    for one in _best_first(best, total, least * 3 // 2):
        if looked >= least and len(kept) >= size:
            break
        looked += 1
        (kept if admits(one) else left_out).append(one)
    return _Sifted(kept, len(kept) + round((total - looked) * len(kept) / max(1, looked)), left_out)


def _best_first(best: Callable[[int], Sequence[T]], total: int, count: int) -> Iterator[T]:
    """Yield a list that takes long to sort as a whole, in growing portions, beginning with `count`."""
    given = 0
    while given < total:
        found = best(count)
        if len(found) <= given:
            return
        yield from found[given:]
        given, count = len(found), 2 * count


def _in_both(search: Search, cosines: Cosines, scores: Scores, words: _Sifted[str], near: _Sifted[_Near]) -> int:
    """Return how many are found by words and by embedding, exactly when one of the lists is short.

    Else it is estimated from those that filters have admitted or, without filters, from hits of all ranks.
    """
    corpus, limits = search.corpus, search.limits
    if near.is_whole:
        return sum(scores[corpus.documents[one].number] > 0 for one, _ in near.kept)
    most = limits.sampled if words.total > limits.counted else limits.counted
    if words.is_whole or words.left_out:
        sample = words.kept[:most]
    else:
        sample = [corpus.ids[number] for number in scores.sample(most)]
    also_near = sum(cosine >= search.floor for cosine in cosines.of(sample).values())
    return round(also_near * words.total / max(1, len(sample)))
