"""Candidates of one search: the best by words and by embedding.

Reads as few rows as it can: with 100,000 of them half may hold a word of the query. So counts are exact while they are
small and estimated beyond `SearchLimits.counted`. Changes nothing; `ranker` orders them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from agent_memory.index.dense_index import ExactCosines, QueryCosines
from agent_memory.index.facets import SearchScope
from agent_memory.language.words import index_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from agent_memory.index.parts import PartList, PartMasks, WordScorer
    from agent_memory.index.results import Question, RankingSettings, SearchLimits
    from agent_memory.index.talks import TalkIndex
    from agent_memory.models import SearchRequest

Near = tuple[str, float]
"""ID of a document, and its raw cosine."""


@dataclass(frozen=True, slots=True)
class SearchCorpus:
    """Rows that a search reads, their word weights, and their talks."""

    parts: PartList
    words: WordScorer
    talks: TalkIndex

    def is_listener(self, word: str) -> bool:
        """Return True if a word names a person who is only called."""
        return self.talks.is_listener(word, self._count_holding(word))

    def is_stranger(self, word: str) -> bool:
        """Return True if a memory of talks never holds a folded word."""
        return not self._count_holding(word) and self.talks.are_asking(self.words.documents)

    def holds_talk(self) -> bool:
        """Return True if people talk in documents.

        There are named speakers, or as many questions as in talks.
        """
        return self.talks.are_asking(self.words.documents) or bool(self.talks.speakers())

    def _count_holding(self, word: str) -> int:
        """Return the number of documents that hold a word or its parts."""
        return max(map(self.words.frequency, index_terms(word)), default=0)


@dataclass(frozen=True, slots=True)
class SearchContext:
    """One search: question, filters, limits, and the corpus.

    Attributes:
        corpus: What is searched.
        request: What was asked.
        question: Its text, read.
        settings: Constants a user may set.
        limits: How much is read closely.
        masks: Rows that may be found.
        cosines: Cosines of documents whose vectors are in memory; None searches by words alone.
        least: The embedder's own floor of a cosine.
        floor: Lowest cosine of a hit by embedding alone.
        latin_alone: True if cosines of texts in non-Latin scripts are meaningless.
        cosine_scale: Factor of a cosine where it is compared with the limits of MiniLM.
        scope: What `cosines` are limited to; None admits everything.
        at_most: Most documents of `cosines` that are read, about; None reads as many as needed.
        within: The same search for each period that is asked about, of what was stored in it.
    """

    corpus: SearchCorpus
    request: SearchRequest
    question: Question
    settings: RankingSettings
    limits: SearchLimits
    masks: PartMasks
    cosines: QueryCosines | None = None
    least: float = 0.0
    floor: float = 0.0
    latin_alone: bool = False
    cosine_scale: float = 1.0
    scope: SearchScope | None = None
    at_most: int | None = None
    within: tuple[SearchContext, ...] = ()

    def above_low_trust(self) -> SearchContext:
        """Return the same search without documents of low trust."""
        masks, parts = self.corpus.parts.above_low_trust(self.masks), self.corpus.parts
        scope = SearchScope(self.request.filters, lambda record_id: parts.admits(parts[record_id].number, masks))
        return replace(self, scope=scope, masks=masks, at_most=self.limits.doubtful)

    @property
    def size(self) -> int:
        """Number of candidates of each list."""
        return max(self.request.limit, self.limits.pool)

    def admits(self, record_id: str) -> bool:
        """Return True if a document may be found."""
        parts = self.corpus.parts
        return parts.admits(parts[record_id].number, self.masks)

    def compute_bm25(self, record_ids: Iterable[str]) -> dict[str, float]:
        """Return the BM25 score of each document."""
        numbers = {self.corpus.parts[record_id].number: record_id for record_id in record_ids}
        scores = self.corpus.words.compute_scores(self.question.weights, numbers)
        return {record_id: scores[number] for number, record_id in numbers.items()}

    def compute_cosines(self, record_ids: Iterable[str]) -> dict[str, float]:
        """Return the cosines of documents, without those that have no vector yet."""
        if self.cosines is None:
            return {}
        wanted, parts, vector = list(record_ids), self.corpus.parts, self.question.vector
        cosines = self.cosines.of(wanted)
        if parts.segments and vector is not None:
            numbers = {parts[record_id].number: record_id for record_id in wanted if record_id not in cosines}
            cosines |= {numbers[number]: cosine for number, cosine in parts.compute_cosines(vector, numbers).items()}
        return cosines

    def get_pieces(self, record_id: str) -> tuple[float, ...]:
        """Return the cosine of each piece of a text with several.

        Empty if they are unknown.
        """
        if not isinstance(self.cosines, ExactCosines):  # an engine returns the best piece alone
            return ()
        pieces, vector = self.cosines.get_pieces(record_id), self.question.vector
        if not pieces and vector is not None:
            pieces = self.corpus.parts.get_pieces(vector, self.corpus.parts[record_id].number)
        return tuple(pieces) if len(pieces) > 1 else ()


class CandidateLists(NamedTuple):
    """Documents above the floor, best first.

    Attributes:
        words: IDs of the best by words.
        near: The best by embedding, with their cosines.
        filtered: IDs of the best that filters left out, if an explanation is wanted.
        total: Number of documents in both lists, if they were not cut.
        cosines: Cosines of some documents that are known already.
    """

    words: list[str]
    near: list[Near]
    filtered: list[str]
    total: int
    cosines: Mapping[str, float]


class SiftedList(NamedTuple):
    """Admitted part of a list, and the length of all of it."""

    admitted: list[Near]
    total: int
    left_out: list[Near]


def find(search: SearchContext) -> CandidateLists:
    """Return at least the best `search.size` of each list, and their total."""
    parts, scorer, limits = search.corpus.parts, search.corpus.words, search.limits
    gains, norm = scorer.gains(search.question.weights), scorer.norm
    total = parts.how_many(gains, search.masks)
    is_counted = search.cosines is not None and total <= limits.counted
    count = max(total, search.size) if is_counted else search.size
    words = [parts.get_id(number) for _, number in parts.best(gains, norm, count, search.masks)]
    near, cosines, both = SiftedList([], 0, []), dict[str, float](), 0
    if search.cosines is not None:
        near = find_near(search, search.cosines)
        if near.total == len(near.admitted):
            both = sum(
                score > 0 for score in search.compute_bm25([record_id for record_id, _ in near.admitted]).values()
            )
        else:
            step = max(1, sum(map(scorer.frequency, gains)) // limits.sampled)
            sample = words if len(words) >= total else list(map(parts.get_id, parts.sample(gains, search.masks, step)))
            cosines = search.compute_cosines(sample)
            both = round(total * sum(cosine >= search.floor for cosine in cosines.values()) / max(1, len(sample)))
    filtered = []
    if search.request.explain:
        reach = parts.masks(search.request.filters.reach)
        hidden = parts.best(gains, norm, limits.rejections, parts.without(reach, search.masks))
        near_hidden = [record_id for record_id, _ in near.left_out if parts.admits(parts[record_id].number, reach)]
        filtered = list(dict.fromkeys([*(parts.get_id(number) for _, number in hidden), *near_hidden]))
    total_found = max(total + near.total - both, len(words), len(near.admitted))
    return CandidateLists(words, near.admitted, filtered, total_found, cosines)


def find_near(search: SearchContext, cosines: QueryCosines) -> SiftedList:
    """Return the nearest documents, in memory and in segments.

    The later first among equals.
    """
    parts, vector, size, floor = search.corpus.parts, search.question.vector, search.size, search.floor
    admitted, total, left_out = _sift_cosines(search, cosines)
    if parts.segments and vector is not None:
        near = parts.nearest(vector, size, floor, search.masks)
        total += parts.how_many_near(vector, floor, search.masks)
        admitted = [*admitted, *((parts.get_id(number), cosine) for cosine, number in near)]
        admitted.sort(key=itemgetter(1), reverse=True)
    if len({cosine for _, cosine in admitted}) < len(admitted):
        admitted = sorted(admitted, key=lambda pair: (pair[1], parts[pair[0]].arrival), reverse=True)
    return SiftedList(admitted, max(total, len(admitted)), left_out)


def _sift_cosines(search: SearchContext, cosines: QueryCosines) -> SiftedList:
    """Return the nearest documents whose vectors are in memory."""
    parts, floor, scope, limits = search.corpus.parts, search.floor, search.scope, search.limits
    if scope is None:
        near = cosines.at_least(floor, search.size)
        return SiftedList(near, max(cosines.how_many(floor), len(near)), [])
    mask, is_plain = search.masks[-1], search.at_most is None and not search.request.explain
    if is_plain and parts.is_embedded and parts.buffer.count(mask) <= limits.few:
        # Cheaper than to read the nearest until enough of them pass.
        cosines_by_id = cosines.of(record_id for row, record_id in parts.buffer.ids.items() if mask[row])
        near = sorted((pair for pair in cosines_by_id.items() if pair[1] >= floor), key=itemgetter(1), reverse=True)
        return SiftedList(near, len(near), [])
    most = cosines.how_many(floor) if search.at_most is None else min(cosines.how_many(floor), search.at_most)
    return sift(lambda count: cosines.at_least(floor, count), most, search.size, scope.admits, limits.counted)


def sift(
    best: Callable[[int], Sequence[Near]], total: int, size: int, admits: Callable[[str], bool], least: int
) -> SiftedList:
    """Read a list, best first, until `size` are admitted and `least` read.

    The total of admitted ones is then estimated.
    """
    admitted: list[Near] = []
    left_out: list[Near] = []
    for pair in _best_first(best, total, least * 3 // 2):
        if len(admitted) + len(left_out) >= least and len(admitted) >= size:
            break
        (admitted if admits(pair[0]) else left_out).append(pair)
    read = len(admitted) + len(left_out)
    return SiftedList(admitted, len(admitted) + round((total - read) * len(admitted) / max(1, read)), left_out)


def _best_first(best: Callable[[int], Sequence[Near]], total: int, count: int) -> Iterator[Near]:
    """Yield a list in growing batches, beginning with `count`.

    Sorting all of it would take long.
    """
    read = 0
    while read < total:
        pairs = best(count)
        if len(pairs) <= read:
            return
        yield from pairs[read:]
        read, count = len(pairs), 2 * count
