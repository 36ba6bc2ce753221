"""`SearchIndex`: the documents of one agent, searchable by word and by embedding, in this process's memory.

Owns what is indexed, and when. Must not read or write files, start threads or read the clock. Not thread-safe: its
owner lets one caller in at a time.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from heapq import nlargest
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from agent_memory.index import fusion
from agent_memory.index.candidates import Corpus, Documents, Search
from agent_memory.index.dense_index import ExactCosines
from agent_memory.index.document_terms import document_terms
from agent_memory.index.facets import Scope
from agent_memory.index.postings import Postings
from agent_memory.index.question import read_question
from agent_memory.index.ranking import rank, rank_recent
from agent_memory.index.results import (
    SEALED_FROM,
    UNREAD,
    IndexedDocument,
    Question,
    Ranking,
    RankingSettings,
    SearchLimits,
)
from agent_memory.index.talks import Talks
from agent_memory.index.text_forms import embedded_texts, tells_time
from agent_memory.language.speakers import asks
from agent_memory.language.words import query_terms
from agent_memory.models import ITEM, DateRange, SearchFilters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from agent_memory.index.dense_index import VectorSource
    from agent_memory.index.sealed_corpus import SealedCorpus
    from agent_memory.index.sealed_rows import Masks
    from agent_memory.models import Document, SearchRequest
    from agent_memory.times import Period

_SETTINGS, _LIMITS = RankingSettings(), SearchLimits()
_ANY_COSINE: Final = -1.0
_NOTES: Final = SearchFilters()
_TOLD: Final = 2_000
"""Characters of a text by which others like it are looked up."""
_TELLING: Final = 16
"""Its rarest words, by which that is done."""


class SearchIndex:
    """An in-memory index over the documents of one agent.

    Args:
        settings: Constants a user may set.
        vectors: Compares embeddings; None searches by words alone.
        limits: How much of a search is looked at closely.
        sealed: Documents that are searched without being put here; one that is put or removed must be hidden there.

    Attributes:
        corpus: What is indexed.
        notes: The same as far as it is no item: what tells how much words weigh, and of talks, when items are left out.
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
        self._arrivals = SEALED_FROM  # behind whatever is sealed
        weights, talks = (sealed.weights, sealed.talks) if sealed is not None else (None, None)
        postings = Postings(self._settings.k1, self._settings.b, self.limits.arrays_from, weights)
        self.corpus = Corpus(postings, Documents(sealed), talks=Talks(talks), sealed=sealed)
        self.notes = (
            self.corpus if sealed is None or sealed.notes.is_whole else _without_items(self.corpus, settings, limits)
        )
        self._unread: dict[str, None] = {}
        self._arrived_sealed: dict[str, int] = {}  # places in the order of storing of what is sealed no more

    def put(self, document: Document) -> None:
        """Insert a document or replace the one of the same id; reading its words waits for a search or `warm`."""
        known = self.corpus.documents.get(document.id)
        if known is None:
            arrival = self._arrived_sealed.get(document.id)
            if arrival is None:
                arrival = self._arrivals = self._arrivals + 1
            self.corpus.documents[document.id] = IndexedDocument(document, arrival)
            self._unread[document.id] = None
            return
        if _read_of(known.document) != _read_of(document):
            self._drop(known)
            self._unread[document.id] = None
        known.document = document

    def remove(self, record_id: str) -> None:
        """Forget a document; an unknown id changes nothing."""
        known = self.corpus.documents.pop(record_id, None)
        if known is None:
            return
        self._drop(known)
        self._unread.pop(record_id, None)
        if self.vectors is not None:
            self.vectors.remove(record_id)

    def forget_sealed(self, record_ids: Iterable[str]) -> None:
        """Look anew at sealed documents: these are not found there any more; those that were put keep their vectors."""
        if self.corpus.sealed is not None:
            gone = list(record_ids)
            self.keep_order(gone)
            self.corpus.sealed.rows.drop(gone)
            for corpus in (self.corpus, self.notes):
                corpus.talks.forget_sealed()
            if self.vectors is not None:
                for record_id in gone:
                    if record_id not in self.corpus.documents:
                        self.vectors.remove(record_id)

    def keep_order(self, record_ids: Iterable[str]) -> None:
        """Let documents that are sealed, and will be put because they have changed, keep their order of storing."""
        if self.corpus.sealed is not None:
            self._arrived_sealed |= self.corpus.sealed.rows.arrivals(list(record_ids))

    def embed_sealed(self, document: Document) -> None:
        """Ask for the vectors of a sealed document, unless it is not found there any more."""
        sealed = self.corpus.sealed
        if self.vectors is not None and sealed is not None and sealed.rows.get(document.id) is not None:
            self.vectors.put(document.id, embedded_texts(document.text))

    def warm(self, at_most: int | None = None) -> bool:
        """Read documents put since the last search, and ask for their vectors.

        Args:
            at_most: Stop after so many, so that a background thread can let others in between; None reads all.

        Returns:
            Whether everything is read.
        """
        for record_id in list(self._unread)[:at_most]:
            self._read(self.corpus.documents[record_id])
            del self._unread[record_id]
        return not self._unread

    def prune(self) -> int:
        """Drop vectors kept for texts that no document has any more; return how many.

        Reads everything first: a document not read yet must not lose its vector.
        """
        self.warm()
        return self.vectors.prune() if self.vectors is not None else 0

    def parse_question(self, request: SearchRequest) -> Question:
        """Parse a request's text with the names in the documents.

        The text is not embedded yet.
        """
        self.warm()
        corpus = self.corpus if request.filters.include_items else self.notes
        return read_question(request.text, request.now, corpus.talks.speakers(), corpus.is_listener, corpus.is_stranger)

    def embed_question(self, question: Question) -> Question:
        """Return a question with its vector, if there is a model.

        Reads no document, so that it may run in any thread: a remote embedder takes its time.
        """
        if self.vectors is None or not question.embedded_text:
            return question
        return replace(question, vector=self.vectors.embed_query(question.embedded_text))

    def search(
        self,
        request: SearchRequest,
        question: Question | None = None,
        *,
        hides: Callable[[str], bool] | None = None,
        among: Masks | None = None,
    ) -> Ranking:
        """Rank the documents for a request.

        Args:
            request: What is asked; one without content words is answered with the latest documents.
            question: The request's text, parsed and embedded; parsed and embedded here when omitted.
            hides: Tells of an id whether that document must not be found, whatever the filters say; None finds all.
            among: Which sealed documents may be found, whatever the filters say; None finds all.
        """
        self.warm()
        question = question or self.embed_question(self.parse_question(request))
        if self.notes is self.corpus and not request.filters.include_items:  # there are none
            request = replace(request, filters=request.filters.with_items)
        search = self._search(request, question, hides, among)
        if question.periods and request.filters.date_range is None:
            narrowed = (_within(request, period) for period in question.periods)
            within = tuple([self._search(each, question, hides, among, search) for each in narrowed])
            search = replace(search, within=within)
        return (
            rank_recent(search) if search.cosines is None and not (question.weights or search.within) else rank(search)
        )

    @property
    def unread(self) -> int:
        """How many documents a search reads first."""
        return len(self._unread)

    def alike(self, text: str, count: int, among: Masks | None = None) -> list[str]:
        """Return the ids of the documents, no items, that share the most telling words with a text, best first.

        By words alone, and by the rarest of them: what a search by meaning would cost, a store has no time for.

        Args:
            text: What they are compared with.
            count: How many at most.
            among: Which sealed documents may be found; None finds all.
        """
        self.warm()
        postings, sealed = self.notes.postings, self.notes.sealed
        known = {term: postings.idf(term) for term in dict.fromkeys(query_terms(text[:_TOLD]))}
        rarest = nlargest(_TELLING, (term for term in known if known[term]), key=known.__getitem__)
        telling = dict.fromkeys(_affordable(rarest, postings.frequency, self.limits.compared), 1.0)
        scores = postings.scores(telling)
        if (meeting := self.corpus.facets.meeting(_NOTES)) is not None:
            scores = scores.within(meeting)
        found = [(scores[number], self.corpus.ids[number]) for number in scores.best(count)]
        if sealed is not None:
            masks = sealed.within(_NOTES, among)
            found += sealed.by_words(postings.gains(telling), postings.norm, count, masks)
        return [one for _, one in nlargest(count, found, key=itemgetter(0))]

    def _search(
        self,
        request: SearchRequest,
        question: Question,
        hides: Callable[[str], bool] | None,
        among: Masks | None,
        whole: Search | None = None,
    ) -> Search:
        """Get a search ready: a whole one or, of `whole`, that of a stretch of time, where any cosine will do."""
        corpus = self.corpus if request.filters.include_items else self.notes
        masks = corpus.sealed.within(request.filters, among) if corpus.sealed is not None else []
        scope = _scope_of(corpus, request, hides, masks)
        search = Search(corpus, request, question, self._settings, self.limits, scope=scope, masks=masks)
        if self.vectors is not None and question.vector is not None and self.vectors.ready:
            known = whole.cosines if whole is not None else None
            exact = known if isinstance(known, ExactCosines) else None  # of all; an engine's are of a scope
            cosines, least = exact or self.vectors.cosines(question.vector, scope), self.vectors.similarity_threshold
            wanted = self._settings.similarity_threshold if whole is None else _ANY_COSINE
            floor, latin_alone = least if wanted is None else wanted, self.vectors.reads_latin_alone
            search = replace(search, cosines=cosines, least=least, floor=floor, latin_alone=latin_alone)
        return search

    def _read(self, entry: IndexedDocument) -> None:
        document, corpus = entry.document, self.corpus
        terms, is_item = document_terms(document), ITEM in document.facets
        if is_item and self.notes is corpus:
            self.notes = _without_items(corpus, self._settings, self.limits)
        entry.number = corpus.postings.add(terms, is_item=is_item)
        entry.moment = document.moment.timestamp()
        entry.length_share = fusion.length_share(len(terms))
        entry.tells_time = tells_time(terms)
        entry.asks, entry.length = asks(document.text), len(terms)
        corpus.ids[entry.number] = document.id
        corpus.facets.add(entry.number, document)
        said = corpus.talks.add(document, entry.arrival, entry.number)
        if self.notes is not corpus and not is_item:
            self.notes.talks.add(document, entry.arrival, entry.number, said)
        if self.vectors is not None:
            self.vectors.put(document.id, embedded_texts(document.text))

    def _drop(self, entry: IndexedDocument) -> None:
        if entry.number == UNREAD:
            return
        document, corpus = entry.document, self.corpus
        corpus.postings.remove(entry.number, document_terms(document), is_item=ITEM in document.facets)
        corpus.facets.remove(entry.number, document)
        for talks in {id(each): each for each in (corpus.talks, self.notes.talks)}.values():
            talks.remove(entry.number)
        del corpus.ids[entry.number]
        entry.number = UNREAD


