"""Whatever part of the documents is sealed, a search finds the same, in the same order."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import count, product
from typing import TYPE_CHECKING, Any

import pytest
from numpy import array, uint64

from agent_memory.embeddings import EmbeddingWorker
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.index import DenseIndex, Ranking, SearchIndex
from agent_memory.index.results import SearchLimits
from agent_memory.index.segment import Chain, Segment, SegmentInfo, hash_id
from agent_memory.index.segment_part import SealedCorpus
from agent_memory.index.segment_vectors import PieceVectors, SealedVectors, add_vectors, folder_name
from agent_memory.index.segment_writer import Row, seal, searched_fields
from agent_memory.models import MEMORY, Document, Memory, SearchFilters, SearchRequest
from tests.rows import check_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

NOW = datetime(2026, 1, 30, 12, tzinfo=UTC)
WORDS = [
    "ledger",
    "audit",
    "tea",
    "postgres",
    "redis",
    "march",
    "deploy",
    "friday",
    "walk",
    "garden",
    "cat",
    "invoice",
    "berlin",
    "train",
]
EMBEDDER = HashEmbedder()


def documents() -> list[Document]:
    """Return facts, the turns of three talks, and two sessions without speakers, of some weeks."""
    random_ = random.Random(5)
    found = []
    for at in range(120):
        said = " ".join(random_.choices(WORDS, k=random_.randint(2, 9)))
        fields: dict[str, Any] = {"tags": [random_.choice(["db", "home"])], "access_count": random_.randint(0, 3)}
        if at % 3:
            said = f"{random_.choice(['Ann', 'Bob'])}: {said}"
            fields["created_by_session"] = f"s{at // 40}"
        elif at % 2:
            said = random_.choice([f"Hi Kate! {said}?", f"{said}, Kate.", said])
            fields["created_by_session"] = f"plain{at // 60}"
        moment = NOW - timedelta(days=random_.randint(0, 60), minutes=at)
        memory = Memory(agent_id="bob", id=f"mem-{at:012x}", content=said, timestamp=moment, **fields)
        found.append(MEMORY.document(memory))
    return found


def row_of(document: Document, seq: int, arrival: int) -> Row:
    return Row(id=document.id, seq=seq, data=b"{}", text_hash=bytes(32), arrival=arrival, **searched_fields(document))


def sealed(place: Path, parts: Sequence[Sequence[Document]], *, embedded: bool) -> SealedCorpus:
    """Seal a segment of each part."""
    segments, arrivals = [], count()
    for at, part in enumerate(parts):
        folder = place / str(at)
        folder.mkdir()
        seal(
            folder,
            [row_of(each, at + 1, next(arrivals)) for each in part],
            SegmentInfo("memory", at + 1, at + 1, 0, 0, 0),
        )
        segments.append(Segment(folder))
        if embedded:
            add_vectors(folder, "m", EMBEDDER.dimension, [EMBEDDER.embed_documents([each.text for each in part])])
    vectors = [PieceVectors(each.folder / folder_name("m")) if embedded else None for each in segments]
    searched = [SealedVectors(one, each) if each else None for one, each in zip(segments, vectors, strict=True)]
    return SealedCorpus(Chain(segments), searched)


@pytest.fixture
def worker() -> Iterator[EmbeddingWorker]:
    working = EmbeddingWorker(EMBEDDER)
    yield working
    working.close()


@pytest.fixture(params=["words", "hybrid"])
def indexes(
    request: pytest.FixtureRequest, tmp_path: Path, worker: EmbeddingWorker
) -> Iterator[tuple[SearchIndex, SearchIndex]]:
    """Return an index of all documents, and one of which two thirds are sealed, in two segments."""
    hybrid, every = request.param == "hybrid", documents()
    whole = SearchIndex(vectors=DenseIndex(worker) if hybrid else None)
    other = EmbeddingWorker(EMBEDDER)
    corpus = sealed(tmp_path, [every[:50], every[50:80]], embedded=hybrid)
    split = SearchIndex(vectors=DenseIndex(other) if hybrid else None, sealed=corpus)
    for each in every:
        whole.put(each)
    for each in every[80:]:
        split.put(each)
    for index, works in ((whole, worker), (split, other)):
        index.warm()
        if hybrid:
            assert works.drain(20)
    yield whole, split
    other.close()


QUESTIONS = [
    "what did Ann say about the ledger audit",
    "redis",
    "when is the deploy in march?",
    "garden cat walk",
    "where does Kate walk with Rita",
    "what did we decide last week",
    "what happened to the ledger before 2026-01-15",
    "",
]


def same(one: Ranking, other: Ranking) -> None:
    assert [hit.id for hit in other.hits] == [hit.id for hit in one.hits]
    for hit, like in zip(one.hits, other.hits, strict=True):
        assert like.parts == pytest.approx(hit.parts, abs=0.002)
        assert like.match_type == hit.match_type
        assert like.strength == pytest.approx(hit.strength, abs=0.005)
    assert other.strength == pytest.approx(one.strength, abs=0.005)
    assert other.mode == one.mode


@check_rows("question", QUESTIONS)
@check_rows(
    "filters",
    [
        {},
        {"tags": ["db"]},
        {"all_tags": ["home"], "min_access_count": 1},
        {"date_range": {"start": "2026-01-01", "end": "2026-01-20"}},
    ],
)
def test_what_is_sealed_is_found_as_if_it_were_not(
    indexes: tuple[SearchIndex, SearchIndex], question: str, filters: dict[str, Any]
) -> None:
    whole, split = indexes
    request = SearchRequest(question, 12, NOW, SearchFilters.model_validate(filters))

    one, other = whole.search(request), split.search(request)

    same(one, other)
    # Halves of floats may miss the floor; and of what is equally near in a time that is asked about, some is looked at.
    assert other.total_found == pytest.approx(one.total_found, abs=3 if "before" in question else 1)


def test_rows_that_may_not_be_found_are_left_out_and_explained(indexes: tuple[SearchIndex, SearchIndex]) -> None:
    whole, split = indexes
    request = SearchRequest("ledger", 5, NOW, explain=True)
    best = whole.search(request).hits[0].id
    corpus = split.parts.sealed
    assert corpus is not None
    masks = [mask.copy() for mask in corpus.chain.alive]
    number = corpus.chain.find(best)
    assert number is not None
    at, row = corpus.chain.locate(number)
    masks[at][row] = False

    found = split.search(request, among=masks)

    assert best not in [hit.id for hit in found.hits]
    assert best in [each.id for each in found.rejected if each.reason == "filtered"]


def changed(document: Document) -> Document:
    return document._replace(text="Ann: something else about a violin")


def removed(_: Document) -> None:
    return None


@pytest.mark.parametrize("change", [changed, removed])
def test_a_sealed_document_that_changes_is_found_as_it_is_now(
    indexes: tuple[SearchIndex, SearchIndex], change: Callable[[Document], Document | None]
) -> None:
    whole, split = indexes
    document = documents()[10]
    corpus = split.parts.sealed
    assert corpus is not None
    for index in (whole, split):
        index.search(SearchRequest("ann ledger", 5, NOW))
        index.remove(document.id)
    corpus.chain.hide(array([hash_id(document.id.encode())], uint64))
    split.forget_sealed([document.id])
    if (new := change(document)) is not None:
        for index in (whole, split):
            index.put(new)
            index.warm()

    for question in ("violin", document.text):
        one = whole.search(SearchRequest(question, 5, NOW))
        other = split.search(SearchRequest(question, 5, NOW))
        assert document.id not in [hit.id for hit in other.hits] or new is not None
        assert {hit.id for hit in one.hits[:2]} <= {hit.id for hit in other.hits}


def test_what_was_removed_weighs_no_words(indexes: tuple[SearchIndex, SearchIndex]) -> None:
    whole, split = indexes
    corpus = split.parts.sealed
    assert corpus is not None
    for index in (whole, split):
        index.search(SearchRequest("ledger audit", 5, NOW))
    gone = [document.id for document in documents()[:50] if "ledger" in document.text]
    for one in gone:
        whole.remove(one)
    corpus.chain.hide(array([hash_id(one.encode()) for one in gone], uint64))
    split.forget_sealed(gone)

    for question in QUESTIONS[1:3]:
        same(*(index.search(SearchRequest(question, 12, NOW)) for index in (whole, split)))


def test_what_was_removed_calls_nobody_and_asks_nothing(indexes: tuple[SearchIndex, SearchIndex]) -> None:
    _, split = indexes
    split.search(SearchRequest("ledger audit", 5, NOW))
    corpus, talks = split.parts.sealed, split.corpus.talks
    assert corpus is not None
    assert (talks.is_listener("kate", 20), talks.are_asking(20)) == (True, True)

    gone = [document.id for document in documents() if "Kate" in document.text]
    for one in gone:
        split.remove(one)
    corpus.chain.hide(array([hash_id(one.encode()) for one in gone], uint64))
    split.forget_sealed(gone)

    assert (talks.is_listener("kate", 20), talks.are_asking(20)) == (False, False)


@pytest.mark.parametrize("arrays_from", [0, 1_000_000])
def test_what_was_sealed_without_vectors_is_found_by_those_that_are_held(
    tmp_path: Path, worker: EmbeddingWorker, arrays_from: int
) -> None:
    every, limits = documents(), SearchLimits(arrays_from=arrays_from)
    corpus = sealed(tmp_path, [every[:50], every[50:80]], embedded=False)
    split = SearchIndex(vectors=DenseIndex(worker), limits=limits, sealed=corpus)
    other = EmbeddingWorker(EMBEDDER)
    whole = SearchIndex(vectors=DenseIndex(other), limits=limits)
    for each in every:
        whole.put(each)
        if each in every[:80]:
            split.embed_sealed(each)
        else:
            split.put(each)
    for index, works in ((whole, other), (split, worker)):
        index.warm()
        assert works.drain(20)

    january = {"date_range": {"start": "2026-01-01", "end": "2026-01-20"}}
    for question, filters in product(QUESTIONS, ({}, january)):
        request = SearchRequest(question, 12, NOW, SearchFilters.model_validate(filters))
        one, found = whole.search(request), split.search(request)
        assert {hit.id for hit in found.hits} == {hit.id for hit in one.hits}
        # Of equals others may come first, which are looked at with their neighbours, and counted.
        assert found.total_found == pytest.approx(one.total_found, abs=1 if filters or "before" in question else 0)
    other.close()
