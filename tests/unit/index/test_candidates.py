"""Candidates: filters give the same answer whichever way they are applied, and counts hold beyond what is looked at."""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.embeddings import EmbeddingWorker
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.index import DenseIndex, Hit, SearchIndex, SearchLimits, buffer_part
from agent_memory.index.candidates import sift
from agent_memory.models import CATEGORIES, DateRange, Document, SearchFilters, SearchRequest
from tests.rows import check_rows

NOW = datetime(2026, 1, 30, 12, tzinfo=UTC)
MANY = 400
WORDS = ("ledger", "audit", "cart", "mail", "backup")


def make(number: int) -> Document:
    tags = ["even"] if number % 2 == 0 else ["odd", f"third{number % 3}"]
    category, stored = CATEGORIES[number % len(CATEGORIES)], NOW - timedelta(hours=number)
    facets = ("category", category), *(("tag", tag) for tag in tags)
    return Document(f"mem-{number:012x}", f"{WORDS[number % 5]} {WORDS[number % 3]} {number}", facets, stored, stored)


def with_limits(index: SearchIndex, limits: SearchLimits) -> SearchIndex:
    """Return an index of the same documents and vectors."""
    other = SearchIndex(vectors=index.vectors, limits=limits)
    for entry in index.parts.buffer.entries.values():
        other.put(entry.document)
    return other


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


FILTERS = [
    SearchFilters(category="decision"),
    SearchFilters(all_tags=["even"]),
    SearchFilters(all_tags=["odd", "third1"]),
    SearchFilters(all_tags=["unheard-of"]),
    SearchFilters(tags=["unheard-of", "third1"]),
    SearchFilters(tags=["third1", "third2"], all_tags=["odd"]),
    SearchFilters(category="note", all_tags=["odd"]),
    SearchFilters(date_range=DateRange(start=NOW - timedelta(hours=50))),
    SearchFilters(date_range=DateRange(end=NOW - timedelta(hours=390))),
    SearchFilters(category="task", date_range=DateRange(start=NOW - timedelta(hours=90), end=NOW)),
]


@pytest.mark.parametrize("numpy", [True, False])
@check_rows("filters", FILTERS, ids=str)
@check_rows("few", [SearchLimits().few, -1])
@check_rows("arrays_from", [0, 10**9])
def test_a_shortcut_finds_what_going_through_all_finds(
    monkeypatch: pytest.MonkeyPatch, index: SearchIndex, filters: SearchFilters, few: int, arrays_from: int, numpy: bool
) -> None:
    index = with_limits(index, SearchLimits(few=few, arrays_from=arrays_from))
    if not numpy:
        monkeypatch.setattr(buffer_part, "numpy_if_there", lambda: None)

    def found(request: SearchRequest, hidden: Collection[str] = ()) -> tuple[list[Hit], int]:
        ranking = index.search(request, hidden=hidden)
        return list(ranking.hits), ranking.total_found

    request = SearchRequest("audit of the ledger", 20, NOW, filters)
    entries = index.parts.buffer.entries
    without = SearchRequest("audit of the ledger", 20, NOW)
    assert found(request) == found(without, [one for one in entries if not filters.admits(entries[one].document)])


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_what_may_meet_a_filter_is_all_that_does_after_changes(index: SearchIndex, filters: SearchFilters) -> None:
    for number in range(0, MANY, 3):
        index.remove(make(number).id)
    for number in range(0, MANY, 6):
        index.put(make(number))
    index.warm()
    buffer = index.parts.buffer
    passing = {one for one, entry in buffer.entries.items() if filters.admits(entry.document)}
    mask = buffer.mask(filters)
    assert passing == {one for row, one in buffer.ids.items() if mask[row]}
    assert buffer.count(mask) == len(passing)


@check_rows("query", ["audit", "audit ledger", "cart mail backup ledger audit"])
@check_rows("share", [2, 3, 10])
def test_a_filter_gone_through_in_portions_finds_the_same_and_counts_about_as_many(
    index: SearchIndex, query: str, share: int
) -> None:
    def found(index: SearchIndex) -> tuple[list[str], int]:
        hidden = [one for one in index.parts.buffer.entries if int(one[4:], 16) % share > 0]
        ranking = index.search(SearchRequest(query, 5, NOW), hidden=hidden)
        return [hit.id for hit in ranking.hits], ranking.total_found

    exact = found(index)
    hits, total = found(with_limits(index, SearchLimits(counted=40)))
    assert hits == exact[0]
    assert total == pytest.approx(exact[1], rel=0.35)


def test_a_count_beyond_what_is_looked_at_is_close(index: SearchIndex) -> None:
    request = SearchRequest("ledger audit cart", 5, NOW)
    exact, estimated = index.search(request), with_limits(index, SearchLimits(counted=50)).search(request)
    assert estimated.hits == exact.hits
    assert estimated.total_found == pytest.approx(exact.total_found, rel=0.2)


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 12), st.integers(1, 7))
def test_portions_yield_a_list_once_and_in_order(numbers: list[int], size: int, first: int) -> None:
    """However the portions fall, the first that pass are kept, and a list gone through to its end is counted."""
    pairs = [(str(number), 0.5) for number in numbers]
    sifted = sift(lambda count: pairs[:count], len(pairs), size, lambda one: int(one) % 3 > 0, first)
    passing = [pair for pair in pairs if int(pair[0]) % 3 > 0]
    assert sifted.admitted == passing[: len(sifted.admitted)]
    assert len(sifted.admitted) >= min(size, len(passing))
    if len(sifted.admitted) + len(sifted.left_out) == len(numbers):
        assert sifted.total == len(passing)
