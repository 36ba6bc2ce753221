"""Candidates of one search: the best by words and the best by embedding that pass the filters, and how many there are.

Looks at as few documents as it can: with 100,000 of them half may hold a word of the query. So counts are exact while
they are small and estimated beyond `SearchLimits.counted`. Changes nothing; `ranking` orders them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Generic, TypeVar

from agent_memory.index.dense_index import ExactCosines
from agent_memory.index.facets import Facets, Scope
from agent_memory.index.results import SEALED_FROM
from agent_memory.index.talks import Talks
from agent_memory.language.words import index_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from agent_memory.index.dense_index import Cosines
    from agent_memory.index.postings import Postings
    from agent_memory.index.results import IndexedDocument, Question, RankingSettings, SearchLimits
    from agent_memory.index.scores import Scores
    from agent_memory.index.sealed_corpus import SealedCorpus
    from agent_memory.index.sealed_rows import Masks
    from agent_memory.models import SearchRequest

T = TypeVar("T")
_Near = tuple[str, float]
"""An id, and the raw cosine of that document."""


class Documents(dict[str, "IndexedDocument"]):
    """Documents by id: those held here and, behind `[]` alone, those that are sealed."""

    def __init__(self, sealed: SealedCorpus | None = None) -> None:
        super().__init__()
        self._sealed = sealed

    def __missing__(self, record_id: str) -> IndexedDocument:
        """Return a sealed document.

        Raises:
            KeyError: There is none.
        """
        found = self._sealed.rows.get(record_id) if self._sealed is not None else None
        if found is None:
            raise KeyError(record_id)
        return found


@dataclass(frozen=True, slots=True)
class Corpus:
    """What an index holds: documents by id, ids by number, and what is found by word, by facet and by talk."""

    postings: Postings
    documents: Documents = field(default_factory=Documents)
    ids: dict[int, str] = field(default_factory=dict)
    facets: Facets = field(default_factory=Facets)
    talks: Talks = field(default_factory=Talks)
    sealed: SealedCorpus | None = None

    def id_of(self, number: int) -> str:
        """Return the id of a document."""
        if number < SEALED_FROM or self.sealed is None:
            return self.ids[number]
        return self.sealed.rows.id_of(number)

    def is_listener(self, word: str) -> bool:
        """Tell whether a folded word is the name of somebody whom texts only call."""
        return self.talks.is_listener(word, self._holding(word))

    def is_stranger(self, word: str) -> bool:
        """Tell whether a folded word is held by no document of a memory of talks."""
        return not self._holding(word) and self.talks.are_asking(self.postings.documents)

    def holds_talk(self) -> bool:
        """Tell whether people talk in documents: turns of speakers that are named, or as many questions as in talks."""
        return self.talks.are_asking(self.postings.documents) or bool(self.talks.speakers())

    def _holding(self, word: str) -> int:
        """Return how many documents hold a word, whole or in parts."""
        return max(map(self.postings.frequency, index_terms(word)), default=0)


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
        latin_alone: Whether cosines of texts in other scripts than the Latin tell nothing.
        scope: What the search is limited to; None admits everything.
        masks: Which sealed documents may be found; empty where nothing is sealed.
        at_most: Of each list of what is not sealed so many are looked at, about; None looks at as many as it takes.
        within: The same search for each stretch of time that is asked about, of what was stored in it.
    """

    corpus: Corpus
    request: SearchRequest
    question: Question
    settings: RankingSettings
    limits: SearchLimits
    cosines: Cosines | None = None
    least: float = 0.0
    floor: float = 0.0
    latin_alone: bool = False
    scope: Scope | None = None
    masks: Masks = field(default_factory=list)
    at_most: int | None = None
    within: tuple[Search, ...] = ()

    def above_low_trust(self) -> Search:
        """Return the same search of what is above low trust alone."""
        scope, documents, sealed = self.scope, self.corpus.documents, self.corpus.sealed

        def admits(record_id: str) -> bool:
            return documents[record_id].document.trust != "low" and (scope is None or scope.admits(record_id))

        filters, meeting = (self.request.filters, None) if scope is None else (scope.filters, scope.meeting)
        masks = sealed.above_low_trust(self.masks) if sealed is not None else self.masks
        return replace(self, scope=Scope(filters, admits, meeting), masks=masks, at_most=self.limits.doubtful)

    @property
    def size(self) -> int:
        """How many of each list are looked at closely."""
        return max(self.request.limit, self.limits.pool)

    def admits(self, record_id: str) -> bool:
        """Tell whether a document may be found."""
        entry, sealed = self.corpus.documents[record_id], self.corpus.sealed
        if sealed is not None and entry.number >= SEALED_FROM:
            return sealed.rows.admits(entry, self.masks)
        return self.scope is None or self.scope.admits(record_id)

    def reaches(self) -> Callable[[str], bool]:
        """Return what tells of a document whether an explanation may name it at all."""
        reach, documents, sealed = self.request.filters.reach, self.corpus.documents, self.corpus.sealed
        masks = [] if sealed is None else sealed.within(reach, None)

        def is_there(record_id: str) -> bool:
            entry = documents[record_id]
            if sealed is not None and entry.number >= SEALED_FROM:
                return sealed.rows.admits(entry, masks)
            return reach.admits(entry.document)

        return is_there

    def bm25_of(self, scores: Scores, record_ids: Iterable[str]) -> dict[str, float]:
        """Return the BM25 score of each of some documents; `scores` are of those that are not sealed."""
        corpus = self.corpus
        numbers = {one: corpus.documents[one].number for one in record_ids}
        found = {one: scores[number] for one, number in numbers.items() if number < SEALED_FROM}
        if corpus.sealed is not None:
            gains, norm = corpus.postings.gains(self.question.weights), corpus.postings.norm
            sealed = corpus.sealed.weights.scores_of(gains, norm, numbers.values())
            found |= {one: sealed[number] for one, number in numbers.items() if number in sealed}
        return found

    def cosines_of(self, record_ids: Iterable[str]) -> dict[str, float]:
        """Return the cosines of some documents, without those that have no vector yet."""
        if self.cosines is None:
            return {}
        wanted, sealed, vector = list(record_ids), self.corpus.sealed, self.question.vector
        found = self.cosines.of(wanted)
        if sealed is not None and vector is not None:
            numbers = {self.corpus.documents[one].number: one for one in wanted if one not in found}
            found |= {numbers[number]: cosine for number, cosine in sealed.cosines_of(vector, numbers).items()}
        return found

    def pieces_of(self, record_id: str) -> tuple[float, ...]:
        """Return the cosine of each piece of a text that is embedded in several; empty where they are not at hand."""
        if not isinstance(self.cosines, ExactCosines):  # an engine tells the best piece alone
            return ()
        found = self.cosines.pieces_of(record_id)
        sealed, vector = self.corpus.sealed, self.question.vector
        if not found and sealed is not None and vector is not None:
            found = sealed.pieces_of(vector, self.corpus.documents[record_id].number)
        return tuple(found) if len(found) > 1 else ()