def _affordable(rarest: list[str], frequency: Callable[[str], int], most: int) -> Iterator[str]:
    """Yield terms as long as all documents that hold one of them may be read."""
    read = 0
    for term in rarest:
        read += frequency(term)
        if read > most:
            return
        yield term


def _without_items(corpus: Corpus, settings: RankingSettings, limits: SearchLimits) -> Corpus:
    """Return a corpus that grows with this one, in which items tell nothing of others; none was added here yet."""
    sealed, weights, talks = corpus.sealed, None, None
    if sealed is not None:
        weights, talks = sealed.weights_of_notes(), sealed.talks_of_notes()
    postings = Postings(settings.k1, settings.b, limits.arrays_from, weights, notes_of=corpus.postings)
    return replace(corpus, postings=postings, talks=corpus.talks.copy(talks))


def _scope_of(
    corpus: Corpus, request: SearchRequest, hides: Callable[[str], bool] | None, masks: Masks
) -> Scope | None:
    filters, documents, sealed = request.filters, corpus.documents, corpus.sealed
    if filters.admits_all and sealed is None:
        # Asking about each of 5,000 candidates takes 1 to 2 ms; most searches have nothing to ask.
        return Scope(filters, lambda record_id: not hides(record_id)) if hides is not None else None

    def admits(record_id: str) -> bool:
        entry = documents[record_id]
        if sealed is not None and entry.number >= SEALED_FROM:
            return sealed.rows.admits(entry, masks)
        return filters.admits(entry.document) and (hides is None or not hides(record_id))

    # Who wants an explanation wants to see all that is left out, but for what is not there for them.
    asked = filters.reach if request.explain else filters
    return Scope(filters, admits, corpus.facets.meeting(asked))


def _within(request: SearchRequest, period: Period) -> SearchRequest:
    """Return a request for what was stored in a stretch of time."""
    until = None if period.end is None else period.end - timedelta(microseconds=1)
    filters = request.filters.model_copy(update={"date_range": DateRange(start=period.start, end=until)})
    return replace(request, filters=filters, explain=False)


def _read_of(document: Document) -> tuple[object, ...]:
    """Return what is read of a document: a change of anything else costs nothing."""
    return (document.text, document.facets, document.timestamp, document.moment, document.session)
