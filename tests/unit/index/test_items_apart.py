"""What was drawn from documents and talks changes nothing of what a search finds in an agent's own notes."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from numpy import array, uint64

from agent_memory.embeddings import EmbeddingWorker
from agent_memory.index import DenseIndex, Ranking, SearchIndex, buffer_part
from agent_memory.index.segment import hash_id
from agent_memory.models import ITEM, MEMORY, Document, Memory, SearchFilters, SearchRequest
from tests.rows import check_rows
from tests.unit.index.test_sealed_search import EMBEDDER, NOW, QUESTIONS, WORDS, documents, sealed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

EVERYTHING = SearchFilters(include_items=True)


def items() -> list[Document]:
    """Return talk of three people who ask much, with the words of the notes and others."""
    random_ = random.Random(7)
    found = []
    for at in range(400):
        said = " ".join(random_.choices([*WORDS, "holiday", "tent"], k=random_.randint(3, 12)))
        said = f"{random_.choice(['Rita', 'Kate', 'Ann'])}: {said}, Redis{random_.choice(['?', '.'])}"
        memory = Memory(
            agent_id="bob",
            id=f"mem-{at + 4096:012x}",
            content=said,
            timestamp=NOW - timedelta(days=random_.randint(0, 60), minutes=at),
            created_by_session=f"s{at // 40}",
            tags=[random_.choice(["db", "home"])],
            source={"kind": "extraction"},
        )
        found.append(MEMORY.document(memory))
    return found


def mixed() -> list[Document]:
    """Return the notes in their order, with items between."""
    random_, notes, others = random.Random(9), documents(), items()
    places = set(random_.sample(range(len(notes) + len(others)), len(notes)))
    by_turn = {True: iter(notes), False: iter(others)}
    return [next(by_turn[at in places]) for at in range(len(notes) + len(others))]


@pytest.fixture(params=["words", "hybrid"])
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., SearchIndex]]:
    """Return a function that makes an index, embedded or not."""
    workers: list[EmbeddingWorker] = []

    def made(every: list[Document], place: Path | None = None, sealed_ones: int = 0) -> SearchIndex:
        hybrid = request.param == "hybrid"
        workers.append(EmbeddingWorker(EMBEDDER))
        vectors = DenseIndex(workers[-1]) if hybrid else None
        parts = [every[: sealed_ones // 2], every[sealed_ones // 2 : sealed_ones]]
        corpus = sealed(place, parts, embedded=hybrid) if place is not None else None
        index = SearchIndex(vectors=vectors, sealed=corpus)
        for each in every[sealed_ones:]:
            index.put(each)
        index.warm()
        assert not hybrid or workers[-1].drain(20)
        return index

    yield made
    for worker in workers:
        worker.close()


def searched(index: SearchIndex, question: str, **filters: Any) -> Any:
    return index.search(SearchRequest(question, 12, NOW, SearchFilters.model_validate(filters)))


def same(one: Ranking, other: Ranking) -> None:
    """Hold that two rankings are one; sealed vectors are of half precision, so what is equally good may swap places."""
    assert [hit.score for hit in other.hits] == pytest.approx([hit.score for hit in one.hits], abs=0.005)
    assert other.strength == pytest.approx(one.strength, abs=0.005)
    scores = {hit.id: hit.score for hit in one.hits}
    least = one.hits[-1].score if one.hits else 0.0
    for hit in other.hits:
        assert hit.score == pytest.approx(scores.get(hit.id, least), abs=0.005)


FILTERS = [{}, {"tags": ["db"]}, {"date_range": {"start": "2026-01-01"}, "min_access_count": 1}]


QUESTIONS_WITH_FILTERS = list(product(QUESTIONS, FILTERS))


def test_notes_are_found_as_if_there_were_no_items(make: Callable[..., SearchIndex]) -> None:
    alone, together = make(documents()), make(mixed())

    @check_rows("question, filters", QUESTIONS_WITH_FILTERS)
    def check_search(question: str, filters: dict[str, Any]) -> None:
        one, other = searched(alone, question, **filters), searched(together, question, **filters)
        assert [(hit.id, hit.score, hit.strength) for hit in other.hits] == [
            (hit.id, hit.score, hit.strength) for hit in one.hits
        ]
        assert (other.strength, other.total_found) == (one.strength, one.total_found)

    check_search()


def test_notes_are_found_as_if_there_were_no_items_when_most_is_sealed(
    make: Callable[..., SearchIndex], tmp_path: Path
) -> None:
    (tmp_path / "alone").mkdir()
    (tmp_path / "together").mkdir()
    ids = {each.id for each in documents()}
    notes = sum(each.id in ids for each in mixed()[:400])
    alone, together = make(documents(), tmp_path / "alone", notes), make(mixed(), tmp_path / "together", 400)

    @check_rows("question, filters", QUESTIONS_WITH_FILTERS)
    def check_search(question: str, filters: dict[str, Any]) -> None:
        one, other = searched(alone, question, **filters), searched(together, question, **filters)
        same(one, other)
        assert other.total_found == pytest.approx(one.total_found, abs=3 if "before" in question else 1)

    check_search()


def test_with_items_sealed_and_unsealed_find_the_same(make: Callable[..., SearchIndex], tmp_path: Path) -> None:
    whole, split = make(mixed()), make(mixed(), tmp_path, 400)

    @check_rows("question", QUESTIONS)
    def check_search(question: str) -> None:
        one, other = (searched(index, question, include_items=True) for index in (whole, split))
        same(one, other)
        assert {hit.id for hit in one.hits} & {each.id for each in items()}

    check_search()


def test_notes_weigh_as_before_when_items_and_notes_have_gone(make: Callable[..., SearchIndex], tmp_path: Path) -> None:
    alone, together, split = make(documents()), make(mixed()), make(mixed(), tmp_path, 400)
    gone = [each.id for each in (*documents()[3:40:3], *items()[::2])]
    assert split.parts.sealed is not None
    split.parts.sealed.chain.hide(array([hash_id(one.encode()) for one in gone], uint64))
    split.forget_sealed(gone)
    for index in (alone, together, split):
        for one in gone:
            index.remove(one)

    for question in QUESTIONS:
        before = searched(alone, question)
        assert [hit.id for hit in searched(together, question).hits] == [hit.id for hit in before.hits]
        same(before, searched(split, question))


def test_a_note_that_becomes_an_item_is_left_out(make: Callable[..., SearchIndex]) -> None:
    index = make(documents())
    first = searched(index, "ledger audit").hits[0].id
    document = next(each for each in documents() if each.id == first)

    index.put(document._replace(facets=(*document.facets, ITEM)))

    assert first not in [hit.id for hit in searched(index, "ledger audit").hits]
    assert first in [hit.id for hit in searched(index, "ledger audit", include_items=True).hits]


@pytest.mark.parametrize("most", [0, 400])
def test_what_is_compared_with_a_new_memory_is_no_item(
    make: Callable[..., SearchIndex], tmp_path: Path, most: int
) -> None:
    alone, together = make(documents()), make(mixed(), tmp_path if most else None, most)
    text = "the ledger audit in march"
    assert sorted(together.alike(text, 5)) == sorted(alone.alike(text, 5))


def test_an_explanation_names_no_items(make: Callable[..., SearchIndex], tmp_path: Path) -> None:
    for index in (make(mixed()), make(mixed(), tmp_path, 400)):
        request = SearchRequest("ledger", 5, NOW, SearchFilters(tags=["db"]), explain=True)
        named = {each.id for each in index.search(request).rejected}
        assert named
        assert not named & {each.id for each in items()}
        every = index.search(replace(request, filters=request.filters.with_items))
        assert {each.id for each in every.rejected} & {each.id for each in items()}


def test_items_are_left_out_without_numpy_too(monkeypatch: pytest.MonkeyPatch) -> None:
    alone, together = SearchIndex(), SearchIndex()
    for index, every in ((alone, documents()), (together, mixed())):
        for each in every:
            index.put(each)
        index.warm()
    monkeypatch.setattr(buffer_part, "numpy_if_there", lambda: None)
    for question in QUESTIONS:
        one, other = searched(alone, question, tags=["db"]), searched(together, question, tags=["db"])
        assert [hit.id for hit in other.hits] == [hit.id for hit in one.hits]