@dataclass(slots=True)
class CandidateLists:
    """Documents above the floor: by words and by embedding (with raw cosines), best first, and how many in all."""

    scores: Scores  # by number, of what is not sealed; also of documents that the filters leave out
    words: Sequence[str]
    near: Sequence[_Near]
    filtered: list[str]
    total: int
    near_total: int  # by embedding, of what is held here
    cosines: Mapping[str, float] = field(default_factory=dict)  # of some, as far as they were asked for


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
    found = _find_unsealed(search)
    sealed = search.corpus.sealed
    return found if sealed is None else _with_sealed(search, sealed, found)


def _with_sealed(search: Search, sealed: SealedCorpus, found: CandidateLists) -> CandidateLists:
    """Add what is sealed to what is not."""
    postings, vector, size = search.corpus.postings, search.question.vector, search.size
    gains, norm, masks = postings.gains(search.question.weights), postings.norm, search.masks
    total = sealed.how_many_hold(gains, masks)
    words = sealed.by_words(gains, norm, total if size < total <= search.limits.counted else size, masks)
    near, near_total, both, cosines = [], 0, 0, dict[str, float]()
    if search.cosines is not None and vector is not None:
        near = sealed.by_embedding(vector, size, search.floor, masks)
        near_total = sealed.how_many_near(vector, search.floor, masks)
        numbers = {search.corpus.documents[one.id].number: one.id for one in words}
        cosines = {numbers[each]: cosine for each, cosine in sealed.cosines_of(vector, numbers).items()}
        both = round(total * sum(each >= search.floor for each in cosines.values()) / max(1, len(words)))
    own = [(found.scores[search.corpus.documents[one].number], one) for one in found.words]
    by_score = sorted([*own, *words], key=itemgetter(0), reverse=True)
    by_cosine = sorted([*found.near, *((each.id, each.score) for each in near)], key=itemgetter(1), reverse=True)
    filtered = list(found.filtered)
    if search.request.explain:
        best = sealed.by_words(gains, norm, search.limits.rejections, sealed.within(search.request.filters.reach, None))
        filtered += [one.id for one in best if not search.admits(one.id)]
    every = found.total - _counted_twice(search, sealed, found) + max(total + near_total - both, len(words), len(near))
    worded = [one for _, one in by_score]
    return CandidateLists(found.scores, worded, by_cosine, filtered, every, found.near_total, cosines)


def _counted_twice(search: Search, sealed: SealedCorpus, found: CandidateLists) -> int:
    """Return how many sealed documents, whose vectors are held with what is not sealed, hold a word as well."""
    numbers = [number for one, _ in found.near if (number := search.corpus.documents[one].number) >= SEALED_FROM]
    if not numbers:
        return 0
    gains, norm = search.corpus.postings.gains(search.question.weights), search.corpus.postings.norm
    worded = sum(score > 0 for score in sealed.weights.scores_of(gains, norm, numbers).values())
    return round(worded * found.near_total / len(found.near))


def _find_unsealed(search: Search) -> CandidateLists:
    scores = search.corpus.postings.scores(search.question.weights)
    scope, limits, size = search.scope, search.limits, search.size
    meeting = scope.meeting if scope is not None else None
    if meeting is not None and len(meeting) <= limits.few:
        by_words, by_embedding = _among(search, scores, [int(number) for number in meeting])
        sealed = search.corpus.sealed
        if sealed is not None and None in sealed.vectors:  # what has none there yet is held with what is not sealed
            by_embedding = _anywhere(search, scores)[1]
    else:
        by_words, by_embedding = _anywhere(search, scores if meeting is None else scores.within(meeting))
    if search.at_most is not None:
        by_words = replace(by_words, total=min(by_words.total, search.at_most))
        by_embedding = replace(by_embedding, total=min(by_embedding.total, search.at_most))
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
    return CandidateLists(scores, words.kept, near.kept, list(filtered), total, near.total)


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
        numbers = [
            corpus.documents[one].number for one, _ in near.kept
        ]  # of sealed ones whose vectors are held here, too
        return sum(scores[number] > 0 for number in numbers if number < SEALED_FROM)
    most = limits.sampled if words.total > limits.counted else limits.counted
    if words.is_whole or words.left_out:
        sample = words.kept[:most]
    else:
        sample = [corpus.ids[number] for number in scores.sample(most)]
    also_near = sum(cosine >= search.floor for cosine in cosines.of(sample).values())
    return round(also_near * words.total / max(1, len(sample)))
