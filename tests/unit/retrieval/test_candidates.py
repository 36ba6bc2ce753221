"""Candidates: filters give the same answer whichever way they are applied, and counts hold beyond what is looked at."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.embeddings import EmbeddingWorker
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.engine import Where
from agent_memory.models import CATEGORIES, Memory
from agent_memory.retrieval import DenseIndex, SearchIndex, candidates, facets, postings

NOW = datetime(2026, 1, 30, 12, tzinfo=UTC)
MANY = 400
WORDS = ("ledger", "audit", "cart", "mail", "backup")


def make(number: int) -> Memory:
    return Memory(
        agent_id="bob",
        id=f"mem-{number:012x}",
        content=f"{WORDS[number % 5]} {WORDS[number % 3]} {number}",
        category=CATEGORIES[number % len(CATEGORIES)],
        tags=["even"] if number % 2 == 0 else ["odd", f"third{number % 3}"],
        timestamp=NOW - timedelta(hours=number),
    )


@pytest.fixture
def index() -> Iterator[SearchIndex]:
    worker = EmbeddingWorker(HashEmbedder(dimension=64))
    filled = SearchIndex(vectors=DenseIndex(worker))
    for number in range(MANY):
        filled.put(make(number))
    filled.warm()
    assert worker.drain(30)
    yield filled
    worker.close()


def allowed_by(where: Where, memory: Memory) -> bool:
    moment = memory.timestamp.timestamp()
    return (
        (where.category is None or memory.category == where.category)
        and set(where.tags) <= set(memory.tags)
        and (not where.any_tags or set(where.any_tags) & set(memory.tags))
        and (where.since is None or moment >= where.since)
        and (where.until is None or moment <= where.until)
    )


FILTERS = [
    Where(category="decision"),
    Where(tags=("even",)),
    Where(tags=("odd", "third1")),
    Where(tags=("unheard-of",)),
    Where(any_tags=("unheard-of", "third1")),
    Where(any_tags=("third1", "third2"), tags=("odd",)),
    Where(category="note", tags=("odd",)),
    Where(since=(NOW - timedelta(hours=50)).timestamp()),
    Where(until=(NOW - timedelta(hours=390)).timestamp()),
    Where(category="task", since=(NOW - timedelta(hours=90)).timestamp(), until=NOW.timestamp()),
]


@pytest.mark.parametrize("where", FILTERS, ids=str)
@pytest.mark.parametrize("few", [candidates._FEW, -1])
@pytest.mark.parametrize("arrays_from", [0, 10**9])
@pytest.mark.parametrize("numpy", [True, False])
def test_a_shortcut_finds_what_going_through_all_finds(
    monkeypatch: pytest.MonkeyPatch, index: SearchIndex, where: Where, few: int, arrays_from: int, numpy: bool
) -> None:
    monkeypatch.setattr(candidates, "_FEW", few)
    monkeypatch.setattr(postings, "_ARRAYS_FROM", arrays_from)
    if not numpy:
        monkeypatch.setattr(facets, "numpy_if_there", lambda: None)

    def found(hint: Where | None) -> tuple[list[tuple[str, float]], int]:
        ranking = index.search(
            "audit of the ledger", limit=20, now=NOW, allowed=lambda one: allowed_by(where, one), where=hint
        )
        return [(hit.memory_id, hit.score) for hit in ranking.hits], ranking.total_found

    assert found(where) == found(None)


@pytest.mark.parametrize("where", FILTERS, ids=str)
def test_what_may_meet_a_filter_is_all_that_does_after_changes(index: SearchIndex, where: Where) -> None:
    for number in range(0, MANY, 3):
        index.remove(make(number).id)
    for number in range(0, MANY, 6):
        index.put(make(number))
    index.warm()
    meeting = index.facets.meeting(where)
    assert meeting is not None
    passing = {one for one, entry in index.entries.items() if allowed_by(where, entry.memory)}
    assert passing == {index.owners[int(document)] for document in meeting}


def test_without_conditions_nothing_is_known(index: SearchIndex) -> None:
    assert index.facets.meeting(Where()) is None
    assert index.facets.meeting(Where(min_access_count=3)) is None


@pytest.mark.parametrize("query", ["audit", "audit ledger", "cart mail backup ledger audit"])
@pytest.mark.parametrize("share", [2, 3, 10])
def test_a_filter_gone_through_in_portions_finds_the_same_and_counts_about_as_many(
    monkeypatch: pytest.MonkeyPatch, index: SearchIndex, query: str, share: int
) -> None:
    def found() -> tuple[list[str], int]:
        ranking = index.search(query, limit=5, now=NOW, allowed=lambda one: int(one.id[4:], 16) % share == 0)
        return [hit.memory_id for hit in ranking.hits], ranking.total_found

    exact = found()
    monkeypatch.setattr(candidates, "_COUNTED", 40)
    hits, total = found()
    assert hits == exact[0]
    assert total == pytest.approx(exact[1], rel=0.35)


def test_a_count_beyond_what_is_looked_at_is_close(monkeypatch: pytest.MonkeyPatch, index: SearchIndex) -> None:
    exact = index.search("ledger audit cart", limit=5, now=NOW)
    monkeypatch.setattr(candidates, "_COUNTED", 50)
    estimated = index.search("ledger audit cart", limit=5, now=NOW)
    assert estimated.hits == exact.hits
    assert estimated.total_found == pytest.approx(exact.total_found, rel=0.2)


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 12), st.integers(1, 7))
def test_portions_yield_a_list_once_and_in_order(numbers: list[int], size: int, first: int) -> None:
    """However the portions fall, the first that pass are kept, and a list gone through to its end is counted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "_COUNTED", first)
        sifted = candidates._sift(lambda count: numbers[:count], len(numbers), size, lambda one: one % 3 > 0)
    passing = [one for one in numbers if one % 3 > 0]
    assert sifted.kept == passing[: len(sifted.kept)]
    assert len(sifted.kept) >= min(size, len(passing))
    if len(sifted.kept) + len(sifted.left_out) == len(numbers):
        assert sifted.total == len(passing)
