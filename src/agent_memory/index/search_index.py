"""Documents of one agent in memory, searchable by word and embedding.

Owns what is indexed, and when. Neither reads files nor starts threads nor reads the clock. Not thread-safe: its owner
lets one caller in at a time.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from heapq import nlargest
from typing import TYPE_CHECKING, Final

from agent_memory.index.candidates import Near, SearchContext, SearchCorpus, find_near
from agent_memory.index.facets import SearchScope
from agent_memory.index.parts import Masks, PartList, WordScorer
from agent_memory.index.ranker import rank, rank_recent
from agent_memory.index.results import UNREAD, IndexedDocument, Question, Ranking, RankingSettings, SearchLimits
from agent_memory.index.talks import TalkIndex
from agent_memory.index.terms import read_question
from agent_memory.language.text_forms import embedded_texts
from agent_memory.language.words import query_terms
from agent_memory.models import DateRange, SearchFilters

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from agent_memory.embeddings.protocol import Vector
    from agent_memory.index.dense_index import VectorSource
    from agent_memory.index.segment_part import SealedCorpus
    from agent_memory.models import Document, SearchRequest
    from agent_memory.times import Period

_SETTINGS, _LIMITS = RankingSettings(), SearchLimits()
_ANY_COSINE: Final = -1.0
_NOTES: Final = SearchFilters()
_COMPARED_CHARS: Final = 2_000
"""Characters of a text by which similar texts are found."""
_RAREST_WORDS: Final = 16
"""Words of these characters by which similar texts are found."""
_AFTER_SEALED: Final = 1 << 31
"""Place in the order of storing after everything that is sealed."""


class SearchIndex:
    """An index over the documents of one agent.

    Args:
        settings: Constants a user may set.
        vectors: Compares embeddings; None searches by words alone.
        limits: How much of a search is read closely.
        sealed: Documents in segments; one that is put or removed must be hidden there.

    Attributes:
        parts: All documents, sealed or not.
        corpus: What is searched with items.
        notes: What is searched without items: they do not count for the weights of words and for talks.
    """

    def __init__(
        self,
        settings: RankingSettings = _SETTINGS,
        vectors: VectorSource | None = None,
        limits: SearchLimits = _LIMITS,
        sealed: SealedCorpus | None = None,
    ) -> None:
        self.vectors = vectors
        self._settings, self.limits = settings, limits
        self._arrivals = _AFTER_SEALED
        self.parts = PartList(sealed, limits.arrays_from)
        self.corpus, self.notes = (
            SearchCorpus(self.parts, WordScorer(self.parts, settings, items=items), TalkIndex(self.parts, items=items))
            for items in (True, False)
        )
        self._unread: dict[str, None] = {}
        self._arrived_sealed: dict[str, int] = {}  # places in the order of storing of documents that left their segment

    def put(self, document: Document) -> None:
        """Insert or replace a document; the next search reads its words."""
        entry = self.parts.buffer.entries.get(document.id)
        if entry is None:
            arrival = self._arrived_sealed.get(document.id)
            if arrival is None:
                arrival = self._arrivals = self._arrivals + 1
            self.parts.buffer.entries[document.id] = IndexedDocument(document, arrival)
            self._unread[document.id] = None
            return
        if _searched_fields(entry.document) != _searched_fields(document):
            self._drop(entry)
            self._unread[document.id] = None
        self.parts.buffer.replace(entry, document)

    def remove(self, record_id: str) -> None:
        """Remove a document; an unknown ID changes nothing."""
        entry = self.parts.buffer.entries.get(record_id)
        if entry is None:
            return
        self._drop(entry)
        del self.parts.buffer.entries[record_id]
        self._unread.pop(record_id, None)
        if self.vectors is not None:
            self.vectors.remove(record_id)

    def forget_sealed(self, record_ids: Iterable[str]) -> None:
        """Forget documents in segments whose rows were deleted.

        Those that were put again keep their vectors.
        """
        if self.parts.sealed is not None:
            dead = list(record_ids)
            self.keep_order(dead)
            self.parts.drop(dead)
            for corpus in (self.corpus, self.notes):
                corpus.talks.read_again()
            if self.vectors is not None:
                for record_id in dead:
                    if record_id not in self.parts.buffer.entries:
                        self.vectors.remove(record_id)

    def keep_order(self, record_ids: Iterable[str]) -> None:
        """Keep the order of storing of documents that leave their segment."""
        if self.parts.sealed is not None:
            self._arrived_sealed |= self.parts.sealed.arrivals(list(record_ids))

    def embed_sealed(self, document: Document) -> None:
        """Request the vectors of a document in a segment, if alive."""
        sealed = self.parts.sealed
        if self.vectors is not None and sealed is not None and sealed.find(document.id) is not None:
            self.vectors.put(document.id, embedded_texts(document.text))

    def warm(self, at_most: int | None = None) -> bool:
        """Read documents put since the last search, and request their vectors.

        Args:
            at_most: Most documents, so that a background thread can let others in between; None reads all.

        Returns:
            Whether everything is read.
        """
        for record_id in list(self._unread)[:at_most]:
            entry = self.parts.buffer.entries[record_id]
            turn = self.parts.buffer.add(entry)
            for corpus in (self.corpus, self.notes):
                corpus.talks.note(turn)
            if self.vectors is not None:
                self.vectors.put(record_id, embedded_texts(entry.document.text))
            del self._unread[record_id]
        return not self._unread

    def prune(self) -> int:
        """Delete vectors of texts without a document; return their number.

        Reads everything first: a document not read yet must not lose its vector.
        """
        self.warm()
        return self.vectors.prune() if self.vectors is not None else 0

    def parse_question(self, request: SearchRequest) -> Question:
        """Parse a request's text with the names in the documents.

        The text is not embedded yet.
        """
        self.warm()
        corpus = self._get_corpus(request.filters)
        return read_question(request.text, request.now, corpus.talks.speakers(), corpus.is_listener, corpus.is_stranger)

    def embed_question(self, question: Question) -> Question:
        """Return a question with its vector, if there is a model.

        Reads no document, so that it may run in any thread: a remote embedder takes its time.
        """
        return replace(question, vector=self.embed_text(question.embedded_text))

    def embed_text(self, text: str) -> Vector | None:
        """Return the vector of a text, or None.

        None without a loaded model, or for an empty text.
        """
        return None if self.vectors is None or not text else self.vectors.embed_query(text)

    def search(
        self,
        request: SearchRequest,
        question: Question | None = None,
        *,
        hidden: Collection[str] = (),
        among: Masks | None = None,
    ) -> Ranking:
        """Rank the documents for a request.

        Args:
            request: What is asked; one without content words is answered with the latest documents.
            question: The request's text, parsed and embedded; parsed and embedded here when omitted.
            hidden: IDs of documents outside segments that must not be found, whatever the filters say.
            among: Rows of segments that may be found, whatever the filters say; None finds all.
        """
        self.warm()
        question = question or self.embed_question(self.parse_question(request))
        request = self._drop_idle_filter(request)
        search = self._search(request, question, hidden, among)
        if question.periods and request.filters.date_range is None:
            narrowed = (_within(request, period) for period in question.periods)
            within = tuple([self._search(part_request, question, hidden, among, search) for part_request in narrowed])
            search = replace(search, within=within)
        return (
            rank_recent(search) if search.cosines is None and not (question.weights or search.within) else rank(search)
        )

    @property
    def unread(self) -> int:
        """Number of documents that a search reads first."""
        return len(self._unread)

    def alike(
        self, text: str, count: int, among: Masks | None = None, filters: SearchFilters = _NOTES
    ) -> list[tuple[str, float]]:
        """Return documents with a text's rarest words, each with its share.

        The share is that of all words of the text which the document holds.

        Best first. By words alone, and by the rarest of them: a store has no time for the cost of a whole search.

        Args:
            text: Text to compare with.
            count: Maximum number of documents.
            among: Rows of segments that may be found; None finds all.
            filters: Conditions that all documents meet; without items unless they include these.
        """
        self.warm()
        words = self._get_corpus(filters).words
        idfs = {term: words.idf(term) for term in dict.fromkeys(query_terms(text[:_COMPARED_CHARS]))}
        rarest = nlargest(_RAREST_WORDS, (term for term in idfs if idfs[term]), key=idfs.__getitem__)
        weights = dict.fromkeys(_affordable(rarest, words.frequency, self.limits.compared), 1.0)
        best = self.parts.best(words.gains(weights), words.norm, count, self.parts.masks(filters, among))
        shared = {number: 0 for _, number in best}
        for rows in words.held((term for term in idfs if idfs[term]), shared).values():
            for number, _ in rows:
                shared[number] += 1
        return [(self.parts.get_id(number), terms / len(idfs)) for number, terms in shared.items()]

    def find_nearest(
        self, request: SearchRequest, vector: Vector, floor: float, among: Masks | None = None
    ) -> list[Near]:
        """Return the documents nearest to a vector with their cosines, best first.

        None while most documents lack a vector.

        Args:
            request: Its limit and filters count; its text does not.
            vector: Shape (dimension,), of length 1.
            floor: Lowest cosine of a result.
            among: Rows of segments that may be found; None finds all.
        """
        self.warm()
        question = Question({}, frozenset(), asks_time=False, embedded_text="", vector=vector)
        search = replace(self._search(self._drop_idle_filter(request), question, (), among), floor=floor)
        return [] if search.cosines is None else find_near(search, search.cosines).admitted

    def _drop_idle_filter(self, request: SearchRequest) -> SearchRequest:
        """Return a request that admits items if there are none."""
        if self.parts.has_items or request.filters.include_items:
            return request
        return replace(request, filters=request.filters.with_items)

    def _get_corpus(self, filters: SearchFilters) -> SearchCorpus:
        return self.corpus if filters.include_items or not self.parts.has_items else self.notes

    def _search(
        self,
        request: SearchRequest,
        question: Question,
        hidden: Collection[str],
        among: Masks | None,
        main: SearchContext | None = None,
    ) -> SearchContext:
        """Prepare a search, or that of a period of `whole`.

        Of a period any cosine will do.
        """
        parts = self.parts
        masks = parts.masks(request.filters, among, hidden)
        scope = SearchScope(request.filters, lambda record_id: parts.admits(parts[record_id].number, masks))
        is_limited = parts.segments or hidden or not request.filters.admits_all
        search = SearchContext(self._get_corpus(request.filters), request, question, self._settings, self.limits, masks)
        search = replace(search, scope=scope if is_limited else None)
        if self.vectors is not None and question.vector is not None and self.vectors.ready:
            cosines = main.cosines if main is not None else None
            if cosines is None or cosines.has_scope:
                cosines = self.vectors.cosines(question.vector, search.scope)
            least, threshold = self.vectors.similarity_threshold, self._settings.similarity_threshold
            floor = _ANY_COSINE if main is not None else least if threshold is None else threshold
            latin_alone = self.vectors.reads_latin_alone(question.embedded_text)
            search = replace(search, cosines=cosines, least=least, floor=floor, latin_alone=latin_alone)
            search = replace(search, cosine_scale=self.vectors.cosine_scale)
        return search

    def _drop(self, entry: IndexedDocument) -> None:
        if entry.number != UNREAD:
            turn = self.parts.buffer.drop(entry)
            for corpus in (self.corpus, self.notes):
                corpus.talks.note(turn)


def _affordable(rarest: list[str], frequency: Callable[[str], int], most: int) -> Iterator[str]:
    """Yield terms while all documents that hold one may be read."""
    read = 0
    for term in rarest:
        read += frequency(term)
        if read > most:
            return
        yield term


def _within(request: SearchRequest, period: Period) -> SearchRequest:
    """Return a request for what was stored in a period."""
    until = None if period.end is None else period.end - timedelta(microseconds=1)
    filters = request.filters.model_copy(update={"date_range": DateRange(start=period.start, end=until)})
    return replace(request, filters=filters, explain=False)


def _searched_fields(document: Document) -> tuple[object, ...]:
    """Return the fields of a document that searches read.

    A change of any other field costs nothing.
    """
    return (document.text, document.facets, document.timestamp, document.moment, document.session)
