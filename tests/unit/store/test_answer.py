"""What was replaced may be found, behind what replaced it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.index import Hit, Ranking
from agent_memory.storage import FileStorage
from agent_memory.store.store import rank_current_first, rank_past
from agent_memory.times import Period
from tests.support import FrozenClock, memory_of

if TYPE_CHECKING:
    from pathlib import Path


@given(st.lists(st.floats(0, 1), max_size=12), st.dictionaries(st.integers(0, 11), st.integers(0, 11)))
def test_no_memory_stands_before_the_one_that_replaced_it(scores: list[float], newer: dict[int, int]) -> None:
    newer = {old: new for old, new in newer.items() if new > old}  # nothing replaces itself
    hits = tuple(Hit(str(number), score, "keyword") for number, score in enumerate(sorted(scores, reverse=True)))

    def replaced_by(memory_id: str) -> str | None:
        return str(newer[int(memory_id)]) if int(memory_id) in newer else None

    found = rank_current_first(Ranking(hits, len(hits), "keyword"), replaced_by).hits
    order = [hit.id for hit in found]
    assert sorted(order) == sorted(hit.id for hit in hits)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    for old, new in newer.items():
        if str(old) in order and str(new) in order:
            assert order.index(str(new)) < order.index(str(old))


async def test_the_present_comes_first_even_when_the_past_matches_better(root: Path, clock: FrozenClock) -> None:
    storage = FileStorage("bob", root, clock=clock, embedder=HashEmbedder())
    old = memory_of("the database is MySQL, the database of all databases")
    await storage.store(old)
    await storage.store(memory_of("use PostgreSQL as a database from now on", supersedes=old.id))
    found = await storage.search("the database is", include_superseded=True)
    assert [result.memory.supersedes for result in found] == [old.id, None]
    assert found[0].relevance_score >= found[1].relevance_score
    (best,) = await storage.search("the database is", limit=1, include_superseded=True, explain=True)
    assert best.memory.supersedes == old.id
    await storage.close()


async def test_search_words_of_the_replaced_text_finds_its_successor(root: Path, clock: FrozenClock) -> None:
    storage = FileStorage("bob", root, clock=clock, embedder=HashEmbedder())
    first = memory_of("We manage Python dependencies with Poetry.")
    second = memory_of("Poetry gave way to PDM.", supersedes=first.id)
    third = memory_of("PDM gave way to uv.", supersedes=second.id)
    for memory in (first, second, third, memory_of("Python 3.12 is the oldest version that we support.")):
        await storage.store(memory)
    found = await storage.search("Which tool manages our Python dependencies?")
    assert found[0].memory.id == third.id
    assert not {first.id, second.id} & {result.memory.id for result in found}
    assert len({result.memory.id for result in found}) == len(found)
    await storage.close()


async def test_search_successor_outside_the_filters_stays_out(root: Path, clock: FrozenClock) -> None:
    storage = FileStorage("bob", root, clock=clock, embedder=HashEmbedder())
    old = memory_of("We manage Python dependencies with Poetry.", category="decision")
    await storage.store(old)
    await storage.store(memory_of("It is uv now.", category="note", supersedes=old.id))
    assert not await storage.search("Python dependencies", filters={"category": "decision"})
    await storage.close()


# -- what was so then -------------------------------------------------------------------------------------------------


async def versions(root: Path, now: datetime) -> FileStorage:
    """Store a fact and what replaced it, on 20 May, 30 June and 28 September 2025."""
    storage, older = FileStorage("bob", root, clock=lambda: now, embedder=HashEmbedder()), None
    for number, day in ((14, "2025-05-20"), (15, "2025-06-30"), (16, "2025-09-28")):
        text = f"The database is PostgreSQL {number}"
        older = await storage.store(memory_of(text, timestamp=f"{day}T09:00:00Z", supersedes=older))
    return storage


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("which database do we use", [16]),
        ("which database did we use in July 2025", [15, 16]),
        ("which database did we use before June 2025", [14, 16]),
        ("which database on 30 June 2025", [15, 14, 16]),
        ("which database since July 2025", [16]),
        ("which database in October 2025", [16]),
        ("which database in 2019", [16]),
    ],
)
async def test_a_time_that_is_over_is_answered_by_what_held_then(root: Path, question: str, found: list[int]) -> None:
    storage = await versions(root, datetime(2026, 1, 30, tzinfo=UTC))
    results = await storage.search(question, limit=10)
    assert [int(hit.memory.content[-2:]) for hit in results] == found
    assert results.looks_back == (found != [16] or (question[-4:] in {"2019", "2025"} and "since" not in question))
    scores = [hit.relevance_score for hit in results]
    assert scores == sorted(scores, reverse=True)
    await storage.close()


START = datetime(2026, 1, 1, tzinfo=UTC)


@given(st.lists(st.floats(0, 1), max_size=9), st.integers(0, 9), st.integers(1, 9))
def test_what_held_at_a_time_stands_before_what_replaced_it_since(scores: list[float], first: int, days: int) -> None:
    # Memory n was stored on day n and replaced by the next one.
    hits = tuple(Hit(str(number), score, "keyword") for number, score in enumerate(scores))
    ranking = Ranking(tuple(sorted(hits, key=lambda hit: -hit.score)), len(hits), "keyword")
    period = Period(START + timedelta(days=first), START + timedelta(days=first + days))
    found = rank_past(
        ranking,
        [period],
        lambda one: str(int(one) + 1) if int(one) + 1 < len(scores) else None,
        lambda one: START + timedelta(days=int(one)),
    ).hits
    order = [int(hit.id) for hit in found]
    last = len(scores) - 1
    assert set(order) - {last} == {n for n in range(last) if n < first + days and n + 1 > first}
    if order and last >= first + days:  # what is current came later: nothing that held then stands behind it
        assert order[-1] == last or scores[last] <= min(scores[one] for one in order)
